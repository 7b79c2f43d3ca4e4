"""A small crowd on six classes in three groups, and workers without a matrix."""

import numpy as np

from labelonce import Annotations, simulate
from labelonce._kernels import Factors, Mistakes
from labelonce._types import Codes

GROUP = np.array([0, 0, 0, 1, 1, 2])
ROWS = {"worker": np.zeros(6, np.int32), "class": np.arange(6, dtype=np.int32), "group": GROUP.astype(np.int32)}


def crowd(redundancy: int = 2, n_tasks: int = 60) -> Annotations:
    """Return labels of 7 workers on six classes; the last three tasks have none."""
    rng = np.random.default_rng(0)
    confusion = simulate.dirichlet(7, 6, rng)
    ann = simulate.annotate(rng.integers(0, 6, n_tasks), confusion, simulate.assign(n_tasks, 7, redundancy, rng), rng)
    keep = ann.task < n_tasks - 3
    return Annotations(ann.task[keep], ann.worker[keep], ann.label[keep], ann.tasks, ann.workers, ann.classes)


def factors(row: Codes, leak: float = 0.3) -> Factors:
    """Return workers with different rows and different shares of mistakes."""
    rng = np.random.default_rng(1)
    mistakes = Mistakes.inside(GROUP)
    raw = rng.random(len(mistakes)) + 0.1
    own = raw / np.bincount(mistakes.true, raw, 6)[mistakes.true]
    other = np.where(mistakes.empty, 1.0, leak) / 5
    return Factors(rng.uniform(0.2, 0.9, (7, int(row.max()) + 1)), row, mistakes, (1 - leak) * own + leak / 5, other)
