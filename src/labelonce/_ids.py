"""Columns of ids to dense codes and back, through Arrow so that strings are hashed once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from labelonce._types import Codes, Ids


def encode(values: Any, name: str, declared: Ids | None = None) -> tuple[Codes, Ids]:
    """Return each value's code, and the ids that the codes stand for.

    The ids are `declared`, in that order, or else the distinct values, sorted.
    """
    column = _as_column(values, name)
    indices, dictionary = column.indices, column.dictionary
    ids = sorted_ids(dictionary.take(indices.unique())) if declared is None else declared
    remap = lookup(dictionary, ids)
    codes = remap[indices.to_numpy(zero_copy_only=False)]
    if declared is not None and len(codes) and codes.min() < 0:
        _reject_outside(codes, column, name, ids)
    return codes, ids


def lookup(values: Any, ids: Ids) -> Codes:
    """Return the code of each value in the table `ids`, -1 for a value that is not there."""
    found = _as_arrow_ids(pa.array(values)) if not isinstance(values, pa.Array) else values
    table = pa.array(ids)
    if table.type != found.type:
        if found.type == pa.large_string() and table.type == pa.string():
            table = table.cast(pa.large_string())
        else:
            return np.full(len(found), -1, dtype=np.int32)
    codes = pc.fill_null(pc.index_in(found, value_set=table), -1)
    return np.asarray(codes.to_numpy(zero_copy_only=False), dtype=np.int32)


def sorted_ids(values: pa.Array) -> Ids:
    """Return the distinct values in ascending order."""
    distinct = values.unique()
    return to_numpy(distinct.take(pc.sort_indices(distinct)))


def table_of(values: Any, name: str) -> Ids:
    """Return a declared table of ids, in the order given; an id given twice is an error."""
    ids = column_of(values, name)
    distinct, counts = np.unique(ids, return_counts=True)
    if len(distinct) < len(ids):
        twice = distinct[counts > 1]
        raise ValueError(
            f"{name} must not repeat an id; got {_show(twice[0])} {counts[counts > 1][0]} times "
            f"({len(twice)} repeated ids in total)."
        )
    return ids


def column_of(values: Any, name: str) -> Ids:
    """Return a column of ids, repeats allowed, as a numpy array of int64 or str."""
    column = _as_column(values, name)
    return to_numpy(column.dictionary.take(column.indices))


def decode(codes: Codes, ids: Ids) -> pa.Array:
    """Return the ids of the codes as Arrow: plain integers, or dictionary-encoded strings."""
    if ids.dtype != object:
        return pa.array(ids[codes])
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(ids, type=pa.string()))


def to_numpy(values: pa.Array) -> Ids:
    """Return Arrow ids as a numpy array: int64, or str objects."""
    return np.asarray(values.to_numpy(zero_copy_only=False))


def _as_column(values: Any, name: str) -> pa.DictionaryArray:
    """Return ids as one dictionary-encoded Arrow array with int64 or large_string values."""
    column = _as_arrow(values, name)
    _reject_missing(column, name)
    if pa.types.is_dictionary(column.type):
        dictionary = _as_arrow_ids(column.dictionary, name)
        return pa.DictionaryArray.from_arrays(column.indices, dictionary)
    return _as_arrow_ids(column, name).dictionary_encode()


def _as_arrow(values: Any, name: str) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        return _one_chunk(values)
    if isinstance(values, pa.Array):
        return values
    if getattr(values, "ndim", 1) != 1:
        raise ValueError(f"{name} must be one-dimensional; got shape {values.shape}.")
    if isinstance(values, np.ndarray) and values.dtype.kind == "U":
        values = values.astype(object)  # Arrow reads str objects, not every numpy width
    try:
        column = pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise TypeError(_mixture(list(values), name)) from error
    return _one_chunk(column) if isinstance(column, pa.ChunkedArray) else column


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    combined = column.combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


def _as_arrow_ids(column: pa.Array, name: str = "ids") -> pa.Array:
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.large_string())
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_floating(kind):
        try:
            return column.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise TypeError(_not_whole(column, name)) from error
    if pa.types.is_null(kind) and len(column) == 0:
        return column.cast(pa.int64())
    raise TypeError(f"{name} must be integers or strings; got {kind}. Convert the column to strings first.")


def _reject_missing(column: pa.Array, name: str) -> None:
    missing = column.is_null()
    if pa.types.is_dictionary(column.type) and column.dictionary.null_count:
        missing = pc.is_null(column.dictionary).take(column.indices)
    n_missing = pc.sum(missing).as_py() or 0
    if n_missing:
        first = pc.index(missing, True).as_py()
        raise ValueError(
            f"{name} must not be missing; got a missing value at row {first} ({n_missing} in total). "
            f"Drop these rows, or give them a {name}."
        )


def _reject_outside(codes: Codes, column: pa.DictionaryArray, name: str, ids: Ids) -> None:
    outside = np.flatnonzero(codes < 0)
    value = column[int(outside[0])].as_py()
    raise ValueError(
        f"{name} must be one of the declared {shorten(ids)}; got {value!r} at row {outside[0]} "
        f"({len(outside)} in total). Declare it, or mend these rows."
    )


def _mixture(values: Sequence[Any], name: str) -> str:
    kinds = [type(value).__name__ for value in values]
    other = next((i for i, kind in enumerate(kinds) if kind != kinds[0]), 0)
    return (
        f"{name} must be all integers or all strings; got {values[other]!r} ({kinds[other]}) at row {other} "
        f"after {values[0]!r} ({kinds[0]}). Convert the column to strings first."
    )


def _not_whole(column: pa.Array, name: str) -> str:
    whole = column.cast(pa.int64(), safe=False).cast(pa.float64(), safe=False)
    first = int(np.flatnonzero(whole.to_numpy() != column.to_numpy(zero_copy_only=False))[0])
    return (
        f"{name} must be integers or strings; got {column[first].as_py()} at row {first}. "
        "Round it, or convert the column to strings first."
    )


def shorten(ids: Ids, most: int = 6) -> str:
    """Return the first few ids in brackets, for a message."""
    shown = ", ".join(_show(value) for value in ids[:most])
    return f"[{shown}]" if len(ids) <= most else f"[{shown}, ... {len(ids)} in all]"


def _show(value: Any) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)
