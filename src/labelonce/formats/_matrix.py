"""Matrices of tasks x workers: as files, and as cleanlab and scikit-activeml keep them in memory."""

import io
import math
from tokenize import TokenError
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy

from labelonce._messages import show
from labelonce._types import Codes, Floats
from labelonce.data import Annotations, matrix_annotations
from labelonce.files import File, split_codec, whole_text, write_rows
from labelonce.formats._answers import Answers, Fields, choose_field, integers_if_all, string_columns

_INDEX = ("", "task", "index", "Unnamed: 0")  # how the column of task ids is called, if there is one
_ABSENT = ("", "nan", "NaN", "None", "NA", "<NA>", "-1", "-1.0")
_MOST_CELLS = 10**8
_SAVE = "Save it again, or write it as .csv."


def read(file: File, fields: Fields, *, keep_rejected: bool = False) -> Answers:  # noqa: ARG001  # the readers' interface
    """Return the labelled cells of a CSV file with one row per task and one column per worker, or of a .npy file."""
    if fields.text is not None:
        raise ValueError(f"texts must be in a table, as a matrix holds only labels; got the column {fields.text!r}.")
    if split_codec(file.path)[0] == ".npy":
        return _from_npy(file)
    table = string_columns(file._replace(format="csv"))
    names = list(table)
    index = next((name for name in names[:1] if name in _INDEX or _are_ids(table)), None)
    if fields.task is not None:
        index = choose_field(fields.task, names, "the task column", "task")
    n_rows = len(next(iter(table.values())))
    tasks = integers_if_all(table[index]) if index is not None else list(range(n_rows))
    workers = [name for name in names if name != index]
    ids = integers_if_all(workers)
    cells = [(i, w, table[name][i]) for i in range(n_rows) for w, name in enumerate(workers)]
    given = [(i, w, label) for i, w, label in cells if label not in _ABSENT]
    whole = [(label.removesuffix(".0"), label) for _, _, label in given]  # a column with gaps is written as floats
    labels = integers_if_all([one if one.isdecimal() else label for one, label in whole])
    answers = Answers()
    for (i, w, _), label in zip(given, labels, strict=True):
        answers.add(tasks[i], ids[w], (label,))
    n_bare = n_rows - len({i for i, _, _ in given})
    if n_bare:
        answers.left_out["tasks without annotations"] = n_bare
    return answers


def _are_ids(table: dict[str, list[str]]) -> bool:
    """Return whether the cells of the first column all differ, and no other column has one of them."""
    first, *others = table.values()
    distinct = set(first) - {*_ABSENT}
    return 2 < len(first) == len(distinct) and all(distinct.isdisjoint(one) for one in others)


def _from_npy(file: File) -> Answers:
    data = whole_text(file)
    _check_npy(data)
    found = Annotations.from_matrix(np.load(io.BytesIO(data), allow_pickle=False))
    answers = Answers()
    for row in found.to_frame().to_pylist():
        answers.add(row["task"], row["worker"], (row["label"],))
    n_bare = found.n_tasks - len(np.unique(found.task))
    if n_bare:
        answers.left_out["tasks without annotations"] = n_bare
    return answers


def _check_npy(data: bytes) -> None:
    """Raise unless the bytes are a .npy file of plain values that holds all that its header promises."""
    stream = io.BytesIO(data)
    try:
        version = npy.read_magic(stream)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read_header(stream)
    except (ValueError, TypeError, SyntaxError, TokenError, RecursionError, MemoryError) as error:
        raise ValueError(f"the file must be a matrix saved by numpy.save; got {show(data[:12])}. {_SAVE}") from error
    if dtype.hasobject or not dtype.itemsize:
        raise ValueError(f"a .npy matrix must hold integers or strings of one length; got {dtype}. {_SAVE}")
    promised, held = math.prod(shape) * dtype.itemsize, len(data) - stream.tell()
    if min(shape, default=0) < 0 or promised > held:
        raise ValueError(
            f"a .npy file must be whole; got {held:,} bytes of a matrix of shape {shape}, {promised:,} bytes. {_SAVE}"
        )


