"""How long workers take for a label."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelonce._types import Floats, Ids
from labelonce.data import _ids


def worker_seconds(worker: Any, *, lead_time: Any = None, timestamp: Any = None) -> dict[Any, float]:
    """Return the median seconds that each worker takes for a label, for `write_report`.

    Parameters
    ----------
    worker : column
        The worker of every label, in any order.
    lead_time : column, optional
        Seconds that each label took; NaN where unknown.
    timestamp : column, optional
        When each label was given: seconds, or datetimes. A label then took the time since the worker's label
        before; half of the gaps may be breaks before the median suffers.

    Examples
    --------
    >>> worker_seconds(["ann", "bob", "ann", "ann"], timestamp=[10.0, 11.0, 14.0, 20.0])
    {'ann': 5.0}
    >>> worker_seconds(["ann", "bob", "ann"], lead_time=[2.0, 9.0, 4.0])
    {'ann': 3.0, 'bob': 9.0}
    """
    if (lead_time is None) == (timestamp is None):
        given = "both" if timestamp is not None else "neither"
        raise ValueError(f"worker_seconds must have either lead_time or timestamp; got {given}.")
    codes, workers = _ids.encode(worker, "worker")
    if lead_time is not None:
        seconds = _as_seconds(lead_time, "lead_time", len(codes))
    else:
        moment = _as_seconds(timestamp, "timestamp", len(codes))
        order = np.lexsort((moment, codes))
        codes, moment = codes[order], moment[order]
        seconds = np.append(np.nan, np.diff(moment))
        seconds[np.append(True, codes[1:] != codes[:-1])] = np.nan
    return _medians(codes, workers, seconds)


def _as_seconds(values: Any, name: str, n: int) -> Floats:
    array = np.asarray(values)
    if array.dtype.kind in "Mm":
        unknown = np.isnat(array)
        unit = "datetime64[us]" if array.dtype.kind == "M" else "timedelta64[us]"
        array = np.where(unknown, np.nan, array.astype(unit).astype(np.int64) / 1e6)
    try:
        seconds = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be seconds or times; got {array.dtype}. Convert the column first.") from error
    if seconds.shape != (n,):
        raise ValueError(f"{name} must have one entry per label, {n}; got shape {seconds.shape}.")
    bad = np.isinf(seconds) | ((seconds < 0) & (name == "lead_time"))
    if bad.any():
        first = int(np.argmax(bad))
        raise ValueError(f"{name} must be finite and not negative; got {seconds[first]} at row {first}.")
    return seconds


def _medians(codes: Any, workers: Ids, seconds: Floats) -> dict[Any, float]:
    known = ~np.isnan(seconds)
    codes, seconds = codes[known], seconds[known]
    order = np.lexsort((seconds, codes))
    codes, seconds = codes[order], seconds[order]
    found, first, n = np.unique(codes, return_index=True, return_counts=True)
    middle = (seconds[first + (n - 1) // 2] + seconds[first + n // 2]) / 2
    return dict(zip(workers[found].tolist(), middle.tolist(), strict=True))
