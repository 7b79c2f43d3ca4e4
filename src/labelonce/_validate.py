"""Every argument check that more than one place needs, so every sentence is worded once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labelonce import _ids
from labelonce._types import Codes, Floats, Ids

MAX_ANNOTATIONS = 2**31 - 1

RandomState = int | np.random.Generator | None
Gold = Mapping[Any, Any] | Any


def check_columns(**columns: Any) -> int:
    """Return the common length of the columns of annotations; none, too many or unequal is an error."""
    lengths = {name: _ids.check_length(values, name) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(f"task, worker and label must have the same length; got {shown}.")
    return check_count(next(iter(lengths.values())))


def check_count(n_annotations: int) -> int:
    """Return a number of annotations; none, or more than an int32 can count, is an error."""
    if n_annotations == 0:
        raise ValueError("annotations must have at least one row; got 0. Is the file or the filter empty?")
    if n_annotations > MAX_ANNOTATIONS:
        raise ValueError(
            f"annotations must number at most 2^31 - 1 = {MAX_ANNOTATIONS}; got {n_annotations}. "
            "Split them by task and work on the parts."
        )
    return n_annotations


def check_choice(value: str, name: str, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")
    return value


def check_int(value: Any, name: str, minimum: int) -> int:
    """Return `value` as an int of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < minimum:
        raise ValueError(f"{name} must be an integer of at least {minimum}; got {value!r}.")
    return int(value)


def check_number(value: Any, name: str, low: float, high: float = np.inf) -> float:
    """Return `value` as a finite float in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ValueError(f"{name} must be a number; got {value!r}.")
    if not (np.isfinite(value) and low <= value <= high):
        bound = f"at least {low:g}" if high == np.inf else f"in [{low:g}, {high:g}]"
        raise ValueError(f"{name} must be {bound}; got {value!r}.")
    return float(value)


def check_rng(random_state: RandomState) -> np.random.Generator:
    """Return a generator for a seed, a generator or None (fresh entropy)."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng()
    return np.random.default_rng(check_int(random_state, "random_state", 0))


def check_distribution(values: Any, name: str, shape: tuple[int, ...]) -> Floats:
    """Return probabilities of the given shape as float64; the last axis must sum to 1."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array of numbers; got {_ids.show(values)}.") from error
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}; got {array.shape}.")
    bad = ~np.isfinite(array) | (array < 0)
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(f"{name} must be probabilities; got {array[place]} at {place} ({bad.sum()} in total).")
    sums = array.sum(axis=-1)
    off = np.abs(sums - 1) > 1e-6
    if off.any():
        place = tuple(int(i) for i in np.argwhere(off)[0])
        raise ValueError(f"{name} must sum to 1; got {sums[place]:.6g} at {place} ({off.sum()} in total).")
    return array


def check_codes(values: Any, name: str, n: int) -> Codes:
    """Return whole numbers in [0, n) as int32 codes."""
    array = np.asarray(values)
    if array.dtype.kind not in "iub" or array.ndim != 1:
        raise TypeError(f"{name} must be a one-dimensional integer array; got {array.dtype} of shape {array.shape}.")
    if len(array) and (array.min() < 0 or array.max() >= n):
        bad = (array < 0) | (array >= n)
        first = int(np.argmax(bad))
        raise ValueError(f"{name} must be in [0, {n}); got {array[first]} at position {first} ({bad.sum()} in total).")
    return array.astype(np.int32, copy=False)


def check_gold(gold: Gold, tasks: Ids, classes: Ids) -> Codes:
    """Return the class code of every task's gold, -1 where it has none.

    `gold` maps task ids to class ids, or lists one class id a task with None, NaN or -1 where unknown. A pandas
    Series maps its index, unless that only counts 0, 1, 2, ...
    """
    if hasattr(gold, "index") and hasattr(gold, "to_dict") and getattr(gold, "ndim", 0) == 1:
        gold = _from_series(gold, classes)
    codes = np.full(len(tasks), -1, dtype=np.int32)
    if isinstance(gold, Mapping):
        if gold:
            codes[_gold_codes(list(gold), "gold tasks", tasks)] = _gold_codes(list(gold.values()), "gold", classes)
        return codes
    values = np.array(gold, dtype=object)
    if isinstance(gold, np.ma.MaskedArray):
        values[np.ma.getmaskarray(gold)] = None
    if values.shape != (len(tasks),):
        raise ValueError(
            f"gold must have one entry a task, {len(tasks)}; got shape {values.shape}. "
            "Give a mapping of task id to class id if only some are known."
        )
    known = np.array([not _is_unknown(value, classes) for value in values], dtype=bool)
    if known.any():
        codes[known] = _gold_codes(values[known].tolist(), "gold", classes)
    return codes


def _from_series(gold: Any, classes: Ids) -> Any:
    tasks, values = list(gold.index), gold.tolist()
    if tasks == list(range(len(tasks))):
        return values
    check_once(tasks)
    return {task: value for task, value in zip(tasks, values, strict=True) if not _is_unknown(value, classes)}


def check_once(tasks: Sequence[Any]) -> None:
    """Raise if gold names a task twice."""
    seen = Counter(tasks)
    twice = [task for task, times in seen.items() if times > 1]
    if twice:
        raise ValueError(
            f"gold must name a task once; got {_ids.show(twice[0])} {_times(seen[twice[0]])} "
            f"({len(twice)} repeated tasks in total). Keep one row of each."
        )


def _times(n: int) -> str:
    return "twice" if n == 2 else f"{n} times"


def _gold_codes(values: list[Any], name: str, ids: Ids) -> Codes:
    given = _ids.column_of(values, name)
    _ids.check_same_kind(given, name, ids)
    codes = _ids.lookup(given, ids)
    if codes.min() < 0:
        unknown = np.flatnonzero(codes < 0)
        raise ValueError(
            f"{name} must be among {_ids.shorten(ids)}; got {_ids.show(given[unknown[0]])} ({len(unknown)} in total)."
        )
    return codes


def _is_unknown(value: Any, classes: Ids) -> bool:
    return _ids.is_missing(value) or (not isinstance(value, str) and value == -1 and -1 not in classes)
