"""Where the sums on slots are done: the handful of operations that differ between numpy and torch on a device."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy import sparse

from labelonce._kernels._posterior import normalise
from labelonce._types import Floats


class Arrays(Protocol):
    """Operations on arrays that stay where they are: in numpy, or on a device.

    `functions` is a module with numpy's names for what is the same in both.
    """

    @property
    def functions(self) -> Any:
        """The module."""

    dtype: np.dtype[Any]
    block: int  # numbers that are worked on at once
    keeps_blocks: bool  # whether the places of a block are made once, and stay on the device

    def put(self, array: Any) -> Any:
        """Return an array where the sums are done."""

    def get(self, array: Any) -> Floats:
        """Return an array in numpy."""

    def floats(self, array: Any) -> Any:
        """Return numbers in the precision of the sums, where they are done."""

    def zeros(self, n: int) -> Any:
        """Return totals, in float64."""

    def take(self, table: Any, place: Any) -> Any:
        """Return the entries of a flat table at places of any shape."""

    def rows(self, wide: Any, place: Any) -> Any:
        """Return some rows."""

    def set_at(self, wide: Any, place: Any, values: Any) -> None:
        """Set one entry of each row."""

    def at(self, wide: Any, place: Any) -> Any:
        """Return one entry of each row."""

    def sum_runs(self, wide: Any, start: Any, each: int) -> Any:
        """Return the sums of the rows of each run; `start` tells where runs start, `each` how long all are, or 0."""

    def normalise(self, log_joint: Any) -> float:
        """Turn rows of logs into probabilities in place; return the sum of the logs of their totals."""

    def add_at(self, totals: Any, place: Any, values: Any) -> None:
        """Add values to places, which may repeat."""


class NumpyArrays:
    """Numpy and scipy's sparse products, in blocks that stay in the cache."""

    functions = np
    block = 1 << 18
    keeps_blocks = False

    def __init__(self, dtype: str = "float64") -> None:
        self.dtype = np.dtype(dtype)

    def put(self, array: Any) -> Any:
        return np.asarray(array)

    def get(self, array: Any) -> Floats:
        return np.asarray(array)

    def floats(self, array: Any) -> Any:
        return np.asarray(array, dtype=self.dtype)

    def zeros(self, n: int) -> Any:
        return np.zeros(n)

    def take(self, table: Any, place: Any) -> Any:
        return table.take(place)

    def rows(self, wide: Any, place: Any) -> Any:
        return wide.take(place, axis=0)

    def set_at(self, wide: Any, place: Any, values: Any) -> None:
        wide[np.arange(len(wide)), place] = values

    def at(self, wide: Any, place: Any) -> Any:
        return wide[np.arange(len(wide)), place]

    def sum_runs(self, wide: Any, start: Any, each: int) -> Any:
        n = len(wide)
        return sparse.csr_array((np.ones(n, self.dtype), np.arange(n), start), shape=(len(start) - 1, n)) @ wide

    def normalise(self, log_joint: Any) -> float:
        return normalise(log_joint)

    def add_at(self, totals: Any, place: Any, values: Any) -> None:
        # scipy sums many of them faster than bincount, which converts both first
        row = sparse.csr_array((values.ravel(), place.ravel(), [0, place.size]), shape=(1, len(totals)))
        totals += row.toarray()[0]


NUMPY = NumpyArrays()
