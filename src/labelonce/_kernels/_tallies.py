"""What an M-step needs to know: the expected counts of labels, for matrices or for factors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from labelonce._kernels._confusion import Matrices
from labelonce._kernels._factors import Factors, Mistakes
from labelonce._types import Codes, Floats


@dataclass(frozen=True, eq=False)
class Counts:
    """Expected counts of labels by worker, true class and answer.

    Attributes
    ----------
    values : (n_workers, n_classes, n_answers)
    leaning : (n_answers, n_classes), optional
        To what share each answer is evidence for each class; None where the answers are the classes.
    """

    values: Floats
    leaning: Floats | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.values.shape[1])

    def right_and_wrong(self) -> tuple[Floats, Floats]:
        """Return the right and the wrong labels of every worker and true class, both (n_workers, n_classes)."""
        right = np.asarray(np.einsum("wkk->wk", self.values))
        return right, np.maximum(self.values.sum(axis=2) - right, 0.0)  # rounding may leave less than nothing

    def drawn_right_and_wrong(self) -> tuple[Floats, Floats]:
        """Return the same: nothing is drawn."""
        return self.right_and_wrong()

    def by(self, mistakes: Mistakes, row: Codes) -> Tallies:
        """Return right and wrong labels by row of factors, and the crowd's mistakes."""
        by_row = np.zeros((len(row), int(row.max()) + 1))
        by_row[np.arange(len(row)), row] = 1.0
        right, wrong = self.right_and_wrong()
        crowd = self.values.sum(axis=0)
        own = crowd[mistakes.true, mistakes.given]
        others = np.maximum(wrong.sum(axis=0) - np.bincount(mistakes.true, own, len(row)), 0.0)
        return Tallies(right @ by_row, wrong @ by_row, own, others)

    def confusion(self, smoothed: Callable[[Floats], Floats] | None = None) -> Any:
        """Return the shares of the counts as workers, each with one more label of every answer, or `smoothed`."""
        if smoothed is not None:
            return Matrices(smoothed(self.values))
        counts = self.values + (np.eye(self.n_classes) if self.leaning is None else self.leaning.T)
        return Matrices(counts / counts.sum(axis=2, keepdims=True))

    def without(self, part: Counts) -> Counts:
        """Return the counts of the other rows."""
        return Counts(np.maximum(self.values - part.values, 0.0), self.leaning)


@dataclass(frozen=True, eq=False)
class Tallies:
    """Right and wrong labels by worker and row of factors, and the crowd's mistakes.

    Attributes
    ----------
    right, wrong : (n_workers, n_rows)
    mistakes : (n_pairs,)
        Wrong labels of each pair of `Mistakes`.
    others : (n_classes,)
        Wrong labels of each true class that are of no pair.
    unknown : float
        Wrong labels of tasks whose true class has no slot.
    drawn_right, drawn_wrong : (n_workers, n_rows), optional
        The same for true classes that are drawn from the posteriors, one per task. They scatter as real counts do,
        while expected ones scatter less, as if all workers were alike: a population is learned from them.
    """

    right: Floats
    wrong: Floats
    mistakes: Floats
    others: Floats
    unknown: float = 0.0
    drawn_right: Floats | None = None
    drawn_wrong: Floats | None = None

    leaning = None  # the answers are the classes

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.others)

    def right_and_wrong(self) -> tuple[Floats, Floats]:
        """Return the right and the wrong labels of every worker and row, both (n_workers, n_rows)."""
        return self.right, np.maximum(self.wrong, 0.0)

    def drawn_right_and_wrong(self) -> tuple[Floats, Floats]:
        """Return those that scatter as real ones do, where they are known."""
        if self.drawn_right is None or self.drawn_wrong is None:
            return self.right_and_wrong()
        return self.drawn_right, self.drawn_wrong

    def by(self, mistakes: Mistakes, row: Codes) -> Tallies:
        """Return the tallies: they are of these factors."""
        return self

    def confusion(self, smoothed: Callable[[Floats], Floats] | None = None) -> Any:
        """Return workers who are right as often as their labels are, with one more that is, or is half `smoothed`."""
        right, wrong = (part.sum(axis=1) for part in self.right_and_wrong())
        total = right + wrong + (1 if smoothed is None else 2)
        return Factors.one_coin((right + 1) / total, self.n_classes)

    def without(self, part: Tallies) -> Tallies:
        """Return the tallies of the other rows; nothing of them is drawn."""
        right, wrong, mistakes, others = (
            np.maximum(getattr(self, name) - getattr(part, name), 0.0)
            for name in ("right", "wrong", "mistakes", "others")
        )
        return Tallies(right, wrong, mistakes, others, max(self.unknown - part.unknown, 0.0))
