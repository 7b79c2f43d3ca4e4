"""Grouped: laws, recovery of simulated crowds, and the checks of its arguments."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from labelonce import Annotations, simulate
from labelonce._kernels import Beliefs, Tallies
from labelonce._types import Codes, Floats
from labelonce.workers import ClassWise, Grouped, OneCoin
from labelonce.workers._population import sample_rows

GROUP = np.array([0, 0, 0, 1, 1, 1])


def crowd(n_workers: int = 12, n_tasks: int = 900) -> tuple[Annotations, Codes]:
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 6, n_tasks).astype(np.int32)
    confusion = simulate.dirichlet(n_workers, 6, rng)
    return simulate.annotate(y_true, confusion, simulate.assign(n_tasks, n_workers, 2, rng), rng), y_true


def counts_of(ann: Annotations, y_true: Codes) -> Floats:
    counts = np.zeros((ann.n_workers, ann.n_classes, ann.n_classes))
    np.add.at(counts, (ann.worker, y_true[ann.task], ann.label), 1.0)
    return counts


@pytest.mark.parametrize(("rows", "model"), [("worker", OneCoin), ("class", ClassWise)])
def test_one_group_of_all_classes_with_equal_mistakes_is_the_plain_model(rows: str, model: type) -> None:
    ann, y_true = crowd()
    found = Grouped(np.zeros(6, int), rows=rows, errors="uniform").fit(ann, y_true)
    plain = model().fit(ann, y_true)
    assert_allclose(found.confusion_, plain.confusion_, atol=1e-9)
    assert_allclose(found.skill_interval(), plain.skill_interval(), atol=1e-9)
    alone = Grouped(rows=rows, errors="uniform").fit(ann, y_true)
    assert_allclose(alone.confusion_, plain.confusion_, atol=1e-9)


def test_groups_of_one_class_without_a_leak_make_everybody_right() -> None:
    ann, y_true = crowd()
    found = Grouped(np.arange(6), leak=0.0).fit(ann, y_true)
    assert_array_equal(found.confusion_, np.broadcast_to(np.eye(6), (12, 6, 6)))
    low, high = found.skill_interval()
    assert_array_equal(low, 1)
    assert_array_equal(high, 1)


@pytest.mark.parametrize("errors", ["crowd", "uniform"])
@pytest.mark.parametrize("rows", ["worker", "group", "class", "position"])
def test_rows_are_distributions_and_intervals_are_around_them(rows: str, errors: str) -> None:
    ann, y_true = crowd()
    found = Grouped(GROUP, rows=rows, errors=errors).fit(ann, y_true)
    confusion = found.confusion_
    assert_allclose(confusion.sum(axis=2), 1)
    assert_array_equal(confusion[3], found.confusion(3))
    low, high = found.confusion_interval()
    assert ((low <= confusion + 1e-9) & (confusion <= high + 1e-9)).all()


@pytest.mark.parametrize("groups", [None, GROUP])
@pytest.mark.parametrize("rows", ["worker", "class"])
def test_counts_and_predictions_give_the_same(rows: str, groups: Codes | None) -> None:
    ann, y_true = crowd()
    soft = np.random.default_rng(1).dirichlet(np.full(6, 0.3), len(y_true))
    model = Grouped(groups, rows=rows, errors="crowd" if groups is not None else "uniform")
    counts = np.zeros((12, 6, 6))
    np.add.at(counts.swapaxes(1, 2), (ann.worker, ann.label), soft[ann.task])
    by_counts = model.fit_counts(counts).confusion_
    assert_allclose(model.fit(ann, soft).confusion_, by_counts, atol=1e-9)
    assert_allclose(model.fit(ann, Beliefs.from_dense(soft, 6)).confusion_, by_counts, atol=1e-9)


def test_renaming_classes_renames_the_matrices() -> None:
    ann, y_true = crowd()
    order = np.array([3, 5, 0, 1, 4, 2])
    renamed = Annotations(ann.task, ann.worker, order[ann.label], ann.tasks, ann.workers, ann.classes)
    group = np.empty(6, int)
    group[order] = GROUP
    before = Grouped(GROUP, rows="class").fit(ann, y_true).confusion_
    after = Grouped(group, rows="class").fit(renamed, order[y_true]).confusion_
    assert_allclose(after[:, order][:, :, order], before, atol=1e-6)


def test_the_order_of_tasks_and_workers_does_not_matter() -> None:
    ann, y_true = crowd()
    rng = np.random.default_rng(4)
    tasks, workers = (rng.permutation(n).astype(np.int32) for n in (len(y_true), 12))
    mixed = Annotations(
        tasks[ann.task], workers[ann.worker], ann.label, np.arange(len(y_true)), np.arange(12), ann.classes
    )
    moved = np.empty_like(y_true)
    moved[tasks] = y_true
    before = Grouped(GROUP, rows="position").fit(ann, y_true).factors_.right
    assert_allclose(Grouped(GROUP, rows="position").fit(mixed, moved).factors_.right[workers], before, atol=1e-6)


def test_the_papers_class_wise_workers_are_found_again() -> None:
    groups = np.arange(100) // 10
    true = simulate.grouped_class_wise_hammer_spammer(50, groups, 0.3, rng=0)
    y_true = np.random.default_rng(0).integers(0, 100, 20_000)
    ann = simulate.annotate(y_true, true, simulate.assign(20_000, 50, 1, rng=0), rng=0)
    found = Grouped(groups, rows="position").fit(ann, y_true)
    assert np.abs(found.factors_.right - true.right).mean() < 0.05
    assert found.leak_ < 0.01
    low, high = found.skill_interval()
    skill = true.skill(np.full(100, 0.01))
    assert np.mean((low <= skill) & (skill <= high)) > 0.75


def test_the_leak_is_the_share_of_mistakes_outside_the_groups() -> None:
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 20, 20_000)
    inside = y_true // 5 * 5 + (y_true % 5 + rng.integers(1, 5, 20_000)) % 5
    anywhere = (y_true + rng.integers(1, 20, 20_000)) % 20
    wrong = np.where(rng.random(20_000) < 0.3, anywhere, inside)
    label = np.where(rng.random(20_000) < 0.5, y_true, wrong)
    ann = Annotations.from_arrays(np.arange(20_000), np.arange(20_000) % 10, label)
    assert Grouped(np.arange(20) // 5).fit(ann, y_true).leak_ == pytest.approx(0.3, abs=0.02)


def test_without_groups_the_commonest_mistakes_are_learned() -> None:
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 30, 30_000)
    label = np.where(rng.random(30_000) < 0.6, y_true, (y_true + 7) % 30)
    ann = Annotations.from_arrays(np.arange(30_000), np.arange(30_000) % 10, label)
    found = Grouped().fit(ann, y_true).confusion(0)
    assert_allclose(found[np.arange(30), (np.arange(30) + 7) % 30], 0.4, atol=0.03)


def test_a_sample_of_rows_is_spread_over_workers_and_rows() -> None:
    right, wrong = np.ones((1000, 1000)), np.ones((1000, 1000))
    some, _ = sample_rows(right, wrong)
    assert len(some) == 500
    assert 2000 <= np.count_nonzero(some) <= 10_000
    assert (np.count_nonzero(some, axis=0) > 0).mean() > 0.9


def test_rows_of_groups_need_groups_and_predictions_one_entry_per_task() -> None:
    ann, y_true = crowd()
    with pytest.raises(ValueError, match="rows='position' needs groups"):
        Grouped(rows="position").fit(ann, y_true)
    with pytest.raises(ValueError, match="one entry per task, 900; got 3"):
        Grouped(GROUP).fit(ann, y_true[:3])


@pytest.mark.parametrize(("name", "value"), [("rows", "task"), ("errors", "own"), ("leak", 1.5)])
def test_an_option_that_cannot_be_is_named(name: str, value: object) -> None:
    ann, y_true = crowd()
    with pytest.raises(ValueError, match=f"{name} must .* got .*{value}"):
        Grouped(GROUP).set_params(**{name: value}).fit(ann, y_true)


def test_a_population_is_learned_again_only_where_labels_have_moved() -> None:
    """Steps of EM near its fixed point keep the population, so that they are cheap; others learn it."""
    y_true = np.arange(400) % 4
    right = np.random.default_rng(0).random((400, 6)) < np.linspace(0.3, 0.9, 6)
    ann = Annotations.from_matrix(np.where(right, y_true[:, None], (y_true ^ 1)[:, None]))
    model = Grouped(np.array([0, 0, 1, 1]))
    model.prepare(ann)
    right = (ann.label == y_true[ann.task]).astype(float)
    told, wrong = (np.bincount(ann.worker, one)[:, None].astype(float) for one in (right, 1 - right))
    tallies = Tallies(told, wrong, np.ones(4), np.zeros(4))
    populations = []
    for share in (0.0, 0.0, 0.001, 0.2):
        moved = Tallies(
            tallies.right * (1 - share), tallies.wrong + share * tallies.right, tallies.mistakes, tallies.others
        )
        populations.append(model.fit_tallies(moved).population_)
    assert populations[1] == populations[2]
    assert populations[3] != pytest.approx(populations[2], rel=1e-3)
