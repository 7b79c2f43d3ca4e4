from typing import Any

import numpy as np
import pytest
from crowds import crowd
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import dirichlet
from sklearn.exceptions import ConvergenceWarning

from labelonce import GLAD, IBCC, Annotations, DawidSkene, MajorityVote, OneCoin, metrics, simulate
from labelonce._kernels import normalised
from labelonce.aggregation import Aggregator
from labelonce.aggregation._em import pseudo_counts
from labelonce.aggregation._ibcc import divergence, expected_log
from labelonce.baselines import BeliefPropagation, MeanField

MODELS = [DawidSkene, OneCoin, IBCC]


@pytest.mark.parametrize("model", [*MODELS, GLAD])
def test_too_few_iterations_are_warned_about(model: Any) -> None:
    with pytest.warns(ConvergenceWarning, match=f"{model.__name__} stopped after 2 iterations"):
        fitted = model(max_iter=2).fit(crowd()[0])
    assert not fitted.converged_


@pytest.mark.parametrize("model", MODELS)
def test_float32_agrees_with_float64(model: Any) -> None:
    ann, _ = crowd(n_tasks=2000)
    wide = model(tol=1e-9).fit(ann)
    narrow = model(dtype="float32", tol=0.0, max_iter=wide.n_iter_)
    with pytest.warns(ConvergenceWarning, match="stopped after"):
        narrow.fit(ann)
    assert_allclose(narrow.posterior_, wide.posterior_, atol=1e-4)


@pytest.mark.parametrize("model", MODELS)
def test_a_given_prior_is_used_as_it_is(model: Any) -> None:
    prior = np.array([0.2, 0.3, 0.5])
    assert_array_equal(model(prior=prior).fit(crowd()[0]).prior_, prior)


@pytest.mark.parametrize("model", MODELS)
def test_a_learned_prior_finds_uneven_classes(model: Any) -> None:
    rng = np.random.default_rng(0)
    y_true = rng.choice(2, 2000, p=[0.9, 0.1])
    right = rng.random((2000, 5)) < 0.8
    ann = Annotations.from_matrix(np.where(right, y_true[:, None], 1 - y_true[:, None]))
    assert_allclose(model(prior="learned").fit(ann).prior_, [0.9, 0.1], atol=0.03)


def test_more_starts_never_end_lower_and_can_win() -> None:
    ann, _ = crowd(n_tasks=40, n_classes=4)
    one, many = (DawidSkene(n_init=n).fit(ann).log_likelihood_[-1] for n in (1, 8))
    assert many >= one
    ann, _ = crowd(1, n_tasks=40, n_classes=4)
    one, many = (DawidSkene(smoothing=0.0, max_iter=5000, n_init=n).fit(ann).log_likelihood_[-1] for n in (1, 8))
    assert many > one + 0.1


@pytest.mark.parametrize("smoothing", [1.0, (1.0, 0.5), [[1.0, 0.5], [0.5, 1.0]]])
def test_three_ways_to_say_the_same_pseudo_counts(smoothing: Any) -> None:
    assert_array_equal(pseudo_counts(smoothing, 2), [[1.0, 0.5], [0.5, 1.0]])


def test_rows_without_counts_become_uniform_and_strong_smoothing_pulls_all_to_the_pseudo_counts() -> None:
    assert_array_equal(normalised(np.array([[0.0, 0.0], [1.0, 3.0]])), [[0.5, 0.5], [0.25, 0.75]])
    model = DawidSkene(smoothing=(8e6, 1e6)).fit(crowd()[0])
    assert_allclose(model.confusion_, np.tile(np.where(np.eye(3), 0.8, 0.1), (12, 1, 1)), atol=1e-3)


def test_expected_log_and_divergence_agree_with_sampling() -> None:
    counts, pseudo = np.array([5.0, 2.0, 3.0]), np.array([4.0, 1.0, 1.0])
    draws = np.random.default_rng(0).dirichlet(counts, 200_000)
    assert_allclose(expected_log(counts), np.log(draws).mean(axis=0), atol=0.01)
    sampled = (dirichlet.logpdf(draws.T, counts) - dirichlet.logpdf(draws.T, pseudo)).mean()
    assert_allclose(divergence(counts, pseudo, expected_log(counts)), sampled, atol=0.01)


@pytest.mark.parametrize("model", [DawidSkene(), IBCC()])
def test_recovers_the_confusion_of_simulated_workers(model: DawidSkene | IBCC) -> None:
    confusion = simulate.dirichlet(20, 4, 0, diagonal=6.0, off_diagonal=1.0)
    ann, _ = crowd(n_tasks=4000, confusion=confusion)
    assert metrics.confusion_error(confusion, model.fit(ann).confusion_) < 0.05
    assert_allclose(model.prior_, 0.25, atol=0.03)


def test_beats_majority_vote_where_workers_differ() -> None:
    ann, y_true = crowd(n_tasks=2000, confusion=simulate.hammer_spammer(20, 4, 0.3, 0, exact=True))
    ours, vote = (metrics.accuracy(y_true, model.fit(ann).posterior_) for model in (DawidSkene(), MajorityVote()))
    assert ours > vote + 0.05


@pytest.mark.parametrize(
    ("model", "n_tasks", "atol"),
    [(OneCoin(), 20_000, 0.03), (MeanField(), 20_000, 0.03), (BeliefPropagation(), 4000, 0.06)],
)
def test_recovers_simulated_accuracies(model: Aggregator, n_tasks: int, atol: float) -> None:
    accuracy = np.linspace(0.3, 0.95, 20)
    ann, _ = crowd(n_tasks=n_tasks, confusion=simulate.one_coin(accuracy, 5))
    assert_allclose(model.fit(ann).skill_, accuracy, atol=atol)  # four standard errors of n_tasks / 4 labels


def test_every_matrix_has_one_number_on_and_one_off_the_diagonal_and_one_class_is_certain() -> None:
    confusion = OneCoin().fit(crowd()[0]).confusion_
    off_diagonal = confusion[:, ~np.eye(3, dtype=bool)]
    assert_allclose(off_diagonal, off_diagonal[:, :1] * np.ones(6))
    assert_allclose(np.einsum("wkk->wk", confusion), confusion[:, 0, 0][:, None] * np.ones(3))
    ann = crowd(n_classes=3)[0]
    single = ann.relabel({1: 0, 2: 0})
    assert (OneCoin().fit(single).posterior_ == 1).all()


def test_is_less_flexible_than_dawid_skene() -> None:
    ann, _ = crowd(n_tasks=2000)
    full = DawidSkene(smoothing=0.0, prior="uniform", max_iter=20_000).fit(ann).log_likelihood_[-1]
    assert full > OneCoin(smoothing=(0.0, 0.0)).fit(ann).log_likelihood_[-1]
