"""Workers as factors: what many classes need instead of a confusion matrix per worker.

P(given s | true k, worker w) is `right[w, row[k]]` if s = k, else (1 - `right[w, row[k]]`) times the share of k's
mistakes that go to s. The shares are the crowd's: one number for each pair in `Mistakes`, and one for each true class
that stands for all other labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from labelonce._types import Codes, Floats, Mask

_TABLE = 1 << 22  # entries of a table of all pairs of classes, up to which it is faster than to search
_FLOOR = 1e-10  # stands for a probability of zero
LEAST = 1e-4  # probability of an answer, however far workers are rescaled


@dataclass(frozen=True, eq=False)
class Mistakes:
    """The pairs of a true class and a wrong label that have a probability of their own, sorted by label, then class.

    >>> pairs = Mistakes.of(np.array([0, 2, 1]), np.array([1, 1, 0]), n_classes=3)
    >>> pairs.true, pairs.given
    (array([1, 0, 2], dtype=int32), array([0, 1, 1], dtype=int32))
    >>> pairs.near
    array([[ 0,  1, -1],
           [ 1,  0,  2],
           [ 2, -1, -1]], dtype=int32)
    >>> pairs.index(np.array([1, 2]), np.array([2, 0]))
    array([2, 3], dtype=int32)
    """

    true: Codes
    given: Codes
    n_classes: int

    @classmethod
    def of(cls, true: Any, given: Any, n_classes: int) -> Self:
        """Return pairs of class codes in order, each once."""
        key = np.unique(np.asarray(given, dtype=np.int64) * n_classes + np.asarray(true))
        return cls((key % n_classes).astype(np.int32), (key // n_classes).astype(np.int32), n_classes)

    @classmethod
    def inside(cls, group: Codes) -> Self:
        """Return all pairs of different classes of one group; `group` is the group of every class."""
        order = np.argsort(group, kind="stable")
        size = np.bincount(group)[group[order]]
        start = np.concatenate([[0], np.flatnonzero(np.diff(group[order])) + 1])
        first = np.repeat(start, np.diff(np.append(start, len(group))))
        given = np.repeat(order, size)
        within = np.arange(len(given)) - np.repeat(np.cumsum(size) - size, size)
        true = order[np.repeat(first, size) + within]
        return cls.of(true[true != given], given[true != given], len(group))

    def __len__(self) -> int:
        return len(self.true)

    @cached_property
    def near(self) -> Codes:
        """Return the true classes that a label is evidence for, (n_classes, width): itself, its pairs', then -1."""
        number = np.bincount(self.given, minlength=self.n_classes)
        near = np.full((self.n_classes, 1 + int(number.max(initial=0))), -1, dtype=np.int32)
        near[:, 0] = np.arange(self.n_classes)
        place = np.arange(len(self)) - np.repeat(np.cumsum(number) - number, number)
        near[self.given, 1 + place] = self.true
        return near

    @cached_property
    def _key(self) -> Any:
        return self.given.astype(np.int64) * self.n_classes + self.true

    @cached_property
    def _table(self) -> Codes | None:
        """Return the index of every pair by label and true class, if that is small; without a pair, see `index`."""
        if self.n_classes**2 > _TABLE:
            return None
        table = np.tile(len(self) + np.arange(self.n_classes + 1, dtype=np.int32), (self.n_classes, 1))
        table[self.given, self.true] = np.arange(len(self), dtype=np.int32)
        return table.ravel()

    def index(self, given: Codes, true: Codes) -> Codes:
        """Return where the share of a mistake is found: its pair's place, or without one len(self) + its true class.

        The true class may be `n_classes`: any other than those that are looked at.
        """
        if self._table is not None:
            return self._table.take(given * (self.n_classes + 1) + true)
        key = given.astype(np.int64) * self.n_classes + true
        place = np.searchsorted(self._key, key).astype(np.int32)
        found = self._key.take(np.minimum(place, len(self) - 1)) == key if len(self) else np.zeros(key.shape, bool)
        return np.where(found & (true < self.n_classes), place, len(self) + true).astype(np.int32)

    @cached_property
    def empty(self) -> Mask:
        """Return which true classes have no pair."""
        return np.asarray(np.bincount(self.true, minlength=self.n_classes) == 0)


