"""Sums of one number per annotation, for models whose workers are more than a table of confusion."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from labelonce._types import Floats
from labelonce.data import Annotations

Numbers = npt.NDArray[np.float64]


class AnnotationSums:
    """Sums over the annotations of each task, each worker, or each task and class; linear in time and memory.

    For annotations whose answers are the classes.
    """

    def __init__(self, annotations: Annotations) -> None:
        self.shape = (annotations.n_tasks, annotations.n_classes)
        self.n_workers = annotations.n_workers
        self.task: Any = annotations.task.astype(np.intp)  # bincount would convert them at every call
        self.worker: Any = annotations.worker.astype(np.intp)
        self._cell = self.task * annotations.n_classes + annotations.label

    def by_task(self, values: Floats | None = None) -> Numbers:
        """Return the sum of each task's annotations, shape (n_tasks,); without values their number."""
        return _sum(self.task, values, self.shape[0])

    def by_worker(self, values: Floats | None = None) -> Numbers:
        """Return the sum of each worker's annotations, shape (n_workers,); without values their number."""
        return _sum(self.worker, values, self.n_workers)

    def by_class(self, values: Floats | None = None) -> Numbers:
        """Return the sum of each task's annotations by label, shape (n_tasks, n_classes); without values the votes."""
        return _sum(self._cell, values, self.shape[0] * self.shape[1]).reshape(self.shape)

    def at_label(self, table: Floats) -> Floats:
        """Return the entry of a (n_tasks, n_classes) table at each annotation's task and label."""
        return np.asarray(table.reshape(-1)[self._cell])


def _sum(place: Any, values: Floats | None, n_places: int) -> Numbers:
    values = np.ones(len(place)) if values is None else values
    return np.asarray(np.bincount(place, values, n_places), dtype=np.float64)
