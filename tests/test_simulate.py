"""Laws of the simulated crowds. Intervals are five standard errors wide, at fixed seeds."""

import re
from collections import Counter
from collections.abc import Callable
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from crowds import label_counts
from numpy.testing import assert_allclose, assert_array_equal

from labelonce import simulate
from labelonce._types import Floats

Population = Callable[[Any], Floats]

POPULATIONS: dict[str, Population] = {
    "hammer_spammer": lambda rng: simulate.hammer_spammer(40, 3, 0.4, rng),
    "exact": lambda rng: simulate.hammer_spammer(40, 3, 0.4, rng, exact=True),
    "class_wise": lambda rng: simulate.class_wise_hammer_spammer(40, 3, 0.4, rng),
    "dirichlet": lambda rng: simulate.dirichlet(40, 3, rng),
    "adversarial": lambda rng: simulate.adversarial(40, 3, 0.4, rng),
}


def assert_share(count: Any, n: Any, probability: Any) -> None:
    """Check binomial counts within five standard errors; certain and impossible ones exactly."""
    expected = np.asarray(probability) * n
    error = np.sqrt(expected * (1 - np.asarray(probability)))
    assert (np.abs(count - expected) <= 5 * error + 1e-9).all()


@pytest.mark.parametrize("name", POPULATIONS)
def test_confusion_is_float64_and_its_rows_sum_to_one(name: str) -> None:
    confusion = POPULATIONS[name](0)
    assert confusion.shape == (40, 3, 3)
    assert confusion.dtype == np.float64
    assert (confusion >= 0).all()
    assert_allclose(confusion.sum(axis=2), 1, rtol=1e-12)


@pytest.mark.parametrize("name", POPULATIONS)
def test_population_repeats_for_a_seed_and_changes_with_it(name: str) -> None:
    assert_array_equal(POPULATIONS[name](7), POPULATIONS[name](7))
    assert not np.array_equal(POPULATIONS[name](7), POPULATIONS[name](8))
    rng = np.random.default_rng(0)
    assert not np.array_equal(POPULATIONS[name](rng), POPULATIONS[name](rng))


def test_hammer_spammer_is_right_always_or_uniform_and_exact_ones_as_many_as_asked() -> None:
    confusion = simulate.hammer_spammer(20_000, 4, 0.3, 0)
    hammer = (confusion == np.eye(4)).all(axis=(1, 2))
    assert ((confusion == 0.25).all(axis=(1, 2)) != hammer).all()
    assert_share(hammer.sum(), 20_000, 0.3)
    draws = [simulate.hammer_spammer(50, 2, 0.2, seed, exact=True)[:, 0, 1] == 0 for seed in range(500)]
    assert_array_equal(np.sum(draws, axis=1), 10)
    assert_share(np.sum(draws, axis=0), 500, 0.2)


def test_class_wise_rows_are_hammers_independently() -> None:
    confusion = simulate.class_wise_hammer_spammer(20_000, 2, 0.3, 0)
    hammer = confusion[:, [0, 1], [0, 1]] == 1
    assert np.isin(confusion, (0, 0.5, 1)).all()
    for row in (0, 1):
        assert_share(hammer[:, row].sum(), 20_000, 0.3)
    assert_share(hammer.all(axis=1).sum(), 20_000, 0.09)


def test_one_coin_spreads_errors_evenly_and_dirichlet_has_its_mean_and_variance() -> None:
    expected = np.stack([np.where(np.eye(3), 0.7, 0.15), np.eye(3)])
    assert_allclose(simulate.one_coin([0.7, 1.0], 3), expected, rtol=1e-12)
    confusion = simulate.dirichlet(20_000, 3, 0, diagonal=6.0, off_diagonal=2.0)
    mean = np.where(np.eye(3), 0.6, 0.2)
    variance = mean * (1 - mean) / 11
    assert (np.abs(confusion.mean(axis=0) - mean) < 5 * np.sqrt(variance / 20_000)).all()
    assert_allclose(confusion.var(axis=0), variance, rtol=0.06)


