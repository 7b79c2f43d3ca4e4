from typing import Any

import numpy as np
import pytest
from crowds import crowd
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from labelonce import IBCC, Annotations, DawidSkene, OneCoin
from labelonce._kernels import normalised
from labelonce.aggregation._em import pseudo_counts

MODELS = [DawidSkene, OneCoin, IBCC]


@pytest.mark.parametrize("model", MODELS)
def test_too_few_iterations_are_warned_about(model: Any) -> None:
    with pytest.warns(ConvergenceWarning, match="stopped after 2 iterations"):
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


def test_more_starts_never_end_lower() -> None:
    ann, _ = crowd(n_tasks=40, n_classes=4)
    one, many = (DawidSkene(n_init=n).fit(ann).log_likelihood_[-1] for n in (1, 8))
    assert many >= one


def test_a_further_start_can_win() -> None:
    ann, _ = crowd(1, n_tasks=40, n_classes=4)
    one, many = (DawidSkene(smoothing=0.0, max_iter=5000, n_init=n).fit(ann).log_likelihood_[-1] for n in (1, 8))
    assert many > one + 0.1


@pytest.mark.parametrize("smoothing", [1.0, (1.0, 0.5), [[1.0, 0.5], [0.5, 1.0]]])
def test_three_ways_to_say_the_same_pseudo_counts(smoothing: Any) -> None:
    assert_array_equal(pseudo_counts(smoothing, 2), [[1.0, 0.5], [0.5, 1.0]])


def test_rows_without_counts_become_uniform() -> None:
    assert_array_equal(normalised(np.array([[0.0, 0.0], [1.0, 3.0]])), [[0.5, 0.5], [0.25, 0.75]])
