"""Rows of any kind of X, and what a model says of them: of all classes, or on slots, some tasks at a time."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from labelonce._kernels import Beliefs, join_slots
from labelonce._sklearn import count_rows, select_rows
from labelonce._types import Codes, Floats
from labelonce.learning._learner import Learner

_AT_ONCE = 25 * 10**6  # probabilities that are held at a time
_SINGLE = 10**7  # slots of all tasks from which their probabilities are kept in float32


def take_rows(X: Any, rows: npt.NDArray[np.integer[Any]]) -> Any:
    """Return some rows of X; X itself where all are wanted in order."""
    if len(rows) == count_rows(X) and (rows[1:] > rows[:-1]).all():
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


def predict_beliefs(model: Learner, X: Any, slots: Codes | None, top: int) -> Beliefs:
    """Return P(class | features): of all classes, or on `slots` (n_tasks, n_slots) and the `top` most probable ones.

    The slots keep their columns, as far as there is room; the model's classes fill up the row.
    """
    if slots is None:
        return Beliefs.of(model.predict_proba(X))
    own: Callable[[Any, Codes, int], Beliefs] | None = getattr(model, "predict_slots", None)
    if own is not None:
        return own(X, slots, top)
    n_classes = len(model.classes_)
    dtype = np.float32 if slots.size > _SINGLE else np.float64
    step = max(1, _AT_ONCE // n_classes)
    blocks = (np.arange(start, min(start + step, len(slots))) for start in range(0, len(slots), step))
    return Beliefs.joined(
        [put_on_slots(model.predict_proba(take_rows(X, rows)), slots[rows], top, dtype) for rows in blocks]
    )


def put_on_slots(dense: Floats, slots: Codes, top: int, dtype: Any = np.float64) -> Beliefs:
    """Return probabilities (n_tasks, n_classes) on slots and on the `top` classes of each task, which may be none."""
    n_classes, joined = dense.shape[1], slots
    if top >= n_classes:
        joined = join_slots(slots, np.broadcast_to(np.arange(n_classes, dtype=np.int32), dense.shape))
    elif top > 0:
        best = np.argpartition(dense, n_classes - top, axis=1)[:, n_classes - top :]
        joined = join_slots(slots, best.astype(np.int32))
    inside = np.take_along_axis(dense, np.maximum(joined, 0), axis=1)
    inside = np.where(joined >= 0, inside, 0.0)
    full = (joined >= 0).sum(axis=1) == n_classes
    rest = np.where(full, 0.0, np.maximum(1 - inside.sum(axis=1), 0.0))
    return Beliefs(inside.astype(dtype, copy=False), n_classes, joined, rest.astype(dtype, copy=False))
