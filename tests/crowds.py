"""Small simulated crowds whose truth is known: what most tests are tried on."""

from typing import NamedTuple

import numpy as np

from labelonce import Annotations, simulate
from labelonce._types import Codes, Floats, Ids


def crowd(
    seed: int = 0,
    n_tasks: int = 200,
    n_workers: int = 12,
    n_classes: int = 3,
    *,
    redundancy: int = 5,
    confusion: Floats | None = None,
) -> tuple[Annotations, Codes]:
    """Return annotations and the true labels; with `confusion`, of workers who have these matrices."""
    rng = np.random.default_rng(seed)
    if confusion is not None:
        n_workers, n_classes = confusion.shape[:2]
    y_true = rng.integers(0, n_classes, n_tasks).astype(np.int32)
    if confusion is None:
        confusion = simulate.dirichlet(n_workers, n_classes, rng, diagonal=6.0, off_diagonal=1.0)
    assignment = simulate.assign(n_tasks, n_workers, redundancy, rng, replace=False)
    return simulate.annotate(y_true, confusion, assignment, rng), y_true


class Problem(NamedTuple):
    """Tasks with features, who labelled them, and the truth."""

    X: Floats
    annotations: Annotations
    y_true: Codes
    confusion: Floats


def crowd_with_features(
    n_tasks: int = 200,
    n_workers: int = 6,
    n_classes: int = 3,
    *,
    n_features: int = 3,
    redundancy: int = 1,
    hammers: float = 0.5,
    confusion: Floats | None = None,
) -> Problem:
    """Return tasks whose true label is their largest feature, labelled by hammers and spammers or by `confusion`."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_tasks, n_features))
    y_true = X[:, :n_classes].argmax(axis=1).astype(np.int32)
    if confusion is None:
        confusion = simulate.hammer_spammer(n_workers, n_classes, hammers, rng, exact=True)
    assignment = simulate.assign(n_tasks, len(confusion), redundancy, rng, replace=False)
    return Problem(X, simulate.annotate(y_true, confusion, assignment, rng), y_true, confusion)


def rearranged(X: Floats, annotations: Annotations) -> tuple[Floats, Annotations, Ids, Ids]:
    """Return the same tasks and labels under other numbers, and the new numbers of workers and of classes."""
    rng, (n_tasks, n_workers) = np.random.default_rng(1), annotations.shape
    task, worker, label = (rng.permutation(n) for n in (n_tasks, n_workers, annotations.n_classes))
    matrix, X_other = np.full((n_tasks, n_workers), -1), np.empty_like(X)
    matrix[task[annotations.task], worker[annotations.worker]] = label[annotations.label]
    X_other[task] = X
    return X_other, Annotations.from_matrix(matrix, classes=np.arange(annotations.n_classes)), worker, label


def label_counts(annotations: Annotations, y_true: Ids) -> Floats:
    """Return how often each worker gave which label to tasks of which true class, [worker, true, given]."""
    counts = np.zeros((annotations.n_workers, annotations.n_classes, annotations.n_classes))
    np.add.at(counts, (annotations.worker, np.asarray(y_true)[annotations.task], annotations.label), 1)
    return counts


def with_empty_columns(annotations: Annotations) -> Annotations:
    """Return the same crowd with one more worker, who labelled nothing, and one more class, that nobody gave."""
    matrix = np.pad(annotations.to_matrix(dense=True), ((0, 0), (0, 1)), constant_values=-1)
    return Annotations.from_matrix(matrix, classes=np.arange(annotations.n_classes + 1))
