"""Workers whose confusion is given."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from labelonce._kernels import Candidates, Factors, Mistakes, Tallies
from labelonce._types import Codes, Floats
from labelonce._validate import check_distribution
from labelonce.data import Annotations
from labelonce.workers._base import WorkerModel


class Known(WorkerModel):
    """Given confusion matrices, whatever the predictions say. Their intervals are single points.

    Parameters
    ----------
    confusion : (n_workers, n_classes, n_answers) array or Factors
        P(given | true) as [worker, true, given], or the factors of it, for many classes, as `simulate` makes them.

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

    @property
    def needs_picks(self) -> bool:
        """Whether `prepare` has to know a model's picks."""
        return False

    @property
    def in_groups(self) -> bool:
        """Whether a label speaks for the classes of one group."""
        return len(self.factors_.mistakes) > 0

    def holds(self, annotations: Annotations, predictions: Candidates) -> bool:  # noqa: ARG002  # as `Grouped` does
        """Return whether labels stay within groups: it is known."""
        return self.in_groups

    @property
    def pattern(self) -> tuple[Mistakes, Codes]:
        """The pairs with a share of their own, and the row of every class."""
        return self.factors_.mistakes, self.factors_.row

    def prepare(self, annotations: Annotations, picks: Codes | None = None) -> Self:  # noqa: ARG002  # as `Grouped` does
        """Check that the factors are those of the annotations' workers and classes."""
        self._set_factors((annotations.n_workers, annotations.n_classes, annotations.n_classes))
        return self

    def _set_factors(self, shape: tuple[int, ...]) -> None:
        if not isinstance(self.confusion, Factors):
            raise TypeError("Known must be given factors where there are many classes; got matrices.")
        if self.confusion.shape != shape:
            raise ValueError(
                f"confusion must be of {shape[0]} workers and {shape[1]} classes; got {self.confusion.shape[0]} and "
                f"{self.confusion.shape[1]}."
            )
        self.factors_ = self.confusion

    def fit_tallies(self, tallies: Tallies, *, first: bool = False) -> Self:  # noqa: ARG002  # nothing to learn
        """Leave the workers as they are."""
        return self

    def _fit(self, counts: Floats) -> None:
        if isinstance(self.confusion, Factors):
            self._set_factors(counts.shape)
        else:
            self.confusion_ = check_distribution(self.confusion, "confusion", counts.shape)

    def _entry_interval(self, level: float) -> tuple[Floats, Floats]:  # noqa: ARG002
        return self.confusion_.copy(), self.confusion_.copy()

    def _skill_moments(self, prior: Floats) -> tuple[Floats, Floats]:
        if isinstance(self.confusion, Factors):
            return self.factors_.skill(prior), np.zeros(self.factors_.n_workers)
        if "_shares" not in vars(self):
            return np.einsum("wkk,k->w", self.confusion_, prior), np.zeros(len(self.confusion_))
        weight = self.confusion_ @ self._leaning.sum(axis=1)
        right = np.einsum("wks,sk->wk", self.confusion_, self._leaning) / np.maximum(weight, 1e-300)
        return right @ prior, np.zeros(len(self.confusion_))
