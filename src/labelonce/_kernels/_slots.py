"""Which classes of a row are looked at one by one, where there are too many to look at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelonce._kernels._beliefs import Beliefs
from labelonce._kernels._factors import Factors, Mistakes
from labelonce._types import Codes, Mask
from labelonce.data import Annotations, first_rows

WIDEST = 64  # slots of a row at most


@dataclass(frozen=True, eq=False)
class Pattern:
    """What factors keep apart: pairs of a true class and a mistake, and the row of chances of every class."""

    mistakes: Mistakes
    row: Codes

    @classmethod
    def even(cls, row: Codes) -> Pattern:
        """Return the pattern of workers all of whose mistakes are equally likely."""
        return cls(Mistakes.of([], [], len(row)), row)

    @property
    def is_coin(self) -> bool:
        """Whether a worker has one chance of being right, and all mistakes are alike."""
        return not len(self.mistakes) and not self.row.any()


def pattern_of(workers: Any) -> Pattern | None:
    """Return what factors keep apart, None for matrices."""
    return Pattern(workers.mistakes, workers.row) if isinstance(workers, Factors) else None


def label_slots(annotations: Annotations, pattern: Pattern, more: Codes | None = None) -> Codes:
    """Return slots for every task, (n_tasks, n_slots): what its labels are evidence for, and `more`, each class once.

    `more` holds codes (n_tasks, n), best first, -1 for none: the top few of a model, or gold. A task with more than
    `WIDEST` keeps its labels, then `more`, then the rest in order. A task without any has slots for `more` alone.
    """
    mistakes = pattern.mistakes
    start = first_rows(annotations.task, annotations.n_tasks)
    number = np.diff(start)
    width = mistakes.near.shape[1]
    first = np.full((annotations.n_tasks, width), -1, dtype=np.int32)
    labelled = np.flatnonzero(number)
    first[labelled] = mistakes.near[annotations.label[start[:-1][labelled]]]
    several = np.flatnonzero(_differ(annotations, mistakes, start))
    if len(several):
        first = _with_all_labels(first, annotations, mistakes, start, several)
    return first if more is None else join_slots(first, more.astype(np.int32, copy=False))


def vote_slots(annotations: Annotations, gold: Codes | None) -> Beliefs:
    """Return the vote fractions on slots for the classes that were given, or are gold; all is rest without a vote."""
    classes = label_slots(
        annotations,
        Pattern.even(np.zeros(annotations.n_classes, np.int32)),
        None if gold is None else gold[:, None],
    )
    own = own_slots(annotations, classes)
    there: Any = slice(None) if (own >= 0).all() else own >= 0
    votes = np.bincount(annotations.task[there] * classes.shape[1] + own[there], minlength=classes.size)
    n_labels = np.bincount(annotations.task, minlength=annotations.n_tasks)
    share = votes.reshape(classes.shape) / np.maximum(n_labels, 1)[:, None]
    rest = (n_labels == 0).astype(np.float64) if isinstance(there, slice) else np.maximum(1 - share.sum(axis=1), 0.0)
    return Beliefs(share, annotations.n_classes, classes, rest).with_gold(gold)


def own_slots(labels: Any, classes: Codes) -> Any:
    """Return the slot of every label's class, -1 where it has none."""
    found: Any = np.full(len(labels), -1, dtype=np.int16)
    for slot, code in enumerate(classes.T):
        found[code.take(labels.task) == labels.label] = slot
    return found


def _differ(annotations: Annotations, mistakes: Mistakes, start: Any) -> Mask:
    """Return which tasks have labels that are evidence for other classes than the first one is."""
    near = mistakes.near
    if near.shape[1] == 1:
        kind: Any = near[:, 0]
    else:  # labels that are evidence for the same classes, as those of one group are
        kind = np.unique(np.sort(near, axis=1), axis=0, return_inverse=True)[1].ravel()
    own = kind[annotations.label]
    other = own != own[start[:-1][annotations.task]]
    return np.asarray(np.bincount(annotations.task[other], minlength=annotations.n_tasks) > 0)


def _with_all_labels(first: Codes, annotations: Annotations, mistakes: Mistakes, start: Any, tasks: Any) -> Codes:
    """Return the slots with those of all labels of some tasks."""
    most = int(np.diff(start)[tasks].max())
    own = np.full((len(tasks), most), -1, dtype=np.int32)
    for place in range(most):
        row = start[tasks] + place
        there = row < start[tasks + 1]
        own[there, place] = annotations.label[row[there]]
    near = np.where(own[:, :, None] >= 0, mistakes.near[own], -1).swapaxes(1, 2).reshape(len(tasks), -1)
    # Column by column of `near`: the labels themselves come first, and none of them is left out.
    found = unique_in_rows(near)[:, : WIDEST if most <= WIDEST else max(WIDEST, unique_in_rows(own).shape[1])]
    if found.shape[1] > first.shape[1]:
        wider = np.full((len(first), found.shape[1]), -1, dtype=np.int32)
        wider[:, : first.shape[1]] = first
        first = wider
    first[tasks] = -1
    first[tasks, : found.shape[1]] = found
    return first


def _contains(classes: Codes, wanted: Codes) -> Any:
    by_slot = np.ascontiguousarray(classes.T)
    return np.stack([(by_slot == column).any(axis=0) for column in wanted.T], axis=1)


def join_slots(classes: Codes, more: Codes) -> Codes:
    """Return the slots with those of `more` that are not among them yet; the last ones give way if too many."""
    new = np.where(_contains(classes, more), -1, more)
    new = unique_in_rows(new) if new.shape[1] > 1 else new
    limit = WIDEST if classes.shape[1] <= WIDEST else classes.shape[1] + more.shape[1]
    room = int(min(limit, ((classes >= 0).sum(axis=1) + (new >= 0).sum(axis=1)).max(initial=1)))
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
    found, number = np.full(codes.T.shape, -1, dtype=codes.dtype), np.zeros(len(codes), dtype=np.intp)
    for place, column in enumerate(codes.T):
        new = np.flatnonzero((column >= 0) & (found[:place] != column).all(axis=0))
        found[number[new], new] = column[new]
        number[new] += 1
    return np.ascontiguousarray(found[: max(1, int(number.max(initial=1)))].T)
