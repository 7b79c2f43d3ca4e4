"""The sentences of a plan: what to buy, why, and what to watch out for."""

from typing import Any, NamedTuple

import numpy as np

from labelonce._messages import argument
from labelonce.learning import MBEM
from labelonce.planning._crowd import Crowd
from labelonce.planning._curve import Curve, Money, Row
from labelonce.planning._simulation import Simulation
from labelonce.planning._test_set import TestSet, offer

ENOUGH_LABELS = 10  # of a worker for every row of the confusion matrix that is estimated
_MUCH_CHEAPER = 0.8  # cost, as a share of the plan's, from which another plan is worth a sentence: judgement
_SAME_MODEL = 0.005  # accuracy of a model by which nobody would pay more: judgement
_NEAR_CHANCE = 0.05  # agreement of a model with labels it did not see, above chance
_SECOND = (
    "How often the second labels agree with the first shows how right the labels are, which one label per task cannot "
    "show. They cost {cost:,.6g}."
)
_FOR = {"model": "a model", "labels": "the labels themselves"}


def reasons(
    curve: Curve,
    row: Row,
    money: Money,
    crowd: Crowd,
    goal: str,
    *,
    overlap: int,
    spent: float,
    budget: float,
    point_cost: Any,
) -> list[str]:
    """Return what to buy and why, one sentence each."""
    fee = f", the fee of {money.fee:.0%} included" if money.fee else ""
    second = f", and {overlap:,} second labels of random ones" if overlap else ""
    said = [
        f"For {_FOR[goal]}: buy {_bought(row)}{second}. This costs {spent:,.6g} of {budget:,.6g}{fee}.",
        f"These labels carry as much information as {row.worth:,.0f} true labels: {row.information:.0%} per task. "
        f"Workers are right with {crowd.mean_skill:.0%} of their labels.",
        _why(row, money, goal),
        *_neighbours(curve, row, goal),
        *([_SECOND.format(cost=overlap * money.label_price)] if overlap else []),
    ]
    if point_cost is not None:
        what = "right labels" if goal == "labels" else "accuracy on new tasks"
        said.append(f"One more point of {what} would cost about {point_cost:,.3g}.")
    said.append(_other_goal(curve, goal))
    if curve.likely[0] < curve.likely[1]:
        low, high = curve.likely
        said.append(f"The pilot's {crowd.pilot_labels:,} labels leave a range: the best number is {low} to {high}.")
    return said


def _bought(row: Row) -> str:
    return f"{row.labels:,} labels, {row.redundancy} for each of {row.tasks:,} tasks"


def _other_goal(curve: Curve, goal: str) -> str:
    other = next(one for one in curve.chosen if one != goal)
    row = curve.row(curve.chosen[other])
    right = f"{row.label_accuracy:.0%} of the labels would be right, by the labels alone"
    return f"For {_FOR[other]} ({argument('goal', other)}): buy {_bought(row)}, for {row.cost:,.6g}; {right}."


def simulated_reasons(curve: Curve, row: Row, simulation: Simulation) -> list[str]:
    """Return what the simulation says, one sentence each."""
    said = []
    if row.accuracy is not None:
        one = row.accuracy
        said.append(
            f"A model trained on them should be right on {one.value:.0%} of new tasks ({one.low:.0%} to "
            f"{one.high:.0%}), by {simulation.fits} simulated fits. The pilot's model is right on "
            f"{simulation.level:.0%} (standard error {simulation.level_error:.0%})."
        )
    said += _cheaper(curve, row)
    shown = ", ".join(f"{one.simulated:.1%} with {one.redundancy}" for one in curve.rows if one.simulated is not None)
    said.append(f"Mean accuracy of the simulated fits, by labels per task: {shown}.")
    if row.redundancy not in curve.chosen.values():
        said.append(
            f"Information alone would choose {curve.best} labels per task, but the simulated fits were clearly better "
            f"with {row.redundancy}."
        )
    if simulation.scale < 1:
        said.append(
            f"The simulation used {simulation.scale:.0%} of the tasks, all that have features; the accuracy is "
            "extrapolated from there."
        )
    return said


