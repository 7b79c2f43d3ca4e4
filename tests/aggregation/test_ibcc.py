import numpy as np
from numpy.testing import assert_allclose
from scipy.stats import dirichlet

from labelonce.aggregation._ibcc import divergence, expected_log


def test_expected_log_and_divergence_agree_with_sampling() -> None:
    counts, pseudo = np.array([5.0, 2.0, 3.0]), np.array([4.0, 1.0, 1.0])
    draws = np.random.default_rng(0).dirichlet(counts, 200_000)
    assert_allclose(expected_log(counts), np.log(draws).mean(axis=0), atol=0.01)
    sampled = (dirichlet.logpdf(draws.T, counts) - dirichlet.logpdf(draws.T, pseudo)).mean()
    assert_allclose(divergence(counts, pseudo, expected_log(counts)), sampled, atol=0.01)
