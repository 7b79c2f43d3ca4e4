"""Plain counting, as in the paper."""

from __future__ import annotations

import numpy as np

from labelonce._types import Floats
from labelonce.workers._base import WorkerModel
from labelonce.workers._intervals import beta_interval


class Counted(WorkerModel):
    """Each row is the share of the worker's labels, without any smoothing: the paper's equation 7.

    A row without labels is uniform, as in the paper's code. Intervals take every entry by itself, with a uniform
    prior.

    Examples
    --------
    >>> import numpy as np
    >>> Counted().fit_counts(np.array([[[3.0, 1.0], [0.0, 0.0]]])).confusion_
    array([[[0.75, 0.25],
            [0.5 , 0.5 ]]])
    """

    def _fit(self, counts: Floats) -> None:
        self._counts = counts
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
        mean, variance = self._entry_moments()
        return np.einsum("wkk,k->w", mean, prior), np.einsum("wkk,k->w", variance, prior**2)
