"""Every argument check that more than one place needs, so every sentence is worded once."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from labelonce._messages import named, show
from labelonce._types import Codes, Floats

MAX_ANNOTATIONS = 2**31 - 1
_LARGEST = 2**63 - 1

RandomState = int | np.random.Generator | None


def check_columns(**columns: Any) -> int:
    """Return the common length of the columns of annotations; none, too many or unequal is an error."""
    lengths = {name: check_length(values, name) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {length}" for name, length in lengths.items())
        *names, last = lengths
        raise ValueError(f"{', '.join(names)} and {last} must have the same length; got {shown}.")
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
    if value not in choices:
        raise ValueError(f"{named(name)} must be one of {', '.join(map(repr, choices))}; got {value!r}.")
    return value


def check_int(value: Any, name: str, minimum: int, *, or_else: str = "") -> int:
    """Return `value` as an int of at least `minimum`; the error also names a word that is allowed instead."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < minimum:
        more = f", or {or_else}" if or_else else ""
        raise ValueError(f"{named(name)} must be an integer of at least {minimum}{more}; got {value!r}.")
    if value > _LARGEST:  # what no array counts to
        raise ValueError(f"{named(name)} must be at most 2^63 - 1; got {show(value)}.")
    return int(value)


def check_number(value: Any, name: str, low: float, high: float = np.inf) -> float:
    """Return `value` as a finite float in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ValueError(f"{named(name)} must be a number; got {value!r}.")
    try:
        number = float(value)
    except OverflowError:  # an integer larger than any float
        number = np.inf
    if not (np.isfinite(number) and low <= number <= high):
        bound = f"at least {low:g}" if high == np.inf else f"in [{low:g}, {high:g}]"
        raise ValueError(f"{named(name)} must be {bound}; got {show(value)}.")
    return number


def check_positive(value: Any, name: str, high: float = np.inf) -> float:
    """Return `value` as a finite float in (0, high]."""
    number = check_number(value, name, 0.0, high)
    if number == 0:
        raise ValueError(f"{named(name)} must be above 0; got {value!r}.")
    return number


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
        raise TypeError(f"{name} must be an array of numbers; got {show(values)}.") from error
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


def check_length(values: Any, name: str) -> int:
    """Return the length of a column; something without one, or without an order, is an error."""
    ordered = not isinstance(values, (str, bytes, set, frozenset, Mapping))
    if not ordered or not hasattr(values, "__len__") or getattr(values, "shape", None) == ():
        raise TypeError(
            f"{name} must be a list, an array or a column; got {show(values)} ({type(values).__name__}). "
            "Give a list, such as [1, 2] or ['a', 'b']."
        )
    return len(values)
