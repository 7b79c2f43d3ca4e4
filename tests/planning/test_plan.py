"""Plans: the table of best redundancies, laws of prices, recovery of a crowd from a pilot."""

import json
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import labelonce as lo
from labelonce import planning, simulate, theory

PRICES = (0, 0.1, 0.5, 1, 2, 5, 10, 50)
BEST = {
    0.05: (1, 1, 1, 1, 1, 1, 3, 3),
    0.10: (1, 1, 1, 1, 1, 3, 3, 5),
    0.20: (1, 1, 1, 1, 2, 3, 5, 9),
    0.30: (1, 1, 2, 3, 4, 6, 9, 17),
    0.40: (1, 2, 4, 5, 8, 13, 18, 40),
    0.45: (1, 3, 7, 10, 15, 24, 35, 82),
}
CROWDS = [
    planning.assume(skill=0.7),
    planning.assume(quality=0.2, n_classes=10),
    planning.assume(skills=[0.9, 0.6, 0.4], n_classes=4),
    planning.assume(confusion=[[0.9, 0.1], [0.4, 0.6]], prior=[0.7, 0.3]),
]


@pytest.mark.parametrize("error_rate", BEST)
def test_best_redundancy_of_binary_symmetric_workers_by_task_price(error_rate: float) -> None:
    crowd = planning.assume(skill=1 - error_rate)
    found = [planning.plan(crowd, budget=1e6, task_price=price).redundancy for price in PRICES]
    assert found == list(BEST[error_rate])


@pytest.mark.parametrize("crowd", CROWDS)
@pytest.mark.parametrize("measure", ["gini", "mutual"])
def test_where_tasks_are_free_one_label_is_best(crowd: planning.Crowd, measure: str) -> None:
    assert planning.plan(crowd, budget=1e4, measure=measure).redundancy == 1


@pytest.mark.parametrize("crowd", CROWDS)
def test_a_higher_task_price_never_lowers_the_redundancy(crowd: planning.Crowd) -> None:
    found = [planning.plan(crowd, budget=1e5, task_price=price).redundancy for price in (0, 1, 3, 10, 30)]
    assert found == sorted(found)
    assert found[-1] > found[0]


@pytest.mark.parametrize("crowd", CROWDS)
def test_doubling_the_prices_and_the_budget_changes_nothing(crowd: planning.Crowd) -> None:
    one = planning.plan(crowd, budget=3000, label_price=1, task_price=4, tasks=400)
    two = planning.plan(crowd, budget=6000, label_price=2, task_price=8, tasks=400)
    assert (one.redundancy, one.tasks, one.likely) == (two.redundancy, two.tasks, two.likely)
    assert [row.worth for row in one.rows] == [row.worth for row in two.rows]


def test_permuted_workers_change_nothing() -> None:
    rng = np.random.default_rng(0)
    confusion = simulate.dirichlet(12, 3, rng)
    y_true = rng.integers(0, 3, 200)
    worker = simulate.assign(200, 12, 2, rng, replace=False)
    plans = []
    for order in (np.arange(12), rng.permutation(12)):
        ann = simulate.annotate(y_true, confusion[order], np.argsort(order)[worker], 0)
        model = lo.workers.Known(confusion[order]).fit(ann, y_true)
        plans.append(planning.plan(model, budget=500, task_price=3))
    assert plans[0] == plans[1]


def test_the_same_seed_gives_the_same_plan_and_another_one_another_curve() -> None:
    crowd = planning.assume(quality=0.3, n_classes=20)  # too many outcomes for exact sums
    first, again, other = (planning.plan(crowd, budget=100, random_state=seed) for seed in (0, 0, 1))
    assert first == again
    assert first.rows != other.rows


def test_fee_and_test_set_are_part_of_the_budget_and_a_small_pool_is_labelled_whole() -> None:
    found = planning.plan(planning.assume(skill=0.7), budget=1000, tasks=200)
    assert (found.redundancy, found.tasks, found.cost) == (5, 200, 1000)
    assert "All 200 tasks" in " ".join(found.reasons)
    crowd = planning.assume(skill=0.8)
    found = planning.plan(crowd, budget=12_000, label_price=1, fee=0.2, test_tasks=100)
    assert found.test is not None
    assert found.test.tasks == 100
    assert found.test.cost == pytest.approx(100 * found.test.redundancy * 1.2)
    assert found.test.label_accuracy >= 0.95
    assert found.cost == pytest.approx(1.2 * found.labels + found.test.cost)
    assert 12_000 - 1.2 < found.cost <= 12_000


