"""Candidates: the sums on them are those of the dense engine, and what is left out is left out on purpose."""

import numpy as np
import pytest
from grouped_crowd import GROUP, ROWS, crowd, factors
from numpy.testing import assert_allclose, assert_array_equal

from labelonce import Annotations
from labelonce._kernels import (
    Candidates,
    CandidateSums,
    Factors,
    Mistakes,
    ScipyEngine,
    candidate_classes,
    entropy,
    floored_log,
    mean_total_variation,
)
from labelonce._kernels._candidates import WIDEST, unique_in_rows
from labelonce._types import Codes, Floats


def all_classes(n_tasks: int) -> Codes:
    """Return all classes as candidates, in another order for every task."""
    rng = np.random.default_rng(2)
    return np.stack([rng.permutation(6) for _ in range(n_tasks)]).astype(np.int32)


def wide(dense: Floats, classes: Codes) -> Floats:
    """Return a dense log prior on candidates that are all classes."""
    inside = np.take_along_axis(dense, classes, axis=1)
    return np.concatenate([inside, np.full((len(dense), 1), -np.inf)], axis=1)


@pytest.mark.parametrize("redundancy", [1, 3])
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_with_all_classes_as_candidates_both_steps_are_the_dense_ones(row: Codes, redundancy: int) -> None:
    ann, workers, classes = crowd(redundancy), factors(row), all_classes(60)
    log_prior = np.log(np.random.default_rng(3).dirichlet(np.ones(6), 60))
    dense = ScipyEngine(ann, "float64")
    expected = dense.e_step(floored_log(workers.dense()), log_prior)
    sums = CandidateSums(ann, classes, workers.mistakes, row)
    found = sums.e_step(workers, wide(log_prior, classes))
    assert_allclose(found.posterior.to_dense(), expected.posterior, atol=1e-9)
    assert found.log_likelihood == pytest.approx(expected.log_likelihood, abs=1e-9)
    counts = dense.m_step(expected.posterior)
    tallies, total = sums.sweep(workers, wide(log_prior, classes))
    by_row = np.eye(tallies.right.shape[1])[row]
    right = np.einsum("wkk->wk", counts)
    assert_allclose(tallies.right, right @ by_row, atol=1e-9)
    assert_allclose(tallies.wrong, (counts.sum(axis=2) - right) @ by_row, atol=1e-9)
    crowd_counts = counts.sum(axis=0)
    assert_allclose(tallies.mistakes, crowd_counts[workers.mistakes.true, workers.mistakes.given], atol=1e-9)
    inside = np.bincount(workers.mistakes.true, tallies.mistakes, 6)
    assert_allclose(tallies.others, (counts.sum(axis=2) - right).sum(axis=0) - inside, atol=1e-9)
    assert total == pytest.approx(expected.log_likelihood, abs=1e-9)


def test_the_sums_of_a_sweep_are_those_of_its_posteriors() -> None:
    ann, workers = crowd(2), factors(ROWS["group"])
    classes = candidate_classes(ann, workers.mistakes, np.full((60, 1), 5))
    log_prior = np.log(np.full((60, classes.shape[1] + 1), 0.1))
    log_prior[:, :-1][classes < 0] = -np.inf
    sums = CandidateSums(ann, classes, workers.mistakes, workers.row)
    apart = sums.m_step(sums.e_step(workers, log_prior).posterior)
    together, _ = sums.sweep(workers, log_prior)
    for name in ("right", "wrong", "mistakes", "others", "unknown"):
        assert_allclose(getattr(together, name), getattr(apart, name), atol=1e-12)
    assert float((together.right + together.wrong).sum()) == pytest.approx(len(ann))


def test_drawn_labels_are_those_of_one_class_per_task() -> None:
    ann, workers, classes = crowd(2), factors(ROWS["class"]), all_classes(60)
    log_prior = wide(np.full((60, 6), np.log(1 / 6)), classes)
    many = Annotations(
        np.concatenate([ann.task + 60 * copy for copy in range(200)]).astype(np.int32),
        np.tile(ann.worker, 200),
        np.tile(ann.label, 200),
        np.arange(60 * 200),
        ann.workers,
        ann.classes,
    )
    sums = CandidateSums(many, np.tile(classes, (200, 1)), workers.mistakes, workers.row)
    found, _ = sums.sweep(workers, np.tile(log_prior, (200, 1)))
    assert found.drawn_right is not None
    assert found.drawn_wrong is not None
    assert_array_equal(found.drawn_right % 1, 0)
    assert float((found.drawn_right + found.drawn_wrong).sum()) == len(many)
    assert_allclose(found.drawn_right.sum(axis=0), found.right.sum(axis=0), rtol=0.1)
    assert_allclose(found.drawn_wrong.sum(axis=0), found.wrong.sum(axis=0), rtol=0.1)


def test_where_other_classes_are_alike_their_rest_is_exact() -> None:
    ann, workers = crowd(3), Factors.one_coin(np.linspace(0.2, 0.9, 7), 6)
    classes = candidate_classes(ann, workers.mistakes)
    n_others = 6 - (classes >= 0).sum(axis=1)
    log_prior = np.where(classes >= 0, np.log(1 / 6), -np.inf)
    log_prior = np.concatenate([log_prior, np.log(n_others / 6)[:, None]], axis=1)
    found = CandidateSums(ann, classes, workers.mistakes, workers.row).e_step(workers, log_prior)
    expected = ScipyEngine(ann, "float64").e_step(floored_log(workers.dense()), np.full(6, np.log(1 / 6)))
    assert classes.shape[1] < 6
    assert_allclose(found.posterior.to_dense(), expected.posterior, atol=1e-9)
    assert found.log_likelihood == pytest.approx(expected.log_likelihood, abs=1e-9)


