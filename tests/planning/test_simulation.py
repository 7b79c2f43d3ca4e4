"""Simulation of the user's own problem: what it measures, what it is bounded by, and when it overrules."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import labelonce as lo
from labelonce import planning, simulate
from labelonce._types import Estimate
from labelonce.planning import _advice, _simulation
from labelonce.planning._curve import check_money, curve
from labelonce.planning._simulation import Simulation, clearly_better, with_accuracy

N_ROWS, N_PILOT = 900, 150


@pytest.fixture(scope="module")
def problem() -> dict[str, Any]:
    """Return the rows, true labels and fit of a pilot: three classes that are easy to tell apart, unequal workers."""
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 3, N_ROWS)
    X = 3 * np.eye(3)[y_true] + rng.normal(size=(N_ROWS, 3))
    confusion = simulate.one_coin(np.linspace(0.5, 0.95, 8), 3)
    assignment = simulate.assign(N_PILOT, 8, 2, rng, replace=False)
    ann = simulate.annotate(y_true[:N_PILOT], confusion, assignment, rng)
    clf = lo.MBEM(lo.SoftmaxRegression(), rounds=2).fit(X[:N_PILOT], ann)
    return {"X": X, "y_true": y_true, "confusion": confusion, "ann": ann.align(np.arange(N_ROWS)), "clf": clf}


@pytest.fixture(scope="module")
def found(problem: dict[str, Any]) -> planning.Plan:
    rows = {"features": problem["X"], "annotations": problem["ann"]}
    return planning.plan(problem["clf"], budget=1500, task_price=2, tasks=600, fits=24, **rows)


def test_the_number_of_fits_is_bounded_and_announced(problem: dict[str, Any]) -> None:
    said: list[tuple[int, int]] = []
    rows = {"features": problem["X"], "annotations": problem["ann"]}
    found = planning.plan(
        problem["clf"], budget=300, redundancies=[1, 2], fits=10, progress=lambda *one: said.append(one), **rows
    )
    assert found.fits == 10
    assert said[0] == (0, 10)
    assert said[-1] == (10, 10)


def test_too_few_fits_or_rows_simulate_nothing_or_less_and_features_need_annotations(problem: dict[str, Any]) -> None:
    rows = {"features": problem["X"], "annotations": problem["ann"]}
    found = planning.plan(problem["clf"], budget=300, fits=7, **rows)
    assert (found.fits, found.accuracy, found.agree) == (0, None, None)
    ann = problem["ann"].select(np.arange(N_ROWS) < 200)
    rows = {"features": problem["X"][:200], "annotations": ann}
    found = planning.plan(problem["clf"], budget=1500, redundancies=[1, 2], fits=8, **rows)
    assert "The simulation used 11% of the tasks" in " ".join(found.reasons)
    with pytest.raises(ValueError, match="got no annotations"):
        planning.plan(problem["clf"], budget=300, features=problem["X"])


def test_the_expected_range_holds_what_the_plan_reaches(problem: dict[str, Any], found: planning.Plan) -> None:
    rng = np.random.default_rng(1)
    n, y_true = found.tasks, problem["y_true"]
    assignment = simulate.assign(n, 8, found.redundancy, rng, replace=False)
    ann = simulate.annotate(y_true[:n], problem["confusion"], assignment, rng)
    clf = lo.MBEM(lo.SoftmaxRegression(), rounds=2, folds=1).fit(problem["X"][:n], ann)
    assert found.accuracy is not None
    assert found.accuracy.low < clf.score(problem["X"][n:], y_true[n:]) < found.accuracy.high
    assert found.accuracy.high - found.accuracy.low < 0.3


def test_information_and_simulation_agree_and_a_cheaper_number_as_good_is_named(found: planning.Plan) -> None:
    assert found.agree
    assert any("Mean accuracy of the simulated fits" in sentence for sentence in found.reasons)
    assert sum(row.simulated is not None for row in found.rows) == 4
    right = {1: 0.86, 2: 0.878, 3: 0.88}
    rows = [replace(found.row(r), cost=100.0 * r, accuracy=Estimate(p, 0.5, 1.0)) for r, p in right.items()]
    curve: Any = SimpleNamespace(rows=rows)
    (sentence,) = _advice._cheaper(curve, rows[2])
    assert "2 per task, for 200 instead of 300, would give as good a model (87.8%" in sentence
    assert _advice._cheaper(curve, rows[1]) == []


def test_the_level_is_the_accuracy_of_the_pilot_on_new_tasks(problem: dict[str, Any]) -> None:
    clf, X = problem["clf"], problem["X"]
    simulated = _simulation._Problem(X, clf.predict_proba(X), clf, planning.assume(skill=0.8))
    level = _simulation._level(simulated, problem["ann"], np.random.default_rng(0))
    true = clf.score(X[N_PILOT:], problem["y_true"][N_PILOT:])
    assert abs(level[0] - true) < 2 * level[1]
    assert level[1] < 0.06


def simulated(accuracy: list[list[list[float]]]) -> Simulation:
    pilot = np.full((len(accuracy), 2), 0.6)
    return Simulation((1, 2, 4), np.array([100.0, 90.0, 80.0]), np.array(accuracy), pilot, 0.6, 0.05, 1.0, 8)


def test_the_simulation_overrules_only_where_every_crowd_is_clearly_better() -> None:
    noisy = simulated([[[0.70, 0.80, 0.70], [0.70, 0.69, 0.70]]])
    clear = simulated([[[0.70, 0.80, 0.72], [0.70, 0.74, 0.73]]])
    small = simulated([[[0.700, 0.705, 0.7], [0.700, 0.701, 0.7]]])
    assert [clearly_better(one, 1) for one in (noisy, clear, small)] == [1, 2, 1]


def test_the_expected_accuracy_rises_with_the_worth() -> None:
    money = check_money(1000, 1, 3, None)
    found = simulated([[[0.80, 0.78, 0.75], [0.70, 0.69, 0.68]]])
    rows = with_accuracy(curve(planning.assume(skill=0.8), money, None, "gini", 0), found).rows
    by_worth = sorted(rows, key=lambda row: row.worth)
    values = [row.accuracy.value for row in by_worth if row.accuracy is not None]
    assert values == sorted(values)
    assert values[0] < values[-1]