def test_adversaries_are_never_right_and_give_every_class_once() -> None:
    confusion = simulate.adversarial(20_000, 4, 0.25, 0)
    right = confusion[:, range(4), range(4)]
    hammer = right.all(axis=1)
    assert not right[~hammer].any()
    assert_array_equal(confusion.sum(axis=1), 1)
    assert_share(hammer.sum(), 20_000, 0.25)
    assert_share(confusion[:, 0, 1:].sum(axis=0), 20_000, 0.25)


def test_assign_with_replacement_is_uniform_and_repeats_workers() -> None:
    assignment = simulate.assign(50_000, 4, 2, 0)
    assert assignment.shape == (50_000, 2)
    assert assignment.dtype == np.int32
    pairs = np.bincount(assignment[:, 0] * 4 + assignment[:, 1], minlength=16)
    assert_share(pairs, 50_000, 1 / 16)


@pytest.mark.parametrize("load", [None, [1.0, 2, 3, 4, 5, 6]])
@pytest.mark.parametrize("redundancy", range(1, 7))
def test_assign_without_replacement_never_repeats_a_worker(redundancy: int, load: Any) -> None:
    assignment = simulate.assign(3_000, 6, redundancy, 0, replace=False, load=load)
    assert assignment.shape == (3_000, redundancy)
    assert (np.diff(np.sort(assignment, axis=1), axis=1) > 0).all()
    assert_array_equal(np.unique(assignment), np.arange(6))


@pytest.mark.parametrize("n_workers", [5, 3])
def test_distinct_workers_follow_successive_draws_by_load(n_workers: int) -> None:
    load = np.array([1.0, 2.0, 3.0, 2.0, 1.0])[:n_workers]  # 5 workers: redraws; 3 workers: keys
    assignment = simulate.assign(40_000, n_workers, 2, 0, replace=False, load=load)
    seen = Counter(map(tuple, assignment.tolist()))
    chance = load / load.sum()
    for first, second in permutations(range(n_workers), 2):
        assert_share(seen[first, second], 40_000, chance[first] * chance[second] / (1 - chance[first]))


@pytest.mark.parametrize("replace", [True, False])
def test_worker_without_load_is_never_assigned(replace: bool) -> None:
    load = np.array([0, 1, 1e-300, 5, 0])
    assignment = simulate.assign(5_000, 5, 3, 0, replace=replace, load=load)
    assert not np.isin(assignment, (0, 4)).any()
    assert_array_equal(load, [0, 1, 1e-300, 5, 0])


@pytest.mark.parametrize("uniform", [0.0, 1 - 2**-53])
def test_worker_without_load_is_not_even_drawn_by_an_extreme_number(uniform: float) -> None:
    rng: Any = SimpleNamespace(random=lambda size: np.full(size, uniform))
    load = np.array([0.0, *[0.1] * 10, 0.0])
    assert np.cumsum(load)[-1] < 1
    drawn = simulate._with_replacement(load, (1,), rng)
    assert load[drawn[0]] > 0


def test_assign_takes_every_worker_in_chunks_of_tasks_and_zipf_load_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    assignment = simulate.assign(10, 3, 3, 0, replace=False, load=[1e300, 1.0, 1e-5])
    assert_array_equal(assignment, np.tile([0, 1, 2], (10, 1)))
    monkeypatch.setattr(simulate, "_CHUNK", 10)
    assignment = simulate.assign(1_000, 4, 3, 0, replace=False)
    assert_share(np.bincount(assignment.ravel(), minlength=4), 1_000, 0.75)
    load = simulate.zipf_load(100, 1.5)
    assert load.sum() == pytest.approx(1)
    assert load[0] / load[3] == pytest.approx(4**1.5)


def test_empirical_confusion_is_the_given_one() -> None:
    confusion = simulate.dirichlet(5, 7, 0)
    y_true = np.random.default_rng(1).integers(7, size=60_000)
    ann = simulate.annotate(y_true, confusion, simulate.assign(60_000, 5, 2, 2), 3)
    counts = label_counts(ann, y_true)
    assert_share(counts, counts.sum(axis=2, keepdims=True), confusion)


