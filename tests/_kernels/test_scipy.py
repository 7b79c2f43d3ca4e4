"""The scipy engine against sums written as loops."""

import numpy as np
import pytest
from checks import annotations, one_hot
from commands import Patch
from crowds import crowd
from engines import brute_force_e_step, brute_force_m_step, brute_force_votes, random_parameters
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal

from labelonce import Annotations
from labelonce._kernels import ScipyEngine, _scipy


@given(ann=annotations(other_answers=True))
def test_e_step_equals_the_sum_over_annotations(ann: Annotations) -> None:
    log_confusion, log_prior = random_parameters(ann)
    posterior, log_likelihood = ScipyEngine(ann, "float64").e_step(log_confusion, log_prior)
    expected, expected_likelihood = brute_force_e_step(ann, log_confusion, log_prior)
    assert_allclose(posterior, expected, atol=1e-9)
    assert log_likelihood == pytest.approx(expected_likelihood, abs=1e-9)


@given(ann=annotations(other_answers=True))
def test_m_step_equals_the_sum_over_annotations(ann: Annotations) -> None:
    posterior = np.random.default_rng(0).dirichlet(np.ones(ann.n_classes), ann.n_tasks)
    counts = ScipyEngine(ann, "float64").m_step(posterior)
    assert_allclose(counts, brute_force_m_step(ann, posterior), atol=1e-9)


@given(ann=annotations(other_answers=True))
def test_votes_are_counted_as_answers_lean(ann: Annotations) -> None:
    assert_allclose(ScipyEngine(ann, "float64").vote_counts(), brute_force_votes(ann), atol=1e-12)


def test_float32_agrees_with_float64() -> None:
    ann, _ = crowd(n_tasks=2000)
    log_confusion, log_prior = random_parameters(ann)
    wide, narrow = (ScipyEngine(ann, dtype).e_step(log_confusion, log_prior) for dtype in ("float64", "float32"))
    assert narrow.posterior.dtype == np.float32
    assert_allclose(narrow.posterior, wide.posterior, atol=1e-4)
    assert narrow.log_likelihood == pytest.approx(wide.log_likelihood, rel=1e-4)


def test_a_uniform_worker_leaves_the_posterior_and_a_prior_per_task_is_used_row_by_row() -> None:
    ann, _ = crowd()
    log_confusion, log_prior = random_parameters(ann)
    engine = ScipyEngine(ann, "float64")
    same = engine.e_step(log_confusion, np.tile(log_prior, (ann.n_tasks, 1)))
    assert_allclose(same.posterior, engine.e_step(log_confusion, log_prior).posterior)
    spam = np.random.default_rng(0).integers(0, 3, ann.n_tasks)
    with_spammer = Annotations.from_matrix(np.column_stack([ann.to_matrix(dense=True), spam]))
    uniform = np.full((1, 3, 3), -np.log(3.0))
    expected = ScipyEngine(ann, "float64").e_step(log_confusion, log_prior).posterior
    engine = ScipyEngine(with_spammer, "float64")
    assert_allclose(engine.e_step(np.concatenate([log_confusion, uniform]), log_prior).posterior, expected)


def test_identity_workers_give_one_hot_posteriors_and_thousands_of_labels_do_not_underflow() -> None:
    y_true = np.arange(30, dtype=np.int32) % 3
    ann = Annotations.from_matrix(np.repeat(y_true[:, None], 2, axis=1))
    log_identity = np.log(np.maximum(np.tile(np.eye(3), (2, 1, 1)), 1e-300))
    posterior = ScipyEngine(ann, "float64").e_step(log_identity, np.log(np.full(3, 1 / 3))).posterior
    assert_array_equal(posterior, one_hot(y_true, 3))
    matrix = np.zeros((1, 3000), dtype=int)
    ann = Annotations.from_matrix(matrix, classes=[0, 1])
    log_confusion = np.log(np.tile([[0.6, 0.4], [0.4, 0.6]], (3000, 1, 1)))
    posterior, log_likelihood = ScipyEngine(ann, "float64").e_step(log_confusion, np.log([0.5, 0.5]))
    assert_array_equal(posterior, [[1.0, 0.0]])
    assert log_likelihood == pytest.approx(3000 * np.log(0.6) + np.log(0.5))


