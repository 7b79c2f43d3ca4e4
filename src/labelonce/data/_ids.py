"""Columns of ids to dense codes and back, through Arrow so that strings are hashed once."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from labelonce._messages import argument, row, shorten, show
from labelonce._types import Codes, Ids
from labelonce._validate import check_length


def encode(values: Any, name: str, declared: Ids | None = None, declared_as: str = "classes") -> tuple[Codes, Ids]:
    """Return each value's code, and the ids that the codes stand for.

    The ids are `declared`, in that order and by the argument `declared_as`, or else the distinct values, sorted.
    """
    column = _as_column(values, name)
    if declared is None:
        return _encode_integers(to_numpy(column)) if pa.types.is_integer(column.type) else _encode_hashed(column)
    hashed = _hashed(column)
    codes = lookup(hashed.dictionary, declared)[hashed.indices.to_numpy(zero_copy_only=False)]
    outside = np.flatnonzero(codes < 0)
    if len(outside):
        first = column[int(outside[0])].as_py()
        check_same_kind(np.array([first], dtype=object if isinstance(first, str) else np.int64), name, declared)
        raise ValueError(
            f"{name} must be one of the declared {shorten(declared)}; got {show(first)} at {row(outside[0])} "
            f"({len(outside)} in total). Declare it in {declared_as}, or fix these rows."
        )
    return codes, declared


def _encode_integers(values: npt.NDArray[np.int64]) -> tuple[Codes, Ids]:
    """Return codes and sorted ids by a table over the range of the values, or by hash where that is too wide."""
    low, high = int(values.min()), int(values.max())
    if high - low > 2 * len(values) + 1024:
        return _encode_hashed(pa.array(values))
    offset = values - low if low else values
    seen = np.zeros(high - low + 1, dtype=bool)
    seen[offset] = True
    rank = np.cumsum(seen, dtype=np.int32)
    rank -= 1
    return rank[offset], np.flatnonzero(seen) + low


def _encode_hashed(column: pa.Array) -> tuple[Codes, Ids]:
    hashed = _hashed(column)
    order = pc.sort_indices(hashed.dictionary)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    return rank[hashed.indices.to_numpy(zero_copy_only=False)], to_numpy(hashed.dictionary.take(order))


def encode_seen(values: Any, name: str) -> tuple[Codes, Ids]:
    """Return each value's code, and the distinct values in the order in which they first appear.

    Numbers that are 0 to n - 1 keep their order, so that entry i of any array is about number i.
    """
    codes, ids = encode(values, name)
    if ids.dtype != object and len(ids) and ids[0] == 0 and ids[-1] == len(ids) - 1:
        return codes, ids
    first = np.full(len(ids), len(codes), dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)  # of writes to one place the last stays
    if (first[1:] > first[:-1]).all():
        return codes, ids
    order = np.argsort(first)
    rank = np.empty(len(ids), dtype=np.int32)
    rank[order] = np.arange(len(ids), dtype=np.int32)
    return rank[codes], ids[order]


def lookup(values: Any, ids: Ids) -> Codes:
    """Return the code of each value in the table `ids`, -1 for a value that is not there."""
    found = plain(_as_ids(as_arrow(values, "ids"), "ids"))
    table = _as_ids(pa.array(ids), "ids")
    if table.type != found.type:
        return np.full(len(found), -1, dtype=np.int32)
    codes = pc.fill_null(pc.index_in(found, value_set=table), -1)
    return np.asarray(codes.to_numpy(zero_copy_only=False), dtype=np.int32)


def table_of(values: Any, name: str) -> Ids:
    """Return a declared table of ids, in the order given; no id at all, or one given twice, is an error."""
    column = plain(_as_column(values, name))
    if len(column) == 0:
        raise ValueError(f"{name} must hold at least one id; got none.")
    distinct = column.value_counts()
    if len(distinct) < len(column):
        twice = distinct.filter(pc.greater(distinct.field("counts"), 1))
        raise ValueError(
            f"{name} must not repeat an id; got {show(twice[0]['values'].as_py())} {twice[0]['counts']} times "
            f"({len(twice)} repeated ids in total)."
        )
    return to_numpy(column).copy()  # Arrow may share the caller's memory


def is_increasing(ids: Any) -> bool:
    """Return whether something is a numpy array of int64, each larger than the one before."""
    return isinstance(ids, np.ndarray) and ids.dtype == np.int64 and ids.ndim == 1 and bool((ids[1:] > ids[:-1]).all())


def column_of(values: Any, name: str) -> Ids:
    """Return a column of ids, repeats allowed, as a new numpy array of int64 or str."""
    return to_numpy(plain(_as_column(values, name))).copy()


def decode(codes: Codes, ids: Ids) -> pa.Array:
    """Return the ids of the codes as Arrow: plain integers, or dictionary-encoded strings."""
    if ids.dtype != object:
        return pa.array(ids[codes])
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(ids, type=pa.string()))


def to_numpy(values: pa.Array) -> Ids:
    """Return Arrow ids as a numpy array: int64, or str objects."""
    return np.asarray(values.to_numpy(zero_copy_only=False))


def is_frame(values: Any) -> bool:
    """Return whether something is a data frame of pandas or polars, or an Arrow table."""
    has_columns = hasattr(values, "columns") and (hasattr(values, "iloc") or hasattr(values, "to_series"))
    return bool(has_columns or hasattr(values, "column_names"))


def frame_columns(frame: Any, **names: Any) -> list[Any]:
    """Return the columns of a frame that play the given roles, by position: names may repeat or hide attributes."""
    found, column = columns_of(frame)
    for role, name in names.items():
        if found.count(name) != 1:
            times = f", the name of {found.count(name)} columns" if name in found else ""
            raise ValueError(
                f"the {role} column must be one of {shorten(found, 20)}; got {show(name)}{times}. "
                f"Name it with {argument(role)}"
            )
    return [column(found.index(name)) for name in names.values()]


def columns_of(frame: Any) -> tuple[list[Any], Callable[[int], Any]]:
    """Return the names of the columns of a frame, and the function that returns one by its place."""
    if hasattr(frame, "iloc") and hasattr(frame, "columns"):  # pandas: its other columns may be beyond Arrow
        return list(frame.columns), lambda place: frame.iloc[:, place]
    if hasattr(frame, "to_series") and hasattr(frame, "columns"):  # polars, likewise
        return list(frame.columns), frame.to_series
    for collected in ("toArrow", "collect"):  # Spark, and lazy frames of polars
        if not hasattr(frame, "__arrow_c_stream__") and hasattr(frame, collected):
            return columns_of(getattr(frame, collected)())
    try:
        table = pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise TypeError(f"frame must be a pandas, polars or Arrow table; got {type(frame).__name__}.") from error
    return table.column_names, table.column


def check_same_kind(given: Ids, name: str, ids: Ids) -> None:
    if len(given) and len(ids) and (given.dtype == object) != (ids.dtype == object):
        raise TypeError(
            f"{name} must be {_kind(ids)}, as in {shorten(ids, 3)}; got {_kind(given)}, as in {shorten(given, 3)}. "
            "Convert one of the two."
        )


def _kind(ids: Ids) -> str:
    return "strings" if ids.dtype == object else "integers"


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas.NA."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _as_column(values: Any, name: str) -> pa.Array:
    """Return ids without a missing one: int64, large_string, or dictionary-encoded large_string."""
    column = as_arrow(values, name)
    missing = missing_in(column)
    if missing is not None:
        raise ValueError(
            f"{name} must not be missing; got a missing value at {row(missing.argmax())} "
            f"({missing.sum():,} in total). Drop these rows, or fill them in."
        )
    return _as_ids(column, name)


def as_arrow(values: Any, name: str) -> pa.Array:
    """Return one Arrow array, dictionary-encoded only if its entries are strings, none of them null."""
    check_length(values, name)
    if len(getattr(values, "shape", (0,))) != 1:
        raise ValueError(f"{name} must be one-dimensional; got shape {tuple(values.shape)}.")
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        values = _from_python(values, name)
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    if pa.types.is_dictionary(values.type):
        chunks = [_tidy(chunk) for chunk in chunks]
        if any(not pa.types.is_dictionary(chunk.type) for chunk in chunks):
            chunks = [plain(chunk) for chunk in chunks]
    if len(chunks) == 1:
        return chunks[0]
    if is_text(values.type):
        chunks = [chunk.cast(pa.large_string()) for chunk in chunks]  # together they may pass 2 GB
    joined = pa.chunked_array(chunks, type=chunks[0].type if chunks else values.type)
    return joined.unify_dictionaries().combine_chunks()


def _from_python(values: Any, name: str) -> pa.Array | pa.ChunkedArray:
    if hasattr(values, "__dlpack__") and not isinstance(values, np.ndarray):
        values = np.asarray(values)  # a tensor
    if isinstance(values, np.ndarray) and values.dtype.kind == "U":
        values = values.astype(object)  # Arrow reads str objects, not every numpy width
    elif isinstance(values, np.ndarray) and not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as error:
        raise TypeError(_unreadable(values, name)) from error


def _tidy(chunk: pa.DictionaryArray) -> pa.Array:
    entries = chunk.dictionary
    if not is_text(entries.type):
        return chunk.dictionary_decode()
    tidy = pa.DictionaryArray.from_arrays(chunk.indices, entries.cast(pa.large_string()))
    return tidy.dictionary_decode() if entries.null_count else tidy


def plain(column: pa.Array) -> pa.Array:
    """Return a column that is not dictionary-encoded."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _hashed(column: pa.Array) -> pa.DictionaryArray:
    """Return a column as indices into distinct values, each of them used."""
    if not pa.types.is_dictionary(column.type):
        return column.dictionary_encode()
    used = np.zeros(len(column.dictionary), dtype=bool)
    used[column.indices.to_numpy(zero_copy_only=False)] = True
    if used.all() and len(column.dictionary.unique()) == len(used):
        return column
    return column.dictionary_decode().dictionary_encode()


