"""The quadrature of `ClassWise` against sums over a fine grid."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import betaln

from labelonce._types import Floats
from labelonce.workers._class_wise import _COARSE, _FINE, overall_nodes

RIGHT = np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 1.0], [40.0, 2.5, 9.0], [0.0, 7.0, 0.0], [500.0, 450.0, 480.0]])
WRONG = np.array([[0.0, 0.0, 0.0], [0.0, 2.0, 1.0], [4.0, 9.5, 9.0], [8.0, 0.0, 3.0], [100.0, 120.0, 110.0]])


def by_brute_force(right: Floats, wrong: Floats, point: Floats) -> tuple[Floats, Floats]:
    """Return every worker's log-likelihood and mean overall probability, by the midpoint rule in logits."""
    mean, spread, class_spread = point
    size, class_size = 1 / spread - 1, 1 / class_spread - 1
    logits = np.linspace(-40, 40, 80_001)
    overall = np.clip(1 / (1 + np.exp(-logits)), 1e-15, 1 - 1e-15)
    a, b = size * mean, size * (1 - mean)
    log_density = a * np.log(overall) + b * np.log1p(-overall) - betaln(a, b)
    inner = [class_size * overall, class_size * (1 - overall)]
    for true in range(right.shape[1]):
        log_density = log_density + betaln(inner[0] + right[:, [true]], inner[1] + wrong[:, [true]]) - betaln(*inner)
    log_likelihood = np.logaddexp.reduce(log_density, axis=1) + np.log(logits[1] - logits[0])
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    return log_likelihood, density @ overall / density.sum(axis=1)


@pytest.mark.parametrize("point", [(0.7, 0.1, 0.1), (0.6, 0.3, 0.02), (0.5, 0.02, 0.6)])
def test_quadrature_equals_a_fine_sum(point: tuple[float, float, float]) -> None:
    log_likelihood, mean = by_brute_force(RIGHT, WRONG, np.array(point))
    _, coarse = overall_nodes(RIGHT, WRONG, np.array(point), _COARSE)
    assert_allclose(np.logaddexp.reduce(coarse, axis=1), log_likelihood, atol=0.03)
    overall, fine = overall_nodes(RIGHT, WRONG, np.array(point), _FINE)
    shares = np.exp(fine - np.logaddexp.reduce(fine, axis=1, keepdims=True))
    assert_allclose((shares * overall).sum(axis=1), mean, atol=2e-3)
