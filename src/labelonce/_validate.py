"""Every argument check that more than one place needs, so every sentence is worded once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from labelonce import _ids
from labelonce._types import Codes, Floats, Ids

MAX_ANNOTATIONS = 2**31 - 1

RandomState = int | np.random.Generator | None
Gold = Mapping[Any, Any] | Any


def check_columns(**columns: Any) -> int:
    """Return the common length of the columns of annotations; none, too many or unequal is an error."""
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(f"task, worker and label must have the same length; got {shown}.")
    length = next(iter(lengths.values()))
    if length == 0:
        raise ValueError("annotations must have at least one row; got 0. Is the file or the filter empty?")
    if length > MAX_ANNOTATIONS:
        raise ValueError(
            f"annotations must number at most 2^31 - 1 = {MAX_ANNOTATIONS}; got {length}. "
            "Split them by task and work on the parts."
        )
    return length


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
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
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
    array = np.asarray(values, dtype=np.float64)
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
    bad = (array < 0) | (array >= n)
    if bad.any():
        first = int(np.argmax(bad))
        raise ValueError(f"{name} must be in [0, {n}); got {array[first]} at position {first} ({bad.sum()} in total).")
    return array.astype(np.int32, copy=False)


def check_gold(gold: Gold, tasks: Ids, classes: Ids) -> Codes:
    """Return the class code of every task's gold, -1 where it has none.

    `gold` maps task ids to class ids, or lists one class id a task with None, NaN or -1 where unknown.
    """
    codes = np.full(len(tasks), -1, dtype=np.int32)
    if isinstance(gold, Mapping):
        if gold:
            where = _ids.lookup(list(gold), tasks)
            _reject_unknown(where, list(gold), "gold task", tasks)
            codes[where] = _gold_classes(list(gold.values()), classes)
        return codes
    values = np.asarray(gold, dtype=object)
    if values.shape != (len(tasks),):
        raise ValueError(
            f"gold must have one entry a task, {len(tasks)}; got shape {values.shape}. "
            "Give a mapping of task id to class id if only some are known."
        )
    known = np.array([not _is_unknown(value, classes) for value in values], dtype=bool)
    if known.any():
        codes[known] = _gold_classes(values[known].tolist(), classes)
    return codes


def _gold_classes(values: list[Any], classes: Ids) -> Codes:
    codes = _ids.lookup(values, classes)
    _reject_unknown(codes, values, "gold label", classes)
    return codes


def _reject_unknown(codes: Codes, values: list[Any], name: str, ids: Ids) -> None:
    if (codes < 0).any():
        first = int(np.argmax(codes < 0))
        raise ValueError(
            f"{name} must be one of {_ids.shorten(ids)}; got {values[first]!r} ({int((codes < 0).sum())} in total)."
        )


def _is_unknown(value: Any, classes: Ids) -> bool:
    if value is None or value != value:  # NaN differs from itself
        return True
    return classes.dtype != object and value == -1 and -1 not in classes
