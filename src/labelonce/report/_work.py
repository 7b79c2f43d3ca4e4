"""Seconds, pay and drift of every worker, where the files of labels know them."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
from scipy import ndimage

from labelonce._types import Floats
from labelonce.data import Annotations, _ids

FEWEST = 20  # labels with a time in each half of a worker's work, to speak of drift: judgement
_PERIODS = 6
_CLEAR = 3.0  # standard errors between the halves: with 100 workers, chance alone flags about one in four crowds


class Period(NamedTuple):
    """A period of time: its beginning and end, and the expected share of right labels given in it."""

    first: str
    last: str
    labels: int
    workers: int
    right: float


@dataclass(frozen=True)
class WorkFigures:
    """Figures of every worker, in the order of the annotations' workers; NaN where unknown.

    `seconds` is the median per label, `pay` the sum; `early` and `late` are the expected shares of right labels in the
    first and the second half of a worker's labels; `drifts` marks where they clearly differ. `periods` are those of all
    workers together, with the same number of labels each.
    """

    seconds: Floats
    pay: Floats
    early: Floats
    late: Floats
    periods: list[Period]

    @property
    def drifts(self) -> Any:
        """True where a worker's first and second half clearly differ."""
        return np.isfinite(self.early)


def known_figures(work: WorkFigures | None) -> dict[str, Floats]:
    """Return the figures that are known for at least one worker, by their names in a table."""
    columns = {} if work is None else {"seconds_per_label": work.seconds, "pay": work.pay}
    return {name: np.round(values, 4) for name, values in columns.items() if not np.isnan(values).all()}


def work_figures(work: Any, annotations: Annotations, posterior: Floats) -> WorkFigures:
    """Return the figures of a table with the columns task and worker, and seconds, pay and time where known."""
    names = list(getattr(work, "column_names", getattr(work, "columns", work)))
    columns = {name: np.asarray(work[name]) for name in names}
    place = {str(worker): code for code, worker in enumerate(annotations.workers.tolist())}
    codes = np.array([place.get(str(worker), -1) for worker in columns["worker"]])
    known = codes >= 0
    empty = np.full(annotations.n_workers, np.nan)
    seconds, pay = empty.copy(), empty.copy()
    for role in {"seconds", "time"} & set(names):
        option = {"lead_time" if role == "seconds" else "timestamp": columns[role][known].astype(np.float64)}
        if role == "seconds" or "seconds" not in names:
            found = worker_seconds(codes[known], **option)
            seconds[list(found)] = list(found.values())
    if "pay" in names:
        paid = known & np.isfinite(columns["pay"])
        pay[np.unique(codes[paid])] = 0
        np.add.at(pay, codes[paid], columns["pay"][paid])
    when = _times(columns, annotations) if "time" in names else np.full(len(annotations), np.nan)
    right = posterior[annotations.task, annotations.label]
    early, late = _halves(when, right, annotations)
    return WorkFigures(seconds, pay, early, late, _periods(when, right, annotations))


def _times(columns: dict[str, Any], annotations: Annotations) -> Floats:
    """Return when each label was given, in seconds; NaN where unknown."""
    given = zip(columns["task"], columns["worker"], columns["time"], strict=True)
    times = {(str(task), str(worker)): time for task, worker, time in given}
    tasks, workers = (list(map(str, ids.tolist())) for ids in (annotations.tasks, annotations.workers))
    pairs = zip(annotations.task.tolist(), annotations.worker.tolist(), strict=True)
    return np.array([times.get((tasks[task], workers[worker]), np.nan) for task, worker in pairs], dtype=np.float64)


def _periods(when: Floats, right: Floats, annotations: Annotations) -> list[Period]:
    known = np.flatnonzero(np.isfinite(when))
    known = known[np.argsort(when[known], kind="stable")]
    n = min(_PERIODS, len(known) // FEWEST)
    if n < 2:
        return []
    periods = []
    for part in np.array_split(known, n):
        ends = when[part[[0, -1]]].tolist()
        first, last = (datetime.fromtimestamp(one, UTC).strftime("%Y-%m-%d %H:%M") for one in ends)
        n_workers = len(np.unique(annotations.worker[part]))
        periods.append(Period(first, last, len(part), n_workers, float(right[part].mean())))
    return periods


def _halves(when: Floats, right: Floats, annotations: Annotations) -> tuple[Floats, Floats]:
    """Return the expected share of right labels early and late, for workers in whom these clearly differ."""
    early, late = np.full((2, annotations.n_workers), np.nan)
    for worker in range(annotations.n_workers):
        mine = np.flatnonzero((annotations.worker == worker) & np.isfinite(when))
        mine = mine[np.argsort(when[mine], kind="stable")]
        if (found := clear_change(right[mine])) is not None:
            early[worker], late[worker] = found
    return early, late


def clear_change(right: Floats) -> tuple[float, float] | None:
    """Return the share of right labels in the first and the second half; None unless they clearly differ."""
    halves = right[: len(right) // 2], right[len(right) // 2 :]
    if min(map(len, halves)) < FEWEST:
        return None
    (first, second), both = (float(half.mean()) for half in halves), float(right.mean())
    error = np.sqrt(max(both * (1 - both), 1e-9) * sum(1 / len(half) for half in halves))
    return (first, second) if abs(first - second) > _CLEAR * error else None


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
    known = ~np.isnan(seconds)
    found = np.unique(codes[known])
    middle = ndimage.median(seconds[known], codes[known], found) if len(found) else []
    return dict(zip(workers[found].tolist(), map(float, middle), strict=True))


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
