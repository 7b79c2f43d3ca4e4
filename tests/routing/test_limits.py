"""Terms that cannot be meant are refused when they are written down."""

from typing import Any

import numpy as np
import pytest

from labelonce.routing import Limits, Prices


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"capacity": -1}, "capacity must be an integer of at least 0; got -1"),
        ({"capacity": {"ann": 2.5}}, "the capacity of worker 'ann' must be an integer of at least 0; got 2.5"),
        ({"max_labels": 0}, "max_labels must be an integer of at least 1; got 0"),
        ({"budget": "ten"}, "budget must be a number; got 'ten'"),
        ({"max_risk": 5}, r"max_risk must be in \[0, 1\]; got 5"),
        ({"min_gain": -1.0}, "min_gain must be at least 0; got -1.0"),
        ({"lease_seconds": -1.0}, "lease_seconds must be at least 0; got -1.0"),
        ({"gold_tests": -1}, "gold_tests must be an integer of at least 0; got -1"),
    ],
)
def test_limits_that_cannot_be_meant_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Limits(**options)


def test_prices_are_above_zero_and_one_per_task() -> None:
    with pytest.raises(ValueError, match=r"above 0; got 0\.0 for worker 'ann'"):
        Prices(costs={"ann": 0.0})
    with pytest.raises(ValueError, match=r"one entry per task, 3; got shape \(2,\)"):
        Prices(task_costs=[1.0, 2.0]).of_tasks(np.arange(3))
