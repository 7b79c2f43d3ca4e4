"""Predictions for tasks by models that did not see them, for any kind of X."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from labelonce._kernels import Candidates
from labelonce._memory import MOST_NUMBERS
from labelonce._sklearn import clone, count_rows, select_rows
from labelonce._types import Floats
from labelonce.learning._fits import count_fit
from labelonce.learning._learner import Learner


def n_rows(X: Any) -> int:
    """Return the number of tasks in X: an array, a sparse matrix, a data frame, a list or a map-style data set."""
    return int(count_rows(X))


def take_rows(X: Any, rows: npt.NDArray[np.integer[Any]]) -> Any:
    """Return some rows of X; X itself where all are wanted in order."""
    if len(rows) == n_rows(X) and (rows[1:] > rows[:-1]).all():
        return X
    if hasattr(X, "__getitem__") and not hasattr(X, "shape") and not isinstance(X, list | tuple):
        return SomeRows(X, rows)
    return select_rows(X if hasattr(X, "__getitem__") or sparse.issparse(X) else np.asarray(X), rows)


class SomeRows:
    """Some rows of a map-style data set, itself such a set: nothing is loaded before it is asked for."""

    def __init__(self, data: Any, rows: npt.NDArray[np.integer[Any]]) -> None:
        self.data = data
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> Any:
        return self.data[int(self.rows[number])]


def fit_to_rows(learner: Learner, X: Any, targets: Any, weight: Floats, rows: npt.NDArray[np.integer[Any]]) -> Learner:
    """Return a fresh learner fitted to some of the tasks; targets are an array or `Candidates`."""
    with warnings.catch_warnings():
        if targets.shape[1] == 1:  # of a single class; learners take it for a column of labels, which does as well
            warnings.simplefilter("ignore", DataConversionWarning)
        if len(rows) < len(targets):
            X, targets, weight = take_rows(X, rows), targets[rows], weight[rows]
        if isinstance(targets, Candidates) and not learner.takes_candidates:
            targets = dense_targets(learner, targets)
        fitted: Learner = clone(learner).fit(X, targets, sample_weight=weight)
    count_fit()
    return fitted


def dense_targets(learner: Learner, targets: Candidates) -> Floats:
    """Return targets on candidates as an array, for a learner that takes nothing else; too large ones are an error."""
    n_tasks, n_classes = targets.shape
    if n_tasks * n_classes > MOST_NUMBERS:
        raise ValueError(
            f"{type(learner).__name__} must have at most {MOST_NUMBERS:,} targets, one per task and class; got "
            f"{n_tasks:,} tasks x {n_classes:,} classes. Use SoftmaxRegression(), learning.GroupedSoftmax(groups) or a "
            "network, which take the few classes in question of each task."
        )
    return targets.to_dense()


def out_of_fold(
    learner: Learner, X: Any, targets: Floats, weight: Floats, *, n_folds: int, rng: np.random.Generator
) -> Floats:
    """Return P(class) of every task by a model that was fitted without it, shape (n_tasks, n_classes)."""
    return cross_fit(learner, X, targets, weight, n_folds=n_folds, rng=rng)[1]


def cross_fit(
    learner: Learner, X: Any, targets: Floats, weight: Floats, *, n_folds: int, rng: np.random.Generator
) -> tuple[list[Learner], Floats]:
    """Return models, each fitted without a part of the tasks, and P(class) of every task by the one that left it out.

    Where no other task has a weight, nothing is known: equal probabilities.
    """
    predictions = np.full(targets.shape, 1 / targets.shape[1])
    models = []
    for left_out, model in models_of_folds(learner, X, targets, weight, n_folds=n_folds, rng=rng):
        predictions[left_out] = model.predict_proba(take_rows(X, left_out))
        models.append(model)
    return models, predictions


def models_of_folds(
    learner: Learner, X: Any, targets: Any, weight: Floats, *, n_folds: int, rng: np.random.Generator
) -> Iterator[tuple[npt.NDArray[np.integer[Any]], Learner]]:
    """Yield the tasks of each fold and a model fitted to the others, if any of these has a weight.

    Targets are an array or `Candidates`.
    """
    fold = rng.permutation(len(targets)) % n_folds
    for number in np.unique(fold):
        seen = np.flatnonzero((fold != number) & (weight > 0))
        if len(seen):
            yield np.flatnonzero(fold == number), fit_to_rows(learner, X, targets, weight, seen)
