"""Features and texts, one row per task, joined with the annotations by their task ids."""

import os
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from labelonce._messages import argument, is_offered, row, shorten, show
from labelonce._types import TABLES, Floats, Ids
from labelonce.data import Fault, _ids, array_fault, as_features
from labelonce.files import File, column_names, id_column, locate, naming, read_table, with_path
from labelonce.formats import Fields
from labelonce.formats import read as read_tool

ARRAYS = (".npy", ".npz")
_SENTENCE = 3  # words on average: a text, and no id
_FRACTION = re.compile(r"-?\d*[.,]\d+(?:[eE]-?\d+)?|-?\d+[eE]-?\d+")


@dataclass(frozen=True)
class Rows:
    """The input of a model: the task, and the features or the text, of every row.

    `columns` are the names of the features, the one name of the texts, or None where the file has no names.
    """

    tasks: Ids
    X: Any
    columns: list[str] | None


def read_features(
    path: Path,
    *,
    task: str | None = None,
    columns: list[str] | None = None,
    ignore: Sequence[str] = (),
    missing: bool = False,
    new: bool = False,
) -> Rows:
    """Return the numbers in a file: all but the task ids and `ignore`, or those named by `columns` in that order.

    `missing` allows NaN. The task ids are in the column `task`, or where there is none in the one of that name; without
    either it is an error, but with `new`, for a model that is trained, they are what `tasks_of` finds.
    """
    if path.suffix.lower() in ARRAYS:
        rows = _read_arrays(path, task or "task")
    else:
        file = _table_file(path)
        with naming(file):
            names = column_names(file)
            ids = task if task in names else "task"
            table = read_table(file, [ids] if columns is None else [name for name in names if name not in columns])
            tasks = tasks_of(table, task, file, new=columns or (), numbered=new)
            wanted = columns or [name for name in table.column_names if name != ids and name not in ignore]
            _check_present(table, [*wanted, *ignore])
            if not wanted:
                raise ValueError(f"features must have a column besides {ids!r}; got none. {_for_texts()}")
            return Rows(tasks, _numbers(table, wanted, missing=missing, new=new), wanted)
    fault = array_fault(rows.X, missing=missing)
    if fault is not None:
        raise ValueError(f"{path}: {fault.sentence} {_fix(fault, '', missing=missing, new=new)}")
    return rows


def _for_texts(column: str = "") -> str:
    if not is_offered("text"):
        return "Texts must be made numbers first, as labelonce embed does."
    return f"For texts, train with {argument('text', *([column] if column else []))}."


def read_texts(
    path: str | os.PathLike[str],
    column: str,
    *,
    fields: Fields = Fields(),  # noqa: B008  # immutable
    missing: str = "error",
    new: bool = False,
) -> Rows:
    """Return the texts in a column of a table, or of the export of a tool that `find_labels` found.

    A task may have several rows, as in a file of labels, with one text; with `new` every row counts for itself, and a
    table without a column of tasks has the rows 0, 1, 2, ... With `missing="drop"` rows without a task are left out.
    """
    file = path if isinstance(path, File) else _table_file(Path(path))
    with naming(file):
        if file.format in TABLES:
            table = read_table(file, column_names(file) if new else [fields.task or "task", "task", column])
            if missing == "drop" and (ids := fields.task or "task") in table.column_names:
                absent = _ids.missing_in(_ids.as_arrow(id_column(table, ids, file), "task"))
                table = table if absent is None else table.filter(pa.array(~absent))
            texts = _strings(table, column)
            tasks = tasks_of(table, fields.task, file, new=[column], numbered=new, repeated=True)
        else:
            found = read_tool(file, fields._replace(text=column)).texts
            tasks, texts = _ids.column_of([task for task, _ in found], "task"), [text for _, text in found]
        bad = [place for place, text in enumerate(texts) if not isinstance(text, str) or not text.strip()]
        if bad:
            got = f"got {show(texts[bad[0]])} at {row(bad[0])} ({len(bad)} in total)"
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


