"""The forms in which features and labels reach a classifier: any rows; annotations, a matrix or plain labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from labelonce._memory import check_memory
from labelonce._messages import shorten
from labelonce._sklearn import check_classification_targets, validate_data
from labelonce.data import Annotations
from labelonce.data._annotations import check_positions
from labelonce.data._answers import only_classes
from labelonce.learning._learner import Learner
from labelonce.learning._predict import n_rows


def check_features(estimator: Any, X: Any, *, reset: bool) -> None:
    """Let the estimator learn (`reset`) or check the number and names of its features, whatever holds them."""
    flat = not _takes_any_shape(estimator)
    if flat and isinstance(X, np.ndarray) and X.ndim != 2 and X.dtype.kind in "fiub":
        raise ValueError(
            f"X must have 2 dimensions, tasks and features; got shape {X.shape}. Reshape your data either using "
            "array.reshape(-1, 1) if it has a single feature or array.reshape(1, -1) if it is a single task."
        )
    validate_data(estimator, X, reset=reset, skip_check_array=True)


def _takes_any_shape(estimator: Any) -> bool:
    """Return whether the learner, or one of them, takes images and the like."""
    learner = getattr(estimator, "learner", None)
    learners = learner if isinstance(learner, list | tuple) else [learner]
    return any(isinstance(one, Learner) and one.any_shape for one in learners)


def is_matrix(y: Any) -> bool:
    """Return whether y holds a row of labels for each task, not one label."""
    return isinstance(y, Annotations) or _as_array(y).ndim == 2


def match_rows(
    X: Any, y: Any, tasks: Any = None, *, classes: Any = None, learner: Any = None
) -> tuple[Any, Annotations]:
    """Return X without a column of task ids, and the annotations in the order of its rows.

    The ids of the rows are `tasks`, the column `task` of a data frame, or the index of a pandas object that does more
    than count its rows. Without any, row i is task i of the annotations where that can only mean one thing.
    `classes` are those of an earlier fit, or given to the constructor; labels are looked up in them. For a `learner`
    that takes no other answers than classes, others are left out with a warning.
    """
    X, column = split_task_column(X)
    annotations = y if isinstance(y, Annotations) else _from_array(y, X, classes)
    found = _row_ids(X, tasks, column, by_index=isinstance(y, Annotations))
    if found is None:
        check_positions(annotations, "X", n_rows(X), "Give tasks=..., the task id of every row of X.")
    else:
        annotations = _align(annotations, *found, n_rows(X))
    if classes is not None and not np.array_equal(annotations.classes, classes):
        raise ValueError(
            f"annotations must have the classes of the fit, {shorten(classes)}; got {shorten(annotations.classes)}."
        )
    return X, annotations if learner is None else only_classes(annotations, type(learner).__name__, stacklevel=4)


def check_arrays(estimator: Any, annotations: Annotations, *, matrices: float) -> None:
    """Raise if arrays by task and class, and so many by worker, class and class, do not fit into the memory."""
    n_tasks, n_workers, n_classes = annotations.n_tasks, annotations.n_workers, annotations.n_classes
    check_memory(
        8.0 * (8 * n_tasks * n_classes + matrices * n_workers * n_classes**2),
        f"{type(estimator).__name__} with {n_tasks:,} tasks, {n_workers:,} workers and {n_classes:,} classes",
        "Use MBEM(worker_model=workers.Grouped(groups)), whose memory follows the labels and not the classes.",
    )


def split_task_column(X: Any) -> tuple[Any, Any]:
    """Return a data frame without its column `task`, and that column; anything else as it is, and None."""
    names = getattr(X, "column_names", None)  # Arrow
    names = list(getattr(X, "columns", ())) if names is None else list(names)
    if "task" not in names:
        return X, None
    if hasattr(X, "iloc"):
        return X.drop(columns="task"), X["task"]
    return (X.drop_columns(["task"]) if hasattr(X, "drop_columns") else X.drop("task")), X["task"]


def _row_ids(X: Any, tasks: Any, column: Any, *, by_index: bool) -> tuple[Any, str] | None:
    """Return the task ids of the rows and where they were found; None where X has none."""
    if tasks is not None:
        return tasks, "tasks"
    if column is not None:
        return column, "the column 'task' of X"
    index: Any = getattr(X, "index", None)
    if not by_index or index is None or callable(index):
        return None
    if type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1):
        return None
    return index, "the index of X (X.reset_index(drop=True) takes it away)"


def _align(annotations: Annotations, ids: Any, where: str, n: int) -> Annotations:
    if len(ids) != n:
        raise ValueError(f"{where} must name the task of each of the {n} rows of X; got {len(ids)} ids.")
    try:
        return annotations.align(ids)
    except (ValueError, TypeError) as error:
        raise type(error)(f"rows of X are matched by {where}: {error}") from error


def _from_array(y: Any, X: Any, classes: Any) -> Annotations:
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None: give Annotations, a matrix or labels.")
    if hasattr(y, "of_question"):
        raise TypeError(
            f"y must have one label per annotation; got {y!r}. Use MultiLabelMBEM, or give y.of_question(name)."
        )
    y = _as_array(y)
    if y.ndim not in (1, 2):
        raise ValueError(f"y must be labels (n_tasks,) or a matrix (n_tasks, n_workers); got shape {y.shape}.")
    if y.shape[0] != n_rows(X):
        raise ValueError(f"X and y must have the same number of rows; got {n_rows(X)} and {y.shape[0]}.")
    if y.ndim == 2 or isinstance(y, np.ma.MaskedArray):
        return Annotations.from_matrix(y if y.ndim == 2 else y[:, None], classes=classes)
    check_array(y, dtype=None, ensure_2d=False, input_name="y")
    check_classification_targets(y)
    tasks = np.arange(len(y))
    return Annotations.from_arrays(tasks, np.zeros_like(tasks), y, classes=classes)


def _as_array(y: Any) -> Any:
    """Return y as an array that still tells what is missing: text would make "nan" of it."""
    if sparse.issparse(y) or isinstance(y, np.ma.MaskedArray):
        return y
    found = np.asarray(y)
    return np.asarray(y, dtype=object) if found.dtype.kind in "US" and not hasattr(y, "dtype") else found
