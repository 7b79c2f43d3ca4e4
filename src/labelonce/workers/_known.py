"""Workers whose confusion is given."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from labelonce._kernels import Beliefs, Pattern, confusion_of, pattern_of
from labelonce._types import Floats
from labelonce._validate import check_distribution
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

    def uses_slots(self, labels: Any) -> bool:
        """Return whether the workers are given as factors."""
        return pattern_of(confusion_of(self.confusion)) is not None

    def prepare(self, labels: Any, predictions: Any = None) -> Pattern | None:
        """Check that the workers are those of the labels, and return what their factors keep apart."""
        known = confusion_of(self.confusion)
        self._set(known, (labels.n_workers, labels.n_classes, labels.n_answers))
        return pattern_of(known)

    @property
    def in_groups(self) -> bool:  # type: ignore[override]  # known from the factors
        """Whether a label is evidence for the classes of one group."""
        pattern = pattern_of(self._confusion)
        return pattern is not None and len(pattern.mistakes) > 0

    def holds(self, labels: Any, predictions: Beliefs) -> bool:
        """Return whether labels stay within groups."""
        return self.in_groups

    def fit_tallies(self, tallies: Any, *, first: bool = False) -> Self:
        """Leave the workers as they are."""
        if "_confusion" not in vars(self):
            self._set(confusion_of(self.confusion), tallies.values.shape)
        self._leaning = tallies.leaning
        return self

    def _set(self, known: Any, shape: tuple[int, ...]) -> None:
        if pattern_of(known) is None:
            check_distribution(known.dense(), "confusion", shape)
        elif known.shape != shape:
            raise ValueError(
                f"confusion must be of {shape[0]} workers and {shape[1]} classes; got {known.shape[0]} and "
                f"{known.shape[1]}."
            )
        self._confusion = known

    def _fit(self, tallies: Any, *, first: bool = False) -> None:
        """Nothing is fitted."""

    def _entry_interval(self, level: float) -> tuple[Floats, Floats]:
        return self.confusion_.copy(), self.confusion_.copy()

    def _skill_moments(self, prior: Floats) -> tuple[Floats, Floats]:
        found = self._confusion.skill(prior, self._leaning)
        return found, np.zeros(len(found))