def holds_text(column: pa.Array) -> bool:
    """Return whether a column is of strings, dictionary-encoded or not."""
    return is_text(column.type.value_type if pa.types.is_dictionary(column.type) else column.type)


def is_text(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is one of the three kinds of string."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _as_ids(column: pa.Array, name: str) -> pa.Array:
    """Return a column cast to int64 or large_string; whole floats and booleans become integers."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return column
    if is_text(kind):
        return column.cast(pa.large_string())
    if pa.types.is_null(kind):
        return column.cast(pa.int64())
    if not (pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_floating(kind)):
        raise TypeError(f"{name} must be integers or strings; got {kind}. Convert the column to strings first.")
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise TypeError(_not_whole(column, name)) from error


def missing_in(column: pa.Array) -> Any:
    """Return which entries of a column are missing, None where none is."""
    if not column.null_count and not pa.types.is_floating(column.type):
        return None
    missing = np.asarray(column.is_null(nan_is_null=True))
    return missing if missing.any() else None


def _unreadable(values: Any, name: str) -> str:
    """Return the message about the first value that is neither like those before it nor an id at all."""
    present = [(place, value) for place, value in enumerate(values) if not is_missing(value)]
    first = present[0][1] if present else None
    place, bad = next(((place, value) for place, value in present if not _fits(value, first)), (0, first))
    after = f" after {show(first)} ({type(first).__name__})" if bad is not first else ""
    return (
        f"{name} must be all integers of 64 bits or all strings; got {show(bad)} ({type(bad).__name__}) at {row(place)}"
        f"{after}. Convert the column to strings first."
    )


def _fits(value: Any, first: Any) -> bool:
    try:
        pa.array([first, value])
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        return False
    return True


def _not_whole(column: pa.Array, name: str) -> str:
    whole = column.cast(pa.int64(), safe=False).cast(pa.float64(), safe=False)
    first = int(np.flatnonzero(whole.to_numpy() != column.to_numpy(zero_copy_only=False))[0])
    value = column[first].as_py()
    fix = "Round it, or convert the column to strings first."
    if name == "label" and 0 < value < 1:
        fix = "If these are probabilities, make classes of them first, such as yes from 0.5 on."
    return f"{name} must be integers of 64 bits or strings; got {value} at {row(first)}. {fix}"
