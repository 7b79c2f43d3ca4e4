"""The ranges of the theory: rates below a half, a chance of failure strictly inside (0, 1)."""

from typing import Any

from labelonce._validate import check_number


def check_rate(value: Any, name: str) -> float:
    """Return `value` as a float in [0, 0.5): from a half on, the labels tell nothing and no bound holds."""
    rate = check_number(value, name, 0)
    if rate >= 0.5:
        raise ValueError(f"{name} must be in [0, 0.5); got {value!r}.")
    return rate


def check_delta(value: Any) -> float:
    """Return the chance that a bound fails as a float in (0, 1)."""
    delta = check_number(value, "delta", 0)
    if not 0 < delta < 1:
        raise ValueError(f"delta must be in (0, 1); got {value!r}.")
    return delta