def test_gold_leaves_only_its_class_and_its_likelihood() -> None:
    ann, _ = crowd(n_tasks=4)
    log_confusion, log_prior = random_parameters(ann)
    gold = np.array([-1, 2, -1, 0], dtype=np.int32)
    posterior, log_likelihood = ScipyEngine(ann, "float64").e_step(log_confusion, log_prior, gold)
    log_joint = np.tile(log_prior, (4, 1))
    np.add.at(log_joint, ann.task, log_confusion[ann.worker, :, ann.label])
    parts = [np.logaddexp.reduce(log_joint[0]), log_joint[1, 2], np.logaddexp.reduce(log_joint[2]), log_joint[3, 0]]
    assert_array_equal(posterior[[1, 3]], one_hot(gold[[1, 3]], 3))
    assert log_likelihood == pytest.approx(sum(parts))


@pytest.mark.parametrize("given_gold", [True, False])
@pytest.mark.parametrize("of_each_task", [True, False])
def test_a_sweep_in_blocks_is_an_e_step_and_an_m_step(of_each_task: bool, given_gold: bool, monkeypatch: Patch) -> None:
    monkeypatch.setattr("labelonce._kernels._scipy._SWEEP_BLOCK", 1)
    ann, y_true = crowd(n_tasks=500)
    log_confusion, log_prior = random_parameters(ann)
    if of_each_task:
        log_prior = np.log(np.random.default_rng(1).dirichlet(np.ones(3), ann.n_tasks))
    gold = np.where(np.arange(500) % 3 == 0, y_true, -1).astype(np.int32) if given_gold else None
    engine = ScipyEngine(ann, "float64")
    posterior, log_likelihood = engine.e_step(log_confusion, log_prior, gold)
    sweep = engine.sweep(log_confusion, log_prior, gold)
    assert_allclose(sweep.tallies.values, engine.m_step(posterior))
    assert_allclose(sweep.class_counts, posterior.sum(axis=0))
    assert sweep.log_likelihood == pytest.approx(log_likelihood)


def test_a_class_may_be_several_states() -> None:
    ann = Annotations.from_matrix([[0, 1], [1, 1], [0, -1]])
    rng = np.random.default_rng(0)
    log_confusion, log_prior = np.log(rng.dirichlet(np.ones(2), (2, 4))), np.log(rng.dirichlet(np.ones(4)))
    posterior, log_likelihood = ScipyEngine(ann, "float64").e_step(log_confusion, log_prior, np.array([-1, 1, -1]))
    joint = np.tile(np.exp(log_prior), (3, 1))
    for task, worker, label in zip(ann.task, ann.worker, ann.label, strict=True):
        joint[task] *= np.exp(log_confusion[worker, :, label])
    joint[1, :2] = 0  # gold says class 1, which is states 2 and 3
    assert_allclose(posterior, joint / joint.sum(axis=1, keepdims=True))
    assert_allclose(log_likelihood, np.log(joint.sum(axis=1)).sum())
    counts = np.zeros((2, 4, 2))
    for task, worker, label in zip(ann.task, ann.worker, ann.label, strict=True):
        counts[worker, :, label] += posterior[task]
    assert_allclose(ScipyEngine(ann, "float64").m_step(posterior), counts)


def test_gold_that_no_task_of_a_block_has_changes_nothing_there(monkeypatch: Patch) -> None:
    ann = crowd()[0]
    log_confusion, log_prior = random_parameters(ann)
    engine = ScipyEngine(ann, "float64")
    nowhere = np.full(ann.n_tasks, -1, dtype=np.int32)
    assert_array_equal(
        engine.e_step(log_confusion, log_prior, nowhere).posterior, engine.e_step(log_confusion, log_prior).posterior
    )
    first = np.where(np.arange(ann.n_tasks) == 0, 0, -1).astype(np.int32)
    whole = engine.sweep(log_confusion, log_prior, first)
    monkeypatch.setattr(_scipy, "_SWEEP_BLOCK", 1)
    blocks = engine.sweep(log_confusion, log_prior, first)
    assert_allclose(blocks.tallies.values, whole.tallies.values)
    assert whole.log_likelihood == pytest.approx(blocks.log_likelihood)
