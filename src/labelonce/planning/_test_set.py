"""The test set of a plan, which is paid from the budget."""

from dataclasses import dataclass
from typing import Any

from labelonce._validate import check_int
from labelonce.planning._curve import Curve, Money

_GOOD_LABEL = 0.95  # accuracy that the labels of a test set should have: judgement
_SHARE, _FEWEST, _MOST = 0.1, 50, 300  # of the budget; tasks: 50 give an accuracy to within 8 points, 300 within 3


@dataclass(frozen=True)
class TestSet:
    """Tasks that are kept out of training, with more labels each."""

    __test__ = False  # no tests of pytest's

    tasks: int
    redundancy: int  # Number of labels for each of them
    cost: float
    label_accuracy: float  # Expected share of tasks whose most probable label is right

    def __str__(self) -> str:
        return (
            f"{self.tasks:,} other tasks with {self.redundancy} labels each, for {self.cost:,.6g}; about "
            f"{self.label_accuracy:.0%} of these labels will be right."
        )


def offer(whole: Curve, money: Money, n: int = _FEWEST) -> TestSet:
    """Return a test set of some tasks, labelled until their labels are good or no redundancy is left."""
    row = next((row for row in whole.rows if row.label_accuracy >= _GOOD_LABEL), whole.rows[-1])
    return TestSet(n, row.redundancy, money.cost(n, row.redundancy), row.label_accuracy)


def put_aside(whole: Curve, money: Money, n: Any) -> TestSet | None:
    """Return the test set of `n` tasks, by default of what a tenth of the budget buys; None where that is too few."""
    if n is None:
        n = min(int(_SHARE * money.budget / offer(whole, money, 1).cost), _MOST)
        n = n if n >= _FEWEST else 0
    if check_int(n, "test_tasks", 0) == 0:
        return None
    found = offer(whole, money, n)
    if found.cost + money.cost(1, 1) > money.budget:
        raise ValueError(f"test_tasks must leave money for training; got {n}, which cost {found.cost:,.6g}.")
    return found
