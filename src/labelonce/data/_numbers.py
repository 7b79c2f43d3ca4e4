"""What keeps columns or arrays from being features: texts, dates, missing values, infinities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy import sparse

from labelonce._messages import row, show
from labelonce._types import Floats
from labelonce.data._ids import columns_of, is_frame, is_text

_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_null)


@dataclass(frozen=True)
class Fault:
    """The first value that is no feature: its column and row, what kind it is of, and how many there are.

    The kind is "missing", "infinite", "text", "category", "date" or the name of another type.
    """

    column: str
    value: str
    row: int
    kind: str
    count: int = 1

    @property
    def is_number(self) -> bool:
        """Whether the value is a number that cannot be used: NaN or infinite."""
        return self.kind in ("missing", "infinite")

    @property
    def sentence(self) -> str:
        """What must hold, the value and the place."""
        if self.is_number:
            total = f"({self.count:,} in total)"
            return f"features must be finite numbers; got {self.value} in {self.column} at {row(self.row)} {total}."
        return f"{self.column} must hold numbers; got {self.value} at {row(self.row)} ({self.kind})."


def as_features(column: Any, name: str, *, missing: bool) -> Floats | Fault:
    """Return an Arrow column as float64, or what is wrong with it; `missing` allows NaN.

    >>> as_features(pa.array([1, None, 2]), "x", missing=True)
    array([ 1., nan,  2.])
    >>> as_features(pa.array(["1", "two"]), "x", missing=True).sentence
    "column 'x' must hold numbers; got 'two' at row 1 (text)."
    """
    called, kind = f"column {name!r}", column.type
    if not any(is_kind(kind) for is_kind in _NUMBERS):
        inside = kind.value_type if pa.types.is_dictionary(kind) else kind
        said = "date" if pa.types.is_temporal(inside) else "text" if is_text(inside) else str(inside)
        return Fault(called, *_first_non_number(column), "category" if inside is not kind else said)
    numbers = np.asarray(pc.fill_null(column.cast(pa.float64(), safe=False), np.nan).to_numpy(zero_copy_only=False))
    return array_fault(numbers[:, None], [called], missing=missing) or numbers


def array_fault(X: Any, columns: list[str] | None = None, *, missing: bool) -> Fault | None:
    """Return the first number of an array (n_tasks, n_features) that is not finite, or with `missing` infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(X.sum()):  # the quick look; it needs no memory
            return None
    bad = np.isinf(X) if missing else ~np.isfinite(X)
    if not bad.any():
        return None
    place, number = (int(i) for i in np.unravel_index(int(bad.argmax()), X.shape))
    value = X[place, number]
    name = f"column {number}" if columns is None else columns[number]
    if np.isnan(value):
        return Fault(name, "NaN", place, "missing", int(bad.sum()))
    return Fault(name, f"{float(value)}", place, "infinite", int(bad.sum()))


def features_fault(X: Any, *, missing: bool) -> Fault | None:
    """Return the first value in a frame, array or sparse matrix that is no feature; other things are not judged."""
    if is_frame(X):
        names, column = columns_of(X)
        faults = (_column_fault(column(place), name, missing=missing) for place, name in enumerate(names))
        return next(filter(None, faults), None)
    if sparse.issparse(X):
        stored = X.tocoo()
        fault = array_fault(stored.data[:, None], missing=missing) if stored.data.dtype.kind == "f" else None
        place = 0 if fault is None else fault.row
        return fault and replace(fault, column=f"column {stored.col[place]}", row=int(stored.row[place]))
    if not isinstance(X, np.ndarray) or X.ndim != 2:
        return None
    if X.dtype.kind == "O":
        faults = (_column_fault(column, place, missing=missing) for place, column in enumerate(X.T))
        return next(filter(None, faults), None)
    return array_fault(X, missing=missing) if X.dtype.kind == "f" else None


def _column_fault(column: Any, name: Any, *, missing: bool) -> Fault | None:
    kind = getattr(getattr(column, "dtype", None), "kind", None)
    if kind in ("i", "u", "b"):
        return None
    if kind == "f" and isinstance(column.dtype, np.dtype):
        return array_fault(np.asarray(column)[:, None], [f"column {name!r}"], missing=missing)
    try:
        if not isinstance(column, pa.Array | pa.ChunkedArray):
            column = pa.array(column.to_arrow() if hasattr(column, "to_arrow") else column, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):  # of several kinds of values
        place = next((place for place, value in enumerate(column) if isinstance(value, str)), None)
        return None if place is None else Fault(f"column {name!r}", show(column[place]), place, "text")
    found = as_features(column, name, missing=missing)
    return found if isinstance(found, Fault) else None


def _first_non_number(column: Any) -> tuple[str, int]:
    for place, value in enumerate(column.to_pylist()):
        try:
            float(value)
        except (TypeError, ValueError):
            if value is not None:
                return show(value), place
    return show(column[0].as_py()), 0
