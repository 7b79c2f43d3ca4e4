"""Array work on annotation rows: order, repeats, tasks, the entries of a matrix, and parts that are held out."""

from typing import Any

import numpy as np
from scipy import sparse

from labelonce._messages import show
from labelonce._types import Codes, Ids, Mask
from labelonce._validate import MAX_ANNOTATIONS, check_count
from labelonce.data import _ids
from labelonce.data._annotations import Annotations
from labelonce.data._ids import is_missing


def row_order(task: Codes, worker: Codes, n_tasks: int, n_workers: int, order: Codes | None = None) -> Codes | None:
    """Return the order by task, worker, `order` of the choices, then as given; None if the rows are in that order."""
    if order is not None:
        return np.lexsort((order, worker, task)).astype(np.int32)
    same_task = task[1:] == task[:-1]
    if ((task[1:] > task[:-1]) | (same_task & (worker[1:] >= worker[:-1]))).all():
        return None
    by_worker = stable_order(worker, n_workers)
    return stable_order(task[by_worker], n_tasks, by_worker)


def stable_order(keys: Codes, n_keys: int, rows: Codes | None = None) -> Codes:
    """Return `rows` (default 0, 1, ...) by their `keys`, equal keys as they came: a counting sort, linear in time."""
    n = len(keys)
    if rows is None:
        rows = np.arange(n, dtype=np.int32)
    one_a_row = sparse.csr_array((rows, keys, np.arange(n + 1, dtype=np.int32)), shape=(n, n_keys))
    ordered: Codes = one_a_row.tocsc().data
    return ordered


def repeats(task: Codes, worker: Codes, order: Codes | None = None) -> Mask:
    """Return which of the sorted rows have the task, the worker and the order of the row before."""
    again = np.zeros(len(task), dtype=bool)
    again[1:] = (task[1:] == task[:-1]) & (worker[1:] == worker[:-1])
    if order is not None:
        again[1:] &= order[1:] == order[:-1]
    return again


def first_rows(task: Codes, n_tasks: int) -> Codes:
    """Return where each task's sorted rows start, and after them the number of rows."""
    start = np.zeros(n_tasks + 1, dtype=np.int32)
    np.cumsum(np.bincount(task, minlength=n_tasks), out=start[1:])
    return start


def tasks_among(task: Codes, tasks: Ids, task_ids: Any) -> tuple[Codes, Ids]:
    """Return the tasks of rows as codes of `task_ids`, and these as a table; a row whose task is lost is an error."""
    table = _ids.table_of(task_ids, "task_ids")
    _ids.check_same_kind(table, "task_ids", tasks)
    codes = _ids.lookup(tasks, table)[task]
    lost = np.flatnonzero(codes < 0)
    if len(lost):
        raise ValueError(
            f"task_ids must hold every labelled task; got none for {show(tasks[task[lost[0]]])} "
            f"({len(lost)} annotations in total). To leave such tasks out, call "
            "ann.select(numpy.isin(ann.tasks, task_ids)) before align."
        )
    return codes, table


def tasks_where(task: Codes, task_mask: Any, n_tasks: int) -> tuple[Mask, Mask, Codes]:
    """Return a mask of tasks, which rows have such a task, and the codes of theirs among the tasks that are kept."""
    mask = np.asarray(task_mask)
    if mask.dtype != bool or mask.shape != (n_tasks,):
        raise ValueError(
            f"task_mask must be boolean with one entry per task, shape ({n_tasks},); "
            f"got {mask.dtype} of shape {mask.shape}."
        )
    kept = mask[task]
    return mask, kept, (np.cumsum(mask) - 1).astype(np.int32)[task[kept]]


def matrix_entries(matrix: Any, absent: Any = -1) -> tuple[Codes, Codes, Ids, tuple[int, int]]:
    """Return the row, the column and the label of every labelled entry of a matrix, and its shape.

    None, NaN, a masked entry and one equal to `absent` are not labelled.
    """
    stored = sparse.issparse(matrix)
    if not stored:
        matrix = _dense(matrix)
    if matrix.ndim != 2 or max(matrix.shape) > MAX_ANNOTATIONS:
        raise ValueError(
            f"matrix must be two-dimensional (n_tasks, n_workers), at most 2^31 - 1 each; got shape {matrix.shape}."
        )
    if stored:
        check_count(matrix.nnz)
        entries = matrix.tocoo()
        kept = _labelled(entries.data, absent)
        check_count(int(np.count_nonzero(kept)))
        rows, columns = (places.astype(np.int32)[kept] for places in (entries.row, entries.col))
        return rows, columns, entries.data[kept], matrix.shape
    kept = _labelled(matrix, absent)
    in_row = np.count_nonzero(kept, axis=1)
    check_count(int(in_row.sum()))
    n_rows, n_columns = matrix.shape
    rows = np.repeat(np.arange(n_rows, dtype=np.int32), in_row)
    columns = np.broadcast_to(np.arange(n_columns, dtype=np.int32), matrix.shape)[kept]
    return rows, columns, np.asarray(matrix[kept]), matrix.shape


def _dense(matrix: Any) -> Any:
    """Return a matrix as an array, masked if it was; strings as objects, so that None and NaN survive."""
    try:
        array = matrix if np.ma.isMaskedArray(matrix) else np.asarray(matrix)
    except ValueError as error:
        raise ValueError(f"matrix must have rows of one length; got {show(matrix)}.") from error
    if array.dtype.kind in "UT":
        return array.astype(object) if isinstance(matrix, np.ndarray) else np.asarray(matrix, dtype=object)
    return array


def _labelled(entries: Any, absent: Any) -> Mask:
    values = np.asarray(entries)
    kind = values.dtype.kind
    kept: Mask
    if kind == "f":
        kept = ~np.isnan(values) & (values != absent)
    elif kind in "iub":
        kept = values != absent
    elif kind == "O":
        left = [is_missing(x) or (isinstance(x, str) == isinstance(absent, str) and x == absent) for x in values.flat]
        kept = ~np.array(left, dtype=bool).reshape(values.shape)
    else:
        raise TypeError(f"matrix must hold labels that are integers or strings; got {values.dtype}.")
    if np.ma.isMaskedArray(entries):
        kept &= ~np.ma.getmaskarray(entries)
    return kept


def hold_out(annotations: Annotations, share: float, rng: np.random.Generator) -> tuple[Annotations, Annotations]:
    """Return two parts of the annotations with the same tables: those to fit, and a share held out."""
    n_held = int(np.clip(round(share * len(annotations)), 1, len(annotations) - 1))
    held = rng.permutation(len(annotations)) < n_held
    return annotations.part(~held), annotations.part(held)


def hold_out_tasks(
    annotations: Annotations, share: float, n_splits: int, rng: np.random.Generator
) -> list[tuple[Annotations, Annotations]]:
    """Return pairs of parts as `hold_out` does, with all labels of a task in one part; no task is held out twice."""
    labelled = rng.permutation(np.unique(annotations.task))
    n_held = int(np.clip(round(share * len(labelled)), 1, len(labelled) - 1))
    pairs = []
    for split in range(max(1, min(n_splits, len(labelled) // n_held))):
        held = np.isin(annotations.task, labelled[split * n_held : (split + 1) * n_held])
        pairs.append((annotations.part(~held), annotations.part(held)))
    return pairs
