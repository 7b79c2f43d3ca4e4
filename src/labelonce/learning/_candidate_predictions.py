"""Predictions on candidates, by any learner: dense ones are made for a block of tasks at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from labelonce._kernels import Candidates, join_candidates
from labelonce._types import Codes, Floats
from labelonce.learning._learner import Learner
from labelonce.learning._predict import models_of_folds, take_rows

_AT_ONCE = 25 * 10**6  # probabilities that are held at a time
_SINGLE = 10**7  # candidates of all tasks from which their probabilities are kept in float32


def predict_candidates(model: Learner, X: Any, classes: Codes, top: int) -> Candidates:
    """Return P(class | features) on candidates (n_tasks, width), and on the `top` most probable classes.

    The candidates keep their columns, as far as there is room; the model's classes fill up the row.
    """
    own: Callable[[Any, Codes, int], Candidates] | None = getattr(model, "predict_candidates", None)
    if own is not None:
        return own(X, classes, top)
    n_classes = len(model.classes_)
    dtype = np.float32 if classes.size > _SINGLE else np.float64
    parts = []
    for rows in _blocks(len(classes), max(1, _AT_ONCE // n_classes)):
        dense = model.predict_proba(take_rows(X, rows))
        parts.append(on_candidates(dense, classes[rows], top, dtype))
    return Candidates.joined(parts)


def candidates_out_of_fold(
    learner: Any,
    X: Any,
    targets: Candidates,
    weight: Floats,
    own: Codes,
    top: int,
    *,
    n_folds: int,
    rng: np.random.Generator,
) -> Candidates:
    """Return predictions for every task by a model that was fitted without it, on `own` and its `top` classes.

    Where no other task has a weight, nothing is known: equal probabilities.
    """
    n_classes = targets.n_classes
    width = own.shape[1] + top
    classes = np.full((len(own), width), -1, dtype=np.int32)
    classes[:, : own.shape[1]] = own
    even = (classes >= 0) / n_classes
    probability, rest = even, 1 - even.sum(axis=1)
    for left_out, model in models_of_folds(learner, X, targets, weight, n_folds=n_folds, rng=rng):
        found = predict_candidates(model, take_rows(X, left_out), own[left_out], top)
        n = found.classes.shape[1]
        classes[left_out, :n], probability[left_out, :n], rest[left_out] = found.classes, found.probability, found.rest
    used = max(1, int((classes >= 0).sum(axis=1).max(initial=1)))
    return Candidates(classes[:, :used], probability[:, :used], rest, n_classes)


def on_candidates(dense: Floats, classes: Codes, top: int, dtype: Any = np.float64) -> Candidates:
    """Return probabilities (n_tasks, n_classes) on candidates and on the `top` classes of each task."""
    n_classes = dense.shape[1]
    if top < n_classes:
        best = np.argpartition(dense, n_classes - top, axis=1)[:, n_classes - top :]
    else:
        best = np.broadcast_to(np.arange(n_classes), dense.shape)
    joined = join_candidates(classes, best.astype(np.int32))
    inside = np.take_along_axis(dense, np.maximum(joined, 0), axis=1)
    inside = np.where(joined >= 0, inside, 0.0)
    full = (joined >= 0).sum(axis=1) == n_classes
    rest = np.where(full, 0.0, np.maximum(1 - inside.sum(axis=1), 0.0))
    return Candidates(joined, inside.astype(dtype, copy=False), rest.astype(dtype, copy=False), n_classes)


def _blocks(n: int, size: int) -> Iterator[Any]:
    return (np.arange(start, min(start + size, n)) for start in range(0, n, size))