def align_rows(annotations: Any, rows: Rows, path: Path) -> Any:
    """Return the annotations in the order of the rows; a labelled task without a row is an error.

    Where one has numbers as ids and the other text, they are matched as text, with a warning.
    """
    ids = rows.tasks
    differ = (ids.dtype == object) != (annotations.tasks.dtype == object)
    if differ:
        ids = ids.astype(str).astype(object)
        annotations = replace(annotations, tasks=annotations.tasks.astype(str).astype(object))
    labelled = annotations.tasks[np.unique(annotations.task)]
    lost = labelled[_ids.lookup(labelled, ids) < 0]
    if len(lost):
        raise ValueError(
            f"{path} must have a row for every labelled task; got none for {show(lost[0])} ({len(lost)} of "
            f"{len(labelled)} tasks in total). Add these rows, or drop their labels."
        )
    if differ:
        said = f"{path} or the labels have text as task ids, the other numbers"
        warnings.warn(f"{said}: they are matched as text, 7 with '7'.", stacklevel=3)
    return annotations.align(ids)


def joined_texts(found: Sequence[Rows]) -> Rows:
    """Return the texts of several files; one of a task that is in two of them must be the same."""
    if len(found) == 1:
        return found[0]
    tasks = [rows.tasks for rows in found]
    if len({one.dtype for one in tasks}) > 1:
        tasks = [one.astype(str).astype(object) for one in tasks]
    (column,) = found[0].columns or [""]
    return one_text_per_task(np.concatenate(tasks), [text for rows in found for text in rows.X], column)


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


def tasks_of(
    table: pa.Table,
    task: str | None,
    file: File,
    *,
    new: Sequence[str] = (),
    numbered: bool = False,
    repeated: bool = False,
) -> Ids:
    """Return the task ids of the rows of a table: those in the column `task`, or else in the one of that name.

    Where rows may be `numbered`, those for a model of the columns `new`, the ids are in the only other column whose
    values all differ; without one the rows are 0, 1, 2, ...
    """
    name = task if task is None or task in table.column_names else None
    name = name or ("task" if "task" in table.column_names else None)
    if name is None and numbered:
        others = [one for one in table.column_names if one not in new] if new else []
        found = [one for one in others if _may_be_ids(table.column(table.column_names.index(one)))]
        if len(found) != 1:
            if others:
                sentence = f"{file}: no column of task ids was found in {shorten(others)}, so the rows are numbered."
                warnings.warn(f"{sentence} Name it with {argument('task')}", stacklevel=4)
            return np.arange(table.num_rows)
        name = found[0]
    name = name or task or "task"
    _check_present(table, [name], f" Name the column of task ids with {argument('task')}")
    column = id_column(table, name, file)
    return _ids.column_of(column, "task") if repeated else _ids.table_of(column, "task")


def _may_be_ids(column: pa.ChunkedArray) -> bool:
    """Return whether a column holds integers or short texts that all differ, and that are no fractions."""
    if pa.types.is_integer(column.type):
        return column.null_count == 0 and len(column.unique()) == len(column)
    if not _ids.is_text(column.type) or column.null_count:
        return False
    values = column.to_pylist()
    short = sum(len(value.split()) for value in values) < _SENTENCE * len(values)
    return short and len(set(values)) == len(values) and "" not in values and not all(map(_FRACTION.fullmatch, values))


def _numbers(table: pa.Table, names: list[str], *, missing: bool, new: bool) -> Floats:
    X = np.empty((table.num_rows, len(names)))
    for place, name in enumerate(names):
        found = as_features(table.column(name), name, missing=missing)
        if isinstance(found, Fault):
            raise ValueError(f"{found.sentence} {_fix(found, name, missing=missing, new=new)}".strip())
        X[:, place] = found
    return X


def _fix(fault: Fault, column: str, *, missing: bool, new: bool) -> str:
    """Return what to do about a column that is no feature."""
    if fault.kind == "infinite":
        return "Replace them by numbers."
    if fault.is_number:
        trees = f", or train with {argument('model', 'boost')}, which takes missing values"
        return f"Fill them in{'' if missing or new or not is_offered('model') else trees}."
    leave_out = f"Leave it out with {argument('ignore', column)}." if is_offered("ignore") else "Drop the column."
    return "" if new else f"{leave_out} {_for_texts(column)}"


def one_text_per_task(tasks: Ids, texts: list[str], column: str) -> Rows:
    first: dict[Any, str] = {}
    for place, (one, said) in enumerate(zip(tasks.tolist(), texts, strict=True)):
        if first.setdefault(one, said) != said:
            raise ValueError(
                f"a task must have one text in column {column!r}; got {show(said)} at {row(place)} for task "
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
