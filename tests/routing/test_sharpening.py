"""A model trained on chosen tasks is calibrated by tasks that were labelled at random."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import labelonce as lo
from labelonce.routing import Random, Router
from labelonce.routing._sharpening import exponent_of, labels_evidence, sharpened
from labelonce.routing._state import State

N = 1500
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2 * N, 2))
CHANCE = 1 / (1 + np.exp(-3 * X[:, 0]))
Y = (RNG.random(2 * N) < CHANCE).astype(int)


def routed(C: float, n_labels: int = N) -> Router:
    """Return a router whose model is as flat as `C` makes it, with labels of good workers, one for every task."""
    learner = lo.MBEM(lo.SoftmaxRegression(C=C), rounds=2, folds=1)
    router = Router(range(N), [0, 1], X=X[:N], learner=learner, strategy=Random(), random_share=0.3)
    rng = np.random.default_rng(1)
    for turn in range(n_labels):
        worker = turn % 5
        task = router.next(worker)
        router.add(task, worker, int(Y[task] ^ (rng.random() < 0.1)))
    router.refit()
    return router


def test_a_model_that_is_too_flat_is_sharpened_to_the_true_chances() -> None:
    router = routed(C=0.01)
    plain, found = (one.predict_proba(X[N:])[:, 1] for one in (router.model_, router))
    assert router.exponent > 1.5
    assert np.abs(found - CHANCE[N:]).mean() < 0.5 * np.abs(plain - CHANCE[N:]).mean()
    assert_allclose(found > 0.5, plain > 0.5)


def test_sharpened_by_one_changes_nothing_and_by_two_squares_the_odds() -> None:
    chances = np.array([[0.2, 0.8], [0.5, 0.5]])
    assert_allclose(sharpened(chances, 1.0), chances)
    assert_allclose(sharpened(chances, 2.0), [[1 / 17, 16 / 17], [0.5, 0.5]])


def test_without_a_sample_or_without_mbem_nothing_is_changed() -> None:
    router = routed(C=1.0)
    assert exponent_of(router.model_, router.state, np.zeros(0, dtype=np.int32)) == 1.0
    for model in (None, lo.DawidSkene()):
        assert exponent_of(model, router.state, np.arange(5, dtype=np.int32)) == 1.0


def test_the_evidence_of_labels_is_the_sum_of_their_log_chances() -> None:
    state = State(2, None, np.ones(3), np.full(3, -1, dtype=np.int32), seed=0)
    for task, worker, label in ((0, 0, 1), (0, 1, 1), (2, 0, 0)):
        state.add(task, worker, label)
    state.n_fitted = 3
    expected = state.log_chances(0, 1) + state.log_chances(1, 1)
    assert_allclose(labels_evidence(state, np.array([0, 1])), [expected, np.zeros(2)])


def test_the_evidence_is_that_of_the_labels_that_the_fit_knew() -> None:
    state = State(2, None, np.ones(2), np.full(2, -1, dtype=np.int32), seed=0)
    state.add(0, 0, 1)
    state.n_fitted = 1
    state.add(0, 1, 1)
    state.add(1, 0, 0)
    assert_allclose(labels_evidence(state, np.array([0, 1])), [state.log_chances(0, 1), np.zeros(2)])


def test_few_labels_move_the_exponent_little() -> None:
    router = routed(C=0.01)
    sample = router._random.sample(router.state)
    few, many = (exponent_of(router.model_, router.state, sample[:n]) for n in (3, len(sample)))
    assert len(sample) > 100
    assert abs(np.log(few)) < 0.2 < np.log(1.5) < np.log(many)


def test_predictions_that_are_too_sure_get_a_lower_exponent() -> None:
    router = routed(C=0.1, n_labels=N // 4)
    model, sample = router.model_, router._random.sample(router.state)
    plain = exponent_of(model, router.state, sample)
    model.predictions_ = sharpened(model.predictions_, 4.0)
    assert exponent_of(model, router.state, sample) < 0.5 * plain


def test_only_the_random_tasks_count() -> None:
    router = routed(C=0.1, n_labels=N // 4)
    labelled = np.flatnonzero(router.state.n_labels).astype(np.int32)
    sample = router._random.sample(router.state)
    assert 50 < len(sample) < 0.7 * len(labelled)
    by_sample, by_all = (exponent_of(router.model_, router.state, tasks) for tasks in (sample, labelled))
    assert_allclose(router.exponent, by_sample)
    assert abs(by_sample / by_all - 1) > 1e-3


def test_a_refit_finds_the_exponent_anew() -> None:
    router = routed(C=0.01)
    first = router.exponent
    for task in range(N):
        router.add(task, 99, int(Y[task]))
    assert router.exponent == first
    router.refit()
    assert router.exponent != first


def test_predict_proba_needs_a_refit() -> None:
    with pytest.raises(ValueError, match="got None"):
        Router(range(3), [0, 1], X=np.zeros((3, 1))).predict_proba(np.zeros((1, 1)))
