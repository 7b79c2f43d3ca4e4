"""Plain counting."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelonce._kernels import Counts
from labelonce._types import Floats
from labelonce.workers._answers import leaning_moments
from labelonce.workers._base import WorkerModel
from labelonce.workers._intervals import beta_interval


class Counted(WorkerModel):
    """Each row is the share of the worker's labels, without any smoothing, as in `MBEM.paper`.

    A row without labels is uniform. Intervals treat every entry separately, with a uniform prior.

    References
    ----------
    Equation 7 of A. Khetan, Z. C. Lipton and A. Anandkumar, "Learning From Noisy Singly-labeled Data", ICLR 2018.

    Examples
    --------
    >>> import numpy as np
    >>> Counted().fit_counts(np.array([[[3.0, 1.0], [0.0, 0.0]]])).confusion_
    array([[[0.75, 0.25],
            [0.5 , 0.5 ]]])
    """

    _takes_scales = True

    def _fit_answers(self, counts: Floats, leaning: Floats) -> None:
        self._fit(Counts(counts))
        self._leaning = leaning

    def _fit(self, tallies: Any, *, first: bool = False) -> None:
        self._counts = counts = tallies.values
        total = counts.sum(axis=2, keepdims=True)
        self.confusion_ = np.where(total > 0, counts / np.maximum(total, 1e-300), 1 / counts.shape[2])

    def _entry_moments(self) -> tuple[Floats, Floats]:
        if self._counts.shape[2] == 1:
            return np.ones_like(self._counts), np.zeros_like(self._counts)
        size = self._counts.sum(axis=2, keepdims=True) + 2
        mean = (self._counts + 1) / size
        return mean, mean * (1 - mean) / (size + 1)

    def _entry_interval(self, level: float) -> tuple[Floats, Floats]:
        return beta_interval(*self._entry_moments(), level)

    def _skill_moments(self, prior: Floats) -> tuple[Floats, Floats]:
        if "_leaning" in vars(self):
            return self._answer_moments(prior)
        mean, variance = self._entry_moments()
        return np.einsum("wkk,k->w", mean, prior), np.einsum("wkk,k->w", variance, prior**2)

    def _answer_moments(self, prior: Floats) -> tuple[Floats, Floats]:
        """Return the moments of the skill among the answers that lean to a class, as far as they lean."""
        weight = self._leaning.sum(axis=1)
        counts = (self._counts * weight)[:, :, weight > 0] + 1.0
        size = counts.sum(axis=2, keepdims=True)
        return leaning_moments(counts / size, size, self._leaning[weight > 0], prior)
