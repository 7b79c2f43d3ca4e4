"""The classes that a task was given, each once: all that votes need, whatever the number of classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelonce._kernels._beliefs import Beliefs
from labelonce._kernels._slots import WIDEST
from labelonce._types import Codes, Floats
from labelonce.data import Annotations, first_rows, is_large

_TABLE = 1 << 22  # tasks x classes up to which a table is faster than to sort, however few labels there are


class LabelCells:
    """Cells: pairs of a task and a class that it was given, or that its gold is; sorted by task, then class.

    Numbers of a cell are those of one class of one task; `rest` is what all other classes of a task have together.
    Time and memory are those of the annotations.

    Parameters
    ----------
    annotations : Annotations
    gold : (n_tasks,), optional
        Class codes of known true labels, -1 where unknown.
    """

    def __init__(self, annotations: Annotations, gold: Codes | None = None) -> None:
        self.shape = (annotations.n_tasks, annotations.n_classes)
        self.n_workers, self.worker = annotations.n_workers, annotations.worker.astype(np.intp)
        self._gold = gold
        known = np.flatnonzero(gold >= 0) if gold is not None else np.zeros(0, dtype=np.intp)
        key = annotations.task.astype(np.int64) * annotations.n_classes + annotations.label
        extra = known * annotations.n_classes + (gold[known] if gold is not None else known)
        keys, place = _distinct(np.concatenate([key, extra]), self.shape[0] * self.shape[1])
        self.cell, self._known_cell = place[: len(key)], place[len(key) :]
        self.task, self.label = keys // annotations.n_classes, keys % annotations.n_classes
        self.start = first_rows(self.task, annotations.n_tasks)
        self.number = np.diff(self.start)

    def votes(self, values: Floats | None = None) -> Floats:
        """Return the sum of values over the annotations of each cell, (n_cells,); without values their number."""
        return np.asarray(np.bincount(self.cell, values, len(self.task)), dtype=np.float64)

    def by_worker(self, values: Floats | None = None) -> Floats:
        """Return the sum of values over the annotations of each worker, (n_workers,); without values their number."""
        return np.asarray(np.bincount(self.worker, values, self.n_workers), dtype=np.float64)

    def by_task(self, values: Floats) -> Floats:
        """Return the sum over each task's cells, (n_tasks,)."""
        return np.asarray(np.bincount(self.task, values, self.shape[0]), dtype=np.float64)

    def top(self, values: Floats) -> Floats:
        """Return the largest value among each task's cells, minus infinity where it has none."""
        found = np.full(self.shape[0], -np.inf)
        filled = np.flatnonzero(self.number)
        if len(filled):
            found[filled] = np.maximum.reduceat(values, self.start[filled])
        return found

    def fractions(self, votes: Floats) -> tuple[Floats, Floats]:
        """Return votes as shares by cell and the rest, which is all where nobody voted; gold is certain."""
        total = self.by_task(votes)
        share = votes / np.where(total > 0, total, 1.0)[self.task]
        return self.with_gold(share, np.where(total > 0, 0.0, 1.0))

    def with_gold(self, share: Floats, rest: Floats) -> tuple[Floats, Floats]:
        """Return the distributions with known true labels certain."""
        if self._gold is None:
            return share, rest
        share = np.where(self._gold[self.task] >= 0, 0.0, share)
        share[self._known_cell] = 1.0
        return share, np.where(self._gold >= 0, 0.0, rest)

    def beliefs(self, share: Floats, rest: Floats) -> Beliefs:
        """Return distributions, of all classes unless `is_large` says that they would be too large."""
        n_tasks, n_classes = self.shape
        if is_large(n_tasks, self.n_workers, n_classes):
            return self._on_slots(share, rest)
        dense = np.repeat((rest / np.maximum(n_classes - self.number, 1))[:, None], n_classes, axis=1)
        dense[self.task, self.label] = share
        return Beliefs.of(dense)

    def _on_slots(self, share: Floats, rest: Floats) -> Beliefs:
        """Return the most probable cells of each task, as many as the widest task has, at most `WIDEST`."""
        order = np.lexsort((-share, self.task))
        place = np.arange(len(order)) - self.start[self.task[order]]
        width = int(np.clip(self.number.max(initial=1), 1, WIDEST))
        kept = order[place < width]
        classes = np.full((self.shape[0], width), -1, dtype=np.int32)
        probability = np.zeros(classes.shape)
        at = self.task[kept], place[place < width]
        classes[at], probability[at] = self.label[kept], share[kept]
        left = np.maximum(rest + self.by_task(share) - probability.sum(axis=1), 0.0) if len(kept) < len(order) else rest
        return Beliefs(probability, self.shape[1], classes, left)


def _distinct(key: Any, n_keys: int) -> tuple[Any, Any]:
    """Return the distinct keys, sorted, and the place of each key among them."""
    if n_keys > max(4 * len(key), _TABLE):
        return np.unique(key, return_inverse=True)
    seen = np.zeros(n_keys, dtype=bool)
    seen[key] = True
    rank = np.cumsum(seen, dtype=np.int64) - 1
    return np.flatnonzero(seen), rank[key]