def _cheaper(curve: Curve, row: Row) -> list[str]:
    """Return a redundancy that costs less and promises nearly the same model."""
    if row.accuracy is None:
        return []
    least = row.accuracy.value - _SAME_MODEL
    for one in (cheaper for cheaper in curve.rows if cheaper.cost < _MUCH_CHEAPER * row.cost):
        if one.accuracy is not None and one.accuracy.value > least:
            return [
                f"By these fits {one.redundancy} per task, for {one.cost:,.6g} instead of {row.cost:,.6g}, would give "
                f"as good a model ({one.accuracy.value:.1%}, not {row.accuracy.value:.1%}); more labels per task make "
                "the labels themselves right."
            ]
    return []


def _why(row: Row, money: Money, goal: str) -> str:
    if goal == "labels":
        return f"{row.label_accuracy:.0%} of the labels will be right. One more for every task adds less than a point."
    if money.pool is not None and row.tasks >= money.pool:
        return f"All {money.pool:,} tasks are labelled. One more label for each would add less than 1 % of information."
    if row.redundancy == 1 and money.task_price == 0:
        return "Tasks cost nothing, and a first label carries more information than a second one."
    price = f"A task costs as much as {money.task_price / money.label_price:.3g} labels"
    if row.redundancy == 1:
        return f"{price}, so more tasks are better than a second label for each."
    return f"{price}, so it pays to label each {row.redundancy} times."


def _neighbours(curve: Curve, row: Row, goal: str) -> list[str]:
    """Return what the redundancies next to the best one lose."""
    if goal == "labels":
        return []
    place = [one.redundancy for one in curve.rows].index(row.redundancy)
    near = [curve.rows[i] for i in (place - 1, place + 1) if 0 <= i < len(curve.rows)]
    lost = [f"{1 - one.worth / row.worth:.1%} with {one.redundancy}" for one in near if one.worth <= row.worth]
    return [f"Other numbers of labels per task lose information: {', '.join(lost)}."] if lost else []


class PilotDoubts(NamedTuple):
    """What makes a pilot doubtful."""

    agreement: float  # Share of the labels that the pilot's model agrees with
    chance: float  # What that share would be by chance


def pilot_doubts(workers: Any) -> PilotDoubts | None:
    """Return the doubts about the fit of a pilot; None where there is no model."""
    if not isinstance(workers, MBEM):
        return None
    shares = np.bincount(workers.predictions_.argmax(axis=1), minlength=len(workers.classes_)) / len(workers.tasks_)
    load = workers._annotation_counts / workers._annotation_counts.sum()
    given = workers.prior_ @ np.tensordot(load, workers.confusion_, axes=1)
    return PilotDoubts(workers.history_[-1]["agreement"], float(shares @ given))


def guards(
    row: Row, curve: Curve, money: Money, crowd: Crowd, pilot: PilotDoubts | None, test: TestSet | None
) -> list[str]:
    """Return what to watch out for, one sentence each."""
    said = []
    if pilot is not None and pilot.agreement < pilot.chance + _NEAR_CHANCE:
        said.append(
            f"The pilot's model agrees with {pilot.agreement:.1%} of the labels where chance gives {pilot.chance:.1%}: "
            "it cannot judge workers yet. Buy 2 or 3 labels each for a part of the tasks first."
        )
    n_workers = crowd.n_workers
    if n_workers is not None and 0 < crowd.pilot_labels < ENOUGH_LABELS * n_workers:
        said.append(
            f"The {n_workers:,} workers gave {crowd.pilot_labels / n_workers:.1f} labels each, and about "
            f"{ENOUGH_LABELS} are needed to know a worker: take this plan as a first guess, buy a part of it, and plan "
            "again."
        )
    if n_workers is not None and row.labels < ENOUGH_LABELS * crowd.n_classes * n_workers:
        said.append(
            f"Each worker will give {row.labels / n_workers:.0f} labels, fewer than {ENOUGH_LABELS} for each of the "
            f"{crowd.n_classes} classes: estimate one skill per worker (workers.OneCoin), or employ fewer workers."
        )
    if row.redundancy > 1:
        said.append(
            "On hard tasks several workers make the same mistake: there more labels per task bring less than the plan "
            "says."
        )
    if test is None:
        said.append(f"The budget has no test set. One costs {offer(curve, money).cost:,.6g}: {offer(curve, money)}")
    else:
        said.append(f"The budget includes a test set: {test}")
    return said