def test_labels_that_bring_less_than_one_percent_are_not_bought() -> None:
    crowd = planning.assume(skills=[0.9, 0.9, 0.9, 0.5], n_classes=4)
    found = planning.plan(crowd, budget=2000, label_price=0.05, tasks=1500, test_tasks=0)
    most = max(row.worth for row in found.rows)
    row = found.row(found.redundancy)
    assert found.tasks == 1500
    assert row.worth > 0.95 * most
    assert row.cost < 0.4 * 2000
    for other in found.rows:
        if other.redundancy > row.redundancy and other.tasks == 1500:
            assert (other.worth - row.worth) / (other.redundancy - row.redundancy) < 0.01 * most


def test_right_labels_need_more_labels_per_task_than_a_model() -> None:
    crowd = planning.assume(skill=0.8)
    model, labels = (planning.plan(crowd, budget=3000, goal=goal, test_tasks=0) for goal in ("model", "labels"))
    assert (model.redundancy, labels.redundancy) == (1, 7)
    assert model.chosen == labels.chosen == {"model": 1, "labels": 7}
    assert labels.label_accuracy > 0.95
    assert 'For a model (goal="model"): buy 3,000 labels' in " ".join(labels.reasons)
    seven, nine = labels.row(7), labels.row(9)
    point = 2 * seven.tasks / (100 * (nine.label_accuracy - seven.label_accuracy))
    assert seven.point_cost == labels.point_cost == pytest.approx(point, rel=0.01)


def test_where_tasks_are_labelled_once_the_budget_has_second_labels() -> None:
    crowd = planning.assume(skill=0.8)
    found, none = (planning.plan(crowd, budget=2000, fee=0.2, test_tasks=0, overlap=one) for one in (None, 0))
    assert (found.redundancy, found.overlap, none.overlap) == (1, round(0.05 * none.tasks), 0)
    assert found.labels == found.tasks + found.overlap
    assert found.cost == pytest.approx(1.2 * found.labels)
    assert 2000 - 2 * 1.2 < found.cost <= 2000
    assert f"{found.overlap} second labels of random ones" in found.reasons[0]
    assert planning.plan(crowd, budget=2000, task_price=10).overlap == 0  # several labels per task


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")
def test_the_second_labels_of_a_plan_are_those_that_the_pilot_asks_for() -> None:
    X, ann = pilot(simulate.one_coin([0.9] * 6, 3), n_tasks=240, redundancy=1, seed=1, distance=1.2)
    fitted = lo.MBEM(lo.SoftmaxRegression(), rounds=2, random_state=0).fit(X, ann)
    narrowing = fitted.verdict_.narrowing()
    assert narrowing is not None
    assert planning.plan(fitted, budget=2000, test_tasks=0).overlap == narrowing.second


def test_test_sets_guessers_features_and_rows_that_cannot_be_are_errors() -> None:
    with pytest.raises(ValueError, match="test_tasks must leave money for training; got 100"):
        planning.plan(planning.assume(skill=0.8), budget=300, test_tasks=100)
    with pytest.raises(ValueError, match=r"got a mean skill of 0\.5 for 2 classes"):
        planning.plan(planning.assume(skill=0.5), budget=100)
    with pytest.raises(TypeError, match="got Crowd"):
        planning.plan(planning.assume(skill=0.8), budget=100, features=np.ones((5, 2)))
    with pytest.raises(ValueError, match="got 7"):
        planning.plan(planning.assume(skill=0.8), budget=100, redundancies=[1, 2]).row(7)


@pytest.mark.parametrize("error_rate", [0.1, 0.2, 0.3])
def test_the_papers_bound_next_to_the_plan_is_that_of_the_theory(error_rate: float) -> None:
    found = planning.plan(planning.assume(skill=1 - error_rate), budget=1e6, redundancies=range(1, 51))
    assert found.bound_redundancy == theory.best_redundancy(error_rate)
    factors = np.array([theory._bound_factor(error_rate, row.redundancy) for row in found.rows])
    assert_allclose(np.array([row.bound for row in found.rows], dtype=float), factors / factors.min(), rtol=1e-6)
    assert found.redundancy == 1


def test_rows_say_what_the_budget_buys_and_no_bound_for_more_than_two_classes() -> None:
    found = planning.plan(planning.assume(skill=0.7, n_classes=3), budget=100)
    assert found.bound_redundancy is None
    assert {row.bound for row in found.rows} == {None}
    found = planning.plan(planning.assume(skill=0.8), budget=1000, label_price=0.5, task_price=2)
    row = found.row(2)
    assert (row.tasks, row.labels, row.cost) == (333, 666, 999)
    assert found.row(found.redundancy).loss == 0
    assert min(row.loss for row in found.rows) == 0


