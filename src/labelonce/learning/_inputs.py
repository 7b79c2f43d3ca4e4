"""The forms in which features and labels reach a classifier: any rows; annotations, a matrix or plain labels."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, get_tags

from labelonce._messages import shorten
from labelonce._sklearn import check_classification_targets, count_rows, validate_data
from labelonce.data import NAMES, Annotations, _ids, check_memory, check_positions, check_whole, only_classes
from labelonce.data._numbers import features_fault
from labelonce.learning._learner import Learner

_FEW = 10  # rows: with fewer, features may be ids by chance
_WIDE = 20  # columns: a data frame of labels has fewer, a matrix of labels one per worker


def check_features(estimator: Any, X: Any, *, reset: bool) -> None:
    """Let the estimator learn (`reset`) or check the number and names of its features, whatever holds them.

    For learners that take numbers only, texts, dates, missing and infinite values are an error that names the column.
    """
    flat = not any(isinstance(one, Learner) and one.any_shape for one in _learners(estimator))
    if flat and isinstance(X, np.ndarray) and X.ndim != 2 and X.dtype.kind in "fiub":
        raise ValueError(
            f"X must have 2 dimensions, tasks and features; got shape {X.shape}. Reshape your data either using "
            "array.reshape(-1, 1) if it has a single feature or array.reshape(1, -1) if it is a single task."
        )
    missing = _takes_missing(estimator)
    if missing is not None:
        _check_numbers(X, missing=missing)
    validate_data(estimator, X, reset=reset, skip_check_array=True)


def _takes_missing(estimator: Any) -> bool | None:
    """Return whether the learners take NaN, but otherwise numbers only; None where one may take anything."""
    found = [False if one is None else _takes_nan(one) for one in _learners(estimator)]
    return None if None in found else all(found)


def _takes_nan(learner: Any) -> bool | None:
    ours = type(learner).__module__.startswith("labelonce.learning.")
    if isinstance(learner, Pipeline) or (isinstance(learner, Learner) and (learner.any_shape or not ours)):
        return None
    try:
        takes = bool(get_tags(learner).input_tags.allow_nan)
    except (AttributeError, TypeError):  # somebody else's estimator, without tags
        return None
    return takes if ours or not takes else None  # theirs may take categories, too


def _check_numbers(X: Any, *, missing: bool) -> None:
    """Raise where a value of X is no number that a model can use, with its column, its row and what to do."""
    fault = features_fault(X, missing=missing)
    if fault is None:
        return
    drop = f"X.drop(columns={fault.column.removeprefix('column ')})"
    fixes = {
        "missing": "Fill them in, as SimpleImputer does in a pipeline, or use BoostedTrees(), which takes them.",
        "infinite": "Replace them by numbers.",
        "date": "Make a number of it, such as the days since the first.",
    }
    encode = f"Drop it, {drop}, or let OneHotEncoder (categories) or TfidfVectorizer (texts) encode it in a pipeline."
    raise ValueError(f"{fault.sentence} {fixes.get(fault.kind, encode)}")


def _learners(estimator: Any) -> list[Any]:
    learner = getattr(estimator, "learner", None)
    return list(learner) if isinstance(learner, list | tuple) else [learner]


def is_matrix(y: Any) -> bool:
    """Return whether y holds a row of labels for each task, not one label."""
    return isinstance(y, Annotations) or _as_array(y).ndim == 2


def match_rows(
    X: Any, y: Any, tasks: Any = None, *, classes: Any = None, learner: Any = None
) -> tuple[Any, Annotations]:
    """Return X without a column of task ids, and the annotations in the order of its rows.

    The ids of the rows are `tasks`, the column of a data frame that is called as the annotations' column of tasks was,
    or `task`, or the index of a pandas object that does more than count its rows. Without ids, row i is task i of the
    annotations if their numbers are equal. Another column with the ids of the tasks is an error. Labels may be a data
    frame with the columns task, worker and label.
    `classes` are those of an earlier fit, or given to the constructor; labels are looked up in them. For a `learner`
    that takes no other answers than classes, others are left out with a warning.
    """
    if _ids.is_frame(y):
        y = _from_frame(y, X, classes)
    named = y.names[0] if isinstance(y, Annotations) else NAMES[0]
    X, column, name = _split(X, [named, NAMES[0]])
    annotations = y if isinstance(y, Annotations) else _from_array(y, X, classes)
    found = _row_ids(X, tasks, column, name, by_index=isinstance(y, Annotations))
    if isinstance(y, Annotations):
        _check_no_ids(X, annotations)
    if found is None:
        check_positions(annotations, "X", count_rows(X), "Give tasks=..., the task id of every row of X.")
    else:
        annotations = _align(annotations, *found, count_rows(X))
    if classes is not None and not np.array_equal(annotations.classes, classes):
        raise ValueError(
            f"annotations must have the classes of the fit, {shorten(classes)}; got {shorten(annotations.classes)}."
        )
    if learner is None:
        return X, annotations
    if not getattr(learner, "_takes_weights", False):
        check_whole(annotations, type(learner).__name__)
    return X, only_classes(annotations, type(learner).__name__, stacklevel=4)


def check_arrays(estimator: Any, annotations: Annotations, *, matrices: float) -> None:
    """Raise if an array by task and class, and `matrices` by worker, class and class, do not fit into the memory."""
    n_tasks, n_workers, n_classes = annotations.n_tasks, annotations.n_workers, annotations.n_classes
    check_memory(
        8.0 * (8 * n_tasks * n_classes + matrices * n_workers * n_classes**2),
        f"{type(estimator).__name__} with {n_tasks:,} tasks, {n_workers:,} workers and {n_classes:,} classes",
        "Use MBEM(worker_model=workers.Grouped(groups)), whose memory follows the labels and not the classes.",
    )


def split_task_column(X: Any, fitted: Any = None) -> tuple[Any, Any]:
    """Return a data frame without its column `task`, and that column; anything else as it is, and None.

    For an estimator that was `fitted` to features with names, all other columns go: ids may have any name.
    """
    features = getattr(fitted, "feature_names_in_", None)
    if features is not None and _ids.is_frame(X):
        names = _ids.columns_of(X)[0]
        others = [name for name in names if name not in features]
        if others and set(features) <= set(names):
            X = _without(X, others)
        return X, None
    X, column, _ = _split(X, [NAMES[0]])
    return X, column


def _split(X: Any, candidates: list[Any]) -> tuple[Any, Any, Any]:
    """Return a data frame without the first of the columns that it has, that column and its name."""
    names, column = _ids.columns_of(X) if _ids.is_frame(X) else ([], None)
    for name in candidates:
        if name in names and column is not None:
            return _without(X, [name]), column(names.index(name)), name
    return X, None, None


def _without(X: Any, names: list[Any]) -> Any:
    if hasattr(X, "iloc"):
        return X.drop(columns=names)
    return X.drop_columns(names) if hasattr(X, "drop_columns") else X.drop(names)


def _row_ids(X: Any, tasks: Any, column: Any, name: Any, *, by_index: bool) -> tuple[Any, str] | None:
    """Return the task ids of the rows and where they were found; None where X has none."""
    if tasks is not None:
        return tasks, "tasks"
    if column is not None:
        return column, f"the column {name!r} of X"
    index: Any = getattr(X, "index", None)
    if not by_index or index is None or callable(index):
        return None
    if type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1):
        return None
    return index, "the index of X (X.reset_index(drop=True) takes it away)"


def _check_no_ids(X: Any, annotations: Annotations) -> None:
    """Raise where a column of a data frame holds exactly the ids of the tasks: it is no feature."""
    if not _ids.is_frame(X) or annotations.n_tasks < _FEW:
        return
    names, column = _ids.columns_of(X)
    labelled = annotations.tasks[np.unique(annotations.task)]
    for place, name in enumerate(names):
        ids = _as_ids(column(place))
        if ids is not None and len(np.unique(ids)) == len(ids) and (_ids.lookup(labelled, ids) >= 0).all():
            raise ValueError(
                f"column {name!r} of X must not be a feature: it holds the ids of the tasks. Match the rows by it, "
                f"X.rename(columns={{{name!r}: {NAMES[0]!r}}}), or drop it."
            )


def _as_ids(column: Any) -> Any:
    """Return a column as ids, None where it cannot be that."""
    values = np.asarray(column)
    if values.dtype.kind == "f" and not np.array_equal(values, np.floor(values)):
        return None
    try:
        return _ids.column_of(values, "task")
    except (TypeError, ValueError):
        return None


def _from_frame(frame: Any, X: Any, classes: Any) -> Any:
    """Return the annotations in a data frame of labels; one that can be a matrix of them stays what it is."""
    names, column = _ids.columns_of(frame)
    if set(NAMES) <= set(names):
        return Annotations.from_frame(frame, classes=classes)
    values = [set(np.asarray(column(place)).tolist()) for place in range(len(names))] if len(names) <= _WIDE else []
    distinct = len(values) > 0 and max(map(len, values)) == len(frame) >= _FEW
    apart = len(values) > 1 and not set.intersection(*values)
    apart = apart and any(isinstance(one, str) for one in set.union(*values))
    if distinct or apart or len(frame) != count_rows(X):
        raise ValueError(
            f"y must be annotations or a matrix with one row per task; got a data frame with the columns "
            f"{shorten(names)}. Make annotations of it with Annotations.from_frame(y, task=..., worker=..., label=...)."
        )
    return frame


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
    if y.shape[0] != count_rows(X):
        raise ValueError(f"X and y must have the same number of rows; got {count_rows(X)} and {y.shape[0]}.")
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