@pytest.mark.parametrize("n_classes", range(1, 10))
def test_label_is_the_number_of_cumulative_entries_passed(n_classes: int) -> None:
    table = simulate._cumulative(np.random.default_rng(0).dirichlet(np.ones(n_classes), size=(3, n_classes)))
    row = np.repeat(np.arange(3 * n_classes), 50)
    uniform = np.random.default_rng(1).random(len(row))
    expected = (table.reshape(-1, n_classes)[row] <= uniform[:, None]).sum(axis=1)
    assert_array_equal(simulate._invert(table, row, uniform), expected)


@pytest.mark.parametrize("uniform", [0.0, 0.5, 1 - 2**-53])
def test_label_of_probability_zero_is_never_drawn(uniform: float) -> None:
    tenths = np.array([0.1] * 3 + [0.0] + [0.1] * 7 + [0.0])  # the plain cumulative sum ends below 1
    confusion = np.stack([np.roll(tenths, shift) for shift in range(12)])[None]
    assert np.cumsum(tenths)[-1] < 1
    label = simulate._invert(simulate._cumulative(confusion), np.arange(12), np.full(12, uniform))
    assert (confusion[0, np.arange(12), label] > 0).all()


def test_annotations_hold_the_assignment_sorted_and_declare_all() -> None:
    ann = simulate.annotate([1, 0], simulate.one_coin([1.0] * 4, 3), [[2, 0, 2], [1, 0, 2]], 0)
    assert_array_equal(ann.task, [0, 0, 0, 1, 1, 1])
    assert_array_equal(ann.worker, [0, 2, 2, 0, 1, 2])
    assert_array_equal(ann.label, [1, 1, 1, 0, 0, 0])
    assert_array_equal(ann.tasks, [0, 1])
    assert_array_equal(ann.workers, range(4))
    assert_array_equal(ann.classes, range(3))


@pytest.mark.parametrize("correlation", [0.5, 1.0])
def test_correlation_keeps_every_confusion(correlation: float) -> None:
    confusion = simulate.dirichlet(4, 3, 0)
    y_true = np.arange(30_000) % 3
    assignment = np.tile(np.arange(4), (30_000, 1))
    ann = simulate.annotate(y_true, confusion, assignment, 1, groups=[0, 0, 0, 9], correlation=correlation)
    assert_share(label_counts(ann, y_true), 10_000, confusion)


def test_full_correlation_makes_equal_members_agree_and_other_groups_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulate, "_CHUNK", 1_000)
    confusion = simulate.one_coin([0.5] * 4, 2)
    assignment = np.tile(np.arange(4), (20_000, 1))
    ann = simulate.annotate([0] * 20_000, confusion, assignment, 0, groups=[5, -3, 5, -3], correlation=1.0)
    label = ann.label.reshape(-1, 4)
    assert_array_equal(label[:, [0, 1]], label[:, [2, 3]])
    assert_share((label[:, 0] == label[:, 1]).sum(), 20_000, 0.5)


def test_two_members_share_with_the_square_of_the_correlation_and_not_with_the_assignment() -> None:
    assignment = np.tile([0, 1], (40_000, 1))
    confusion = simulate.one_coin([0.5, 0.5], 2)
    ann = simulate.annotate([0] * 40_000, confusion, assignment, 0, groups=[0, 0], correlation=0.6)
    label = ann.label.reshape(-1, 2)
    assert_share((label[:, 0] == label[:, 1]).sum(), 40_000, 0.36 + 0.64 / 2)
    assignment = simulate.assign(20_000, 2, 1, 0, load=[0.4, 0.6])
    ann = simulate.annotate([0] * 20_000, simulate.one_coin([0.5, 0.5], 2), assignment, 0)
    counts = np.bincount(ann.worker * 2 + ann.label, minlength=4)
    assert_share(counts, 20_000, [0.2, 0.2, 0.3, 0.3])


