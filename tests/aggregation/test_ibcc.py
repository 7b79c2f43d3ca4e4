import numpy as np
import pytest
from crowds import crowd
from numpy.testing import assert_allclose
from scipy.stats import dirichlet

from labelonce import IBCC, metrics, simulate
from labelonce.aggregation._ibcc import divergence, expected_log


def test_recovers_the_confusion_of_simulated_workers() -> None:
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 4, 4000)
    confusion = simulate.dirichlet(20, 4, rng, diagonal=6.0, off_diagonal=1.0)
    ann = simulate.annotate(y_true, confusion, simulate.assign(4000, 20, 5, rng, replace=False), rng)
    assert metrics.confusion_error(confusion, IBCC().fit(ann).confusion_) < 0.05


def test_smoothing_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="must be above 0 everywhere; got 0"):
        IBCC(smoothing=(4.0, 0.0)).fit(crowd()[0])


def test_expected_log_and_divergence_agree_with_sampling() -> None:
    counts, pseudo = np.array([5.0, 2.0, 3.0]), np.array([4.0, 1.0, 1.0])
    draws = np.random.default_rng(0).dirichlet(counts, 200_000)
    assert_allclose(expected_log(counts), np.log(draws).mean(axis=0), atol=0.01)
    sampled = (dirichlet.logpdf(draws.T, counts) - dirichlet.logpdf(draws.T, pseudo)).mean()
    assert_allclose(divergence(counts, pseudo, expected_log(counts)), sampled, atol=0.01)