def pilot(
    confusion: Any, *, n_tasks: int, redundancy: int, seed: int, distance: float = 2
) -> tuple[Any, lo.Annotations]:
    rng = np.random.default_rng(seed)
    y_true = rng.integers(0, confusion.shape[1], n_tasks)
    X = np.eye(confusion.shape[1])[y_true] * distance + rng.normal(size=(n_tasks, confusion.shape[1]))
    assignment = simulate.assign(n_tasks, len(confusion), redundancy, rng, replace=False)
    return X, simulate.annotate(y_true, confusion, assignment, rng)


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")  # a pilot leaves a wide range
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_plan_of_a_fitted_pilot_is_near_that_of_the_true_crowd(n_classes: int, seed: int) -> None:
    confusion = simulate.one_coin(np.linspace(0.4, 0.95, 12), n_classes)
    true = lo.workers.Known(confusion).fit_counts(np.ones_like(confusion))
    X, ann = pilot(confusion, n_tasks=300, redundancy=2, seed=seed)
    fitted = [lo.MBEM(lo.SoftmaxRegression(), rounds=2).fit(X, ann), lo.DawidSkene().fit(ann)]
    best = planning.plan(true, budget=5000, task_price=5)
    for model in fitted:
        found = planning.plan(model, budget=5000, task_price=5)
        assert best.row(found.redundancy).loss < 0.03
        assert found.likely[0] <= found.redundancy <= found.likely[1]


def test_a_pilot_with_groups_of_classes_can_be_planned_from() -> None:
    X, coded = pilot(simulate.one_coin(np.linspace(0.4, 0.95, 8), 60), n_tasks=400, redundancy=2, seed=0, distance=8)
    names = np.array([f"group {code // 10}/class {code}" for code in range(60)])
    ann = lo.Annotations(coded.task, coded.worker, coded.label, coded.tasks, coded.workers, names)
    fitted = lo.MBEM(lo.SoftmaxRegression(), rounds=2, worker_model=lo.workers.Grouped("taxonomy")).fit(X, ann)
    found = planning.plan(fitted, features=X, annotations=ann, budget=2000, fits=8)
    assert found.accuracy is not None
    assert 0.5 < found.accuracy.value <= 1


def test_the_budget_of_a_pilot_is_ten_times_its_cost_and_redundancy_at_most_its_workers() -> None:
    _, ann = pilot(simulate.one_coin([0.8] * 5, 2), n_tasks=50, redundancy=2, seed=0)
    found = planning.plan(lo.DawidSkene().fit(ann), label_price=2, task_price=1)
    assert found.budget == 10 * (100 * 2 + 50)
    _, ann = pilot(simulate.one_coin([0.6] * 4, 2), n_tasks=100, redundancy=2, seed=0)
    found = planning.plan(lo.DawidSkene().fit(ann), task_price=100)
    assert [row.redundancy for row in found.rows] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({"budget": None}, "got None"),
        ({"budget": 0.5}, "got 0.5"),
        ({"budget": 10, "label_price": 0}, "got 0"),
        ({"budget": 10, "label_price": -1}, "got -1"),
        ({"budget": 10, "task_price": -2}, "got -2"),
        ({"budget": 10, "tasks": 0}, "got 0"),
        ({"budget": 10, "measure": "entropy"}, "got 'entropy'"),
        ({"budget": 10, "redundancies": [0, 1]}, "got 0"),
        ({"budget": 10, "redundancies": [20]}, r"got \[20\]"),
        ({"budget": 10, "fits": -1}, "got -1"),
        ({"budget": 10, "random_state": -1}, "got -1"),
    ],
)
def test_what_cannot_be_is_one_sentence(options: dict[str, Any], value: str) -> None:
    with pytest.raises(ValueError, match=value):
        planning.plan(planning.assume(skill=0.8), **options)


def test_a_plan_goes_to_json_and_to_a_table() -> None:
    found = planning.plan(planning.assume(skill=0.8), budget=100)
    assert json.loads(json.dumps(found.to_dict()))["rows"][0]["tasks"] == found.tasks
    assert found.to_frame().num_rows == len(found.rows)
    assert found.to_frame().column_names[:3] == ["redundancy", "tasks", "labels"]