def check_target(file: File) -> None:
    """Raise if a matrix is to be written as .npy, which would lose the ids of the tasks and the workers."""
    if split_codec(file.path)[0] == ".npy":
        raise ValueError(
            f"{file.path} must not end in .npy, which has no place for the ids of tasks and workers; "
            "write .csv in the format matrix instead."
        )


def write(table: pa.Table, sink: Any) -> None:
    """Write annotations as CSV: one row per task, one column per worker, an empty cell where there is no label."""
    if "worker" not in table.column_names:
        raise ValueError("a matrix must hold workers' annotations; got labels without workers. Write .csv instead.")
    ann = Annotations.from_frame(table)
    odd = next((name for name in ann.classes if str(name) in _ABSENT), None)
    if odd is not None:
        raise ValueError(f'a label must not be a word for "not labelled" in a matrix; got {odd!r}.')
    if "task" in ann.workers:
        raise ValueError("a worker must not be called 'task' in a matrix, whose first column is; got one.")
    codes = _dense(ann)
    names = np.append(ann.classes.astype(object), "")  # code -1 finds the empty cell
    rows = ([task, *names[row]] for task, row in zip(ann.tasks, codes, strict=True))
    write_rows(sink, "csv", ["task", *map(str, ann.workers)], rows)


def _dense(ann: Annotations) -> Codes:
    n_cells = ann.n_tasks * ann.n_workers
    if n_cells > _MOST_CELLS:
        raise ValueError(
            f"a matrix must have at most {_MOST_CELLS:,} cells; got {ann.n_tasks:,} tasks x {ann.n_workers:,} "
            "workers. Write rows of task, worker, label instead."
        )
    codes: Codes = ann.to_matrix(dense=True)
    return codes


def from_cleanlab(labels_multiannotator: Any) -> Annotations:
    """Return the annotations of cleanlab's `labels_multiannotator`.

    A data frame with the tasks as index and the workers as columns, or an array; NaN is "not labelled", -1 a label.

    Examples
    --------
    >>> from_cleanlab([[0, float("nan")], [1, 1]])
    Annotations(3 annotations: 2 tasks x 2 workers, 2 classes, redundancy 1.5)
    """
    if hasattr(labels_multiannotator, "columns") and hasattr(labels_multiannotator, "index"):
        frame = labels_multiannotator
        values = frame.to_numpy(dtype=object)
        return matrix_annotations(values, np.nan, list(frame.index), list(frame.columns))
    return matrix_annotations(labels_multiannotator, np.nan)


def to_cleanlab(annotations: Annotations) -> Any:
    """Return a pandas frame as cleanlab wants it: class codes, NaN where a worker did not label.

    The codes are positions in `annotations.classes`, the order of the columns of `pred_probs`.
    """
    import pandas as pd

    values = to_skactiveml(annotations)
    return pd.DataFrame(values, index=list(annotations.tasks), columns=list(annotations.workers))


def from_skactiveml(y: Any, *, missing_label: Any = np.nan) -> Annotations:
    """Return the annotations of scikit-activeml's (n_samples, n_annotators) labels.

    Parameters
    ----------
    y : array
    missing_label : NaN, None, int or str
        How scikit-activeml marks an entry that is not labelled. NaN and None always do; -1 is a label
        unless it is given here.

    Examples
    --------
    >>> from_skactiveml([["yes", "none"], ["no", "no"]], missing_label="none")
    Annotations(3 annotations: 2 tasks x 2 workers, 2 classes, redundancy 1.5)
    """
    return matrix_annotations(np.asarray(y, dtype=object), missing_label)


def to_skactiveml(annotations: Annotations) -> Floats:
    """Return the (n_tasks, n_workers) class codes with NaN where a worker did not label.

    Examples
    --------
    >>> to_skactiveml(Annotations.from_arrays([1, 2, 2], ["x", "x", "y"], ["cat", "cat", "dog"]))
    array([[ 0., nan],
           [ 0.,  1.]])
    """
    values: Floats = _dense(annotations).astype(np.float64)
    values[values < 0] = np.nan
    return values
