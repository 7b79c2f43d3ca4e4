"""The test set of a plan."""

import pytest

from labelonce import planning

CROWD = planning.assume(skill=0.8)
PER_TASK = planning.plan(CROWD, budget=1e4, test_tasks=1).test  # labels until 95 % are right


@pytest.mark.parametrize(("afforded", "tasks"), [(49.9, 0), (50.1, 50), (120.1, 120), (299.9, 299), (500, 300)])
def test_by_default_a_tenth_of_the_budget_buys_a_test_set_of_50_to_300_tasks(afforded: float, tasks: int) -> None:
    assert PER_TASK is not None
    found = planning.plan(CROWD, budget=10 * afforded * PER_TASK.cost).test
    assert (0 if found is None else found.tasks) == tasks
