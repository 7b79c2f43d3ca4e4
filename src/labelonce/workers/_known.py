"""Workers whose confusion is given."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelonce._types import Floats
from labelonce._validate import check_distribution
from labelonce.workers._base import WorkerModel


class Known(WorkerModel):
    """Given confusion matrices, whatever the predictions say. Their intervals are single points.

    Parameters
    ----------
    confusion : (n_workers, n_classes, n_answers) array
        P(given | true) as [worker, true, given].

    Examples
    --------
    >>> import labelonce as lo
    >>> ann = lo.Annotations.from_matrix([[0, 1], [1, 1]])
    >>> confusion = lo.simulate.one_coin([0.9, 0.6], n_classes=2)
    >>> low, high = Known(confusion).fit(ann, [0, 1]).skill_interval()
    >>> low, high
    (array([0.9, 0.6]), array([0.9, 0.6]))
    """

    def __init__(self, confusion: Any) -> None:
        self.confusion = confusion

    _takes_scales = True

    def _fit_answers(self, counts: Floats, leaning: Floats) -> None:
        self._fit(counts)
        self._shares, self._leaning = (), leaning

    def _answer_interval(self, level: float) -> tuple[Floats, Floats]:
        return self._entry_interval(level)

    def _fit(self, counts: Floats) -> None:
        self.confusion_ = check_distribution(self.confusion, "confusion", counts.shape)

    def _entry_interval(self, level: float) -> tuple[Floats, Floats]:  # noqa: ARG002
        return self.confusion_.copy(), self.confusion_.copy()

    def _skill_moments(self, prior: Floats) -> tuple[Floats, Floats]:
        if "_shares" not in vars(self):
            return np.einsum("wkk,k->w", self.confusion_, prior), np.zeros(len(self.confusion_))
        weight = self.confusion_ @ self._leaning.sum(axis=1)
        right = np.einsum("wks,sk->wk", self.confusion_, self._leaning) / np.maximum(weight, 1e-300)
        return right @ prior, np.zeros(len(self.confusion_))
