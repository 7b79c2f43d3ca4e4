"""P(class) of every row: of all classes, or of a few of them one by one and of all others together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labelonce._kernels._posterior import entropy, mean_total_variation, top_class
from labelonce._types import Codes, Floats

_BLOCK = 1 << 18  # numbers that are worked on at once


@dataclass(frozen=True, eq=False)
class Beliefs:
    """P(class) of every row, where a row is what has one unknown class: a task, or a question about a task.

    With few classes slot k of every row is class k. With many, each row has slots of its own, and all other classes
    share a rest, of which each has the same part.

    Attributes
    ----------
    probability : (n_rows, n_slots)
        0 where a slot is empty.
    n_classes : int
    classes : (n_rows, n_slots), optional
        The class of every slot, each once in a row; -1 fills up the rows with fewer. None: slot k is class k.
    rest : (n_rows,), optional
        What the other classes have together; there wherever `classes` is.

    Examples
    --------
    >>> some = Beliefs(np.array([[0.5, 0.3], [0.4, 0.0]]), 4, np.array([[0, 2], [1, -1]]), np.array([0.2, 0.6]))
    >>> np.asarray(some)
    array([[0.5, 0.1, 0.3, 0.1],
           [0.2, 0.4, 0.2, 0.2]])
    >>> some.argmax(), some.at(np.array([0, 1]), np.array([1, 1]))
    (array([0, 1]), array([0.1, 0.4]))
    """

    probability: Floats
    n_classes: int
    classes: Codes | None = None
    rest: Floats | None = None

    @classmethod
    def of(cls, values: Any) -> Beliefs:
        """Return an array (n_rows, n_classes) as beliefs; beliefs as they are."""
        if isinstance(values, Beliefs):
            return values
        array = np.asarray(values)
        return cls(array, array.shape[1])

    @classmethod
    def certain(cls, codes: Codes, n_classes: int, *, few: bool) -> Beliefs:
        """Return the beliefs about rows whose class is known: of all classes, or with `few` on one slot."""
        if few:
            n = len(codes)
            return cls(np.ones((n, 1)), n_classes, codes[:, None].astype(np.int32), np.zeros(n))
        return cls(np.eye(n_classes)[codes], n_classes)

    @classmethod
    def from_dense(cls, probabilities: Floats, width: int) -> Beliefs:
        """Return an array (n_rows, n_classes) on slots: the most probable classes of every row."""
        width = min(width, probabilities.shape[1])
        classes = np.argpartition(-probabilities, width - 1, axis=1)[:, :width].astype(np.int32)
        kept = np.take_along_axis(probabilities, classes, axis=1)
        rest = np.maximum(1 - kept.sum(axis=1), 0.0) if width < probabilities.shape[1] else np.zeros(len(kept))
        return cls(kept, probabilities.shape[1], classes, rest)

    @classmethod
    def joined(cls, parts: Sequence[Beliefs]) -> Beliefs:
        """Return the beliefs about several parts of the rows as one."""
        if len(parts) == 1:
            return parts[0]
        n_classes = parts[0].n_classes
        if any(part.classes is None for part in parts):
            return cls(np.concatenate([np.asarray(part) for part in parts]), n_classes)
        n_rows, width = sum(map(len, parts)), max(part.probability.shape[1] for part in parts)
        classes = np.full((n_rows, width), -1, dtype=np.int32)
        probability = np.zeros((n_rows, width), dtype=parts[0].probability.dtype)
        start = 0
        for part in parts:
            place = slice(start, start + len(part)), slice(part.probability.shape[1])
            classes[place], probability[place] = part.classes, part.probability
            start += len(part)
        rest = [part.rest for part in parts if part.rest is not None]
        return cls(probability, n_classes, classes, np.concatenate(rest))

    def __len__(self) -> int:
        return len(self.probability)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of classes."""
        return len(self.probability), self.n_classes

    def __getitem__(self, rows: Any) -> Any:
        """Return the beliefs about some rows; of a pair of rows and classes the probabilities, as of an array."""
        if isinstance(rows, tuple):
            return self.at(*rows)
        if self.classes is None or self.rest is None:
            return Beliefs(self.probability[rows], self.n_classes)
        return Beliefs(self.probability[rows], self.n_classes, self.classes[rows], self.rest[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        """Return the probabilities of all classes, (n_rows, n_classes)."""
        return np.array(self.to_dense(), dtype=dtype, copy=copy)

    def to_dense(self) -> Floats:
        """Return the probabilities of all classes, (n_rows, n_classes), if that is not too large; free with few."""
        if self.classes is None:
            return self.probability
        from labelonce.data import MOST_NUMBERS

        if len(self) * self.n_classes > MOST_NUMBERS:
            raise ValueError(
                f"a dense posterior must have at most {MOST_NUMBERS:,} numbers; got {len(self):,} rows x "
                f"{self.n_classes:,} classes. Select some rows, or use its slots: probability, classes and rest."
            )
        dense = np.repeat(self.each_other[:, None], self.n_classes, axis=1)
        row, slot = np.nonzero(self.classes >= 0)
        dense[row, self.classes[row, slot]] = self.probability[row, slot]
        return dense

    def shown(self) -> Any:
        """Return what users see and learners train on: an array with few classes, else these beliefs."""
        return self.probability if self.classes is None else self

    @property
    def codes(self) -> Codes:
        """The class of every slot, (n_rows, n_slots), -1 where a slot is empty."""
        if self.classes is not None:
            return self.classes
        return np.broadcast_to(np.arange(self.n_classes, dtype=np.int32), self.probability.shape)

    @property
    def each_other(self) -> Floats:
        """The probability of each class without a slot, shape (n_rows,)."""
        if self.classes is None or self.rest is None:
            return np.zeros(len(self))
        n_others = self.n_classes - np.count_nonzero(self.classes >= 0, axis=1)
        return np.asarray(self.rest / np.maximum(n_others, 1))

    def wide(self) -> Floats:
        """Return the probabilities of the slots and, where there is a rest, of it as a last column."""
        if self.rest is None:
            return self.probability
        return np.concatenate([self.probability, self.rest[:, None]], axis=1)

    def with_wide(self, wide: Floats) -> Beliefs:
        """Return beliefs on the same slots whose probabilities are those of `wide`."""
        if self.classes is None:
            return Beliefs(wide, self.n_classes)
        return Beliefs(wide[:, :-1], self.n_classes, self.classes, wide[:, -1])

    def argmax(self, axis: int = 1) -> Codes:
        """Return the most probable class of every row, among those with a slot."""
        best = self.probability.argmax(axis=1)
        return best if self.classes is None else np.asarray(self.classes[np.arange(len(best)), best])

    def max(self, axis: int = 1) -> Floats:
        """Return the probability of the most probable class of every row, among those with a slot."""
        return np.asarray(self.probability.max(axis=1))

    def drawn(self, rng: np.random.Generator) -> Beliefs:
        """Return beliefs that are certain of one class of every row, or of its rest, drawn from these.

        >>> Beliefs.of([[1.0, 0.0], [0.0, 1.0]]).drawn(np.random.default_rng(0)).probability
        array([[1., 0.],
               [0., 1.]])
        """
        cumulative = self.wide().cumsum(axis=1)
        uniform = rng.random((len(self), 1)) * cumulative[:, -1:]
        place = (cumulative <= uniform).sum(axis=1).clip(None, cumulative.shape[1] - 1)
        return self.with_wide((place[:, None] == np.arange(cumulative.shape[1])).astype(cumulative.dtype))

    def drawn_argmax(self, rng: np.random.Generator) -> Codes:
        """Return the most probable class of every row, ties broken at random, of all classes."""
        if self.classes is None:
            return top_class(self.probability, rng)
        filled = np.where(self.classes >= 0, self.probability, -1.0)
        best = top_class(filled, rng)
        found = self.classes[np.arange(len(best)), best].astype(np.int32)
        unknown = np.flatnonzero(self.each_other > filled.max(axis=1))  # another class is: as where nobody voted
        while len(unknown):
            found[unknown] = rng.integers(self.n_classes, size=len(unknown))
            unknown = unknown[(self.classes[unknown] == found[unknown, None]).any(axis=1)]
        return found

    def at(self, row: Any, code: Any) -> Floats:
        """Return the probability of one class of each of some rows."""
        if self.classes is None:
            return np.asarray(self.probability[row, code])
        found = self.classes[row] == np.asarray(code)[:, None]
        inside = np.einsum("ij,ij->i", found, self.probability[row])
        return np.asarray(np.where(found.any(axis=1), inside, self.each_other[row]))

    def tied_with(self, code: Any) -> Codes:
        """Return how many classes of every row are as probable as the one given, itself among them."""
        own, slot = self.at(np.arange(len(self)), code), self.codes >= 0
        tied = ((self.probability == own[:, None]) & slot).sum(axis=1)
        return np.asarray(tied + np.where(self.each_other == own, self.n_classes - slot.sum(axis=1), 0))

    def share_right(self, true: Codes, tie: float) -> Floats:
        """Return 1/t where the true class is among t that are tied for the top, within a relative `tie`, else 0."""
        slot, each = self.codes >= 0, self.each_other
        filled = np.where(slot, self.probability, 0.0)
        top = np.maximum(filled.max(axis=1), each) * (1 - tie)
        n_others = self.n_classes - slot.sum(axis=1)
        tied = ((filled >= top[:, None]) & slot).sum(axis=1) + np.where((n_others > 0) & (each >= top), n_others, 0)
        return np.asarray((self.at(np.arange(len(self)), true) >= top) / np.maximum(tied, 1))

    def information(self) -> Floats:
        """Return 1 - H / log K of every row, in [0, 1].

        >>> Beliefs.of([[1.0, 0.0], [0.5, 0.5]]).information().round(6)
        array([1., 0.])
        """
        if self.n_classes == 1:
            return np.ones(len(self))
        if self.classes is None:
            return np.asarray(np.clip(1 - entropy(self.probability) / np.log(self.n_classes), 0.0, 1.0))
        found = np.empty(len(self))
        for part in self._parts():
            one = self[part]
            inside, rest, each = one.probability, one.rest, one.each_other
            least = np.finfo(inside.dtype).tiny  # 0 log 0 is 0, in float32 too
            of_row = -(inside * np.log(np.maximum(inside, least))).sum(axis=1)
            of_row -= rest * np.log(np.maximum(each, least))
            found[part] = 1 - of_row / np.log(self.n_classes)
        return np.clip(found, 0.0, 1.0)

    def class_counts(self, weight: Floats | None = None) -> Floats:
        """Return the expected number of rows of each class, shape (n_classes,)."""
        if self.classes is None:
            return np.asarray(self.probability.sum(axis=0) if weight is None else weight @ self.probability)
        found, others = np.zeros(self.n_classes + 1), 0.0  # the first of empty slots
        for part in self._parts():
            one = self[part]
            more, each = one.probability - one.each_other[:, None], one.each_other
            if weight is not None:
                more, each = more * weight[part, None], each * weight[part]
            found += np.bincount((one.classes + 1).ravel(), more.ravel(), len(found))
            others += float(each.sum())
        return np.asarray(found[1:] + others)

    def change(self, other: Beliefs) -> float:
        """Return the mean total variation to other beliefs about the same rows."""
        if self.classes is None or other.classes is None:
            return mean_total_variation(self.to_dense(), other.to_dense())
        if self.classes is other.classes:
            return mean_total_variation(self.wide(), other.wide())
        total = 0.0
        for part in self._parts():
            one, two = self[part], other[part]
            total += float(np.abs(one.probability - two.on(one.classes).probability).sum())
            codes = np.ascontiguousarray(two.classes.T)
            new = codes >= 0
            for column in one.classes.T:
                new &= codes != column
            total += float(np.abs(np.where(new, two.probability.T - one.each_other, 0.0)).sum())
            n_neither = self.n_classes - (one.classes >= 0).sum(axis=1) - new.sum(axis=0)
            total += float((n_neither * np.abs(one.each_other - two.each_other)).sum())
        return total / (2 * max(len(self), 1))

    def one_hot(self, first: Any = None) -> Beliefs:
        """Return the beliefs that the most probable class of every row is right; slots marked in `first` come first."""
        best = np.zeros_like(self.probability)
        for part in self._parts():
            score = self.probability[part] if first is None else self.probability[part] + first[part]
            if self.classes is not None:
                score = np.where(self.classes[part] >= 0, score, -1.0)
            best[part][np.arange(len(score)), score.argmax(axis=1)] = 1.0
        return Beliefs(best, self.n_classes, self.classes, None if self.rest is None else np.zeros(len(best)))

    def with_gold(self, gold: Codes | None) -> Beliefs:
        """Return the beliefs with known true classes certain; these must have a slot."""
        if gold is None:
            return self
        known = np.flatnonzero(gold >= 0)
        probability = self.probability.copy()
        probability[known] = self.codes[known] == gold[known, None]
        if self.rest is None:
            return Beliefs(probability, self.n_classes)
        rest = self.rest.copy()
        rest[known] = 0.0
        return Beliefs(probability, self.n_classes, self.classes, rest)

    def level_with(self, labels: Codes) -> Beliefs:
        """Return the beliefs in which no class is more probable than the label of its row, which has a slot.

        Where another class is, both get the mean of their probabilities, and so does any third that is above it: such a
        row is undecided, and is not shown as one thing next to another that is more probable.

        >>> found = Beliefs.of([[0.2, 0.7, 0.1], [0.6, 0.3, 0.1], [0.0, 0.6, 0.4]]).level_with(np.array([0, 0, 0]))
        >>> found.probability.round(2)
        array([[0.45, 0.45, 0.1 ],
               [0.6 , 0.3 , 0.1 ],
               [0.33, 0.33, 0.33]])
        """
        own = self.at(np.arange(len(labels)), labels)
        rows = np.flatnonzero(self.max() > own)
        if not len(rows):
            return self
        some = self.probability[rows]
        ranked = -np.sort(-some, axis=1)
        means = (own[rows, None] + ranked.cumsum(axis=1)) / (2 + np.arange(ranked.shape[1]))
        below = np.pad(ranked[:, 1:], ((0, 0), (0, 1))) <= means  # the next class stays as it is
        level = means[np.arange(len(rows)), below.argmax(axis=1)]
        found = self.probability.copy()
        is_label = self.codes[rows] == labels[rows, None]
        found[rows] = np.where(is_label, level[:, None], np.minimum(some, level[:, None]))
        return Beliefs(found, self.n_classes, self.classes, self.rest)

    def top(self, width: int) -> Beliefs:
        """Return the beliefs with slots for the most probable classes only, best first."""
        left, rows = self.probability.copy(), np.arange(len(self))
        order = np.empty((len(self), min(width, left.shape[1])), dtype=np.intp)
        for place in range(order.shape[1]):
            order[:, place] = left.argmax(axis=1)
            left[rows, order[:, place]] = -1.0
        kept = np.take_along_axis(self.probability, order, axis=1)
        rest = (0.0 if self.rest is None else self.rest) + self.probability.sum(axis=1) - kept.sum(axis=1)
        return Beliefs(kept, self.n_classes, np.take_along_axis(self.codes, order, axis=1), rest)

    def columns(self, most: int) -> Iterator[tuple[Codes | int, Floats]]:
        """Yield what a table shows: every class with its probabilities, or with many the `most` probable of each row.

        These come as the codes of their classes, -1 where a row has fewer, with their probabilities.
        """
        if self.classes is None:
            yield from enumerate(self.probability.T)
            return
        best = self.top(most)
        yield from zip(best.codes.T, best.probability.T, strict=True)

    def on(self, classes: Codes | None) -> Beliefs:
        """Return the beliefs on other slots, which must hold all classes with a slot that have a probability."""
        if self.classes is classes:
            return self
        if classes is None:
            return Beliefs(self.to_dense(), self.n_classes)
        each = self.each_other
        probability = np.empty(classes.shape, each.dtype)
        for part in self._parts():
            codes, own = (np.ascontiguousarray(one[part].T) for one in (self.codes, self.probability))
            for slot, column in enumerate(classes[part].T):
                same = codes == column
                known = np.where(same.any(axis=0), (same * own).sum(axis=0), each[part])
                probability[part, slot] = np.where(column >= 0, known, 0.0)
        n_others = self.n_classes - (classes >= 0).sum(axis=1)
        return Beliefs(probability, self.n_classes, classes, each * n_others)

    def _parts(self) -> Iterator[slice]:
        """Yield blocks of rows, whose numbers are few compared with those of all."""
        step = max(1, _BLOCK // self.probability.shape[1])
        return (slice(start, start + step) for start in range(0, len(self), step))


def mean_beliefs(parts: Sequence[Beliefs], weights: Sequence[float]) -> Beliefs:
    """Return the weighted mean of beliefs on the same slots."""
    first = parts[0]
    return first.with_wide(np.asarray(sum(share * one.wide() for share, one in zip(weights, parts, strict=True))))


def on_slots(targets: Any) -> Beliefs | None:
    """Return targets that are on slots of their own, None for labels and arrays of all classes."""
    return targets if isinstance(targets, Beliefs) and targets.classes is not None else None
