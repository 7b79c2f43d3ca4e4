import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import beta

from labelonce._kernels import one_coin_confusion
from labelonce.workers import _intervals
from labelonce.workers._intervals import beta_interval, one_coin_interval


def test_equal_tails_of_the_beta_with_these_moments() -> None:
    law = beta(6, 3)
    low, high = beta_interval(np.array([law.mean()]), np.array([law.var()]), 0.8)
    assert_allclose([low[0], high[0]], law.ppf([0.1, 0.9]))


def test_the_interval_reaches_the_end_where_the_density_is_highest() -> None:
    law = beta(6, 1)
    low, high = beta_interval(np.array([law.mean(), 1 - law.mean()]), np.full(2, law.var()), 0.9)
    assert_allclose([low[0], high[0]], [law.ppf(0.1), 1.0])
    assert_allclose([low[1], high[1]], [0.0, 1 - law.ppf(0.1)], atol=1e-12)


def test_no_variance_is_a_single_point() -> None:
    mean = np.array([0.0, 0.3, 1.0])
    assert_array_equal(beta_interval(mean, np.zeros(3), 0.9), [mean, mean])


def test_large_arrays_have_the_same_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    mean, variance = rng.choice([0.2, 0.5, 0.9], (4, 5)), rng.choice([0.01, 0.02], (4, 5))
    expected = beta_interval(mean, variance, 0.9)
    monkeypatch.setattr(_intervals, "_MANY", 1)
    assert_array_equal(beta_interval(mean, variance, 0.9), expected)


def test_one_coin_intervals_are_the_matrices_of_their_ends() -> None:
    low, high = one_coin_interval(np.array([0.6]), np.array([0.9]), 3)
    assert_allclose(np.einsum("wkk->wk", low), 0.6)
    assert_allclose(low[0, 0, 1], one_coin_confusion(np.array([0.9]), 3)[0, 0, 1])
    assert (low < high).all()
