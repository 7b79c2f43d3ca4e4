"""What a plan says in words: why, and what to watch out for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelonce.learning import MBEM
from labelonce.planning._crowd import Crowd
from labelonce.planning._curve import Curve, Money, Row
from labelonce.planning._simulation import Simulation

ENOUGH_LABELS = 10  # of a worker for every row of the confusion matrix that is estimated
_NEAR_CHANCE = 0.05  # agreement of a model with labels it did not see, above chance
_GOOD_LABEL = 0.95  # accuracy that the labels of a test set should have
_SHARE_TWICE, _FEWEST_TWICE = 0.05, 40  # share and fewest of the tasks that a second worker labels
_TEST_SHARE, _FEWEST_TESTED, _MOST_TESTED = 0.1, 50, 300  # of the budget; tasks of a test set


def reasons(curve: Curve, row: Row, money: Money, crowd: Crowd) -> list[str]:
    """Return why this redundancy, one sentence each."""
    said = [
        f"Buy {row.labels:,} labels, {row.redundancy} for each of {row.tasks:,} tasks: that costs {row.cost:,.6g} of "
        f"{money.budget:,.6g}.",
        f"They tell as much as {row.worth:,.0f} perfectly labelled tasks: the labels of one task tell "
        f"{row.information:.0%} of the truth, by workers who are right with {crowd.mean_skill:.0%} of their labels.",
        _why(row, money),
        *_neighbours(curve, row),
    ]
    if curve.likely[0] < curve.likely[1]:
        low, high = curve.likely
        said.append(f"For the crowds that {crowd.pilot_labels:,} labels allow for, the best is {low} to {high}.")
    preferred = smallest_bound(curve)
    if preferred is not None:
        said.append(
            f"The bound of the paper's Theorem 4.1 is smallest at {preferred}: a worst case with loose constants, "
            "shown beside the plan and not used for it."
        )
    return said


def smallest_bound(curve: Curve) -> int | None:
    """Return the redundancy with the smallest bound, None where there is no bound."""
    bounds = {row.redundancy: row.bound for row in curve.rows if row.bound is not None}
    return min(bounds, key=lambda one: bounds[one]) if bounds else None


def simulated_reasons(curve: Curve, row: Row, simulation: Simulation) -> list[str]:
    """Return what the simulation says, one sentence each."""
    said = []
    if row.accuracy is not None:
        one = row.accuracy
        said.append(
            f"A model should be right on {one.value:.0%} of new tasks ({one.low:.0%} to {one.high:.0%}), "
            f"by {simulation.fits} simulated fits; the pilot's is right on {simulation.level:.0%}, give or take "
            f"{simulation.level_error:.0%}."
        )
    shown = ", ".join(f"{one.simulated:.1%} with {one.redundancy}" for one in curve.rows if one.simulated is not None)
    if row.redundancy == curve.best:
        said.append(f"The simulation agrees, as far as it can tell: mean accuracy {shown} labels per task.")
    else:
        said.append(
            f"By information alone {curve.best} labels per task would be best; the simulated fits were clearly better "
            f"with {row.redundancy}: mean accuracy {shown} labels per task."
        )
    if simulation.scale < 1:
        said.append(
            f"The simulation had {simulation.scale:.0%} of the tasks, since there are no more rows of features; the "
            "accuracy is extrapolated from there."
        )
    return said


def _why(row: Row, money: Money) -> str:
    if money.pool is not None and row.tasks >= money.pool:
        return f"All {money.pool:,} tasks are labelled, so the rest of the budget buys more labels of each."
    if row.redundancy == 1 and money.task_price == 0:
        return "Tasks cost nothing, and one label of a new task tells more than one more of a task that has some."
    if row.redundancy == 1:
        return (
            f"A task costs as much as {money.task_in_labels:.3g} labels: too little to make up for the tasks that a "
            "second label for each would take away."
        )
    return (
        f"A task costs as much as {money.task_in_labels:.3g} labels, so it pays to label each {row.redundancy} times."
    )


def _neighbours(curve: Curve, row: Row) -> list[str]:
    """Return what the redundancies beside the best lose."""
    place = [one.redundancy for one in curve.rows].index(row.redundancy)
    beside = [curve.rows[i] for i in (place - 1, place + 1) if 0 <= i < len(curve.rows)]
    lost = [f"{1 - one.worth / row.worth:.1%} with {one.redundancy}" for one in beside if one.worth <= row.worth]
    return [f"The neighbours lose a share of that worth: {', '.join(lost)} labels per task."] if lost else []


@dataclass(frozen=True)
class PilotDoubts:
    """What makes a pilot doubtful.

    Attributes
    ----------
    agreement, chance : float
        Share of the labels that the pilot's model agrees with, and what it would be by chance.
    """

    agreement: float
    chance: float


def pilot_doubts(workers: Any) -> PilotDoubts | None:
    """Return the doubts about the fit of a pilot; None where there is no model."""
    if not isinstance(workers, MBEM):
        return None
    picked = np.bincount(workers.predictions_.argmax(axis=1), minlength=len(workers.classes_)) / len(workers.tasks_)
    load = workers._annotation_counts / workers._annotation_counts.sum()
    given = workers.prior_ @ np.tensordot(load, workers.confusion_, axes=1)
    return PilotDoubts(workers.history_[-1]["agreement"], float(picked @ given))


def guards(row: Row, curve: Curve, money: Money, crowd: Crowd, pilot: PilotDoubts | None) -> list[str]:
    """Return what to watch out for, one sentence each."""
    said = []
    if pilot is not None and pilot.agreement < pilot.chance + _NEAR_CHANCE:
        said.append(
            f"The pilot's model agrees with {pilot.agreement:.1%} of the labels where chance gives {pilot.chance:.1%}: "
            "it cannot judge workers yet, so buy 2 or 3 labels each for a part of the tasks first."
        )
    n_workers = crowd.n_workers
    if n_workers is not None and 0 < crowd.pilot_labels < ENOUGH_LABELS * n_workers:
        said.append(
            f"The {n_workers:,} workers gave {crowd.pilot_labels / n_workers:.1f} labels each: too few to know them "
            f"(about {ENOUGH_LABELS} are needed), so take this plan as a first guess and plan again after a part of it."
        )
    if n_workers is not None and row.labels < ENOUGH_LABELS * crowd.n_classes * n_workers:
        said.append(
            f"With {row.labels / n_workers:.0f} labels per worker there are fewer than {ENOUGH_LABELS} for each of the "
            f"{crowd.n_classes} classes: estimate one skill per worker (workers.OneCoin), or work with fewer workers."
        )
    if row.redundancy > 1:
        said.append(
            "Hard tasks repeat their mistakes: where several workers err together, more labels per task bring less "
            "than the curve says."
        )
    if row.redundancy == 1:
        again = max(_FEWEST_TWICE, round(_SHARE_TWICE * row.tasks))
        said.append(
            f"Let second workers label {again:,} random tasks, for {again * money.label_price:,.6g} on top: how "
            "often they agree says how right the labels are, which one label per task leaves open."
        )
    return [*said, _test_set(curve, money)]


def _test_set(curve: Curve, money: Money) -> str:
    """Return how to keep a test set."""
    clean = [row for row in curve.rows if row.label_accuracy >= _GOOD_LABEL] or [curve.rows[-1]]
    redundancy, right = clean[0].redundancy, clean[0].label_accuracy
    each = money.cost(1, redundancy)
    n = int(min(max(_TEST_SHARE * money.budget / each, _FEWEST_TESTED), _MOST_TESTED))
    return (
        f"Keep a test set that is labelled more often: {n} tasks with {redundancy} labels each, about {right:.0%} of "
        f"them right, cost {n * each:,.6g} on top."
    )