def test_same_seed_gives_the_same_annotations_and_arguments_stay_unchanged() -> None:
    confusion, assignment = simulate.dirichlet(9, 3, 0), simulate.assign(100, 9, 2, 0)
    draws = [simulate.annotate([1] * 100, confusion, assignment, seed) for seed in (4, 4, 5)]
    assert draws[0] == draws[1]
    assert draws[0] != draws[2]
    assert_array_equal(assignment, simulate.assign(100, 9, 2, 0))
    y_true, confusion = np.array([1, 0]), simulate.dirichlet(3, 2, 0)
    assignment, groups = np.array([[2, 0], [1, 0]], dtype=np.int32), np.array([7, 7, 3])
    simulate.annotate(y_true, confusion, assignment, 0, groups=groups, correlation=0.5)
    assert_array_equal(y_true, [1, 0])
    assert_array_equal(confusion, simulate.dirichlet(3, 2, 0))
    assert_array_equal(assignment, [[2, 0], [1, 0]])
    assert_array_equal(groups, [7, 7, 3])


HALF = np.full((3, 2, 2), 0.5)
BAD_CALLS: list[tuple[Callable[[], Any], str]] = [
    (lambda: simulate.hammer_spammer(0, 2, 0.5, 0), "n_workers must be an integer of at least 1; got 0"),
    (lambda: simulate.hammer_spammer(2, 1, 0.5, 0), "n_classes must be an integer of at least 2; got 1"),
    (lambda: simulate.hammer_spammer(2, 2, 1.5, 0), "quality must be in [0, 1]; got 1.5"),
    (lambda: simulate.class_wise_hammer_spammer(2, 2, -0.5, 0), "quality must be in [0, 1]; got -0.5"),
    (lambda: simulate.adversarial(2, 1, 0.5, 0), "n_classes must be an integer of at least 2; got 1"),
    (lambda: simulate.dirichlet(2, 2, 0, diagonal=0.0), "diagonal must be in [0.001, 1e+09]; got 0.0"),
    (lambda: simulate.dirichlet(2, 2, -1), "random_state must be an integer of at least 0; got -1"),
    (lambda: simulate.one_coin([0.5, 1.2, np.nan], 2), "[0, 1]; got 1.2 at worker 1 (2 in total)"),
    (lambda: simulate.one_coin(0.5, 2), "shape (n_workers,); got shape ()"),
    (lambda: simulate.zipf_load(3, -1.0), "exponent must be at least 0; got -1.0"),
    (lambda: simulate.assign(2, 3, 4, 0, replace=False), "at most the 3 workers who can be drawn; got 4"),
    (lambda: simulate.assign(2, 3, 2, 0, replace=False, load=[0, 0, 1]), "at most the 1 workers who can be drawn"),
    (lambda: simulate.assign(2, 3, 2, 0, load=[1, 2]), "shape (3,); got shape (2,)"),
    (lambda: simulate.assign(2, 3, 2, 0, load=[1, -2, 1]), "at least 0; got -2.0 at worker 1 (1 in total)"),
    (lambda: simulate.assign(2, 3, 2, 0, load=[0, 0, 0]), "got 0 for all 3"),
    (lambda: simulate.annotate([0, 2], HALF, [[0], [1]], 0), "y_true must be in [0, 2); got 2 at position 1"),
    (lambda: simulate.annotate([0, 1], HALF, [[0], [3]], 0), "in [0, 3); got 3 at position 1"),
    (lambda: simulate.annotate([0, 1], HALF, [[0]], 0), "with 2 tasks as y_true; got (1, 1)"),
    (lambda: simulate.annotate([0], HALF[0], [[0]], 0), "at least as many answers; got (2, 2)"),
    (lambda: simulate.annotate([0], HALF * 0.8, [[0]], 0), "confusion must sum to 1; got 0.8 at (0, 0)"),
    (lambda: simulate.annotate([0], HALF, [[0]], 0, correlation=0.5), "correlation must be 0 without groups; got 0.5"),
    (lambda: simulate.annotate([0], HALF, [[0]], 0, groups=[0, 1]), "shape (3,); got int64 of shape (2,)"),
    (
        lambda: simulate.annotate([0], HALF, [[0]], 0, groups=[0, 0, 1], correlation=1.5),
        "correlation must be in [0, 1]; got 1.5",
    ),
]


