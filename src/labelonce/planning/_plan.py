"""`plan`: how many labels per task, and how many tasks, a budget should buy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from labelonce._types import Estimate
from labelonce._validate import check_choice, check_int
from labelonce.data import Annotations
from labelonce.planning._advice import guards, pilot_doubts, reasons, simulated_reasons, smallest_bound
from labelonce.planning._crowd import Crowd, crowd_of
from labelonce.planning._curve import MEASURES, Curve, Money, Row, check_money, curve
from labelonce.planning._picture import write_picture
from labelonce.planning._pilot import Pilot, read_pilot
from labelonce.planning._simulation import (
    FEWEST_FITS,
    Progress,
    Simulation,
    clearly_better,
    simulate_problem,
    with_accuracy,
)

_TIMES_THE_PILOT = 10  # the budget where none is given: a pilot is a tenth


@dataclass(frozen=True)
class Plan:
    """How to spend a budget on labels, and why.

    Attributes
    ----------
    redundancy, tasks, labels : int
        Best number of labels per task, the number of tasks, and labels in all.
    cost, budget, label_price, task_price : float
    pool : int or None
        Number of tasks there are.
    rows : tuple of Row
        The whole curve, one row per redundancy.
    likely : (low, high)
        The best redundancy for 90 % of the crowds that may be there, as far as the pilot knows its workers.
    label_accuracy : float
        Expected share of right labels after aggregation, the workers being known and without a model's help.
    accuracy : Estimate or None
        Expected accuracy of the model on new tasks with its 90 % range; None without a simulation.
    bound_redundancy : int or None
        The redundancy with the smallest bound by Theorem 4.1; None for more than two classes. A worst case with loose
        constants: for comparison only.
    fits : int
        How many fits were simulated.
    agree : bool or None
        Whether information and simulation agree, as far as the simulation can tell; None without one.
    reasons, guards : tuple of str
        Why, and what to watch out for, one sentence each.

    Examples
    --------
    >>> from labelonce import planning
    >>> found = planning.plan(planning.assume(skill=0.8), budget=3000, task_price=5)
    >>> found.redundancy, found.tasks
    (3, 375)
    >>> print(found.reasons[0])
    Buy 1,125 labels, 3 for each of 375 tasks: that costs 3,000 of 3,000.
    """

    redundancy: int
    tasks: int
    labels: int
    cost: float
    budget: float
    label_price: float
    task_price: float
    pool: int | None
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
    label_price: float = 1.0,
    task_price: float = 0.0,
    tasks: int | None = None,
    features: Any = None,
    annotations: Annotations | None = None,
    redundancies: Sequence[int] | None = None,
    measure: str = "gini",
    fits: int = 24,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Plan:
    """Return how many labels per task a budget should buy, how many tasks, and what to expect.

    For every redundancy r the budget buys n tasks, at most those there are; the labels of a task tell a share I of the
    truth; and n I, the number of perfectly labelled tasks that would tell as much, is what the best redundancy has
    most of. I is computed for the workers as they are believed to be, averaged over what is not known of them.

    With `features` the problem itself is simulated: crowds like the pilot's label rows of the features, whose true
    labels are the picks of the pilot's model, and again draws from its predictions; MBEM is fitted at up to four
    redundancies, and its accuracy on other rows is what to expect. Another redundancy than that of the most information
    is chosen only if it is better in every simulated crowd and by a point on average.

    Parameters
    ----------
    workers : fitted MBEM, aggregator or worker model, run folder, or Crowd
        Of a pilot, or what you expect: `assume`. A run folder has its features with it.
    budget : float
        What can be spent. Default: ten times what the pilot cost.
    label_price : float above 0
        Price of one label.
    task_price : float of at least 0
        Price of one more task, without its labels: collecting, storing, showing it.
    tasks : int, optional
        Number of tasks there are. Default: as many as wanted.
    features : array, sparse matrix, data frame or list of texts, optional
        One row per task, as for `MBEM.fit`, those without labels included: the more, the closer the simulation is to
        the size of the plan. Needs `annotations`.
    annotations : Annotations, optional
        The pilot's, matched with the rows of `features` as in `MBEM.fit`; `ann.align(tasks)` adds tasks without labels.
    redundancies : sequence of int, optional
        Labels per task to consider. Default: from 1 to beyond the best.
    measure : {"gini", "mutual"}
        What "tell" means: the drop of the Gini impurity of a task's class, or of its entropy.
    fits : int of at least 0
        How many fits are simulated at most; fewer than 8: none.
    random_state : int
        Seed of all draws.
    progress : callable, optional
        Called from time to time with the number of fits that are done and how many there will be.

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
    pilot = read_pilot(workers, features, annotations, simulated=check_int(fits, "fits", 0) >= FEWEST_FITS)
    crowd = crowd_of(pilot.workers)
    money = check_money(_budget(budget, pilot.workers, label_price, task_price), label_price, task_price, tasks)
    check_choice(measure, "measure", MEASURES)
    seed = check_int(random_state, "random_state", 0)
    found = curve(crowd, money, redundancies, measure, seed)
    simulation = None
    if pilot.features is not None:
        say = progress or (lambda *_: None)
        simulation = simulate_problem(pilot, crowd, found, fits=fits, seed=seed, progress=say)
        found = with_accuracy(found, simulation)
    return _plan(found, simulation, money, crowd, pilot)


def _budget(budget: float | None, workers: Any, label_price: float, task_price: float) -> float:
    """Return the budget, by default in proportion to the pilot."""
    if budget is not None:
        return budget
    counts = getattr(workers, "_annotation_counts", None)
    if counts is None:
        raise ValueError("budget must be given where workers are not those of a pilot; got None.")
    return _TIMES_THE_PILOT * float(counts.sum() * label_price + len(workers.tasks_) * task_price)


def _plan(found: Curve, simulation: Simulation | None, money: Money, crowd: Crowd, pilot: Pilot) -> Plan:
    best = found.best if simulation is None else clearly_better(simulation, found.best)
    row = next(row for row in found.rows if row.redundancy == best)
    said = reasons(found, row, money, crowd)
    if simulation is not None:
        said += simulated_reasons(found, row, simulation)
    return Plan(
        redundancy=row.redundancy,
        tasks=row.tasks,
        labels=row.labels,
        cost=row.cost,
        **vars(money),
        rows=found.rows,
        likely=found.likely,
        label_accuracy=row.label_accuracy,
        accuracy=row.accuracy,
        bound_redundancy=smallest_bound(found),
        fits=0 if simulation is None else simulation.fits,
        agree=None if simulation is None else best == found.best,
        reasons=tuple(said),
        guards=(*guards(row, found, money, crowd, pilot_doubts(pilot.workers)), *pilot.notes),
    )
