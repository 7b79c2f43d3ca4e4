"""Hugging Face `datasets`: read by their Arrow table, without importing the library."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from labelonce._messages import shorten
from labelonce._types import Duplicates
from labelonce.data import Annotations


def from_dataset(
    dataset: Any,
    *,
    task: str | None = "task",
    worker: str | None = "worker",
    label: str = "label",
    duplicates: Duplicates = "error",
) -> Annotations:
    """Return the annotations of a Hugging Face dataset.

    Parameters
    ----------
    dataset : datasets.Dataset
        One row per annotation, or one row per task with lists of workers and labels of equal length.
    task : str or None
        The column of task ids; None: the row numbers.
    worker : str or None
        The column of worker ids; None, for lists of labels only: the position in the list, which is right
        only if the same person always stands in the same place.
    label : str
        The column of labels. The names of a `ClassLabel` become the classes, -1 is "not labelled".
    duplicates
        As in `Annotations.from_arrays`.
    """
    table = _table(dataset)
    wanted = [name for name in (task, worker, label) if name is not None]
    for name in wanted:
        if name not in table.column_names:
            raise ValueError(f"the columns must hold {name!r}; got {shorten(table.column_names, 20)}.")
    labels = table.column(label).combine_chunks()
    tasks = table.column(task).combine_chunks() if task else pa.array(np.arange(len(table)))
    workers = table.column(worker).combine_chunks() if worker else None
    names = _class_names(dataset, label)
    if _is_list(labels.type):
        tasks, workers, labels = _flatten(tasks, workers, labels)
    if workers is None:
        raise ValueError("worker must name a column where every row is one annotation; got None.")
    kept = _labelled(labels, names)
    tasks, workers, labels = (column.filter(kept) for column in (tasks, workers, labels))
    if names is None:
        return Annotations.from_arrays(tasks, workers, labels, duplicates=duplicates)
    given = np.array(names, dtype=object)[labels.to_numpy(zero_copy_only=False)]
    return Annotations.from_arrays(tasks, workers, given, classes=names, duplicates=duplicates)


def to_dataset(source: Any) -> Any:
    """Return a `datasets.Dataset` of annotations or of a fitted model's labels."""
    try:
        from datasets import Dataset
    except ImportError as error:
        raise ImportError("to_dataset needs Hugging Face datasets; install it with: pip install datasets.") from error
    table = source.to_frame()
    kinds = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in table.schema.types]
    return Dataset(table.cast(pa.schema(list(zip(table.column_names, kinds, strict=True)))))


def _table(dataset: Any) -> pa.Table:
    """Return the rows of the dataset, in its order: it may be a selection of its Arrow table."""
    if getattr(dataset, "_indices", None) is not None and hasattr(dataset, "with_format"):
        return dataset.with_format("arrow")[:]
    inner = getattr(getattr(dataset, "data", None), "table", None)
    if isinstance(inner, pa.Table):
        return inner
    if isinstance(dataset, dict):
        raise TypeError(f"dataset must be one split; got the splits {shorten(list(dataset))}. Choose one of them.")
    raise TypeError(f"dataset must be a Hugging Face Dataset; got {type(dataset).__name__}.")


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _flatten(tasks: pa.Array, workers: pa.Array | None, labels: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return one row per annotation of lists with one row per task."""
    lengths = pc.fill_null(pc.list_value_length(labels), 0).to_numpy(zero_copy_only=False)
    rows = np.repeat(np.arange(len(labels)), lengths)
    flat = pc.list_flatten(labels)
    if workers is None:
        starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
        return tasks.take(pa.array(rows)), pa.array(np.arange(len(rows)) - starts), flat
    if not _is_list(workers.type):
        return tasks.take(pa.array(rows)), workers.take(pa.array(rows)), flat
    others = pc.fill_null(pc.list_value_length(workers), 0).to_numpy(zero_copy_only=False)
    if (others != lengths).any():
        first = int(np.flatnonzero(others != lengths)[0])
        raise ValueError(
            f"a row must list as many workers as labels; got {others[first]} and {lengths[first]} at row {first}."
        )
    return tasks.take(pa.array(rows)), pc.list_flatten(workers), flat


def _class_names(dataset: Any, label: str) -> list[str] | None:
    feature = (getattr(dataset, "features", None) or {}).get(label)
    feature = getattr(feature, "feature", feature)  # of a list, that of its entries
    if isinstance(feature, list):
        feature = feature[0]
    names = getattr(feature, "names", None)
    return list(names) if names else None


def _labelled(labels: pa.Array, names: list[str] | None) -> pa.Array:
    if names is None:
        return pc.is_valid(labels)
    return pc.fill_null(pc.greater_equal(labels, 0), False)