def test_float32_sums_agree_to_its_precision() -> None:
    ann, workers, classes = crowd(3), factors(ROWS["class"]), all_classes(60)
    log_prior = wide(np.full((60, 6), np.log(1 / 6)), classes)
    tallies, _ = CandidateSums(ann, classes, workers.mistakes, workers.row).sweep(workers, log_prior)
    rough, _ = CandidateSums(ann, classes, workers.mistakes, workers.row, "float32").sweep(workers, log_prior)
    assert_allclose(rough.wrong, tallies.wrong, atol=1e-4)
    assert_allclose(rough.mistakes, tallies.mistakes, atol=1e-4)


def test_candidates_are_the_labels_what_they_speak_for_and_the_models_picks() -> None:
    ann = crowd(3)
    mistakes = Mistakes.inside(GROUP)
    picks = np.random.default_rng(5).integers(0, 6, (60, 2)).astype(np.int32)
    found = candidate_classes(ann, mistakes, picks)
    for task in range(60):
        spoken = {int(one) for label in ann.label[ann.task == task] for one in mistakes.near[label] if one >= 0}
        own = found[task][found[task] >= 0]
        assert set(own.tolist()) == spoken | set(picks[task].tolist())
        assert len(own) == len(set(own.tolist()))


def test_too_many_candidates_leave_the_labels_and_the_models_picks() -> None:
    n = 200
    mistakes = Mistakes.inside(np.arange(n, dtype=np.int32) // 50)
    ann = Annotations.from_arrays(np.repeat([0, 1], 4), [0, 1, 2, 3] * 2, [0, 60, 110, 160] * 2, classes=np.arange(n))
    found = candidate_classes(ann, mistakes, np.array([[199, 0], [5, 150]]))
    assert found.shape[1] == WIDEST
    assert {0, 60, 110, 160, 199} <= set(found[0].tolist())
    assert len(set(found[1].tolist())) == WIDEST


def test_unique_in_rows_keeps_the_first_of_each() -> None:
    assert_array_equal(unique_in_rows(np.array([[-1, 4, 4, 1], [2, 2, -1, 2]])), [[4, 1], [2, -1]])


def some_candidates(seed: int) -> Candidates:
    rng = np.random.default_rng(seed)
    classes = np.stack([rng.permutation(6)[:3] for _ in range(20)]).astype(np.int32)
    mass = rng.dirichlet(np.ones(4), 20)
    classes[0, 2] = -1
    mass[0] = [0.2, 0.3, 0.0, 0.5]
    return Candidates(classes, mass[:, :3], mass[:, 3], 6)


def test_what_is_said_of_candidates_is_true_of_the_dense_array() -> None:
    one, other = some_candidates(0), some_candidates(1)
    dense, task, label = one.to_dense(), np.repeat(np.arange(20), 6), np.tile(np.arange(6), 20)
    assert_allclose(dense.sum(axis=1), 1)
    assert_allclose(one.at(task, label), dense.ravel())
    assert_allclose(one.information(), 1 - entropy(dense) / np.log(6), atol=1e-12)
    weight = np.random.default_rng(2).random(20)
    assert_allclose(one.shares(weight), weight @ dense)
    assert one.change(other) == pytest.approx(mean_total_variation(dense, other.to_dense()), abs=1e-12)
    assert_allclose(Candidates.from_dense(dense, 6).to_dense(), dense, atol=1e-12)
    assert_allclose(one[3:5].to_dense(), dense[3:5])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_probability_of_zero_has_no_entropy(dtype: str) -> None:
    sure = Candidates(
        np.array([[0, 1], [2, -1]], np.int32), np.array([[1.0, 0.0], [0.5, 0.0]], dtype), np.array([0.0, 0.5], dtype), 3
    )
    assert_allclose(sure.information(), [1.0, 1 - 1.5 * np.log(2) / np.log(3)], atol=1e-6)


def test_the_top_classes_keep_their_probabilities() -> None:
    one = some_candidates(0)
    top = one.top(2)
    assert_array_equal(top.top_class(), one.top_class())
    assert_allclose(top.probability[:, 0], one.confidence())
    assert_allclose(top.probability.sum(axis=1) + top.rest, 1)


def test_gold_is_certain() -> None:
    one = some_candidates(0)
    gold = np.where(np.arange(20) < 5, one.classes[:, 1], -1)
    found = one.with_gold(gold)
    assert_array_equal(found.top_class()[:5], gold[:5])
    assert_allclose(found.confidence()[:5], 1)
    assert_allclose(found.to_dense()[5:], one.to_dense()[5:])


def test_a_dense_array_that_is_too_large_is_refused() -> None:
    many = Candidates(np.zeros((200_000, 1), np.int32), np.ones((200_000, 1)), np.zeros(200_000), 1000)
    with pytest.raises(ValueError, match="200,000 tasks x 1,000 classes"):
        many.to_dense()