@dataclass(frozen=True, eq=False)
class Factors:
    """Workers without a matrix.

    Attributes
    ----------
    right : (n_workers, n_rows)
        Chance of being right.
    row : (n_classes,)
        The row of `right` that a true class has.
    mistakes : Mistakes
    share : (n_pairs,)
        P(given | true, wrong) of each pair.
    other_share : (n_classes,)
        P(given | true, wrong) of each label that is in no pair with this true class.

    Examples
    --------
    >>> factors = Factors.one_coin(np.array([0.8, 0.6]), 3)
    >>> factors.confusion(0)
    array([[0.8, 0.1, 0.1],
           [0.1, 0.8, 0.1],
           [0.1, 0.1, 0.8]])
    >>> factors.probability([0, 1], [2, 2], [2, 0])
    array([0.8, 0.2])
    """

    right: Floats
    row: Codes
    mistakes: Mistakes
    share: Floats
    other_share: Floats

    @classmethod
    def one_coin(cls, right: Floats, n_classes: int) -> Self:
        """Return workers who are right with one chance, or one for each true class; all mistakes are equally likely.

        `right` has shape (n_workers,) or (n_workers, n_classes). With one class nobody can be wrong.
        """
        chances = right.reshape(len(right), -1) if n_classes > 1 else np.ones((len(right), 1))
        row = np.arange(n_classes, dtype=np.int32) % chances.shape[1]
        none = np.zeros(0, dtype=np.int32)
        even = np.full(n_classes, 1 / max(1, n_classes - 1))
        return cls(chances, row, Mistakes(none, none, n_classes), np.zeros(0), even)

    @classmethod
    def inside(cls, right: Floats, row: Codes, group: Codes) -> Self:
        """Return workers whose mistakes stay in the group of the true class, all equally likely."""
        mistakes = Mistakes.inside(group)
        others = np.bincount(group)[group] - 1
        return cls(right, row, mistakes, 1 / others[mistakes.true], np.zeros(len(group)))

    @property
    def n_workers(self) -> int:
        """Number of workers."""
        return len(self.right)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.row)

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.n_workers, self.n_classes, self.n_classes

    def select(self, workers: Any) -> Self:
        """Return some of the workers, by a mask, codes or a slice."""
        return type(self)(self.right[workers], self.row, self.mistakes, self.share, self.other_share)

    def diagonal(self) -> Floats:
        """Return each worker's chance of being right on each true class, (n_workers, n_classes)."""
        return np.asarray(self.right[:, self.row])

    def skill(self, prior: Floats, leaning: Floats | None = None) -> Floats:
        return np.asarray(self.right @ self._by_row(prior))

    def right_by(self, prior: Floats, leaning: Floats | None = None) -> tuple[Floats, Floats]:
        return self.right, self._by_row(prior)

    def _by_row(self, prior: Floats) -> Floats:
        return np.asarray(np.bincount(self.row, prior, self.right.shape[1]))

    def answer_probability(self, worker: Any, given: Any, prior: Floats) -> Floats:
        by_pair: Any = np.bincount(self.mistakes.given, prior[self.mistakes.true] * self.share, self.n_classes)
        even = prior * self.other_share
        paired: Any = np.bincount(self.mistakes.given, even[self.mistakes.true], self.n_classes)
        wrong = by_pair + even.sum() - even - paired
        right = self.right[worker, self.row[given]]
        mean = self.skill(prior)[worker]
        return np.asarray(prior[given] * right + (1 - mean) * np.maximum(wrong, 0.0)[given])

    def mean_with(self, others: Sequence[Any], weights: Sequence[float]) -> Self:
        every = list(zip(weights, (self, *others), strict=True))
        right, share, other = (
            np.asarray(sum(part * getattr(one, name) for part, one in every))
            for name in ("right", "share", "other_share")
        )
        return type(self)(right, self.row, self.mistakes, share, other)

    def rescaled(self, factor: float, prior: Floats) -> Self:
        chance = 1 / self.n_classes
        return self.with_chances(chance + factor * (self.right - chance))

    def with_chances(self, right: Floats) -> Self:
        """Return workers with other chances of being right, none of them certain, and the same mistakes."""
        return type(self)(np.clip(right, LEAST, 1 - LEAST), self.row, self.mistakes, self.share, self.other_share)

    def change(self, other: Any) -> float:
        same = self.right.shape == other.right.shape
        return float(np.abs(self.right - other.right).mean()) if same else float("inf")

    def probability(self, worker: Any, true: Any, given: Any) -> Floats:
        worker, true, given = np.broadcast_arrays(worker, true, given)
        right = self.right[worker, self.row[true]]
        return np.asarray(np.where(true == given, right, (1 - right) * self.shares[self.mistakes.index(given, true)]))

    def columns(self, worker: Any, given: Any) -> Floats:
        return self.probability(worker[:, None], np.arange(self.n_classes, dtype=np.int32), given[:, None])

    def usual(self, worker: Any) -> Floats:
        return np.asarray((1 - self.right.mean(axis=1))[worker] * self.other_share.mean())

    def confusion(self, worker: int) -> Floats:
        """Return one worker's matrix [true, given]."""
        return np.asarray(self.select([worker]).dense()[0])

    def dense(self) -> Floats:
        """Return the matrices of all workers [worker, true, given]; more than 2^27 entries are an error."""
        from labelonce.data import MOST_NUMBERS

        if np.prod(self.shape, dtype=float) > MOST_NUMBERS:
            raise ValueError(
                f"confusion_ must have at most {MOST_NUMBERS:,} entries (1 GiB); got {self.n_workers:,} workers with "
                f"{self.n_classes:,} x {self.n_classes:,} classes. Use skill_, or factors_.confusion(worker) for one "
                "worker at a time."
            )
        right = self.diagonal()[:, :, None]
        wrong = np.repeat(self.other_share[:, None], self.n_classes, axis=1)
        wrong[self.mistakes.true, self.mistakes.given] = self.share
        return np.where(np.eye(self.n_classes, dtype=bool), right, (1 - right) * wrong)

    def draw(self, worker: Codes, true: Codes, uniform: Floats) -> Codes:
        """Return a label for each worker and true class, by a uniform number each; the three have one shape."""
        right = self.right[worker, self.row[true]]
        given = np.array(true, dtype=np.int32)
        wrong = uniform >= right
        again = (uniform[wrong] - right[wrong]) / (1 - right[wrong])  # uniform too
        given[wrong] = self._drawn_mistakes(given[wrong], np.minimum(again, np.nextafter(1, 0)))
        return given

    def _drawn_mistakes(self, true: Codes, uniform: Floats) -> Codes:
        by_true, start, total = self._by_true
        within = uniform < total[true]
        place = np.searchsorted(self._cumulative, true[within] + uniform[within], side="right")
        pair = by_true[np.clip(place, start[true[within]], start[true[within] + 1] - 1)]
        given = np.empty_like(true)
        given[within] = self.mistakes.given[pair]
        given[~within] = self._drawn_others(true[~within], uniform[~within])
        return given

    def _drawn_others(self, true: Codes, uniform: Floats) -> Codes:
        """Return a label that is in no pair with the true class, all equally likely."""
        by_true, start, total = self._by_true
        free = self.n_classes - 1 - np.diff(start)[true]
        share = np.clip((uniform - total[true]) / np.maximum(1 - total[true], 1e-300), 0, np.nextafter(1, 0))
        nth = (share * free).astype(np.int64)  # among the labels that are not taken
        classes = np.arange(self.n_classes)
        taken = np.sort(
            np.concatenate(
                [
                    self.mistakes.true[by_true] * np.int64(self.n_classes) + self.mistakes.given[by_true],
                    classes * (self.n_classes + 1),
                ]
            )
        )
        first = start[:-1] + classes
        before = taken % self.n_classes - (np.arange(len(taken)) - first[taken // self.n_classes])
        key = taken // self.n_classes * (self.n_classes + 1) + before
        lower = np.searchsorted(key, true.astype(np.int64) * (self.n_classes + 1) + nth, side="right") - first[true]
        return np.asarray(nth + lower, dtype=np.int32)

    @cached_property
    def _by_true(self) -> tuple[Any, Any, Floats]:
        """Return the pairs by true class, where those of each start, and the share of mistakes that they hold."""
        number = np.bincount(self.mistakes.true, minlength=self.n_classes)
        held: Any = np.bincount(self.mistakes.true, self.share, self.n_classes)
        total: Floats = np.where(number == self.n_classes - 1, 1.0, held)
        return np.argsort(self.mistakes.true, kind="stable"), np.concatenate([[0], np.cumsum(number)]), total

    @cached_property
    def _cumulative(self) -> Floats:
        """Return the cumulative shares of the pairs of each true class k, plus k: increasing over all pairs."""
        by_true, start, _ = self._by_true
        total = np.concatenate([[0.0], np.cumsum(self.share[by_true])])
        true = self.mistakes.true[by_true]
        return np.asarray(true + np.minimum(total[1:] - total[start[true]], 1.0))

    @cached_property
    def shares(self) -> Floats:
        """Return P(given | true, wrong) in the order of `Mistakes.index`."""
        return np.concatenate([self.share, self.other_share, [self.other_share.mean()]])

    def log_tables(self, dtype: Any) -> tuple[Floats, Floats, Floats]:
        """Return the logs of right and wrong by worker and row, and those of the shares in the order of `index`.

        The last row stands for the mean over all rows, the last share for the mean over all true classes.
        """
        right = np.concatenate([self.right, self.right.mean(axis=1, keepdims=True)], axis=1)
        logs = (np.log(np.maximum(one, _FLOOR)) for one in (right, 1 - right, self.shares))
        log_right, log_wrong, log_share = (one.astype(dtype, copy=False) for one in logs)
        return log_right.ravel(), log_wrong.ravel(), log_share
