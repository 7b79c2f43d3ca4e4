"""Distributions over classes that live on a few candidate classes of each task; all other classes share a rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labelonce._kernels._factors import Mistakes
from labelonce._memory import MOST_NUMBERS
from labelonce._types import Codes, Floats
from labelonce.data import Annotations
from labelonce.data._rows import first_rows

_BLOCK = 1 << 18  # numbers that are worked on at once
WIDEST = 64  # candidates of a task at most


@dataclass(frozen=True, eq=False)
class Candidates:
    """P(class) of every task: on its candidates one by one, on all other classes together.

    Attributes
    ----------
    classes : (n_tasks, width)
        The codes of each task's candidates, each once; -1 fills up the rows of tasks with fewer.
    probability : (n_tasks, width)
        0 where there is no candidate.
    rest : (n_tasks,)
        What the other classes have together; each has the same part of it.
    n_classes : int

    Examples
    --------
    >>> one = Candidates(np.array([[0, 2], [1, -1]]), np.array([[0.5, 0.3], [0.4, 0.0]]), np.array([0.2, 0.6]), 4)
    >>> one.to_dense()
    array([[0.5, 0.1, 0.3, 0.1],
           [0.2, 0.4, 0.2, 0.2]])
    >>> one.top_class(), one.at(np.array([0, 1]), np.array([1, 1]))
    (array([0, 1]), array([0.1, 0.4]))
    """

    classes: Codes
    probability: Floats
    rest: Floats
    n_classes: int

    def __len__(self) -> int:
        return len(self.classes)

    def __getitem__(self, tasks: Any) -> Any:
        """Return the distributions of some tasks; of a pair of tasks and classes the probabilities, as of an array."""
        if isinstance(tasks, tuple):
            return self.at(*tasks)
        return Candidates(self.classes[tasks], self.probability[tasks], self.rest[tasks], self.n_classes)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of tasks and of classes."""
        return len(self.classes), self.n_classes

    @property
    def each_other(self) -> Floats:
        """Return the probability of each class that is no candidate, shape (n_tasks,)."""
        n_others = self.n_classes - np.count_nonzero(self.classes >= 0, axis=1)
        return np.asarray(self.rest / np.maximum(n_others, 1))

    @classmethod
    def certain(cls, picks: Codes, n_classes: int) -> Candidates:
        """Return the distributions of tasks whose class is known."""
        ones = np.ones((len(picks), 1))
        return cls(picks[:, None].astype(np.int32), ones, np.zeros(len(picks)), n_classes)

    @classmethod
    def from_dense(cls, probabilities: Floats, width: int) -> Candidates:
        """Return the most probable classes of a (n_tasks, n_classes) array as candidates."""
        width = min(width, probabilities.shape[1])
        classes = np.argpartition(-probabilities, width - 1, axis=1)[:, :width].astype(np.int32)
        kept = np.take_along_axis(probabilities, classes, axis=1)
        rest = np.maximum(1 - kept.sum(axis=1), 0.0) if width < probabilities.shape[1] else np.zeros(len(kept))
        return cls(classes, kept, rest, probabilities.shape[1])

    @classmethod
    def joined(cls, parts: Sequence[Candidates]) -> Candidates:
        """Return the distributions of several parts of the tasks as one."""
        if len(parts) == 1:
            return parts[0]
        n_tasks, width = sum(map(len, parts)), max(part.classes.shape[1] for part in parts)
        classes = np.full((n_tasks, width), -1, dtype=np.int32)
        probability = np.zeros((n_tasks, width), dtype=parts[0].probability.dtype)
        start = 0
        for part in parts:
            place = slice(start, start + len(part)), slice(part.classes.shape[1])
            classes[place], probability[place] = part.classes, part.probability
            start += len(part)
        return cls(classes, probability, np.concatenate([part.rest for part in parts]), parts[0].n_classes)

    def top_class(self) -> Codes:
        """Return the most probable candidate of each task."""
        best = self.probability.argmax(axis=1)
        return np.asarray(self.classes[np.arange(len(best)), best])

    def confidence(self) -> Floats:
        """Return the probability of the most probable candidate of each task."""
        return np.asarray(self.probability.max(axis=1))

    def argmax(self, axis: int = 1) -> Codes:  # noqa: ARG002  # there is no other
        """Return `top_class`, under the name that it has for arrays."""
        return self.top_class()

    def max(self, axis: int = 1) -> Floats:  # noqa: ARG002  # there is no other
        """Return `confidence`, under the name that it has for arrays."""
        return self.confidence()

    def at(self, task: Any, label: Any) -> Floats:
        """Return the probability of one class of each of some tasks."""
        found = self.classes[task] == np.asarray(label)[:, None]
        inside = np.einsum("ij,ij->i", found, self.probability[task])
        return np.asarray(np.where(found.any(axis=1), inside, self.each_other[task]))

    def information(self) -> Floats:
        """Return 1 - H / log K of every task, in [0, 1]; see `labelonce.learning` for its use."""
        if self.n_classes == 1:
            return np.ones(len(self))
        found = np.empty(len(self))
        for part in self.parts():
            one = self[part]
            inside, rest, each = one.probability, one.rest, one.each_other
            least = np.finfo(inside.dtype).tiny  # 0 log 0 is 0, in float32 too
            entropy = -(inside * np.log(np.maximum(inside, least))).sum(axis=1)
            entropy -= rest * np.log(np.maximum(each, least))
            found[part] = 1 - entropy / np.log(self.n_classes)
        return np.clip(found, 0.0, 1.0)

    def shares(self, weight: Floats | None = None) -> Floats:
        """Return the expected number of tasks of each class, shape (n_classes,)."""
        weight = np.ones(len(self)) if weight is None else weight
        inside = self.classes >= 0
        known = np.bincount(self.classes[inside], (self.probability * weight[:, None])[inside], self.n_classes)
        each = self.each_other * weight
        own = np.bincount(self.classes[inside], np.broadcast_to(each[:, None], inside.shape)[inside], self.n_classes)
        return np.asarray(known + each.sum() - own)

    def change(self, other: Candidates) -> float:
        """Return the mean total variation to other distributions of the same tasks."""
        total = 0.0
        for part in self.parts():
            one, two = self[part], other[part]
            same = (one.classes[:, :, None] == two.classes[:, None, :]) & (one.classes >= 0)[:, :, None]
            own = np.where(same.any(axis=2), np.einsum("ijk,ik->ij", same, two.probability), two.each_other[:, None])
            total += float(np.abs(np.where(one.classes >= 0, one.probability - own, 0.0)).sum())
            new = (two.classes >= 0) & ~same.any(axis=1)
            total += float(np.abs(np.where(new, two.probability - one.each_other[:, None], 0.0)).sum())
            n_neither = self.n_classes - (one.classes >= 0).sum(axis=1) - new.sum(axis=1)
            total += float((n_neither * np.abs(one.each_other - two.each_other)).sum())
        return total / (2 * max(len(self), 1))

    def with_gold(self, gold: Codes | None) -> Candidates:
        """Return the distributions with known true labels certain; they must be candidates."""
        if gold is None:
            return self
        known = np.flatnonzero(gold >= 0)
        probability, rest = self.probability.copy(), self.rest.copy()
        probability[known] = self.classes[known] == gold[known, None]
        rest[known] = 0.0
        return Candidates(self.classes, probability, rest, self.n_classes)

    def top(self, width: int) -> Candidates:
        """Return the distributions with their most probable candidates only, best first."""
        order = np.argsort(-self.probability, axis=1, kind="stable")[:, :width]
        kept = np.take_along_axis(self.probability, order, axis=1)
        rest = self.rest + self.probability.sum(axis=1) - kept.sum(axis=1)
        return Candidates(np.take_along_axis(self.classes, order, axis=1), kept, rest, self.n_classes)

    def to_dense(self) -> Floats:
        """Return the probabilities of all classes, shape (n_tasks, n_classes), if that is not too large."""
        if len(self) * self.n_classes > MOST_NUMBERS:
            raise ValueError(
                f"a dense posterior must have at most {MOST_NUMBERS:,} numbers; got {len(self):,} tasks x "
                f"{self.n_classes:,} classes. Select some tasks, or use the candidates."
            )
        dense = np.repeat(self.each_other[:, None], self.n_classes, axis=1)
        task, place = np.nonzero(self.classes >= 0)
        dense[task, self.classes[task, place]] = self.probability[task, place]
        return dense

    def parts(self) -> Iterator[slice]:
        """Yield blocks of tasks, whose numbers are few beside those of all."""
        rows = max(1, _BLOCK // self.classes.shape[1])
        return (slice(start, start + rows) for start in range(0, len(self), rows))


def as_dense(posterior: Floats | Candidates) -> Floats:
    """Return a posterior as an array, (n_tasks, n_classes), if that is not too large."""
    return posterior.to_dense() if isinstance(posterior, Candidates) else np.asarray(posterior)


def _contains(classes: Codes, wanted: Codes) -> Any:
    return np.stack([(classes == column[:, None]).any(axis=1) for column in wanted.T], axis=1)


def candidate_classes(annotations: Annotations, mistakes: Mistakes, more: Codes | None = None) -> Codes:
    """Return the candidates of every task, (n_tasks, width): what its labels speak for, and `more`, each class once.

    `more` holds codes (n_tasks, n), best first, -1 for none: the top few of a model, or gold. A task with more than
    `WIDEST` keeps its labels, then `more`, then the rest in order. A task without any has width for `more` alone.
    """
    start = first_rows(annotations.task, annotations.n_tasks)
    number = np.diff(start)
    width = mistakes.near.shape[1]
    first = np.full((annotations.n_tasks, width), -1, dtype=np.int32)
    labelled = np.flatnonzero(number)
    first[labelled] = mistakes.near[annotations.label[start[:-1][labelled]]]
    several = np.flatnonzero(_differ(annotations, mistakes, start))
    if len(several):
        first = _with_all_labels(first, annotations, mistakes, start, several)
    return first if more is None else join_candidates(first, more.astype(np.int32, copy=False))


def _differ(annotations: Annotations, mistakes: Mistakes, start: Any) -> Any:
    """Return which tasks have labels that speak for other classes than the first one does."""
    near = mistakes.near
    if near.shape[1] == 1:
        kind: Any = near[:, 0]
    else:  # labels that speak for the same classes, as those of one group do
        kind = np.unique(np.sort(near, axis=1), axis=0, return_inverse=True)[1].ravel()
    own = kind[annotations.label]
    other = own != own[start[:-1][annotations.task]]
    return np.bincount(annotations.task[other], minlength=annotations.n_tasks) > 0


def _with_all_labels(first: Codes, annotations: Annotations, mistakes: Mistakes, start: Any, tasks: Any) -> Codes:
    """Return the candidates with those of all labels of some tasks."""
    most = int(np.diff(start)[tasks].max())
    own = np.full((len(tasks), most), -1, dtype=np.int32)
    for place in range(most):
        row = start[tasks] + place
        there = row < start[tasks + 1]
        own[there, place] = annotations.label[row[there]]
    spoken = np.where(own[:, :, None] >= 0, mistakes.near[own], -1).swapaxes(1, 2).reshape(len(tasks), -1)
    found = unique_in_rows(spoken)[:, :WIDEST]  # column by column of `near`: the labels themselves come first
    if found.shape[1] > first.shape[1]:
        wider = np.full((len(first), found.shape[1]), -1, dtype=np.int32)
        wider[:, : first.shape[1]] = first
        first = wider
    first[tasks] = -1
    first[tasks, : found.shape[1]] = found
    return first


def join_candidates(classes: Codes, more: Codes) -> Codes:
    """Return the candidates with those of `more` that are not among them yet; the last ones give way if too many."""
    new = np.where(_contains(classes, more), -1, more)
    new = unique_in_rows(new) if new.shape[1] > 1 else new
    room = int(min(WIDEST, ((classes >= 0).sum(axis=1) + (new >= 0).sum(axis=1)).max(initial=1)))
    joined = np.full((len(classes), room), -1, dtype=np.int32)
    kept = np.minimum((classes >= 0).sum(axis=1), room - (new >= 0).sum(axis=1))
    old = classes[:, :room]
    np.copyto(joined[:, : old.shape[1]], old, where=np.arange(old.shape[1]) < kept[:, None])
    for place in range(new.shape[1]):
        there = np.flatnonzero(new[:, place] >= 0)
        joined[there, kept[there] + place] = new[there, place]
    return joined


def unique_in_rows(codes: Codes) -> Codes:
    """Return each row's codes once, in their order, then -1; no wider than it must be.

    >>> unique_in_rows(np.array([[3, -1, 3, 2], [1, 0, 1, -1]]))
    array([[3, 2],
           [1, 0]])
    """
    order = np.argsort(codes, axis=1, kind="stable")
    ranked = np.take_along_axis(codes, order, axis=1)
    again = np.zeros(codes.shape, dtype=bool)
    again[:, 1:] = ranked[:, 1:] == ranked[:, :-1]
    repeated = np.zeros(codes.shape, dtype=bool)
    np.put_along_axis(repeated, order, again, axis=1)
    kept = np.where(repeated, -1, codes)
    front = np.argsort(kept < 0, axis=1, kind="stable")
    width = max(1, int((kept >= 0).sum(axis=1).max(initial=1)))
    return np.asarray(np.take_along_axis(kept, front, axis=1)[:, :width])
