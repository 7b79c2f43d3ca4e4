"""Workers estimated without one of their labels, so that no label is judged by itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelonce._types import Codes, Floats

LEAN = 10.0  # labels that a worker's one-coin matrix is worth in a row of its confusion
_CROWD_WORTH = 4.0  # labels that the crowd's mean skill is worth in a worker's


@dataclass(frozen=True)
class Counts:
    """Expected counts [worker, true, given] of all annotations.

    In the methods `worker`, `label` and `posterior` have one row per annotation: who gave what, and the posterior of
    its task, which is what the annotation added to the counts.
    """

    counts: Floats

    def skill_without(self, worker: Codes, label: Codes, posterior: Floats) -> Floats:
        """Return each worker's share of right labels without this one, leaning on the crowd's."""
        right: Floats = np.einsum("wkk->w", self.counts)
        total = self.counts.sum(axis=(1, 2))
        own = posterior[np.arange(len(label)), label]
        crowd = _CROWD_WORTH * right.sum() / total.sum()
        return np.asarray(np.maximum(right[worker] - own + crowd, 0) / (total[worker] - 1 + _CROWD_WORTH))

    def column_without(self, worker: Codes, label: Codes, posterior: Floats, lean: float = LEAN) -> Floats:
        """Return P(this label | true class) of the worker without this annotation, shape (n, n_classes)."""
        rows, n_classes = np.arange(len(label)), posterior.shape[1]
        skill = self.skill_without(worker, label, posterior)
        one_coin = np.repeat(((1 - skill) / (n_classes - 1))[:, None], n_classes, axis=1)
        one_coin[rows, label] = skill
        size = np.maximum(self.counts.sum(axis=2)[worker] - posterior, 0) + lean
        return np.asarray((np.maximum(self.counts[worker, :, label] - posterior, 0) + lean * one_coin) / size)

    def confusion_without(self, worker: Codes, label: Codes, posterior: Floats, lean: float = LEAN) -> Floats:
        """Return the worker's whole matrix without this annotation, shape (n, n_classes, n_classes)."""
        rows, n_classes = np.arange(len(label)), posterior.shape[1]
        skill = self.skill_without(worker, label, posterior)[:, None, None]
        evidence = self.counts[worker]
        evidence[rows, :, label] = np.maximum(evidence[rows, :, label] - posterior, 0)
        evidence += lean * np.where(np.eye(n_classes, dtype=bool), skill, (1 - skill) / (n_classes - 1))
        return np.asarray(evidence / evidence.sum(axis=2, keepdims=True))
