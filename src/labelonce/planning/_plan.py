"""`plan`: how many labels per task, and how many tasks, a budget should buy."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from labelonce._messages import argument
from labelonce._types import Estimate
from labelonce._validate import check_choice, check_int, check_number
from labelonce.aggregation import Aggregator
from labelonce.data import Annotations
from labelonce.planning._advice import PilotDoubts, guards, pilot_doubts, reasons, simulated_reasons
from labelonce.planning._crowd import Crowd, crowd_of
from labelonce.planning._curve import GOALS, MEASURES, Curve, Money, Row, check_money, curve
from labelonce.planning._overlap import wanted_overlap
from labelonce.planning._picture import write_picture
from labelonce.planning._pilot import Pilot, read_pilot
from labelonce.planning._simulation import (
    FEWEST_FITS,
    Progress,
    Simulation,
    clearly_better,
    model_point_cost,
    simulate_problem,
    with_accuracy,
)
from labelonce.planning._test_set import TestSet, put_aside

_TIMES_THE_PILOT = 10  # the budget where none is given: a pilot is a tenth


@dataclass(frozen=True)
class Plan:
    """How to spend a budget on labels, and why.

    Attributes
    ----------
    goal : {"model", "labels"}
        What the labels are for.
    redundancy, tasks, labels : int
        Number of labels per task to buy, the number of tasks, and labels in all.
    overlap : int
        Number of random tasks that a second worker labels, where the others are labelled once.
    cost, budget, label_price, fee, task_price : float
        `cost` includes the fee, the overlap and the test set.
    pool : int or None
        Number of tasks there are.
    test : TestSet or None
        Tasks for a test set, paid from the budget.
    chosen : dict
        Redundancy to buy for either goal.
    point_cost : float or None
        What one more point of the goal costs: of new tasks that the model gets right, or of right labels. None where no
        more labels bring it, and without a simulation for a model.
    rows : tuple of Row
        The whole curve, one row per redundancy.
    likely : (low, high)
        Range of the best redundancy over 90 % of the crowds that are plausible after the pilot.
    label_accuracy : float
        Expected share of right labels after aggregation, without a model and with workers that are known.
    accuracy : Estimate or None
        Expected accuracy of the model on new tasks with its 90 % range; None without a simulation.
    bound_redundancy : int or None
        The redundancy with the smallest bound of Theorem 4.1, a worst case; None for more than two classes. The plan
        does not use it.
    fits : int
        Number of simulated fits.
    agree : bool or None
        Whether information and simulation choose the same redundancy; None without a simulation.
    reasons, guards : tuple of str
        Reasons and warnings, one sentence each.

    Examples
    --------
    >>> from labelonce import planning
    >>> found = planning.plan(planning.assume(skill=0.8), budget=3000, task_price=5)
    >>> found.redundancy, found.tasks
    (3, 375)
    >>> print(found.reasons[0])
    For a model: buy 1,125 labels, 3 for each of 375 tasks. This costs 3,000 of 3,000.
    """

    goal: str
    redundancy: int
    tasks: int
    labels: int
    overlap: int
    cost: float
    budget: float
    label_price: float
    fee: float
    task_price: float
    pool: int | None
    test: TestSet | None
    chosen: dict[str, int]
    point_cost: float | None
    rows: tuple[Row, ...]
    likely: tuple[int, int]
    label_accuracy: float
    accuracy: Estimate | None
    bound_redundancy: int | None
    fits: int
    agree: bool | None
    reasons: tuple[str, ...]
    guards: tuple[str, ...]

    def row(self, redundancy: int) -> Row:
        """Return the row of a redundancy."""
        for row in self.rows:
            if row.redundancy == redundancy:
                return row
        known = [row.redundancy for row in self.rows]
        raise ValueError(f"redundancy must be one of {known}; got {redundancy!r}. Give it to plan as redundancies=...")

    def to_dict(self) -> dict[str, Any]:
        """Return everything as numbers, strings, lists and dictionaries, for JSON."""
        return asdict(self)

    def to_frame(self) -> pa.Table:
        """Return an Arrow table of the curve, one row per redundancy."""
        rows = [asdict(row) for row in self.rows]
        for row in rows:
            expected = row.pop("accuracy") or {}
            names = {"accuracy": "value", "accuracy_low": "low", "accuracy_high": "high"}
            row |= {column: expected.get(name) for column, name in names.items()}
        return pa.table({name: pa.array([row[name] for row in rows]) for name in rows[0]})

    def plot(self, path: str | Path) -> None:
        """Draw the curve to a file, svg or png by its suffix; needs matplotlib."""
        write_picture(self, Path(path))

    def __str__(self) -> str:
        watch = [f"- {sentence}" for sentence in self.guards]
        return "\n".join([*self.reasons, "Watch out:", *watch])


def plan(
    workers: Any,
    *,
    budget: float | None = None,
    goal: str = "model",
    label_price: float | None = None,
    fee: float = 0.0,
    task_price: float = 0.0,
    tasks: int | None = None,
    test_tasks: int | None = None,
    overlap: int | None = None,
    features: Any = None,
    annotations: Annotations | None = None,
    redundancies: Sequence[int] | None = None,
    measure: str = "gini",
    fits: int = 24,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Plan:
    """Return how many labels per task a budget should buy, how many tasks, and what to expect.

    The budget buys n(r) tasks with r labels each. I(r) is the information in the labels of a task, as a share of that
    in its true label, for the workers as they are estimated, averaged over what is not known of them. For a model, n I
    is largest at the best r. For the labels themselves, more labels per task are better. Both stop where one more
    label for every task would bring less than one percent (of n I, or of right labels): the rest of the money is kept.

    With `features` the problem itself is simulated for up to four redundancies: workers like those of the pilot label
    the rows of the features, MBEM is fitted, and its accuracy on other rows is what to expect. The simulation overrules
    n I only if another redundancy is better in every simulated crowd and by a point on average.

    Parameters
    ----------
    workers : fitted MBEM, aggregator or worker model, run folder, or Crowd
        Of a pilot, or what you expect: `assume`. A run folder has its features with it.
    budget : float
        What can be spent. Default: ten times what the pilot cost.
    goal : {"model", "labels"}
        What the labels are for: to train a model, or to be right themselves.
    label_price : float above 0, optional
        Price of one label. Default: the mean reward in the files of the run, else 1.
    fee : float of at least 0
        What the platform takes on top, as a share of `label_price`: 0.2 for 20 %.
    task_price : float of at least 0
        Price of one more task, without its labels: collecting, storing, showing it.
    tasks : int, optional
        Number of tasks there are. Default: those of the run folder, else as many as wanted.
    test_tasks : int, optional
        Size of a test set, paid from the budget. Default: what a tenth of the budget buys, at most 300 and none below
        50.
    overlap : int, optional
        Number of random tasks that a second worker labels, paid from the budget, where the plan buys one label per
        task: agreement then shows how right the labels are. Default: as many as narrow the range of the pilot's
        accuracy; without a pilot with features 5 % of the tasks and at least 40.
    features : array, sparse matrix, data frame or list of texts, optional
        One row per task, as for `MBEM.fit`. Rows without labels bring the simulation closer to the size of the plan.
        Needs `annotations`.
    annotations : Annotations, optional
        The pilot's, matched with the rows of `features` as in `MBEM.fit`; `ann.align(tasks)` adds tasks without labels.
    redundancies : sequence of int, optional
        Labels per task to consider. Default: from 1 to beyond the best.
    measure : {"gini", "mutual"}
        How information is measured: as the drop of the Gini impurity of a task's class, or of its entropy.
    fits : int of at least 0
        Maximum number of simulated fits; fewer than 8: none.
    random_state : int
        Seed of all draws.
    progress : callable, optional
        Called from time to time with the number of fits that are done and the number of all fits.

    References
    ----------
    A. Khetan, Z. C. Lipton and A. Anandkumar, "Learning From Noisy Singly-labeled Data", ICLR 2018.
    V. S. Sheng, F. Provost and P. G. Ipeirotis, "Get Another Label? Improving Data Quality and Data Mining Using
    Multiple, Noisy Labelers", KDD 2008.

    Examples
    --------
    >>> from labelonce import planning
    >>> crowd = planning.assume(quality=0.3, n_classes=10)
    >>> planning.plan(crowd, budget=5000).redundancy
    1
    >>> found = planning.plan(crowd, budget=5000, task_price=10)
    >>> found.redundancy, found.row(1).loss.__round__(2)
    (5, 0.51)
    """
    check_choice(goal, "goal", GOALS)
    check_choice(measure, "measure", MEASURES)
    seed = check_int(random_state, "random_state", 0)
    pilot = read_pilot(workers, features, annotations, simulated=check_int(fits, "fits", 0) >= FEWEST_FITS)
    crowd = crowd_of(pilot.workers)
    price, notes = pilot.price(label_price)
    amount = _budget(budget, pilot.workers, price * (1 + check_number(fee, "fee", 0)), task_price)
    money = check_money(amount, price, task_price, pilot.tasks if tasks is None else tasks, fee)

    def buying(left: Money) -> Curve:
        return curve(crowd, left, redundancies, measure, seed, goal)

    bought = _spend(money, pilot, buying, test_tasks, overlap)
    simulation = None
    if pilot.features is not None:
        say = progress or (lambda *_: None)
        simulation = simulate_problem(pilot, crowd, bought.curve, fits=fits, seed=seed, progress=say)
        bought = replace(bought, curve=with_accuracy(bought.curve, simulation))
    notes += pilot.notes
    if tasks is None and pilot.tasks is not None:
        notes.append(f"The run has {pilot.tasks:,} tasks; say how many there are with {argument('tasks')}.")
    found = _written(bought, simulation, crowd, goal, pilot_doubts(pilot.workers), amount)
    return replace(found, label_price=price, guards=(*found.guards, *notes))


@dataclass(frozen=True)
class _Purchase:
    """What the money buys: the curve by redundancy, next to a test set and second labels; `money` is the rest."""

    curve: Curve
    money: Money
    test: TestSet | None
    second: int


def _spend(
    money: Money, pilot: Pilot, buying: Callable[[Money], Curve], test_tasks: int | None, overlap: int | None
) -> _Purchase:
    """Put a test set and second labels aside, and return what the rest buys."""
    whole = buying(money)
    test = put_aside(whole, money, test_tasks)
    money = money if test is None else replace(money, budget=money.budget - test.cost)
    found = whole if test is None else buying(money)
    second = _overlap(overlap, pilot, found, money)
    if second:
        money = replace(money, budget=money.budget - second * money.label_price)
        found = buying(money)
    return _Purchase(found, money, test, second)


def _written(
    bought: _Purchase, simulation: Simulation | None, crowd: Crowd, goal: str, doubts: PilotDoubts | None, budget: float
) -> Plan:
    """Choose the redundancy and return the plan with its reasons."""
    found, money, test = bought.curve, bought.money, bought.test
    best = found.best if simulation is None or goal == "labels" else clearly_better(simulation, found.best)
    row = found.row(best)
    second = min(bought.second, row.tasks) if row.redundancy == 1 else 0
    point = row.point_cost if goal == "labels" else model_point_cost(row, simulation, money)
    spent = row.cost + second * money.label_price + (0 if test is None else test.cost)
    said = reasons(found, row, money, crowd, goal, overlap=second, spent=spent, budget=budget, point_cost=point)
    if simulation is not None:
        said += simulated_reasons(found, row, simulation)
    bounds = {one.redundancy: one.bound for one in found.rows if one.bound is not None}
    return Plan(
        goal=goal,
        redundancy=row.redundancy,
        tasks=row.tasks,
        labels=row.labels + second,
        overlap=second,
        cost=spent,
        budget=budget,
        label_price=money.label_price,
        fee=money.fee,
        task_price=money.task_price,
        pool=money.pool,
        test=test,
        chosen=found.chosen,
        point_cost=point,
        rows=found.rows,
        likely=found.likely,
        label_accuracy=row.label_accuracy,
        accuracy=row.accuracy,
        bound_redundancy=min(bounds, key=lambda one: bounds[one]) if bounds else None,
        fits=0 if simulation is None else simulation.fits,
        agree=None if simulation is None else best == found.best,
        reasons=tuple(said),
        guards=tuple(guards(row, found, money, crowd, doubts, test)),
    )


def _overlap(asked: int | None, pilot: Pilot, found: Curve, money: Money) -> int:
    """Return how many tasks get a second label if the plan labels each task once, within the budget."""
    n = found.row(found.best).tasks
    if isinstance(pilot.workers, Aggregator):  # which has learned from tasks with several labels
        asked = asked or 0
    elif asked is None:
        shared = int((np.bincount(pilot.annotations.task) > 1).sum()) if pilot.annotations is not None else 0
        asked = wanted_overlap(pilot.workers, n, shared)
    affordable = int((money.budget - money.cost(1, 1)) / money.label_price)
    return min(check_int(asked, "overlap", 0), affordable) if found.best == 1 else 0


def _budget(budget: float | None, workers: Any, label_price: float, task_price: float) -> float:
    """Return the budget, by default in proportion to the pilot."""
    if budget is not None:
        return budget
    counts = getattr(workers, "_annotation_counts", None)
    if counts is None:
        raise ValueError("budget must be given where workers are not those of a pilot; got None.")
    return _TIMES_THE_PILOT * float(counts.sum() * label_price + len(workers.tasks_) * task_price)
