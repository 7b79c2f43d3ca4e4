"""Features and texts, one row per task, joined with the annotations by their task ids."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from labelonce._messages import argument, is_offered, shorten, show
from labelonce._types import TABLES, Floats, Ids
from labelonce.data import Annotations, _ids
from labelonce.files._open import File, locate, naming, with_path
from labelonce.files._table_reader import id_column, read_table
from labelonce.formats._answers import Fields
from labelonce.formats._registry import read as read_tool

_ARRAYS = (".npy", ".npz")
_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_null)


@dataclass(frozen=True)
class Rows:
    """What a model is fed: the task, and the features or the text, of every row.

    `columns` are the names of the features, the one name of the texts, or None where the file has no names.
    """

    tasks: Ids
    X: Any
    columns: list[str] | None


def read_features(
    path: Path,
    *,
    task: str = "task",
    columns: list[str] | None = None,
    ignore: Sequence[str] = (),
    missing: bool = False,
    new: bool = False,
) -> Rows:
    """Return the numbers in a file: every column but `task` and `ignore`, or those named by `columns` in that order.

    `missing` allows NaN. A table without a column `task` is an error, but with `new`, for a model that is trained, its
    rows are 0, 1, 2, ..., as those of an array are.
    """
    if path.suffix.lower() in _ARRAYS:
        rows = _read_arrays(path, task)
    else:
        file = _table_file(path)
        with naming(file):
            table = read_table(file, [task])
            tasks = tasks_of(table, task, file, numbered=new)
            wanted = columns or [name for name in table.column_names if name != task and name not in ignore]
            _check_present(table, [*wanted, *ignore])
            if not wanted:
                raise ValueError(f"features must have a column besides {task!r}; got none. {_for_texts()}")
            rows = Rows(tasks, _numbers(table, wanted, new=new), wanted)
    _check_finite(rows, path, missing, new=new)
    return rows


def _without(column: str) -> str:
    return f"Leave it out with {argument('ignore', column)}." if is_offered("ignore") else "Drop the column."


def _for_texts(column: str = "") -> str:
    if not is_offered("text"):
        return "Texts must be made numbers first."
    return f"For texts, train with {argument('text', *([column] if column else []))}."


def read_texts(
    path: str | os.PathLike[str],
    column: str,
    *,
    fields: Fields = Fields(),  # noqa: B008  # immutable
    new: bool = False,
) -> Rows:
    """Return the texts in a column of a table, or of the export of a tool that `find_labels` found.

    A task may have several rows, as in a file of labels, with one text; with `new` every row counts for itself, and a
    table without a column of tasks has the rows 0, 1, 2, ...
    """
    file = path if isinstance(path, File) else _table_file(Path(path))
    with naming(file):
        if file.format in TABLES:
            table, task = read_table(file, [fields.task or "task", column]), fields.task or "task"
            texts = _strings(table, column)
            tasks = tasks_of(table, task, file, numbered=new, repeated=True)
        else:
            found = read_tool(file, fields._replace(text=column)).texts
            tasks, texts = _ids.column_of([task for task, _ in found], "task"), [text for _, text in found]
        bad = [row for row, text in enumerate(texts) if not isinstance(text, str) or not text.strip()]
        if bad:
            got = f"got {show(texts[bad[0]])} at row {bad[0]} ({len(bad)} in total)"
            raise ValueError(f"column {column!r} must hold a text in every row; {got}. Fill them in, or drop them.")
        return Rows(tasks, texts, [column]) if new else one_text_per_task(tasks, texts, column)


def _strings(table: pa.Table, column: str) -> list[Any]:
    _check_present(table, [column])
    texts = table.column(column)
    if pa.types.is_dictionary(texts.type):
        texts = texts.cast(texts.type.value_type)
    if not _ids.is_text(texts.type):
        raise ValueError(f"column {column!r} must hold texts; got {texts.type}. Name another one.")
    found: list[Any] = texts.to_pylist()
    return found


def align_rows(annotations: Annotations, rows: Rows, path: Path) -> Annotations:
    """Return the annotations in the order of the rows; a labelled task without a row is an error."""
    try:
        _ids.check_same_kind(rows.tasks, "task", annotations.tasks)
    except TypeError as error:
        raise TypeError(f"{path}: {error}") from error
    labelled = annotations.tasks[np.unique(annotations.task)]
    lost = labelled[_ids.lookup(labelled, rows.tasks) < 0]
    if len(lost):
        raise ValueError(
            f"{path} must have a row for every labelled task; got none for {show(lost[0])} ({len(lost)} of "
            f"{len(labelled)} tasks in total). Add these rows, or drop their labels."
        )
    return annotations.align(rows.tasks)


def _table_file(path: Path) -> File:
    file = locate(path)
    if file.format not in TABLES:
        kinds = ", ".join(f".{name}" for name in TABLES)
        raise ValueError(f"{path} must be a table ({kinds}); got a {file.format} file. Write it as one of these.")
    return file


def _check_present(table: pa.Table, names: Sequence[str], fix: str = "") -> None:
    times = Counter(table.column_names)
    for name in names:
        if times[name] != 1:
            has = shorten(np.array(table.column_names, dtype=object), 20)
            if name in times:
                raise ValueError(f"the table must have one column {name!r}; got {has}. Rename the others.")
            raise ValueError(f"the table must have a column {name!r}; got none among {has}.{fix}")


def tasks_of(table: pa.Table, task: str, file: File, *, numbered: bool = False, repeated: bool = False) -> Ids:
    if numbered and task not in table.column_names:
        return np.arange(table.num_rows)
    _check_present(table, [task], f" Name the column of task ids with {argument('task')}, alike in all files.")
    column = id_column(table, task, file)
    return _ids.column_of(column, "task") if repeated else _ids.table_of(column, "task")


def _numbers(table: pa.Table, names: list[str], *, new: bool) -> Floats:
    X = np.empty((table.num_rows, len(names)))
    for place, name in enumerate(names):
        column = table.column(name)
        if not any(is_kind(column.type) for is_kind in _NUMBERS):
            got = f"got {_first_non_number(column)} ({column.type})"
            fix = "" if new else f" {_without(name)} {_for_texts(name)}"
            raise ValueError(f"column {name!r} must hold numbers; {got}.{fix}")
        X[:, place] = pc.fill_null(column.cast(pa.float64(), safe=False), np.nan).to_numpy()
    return X


def _first_non_number(column: pa.ChunkedArray) -> str:
    for row, value in enumerate(column.to_pylist()):
        try:
            float(value)
        except (TypeError, ValueError):
            if value is not None:
                return f"{show(value)} at row {row}"
    return show(column[0].as_py())


def _check_finite(rows: Rows, path: Path, missing: bool, *, new: bool) -> None:
    bad = np.isinf(rows.X) if missing else ~np.isfinite(rows.X)
    if bad.any():
        row, place = (int(i) for i in np.argwhere(bad)[0])
        name = repr(rows.columns[place]) if rows.columns else str(place)
        trees = f", or train with {argument('model', 'boost')}, which takes missing values"
        trees = "" if missing or new or not is_offered("model") else trees
        raise ValueError(
            f"{path}: features must be finite numbers; got {rows.X[row, place]} in column {name} at row {row} "
            f"({int(bad.sum())} in total). Fill them in{trees}."
        )


def one_text_per_task(tasks: Ids, texts: list[str], column: str) -> Rows:
    first: dict[Any, str] = {}
    for row, (one, said) in enumerate(zip(tasks.tolist(), texts, strict=True)):
        if first.setdefault(one, said) != said:
            raise ValueError(
                f"a task must have one text in column {column!r}; got {show(said)} at row {row} for task "
                f"{show(one)}, after {show(first[one])}."
            )
    return Rows(_ids.table_of(list(first), "task"), list(first.values()), [column])


def _read_arrays(path: Path, task: str) -> Rows:
    """Return the rows of a .npy file, or of a .npz file with one array and perhaps one of task ids."""
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            arrays = {"": loaded} if isinstance(loaded, np.ndarray) else {name: loaded[name] for name in loaded.files}
    except OSError as error:
        if error.errno:
            raise with_path(error, path, "open") from error
        raise ValueError(f"{path} must be a whole numpy file; got: {error}.") from error
    except Exception as error:  # a broken archive may fail in any way
        said = str(error).split(". ")[0]  # the next sentence may tell how to load it unsafely
        raise ValueError(
            f"{path} must be a whole numpy file of numbers, without pickled objects; got: {said}"
        ) from error
    tasks = arrays.pop(task, None)
    if len(arrays) != 1:
        raise ValueError(f"{path} must hold one array of features, and may hold {task!r}; got {sorted(arrays)}.")
    (X,) = arrays.values()
    if X.ndim != 2 or X.dtype.kind not in "fiub" or not X.size:
        raise ValueError(f"{path} must hold numbers of shape (n_tasks, n_features); got {X.dtype} of shape {X.shape}.")
    try:
        ids = np.arange(len(X)) if tasks is None else _ids.table_of(tasks, task)
    except (ValueError, TypeError) as error:
        raise type(error)(f"{path}: {error}") from error
    if len(ids) != len(X):
        raise ValueError(f"{path} must hold one {task!r} per row of features; got {len(ids)} for {len(X)} rows.")
    return Rows(ids, X.astype(np.float64, copy=False), None)