@pytest.mark.parametrize(("call", "message"), BAD_CALLS, ids=[message for _, message in BAD_CALLS])
def test_bad_argument_is_named_with_its_value(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


GROUPS = np.array([0, 1, 0, 1, 1, 2, 2])


@pytest.mark.parametrize("name", ["grouped_hammer_spammer", "grouped_class_wise_hammer_spammer"])
def test_grouped_workers_are_right_or_guess_within_the_group(name: str) -> None:
    workers = getattr(simulate, name)(300, GROUPS, 0.4, 0)
    confusion = workers.dense()
    inside = (GROUPS[:, None] == GROUPS) / np.bincount(GROUPS)[GROUPS][:, None]
    hammer = confusion[:, np.arange(7), np.arange(7)] == 1
    assert_allclose(confusion, np.where(hammer[:, :, None], np.eye(7), inside), atol=1e-15)
    assert_share(hammer[:, 0].sum(), 300, 0.4)


def test_a_grouped_worker_is_the_same_hammer_everywhere_or_by_position() -> None:
    one = simulate.grouped_hammer_spammer(50, GROUPS, 0.5, 0).diagonal() == 1
    assert (one == one[:, :1]).all()
    by_position = simulate.grouped_class_wise_hammer_spammer(50, GROUPS, 0.5, 0).diagonal() == 1
    assert_array_equal(by_position[:, [0, 2]], by_position[:, [1, 3]])  # the first and the second of a group
    assert_array_equal(by_position[:, [0, 2]], by_position[:, [5, 6]])
    assert (by_position[:, 0] != by_position[:, 2]).any()


def test_labels_of_factors_are_those_of_their_matrices() -> None:
    workers = simulate.grouped_class_wise_hammer_spammer(3, GROUPS, 0.3, 1)
    y_true = np.arange(7).repeat(3000)
    assignment = simulate.assign(len(y_true), 3, 1, 0)
    counts = label_counts(simulate.annotate(y_true, workers, assignment, 0), y_true)
    assert_share(counts, counts.sum(axis=2, keepdims=True), workers.dense())


def test_grouped_workers_of_a_thousand_classes_take_a_few_numbers_each_and_need_codes() -> None:
    workers = simulate.grouped_class_wise_hammer_spammer(1000, np.arange(1000) // 10, 0.2, 0)
    assert workers.shape == (1000, 1000, 1000)
    assert workers.right.size + workers.share.size == 1000 * 10 + 1000 * 9
    with pytest.raises(ValueError, match=r"one integer per class.*got float64 of shape \(2,\)"):
        simulate.grouped_hammer_spammer(3, [0.0, 1.0], 0.5, 0)


def test_answers_beyond_the_classes_are_drawn_at_their_rates_or_are_a_scale() -> None:
    confusion = np.array([[[0.5, 0.2, 0.3], [0.1, 0.2, 0.7]]])
    ann = simulate.annotate(np.arange(4000) % 2, confusion, np.zeros((4000, 1), dtype=int), 0)
    assert (ann.classes.tolist(), ann.answers.tolist()) == ([0, 1], [0, 1, 2])
    shares = [np.bincount(ann.label[true::2], minlength=3) / 2000 for true in (0, 1)]
    np.testing.assert_allclose(shares, confusion[0], atol=0.04)
    confusion = np.full((1, 2, 3), 1 / 3)
    ann = simulate.annotate([0, 1], confusion, [[0], [0]], 0, answers=["low", "mid", "high"])
    assert (ann.is_scale, ann.answers.tolist()) == (True, ["low", "mid", "high"])
    with pytest.raises(ValueError, match="answers must name the 3 columns of confusion; got 2"):
        simulate.annotate([0, 1], confusion, [[0], [0]], 0, answers=["low", "high"])
