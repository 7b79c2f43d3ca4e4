"""The quadrature of `ClassWise` against sums over a fine grid, and its derivatives against differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import betaln

from labelonce._types import Floats
from labelonce.workers._class_wise import _COARSE, _FINE
from labelonce.workers._quadrature import LabelledRows, OverallNodes

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
    rows = LabelledRows.of(RIGHT, WRONG)
    coarse = OverallNodes(rows, np.array(point), _COARSE)
    assert_allclose(np.logaddexp.reduce(coarse.log_weights, axis=1), log_likelihood, atol=0.03)
    assert coarse.log_likelihood() == pytest.approx(log_likelihood.sum(), abs=0.03)
    fine = OverallNodes(rows, np.array(point), _FINE)
    assert_allclose((fine.shares() * fine.overall).sum(axis=1), mean, atol=2e-3)


@pytest.mark.parametrize("point", [(0.7, 0.1, 0.1), (0.6, 0.3, 0.02), (0.02, 0.002, 0.9), (0.9, 0.99, 1e-4)])
def test_the_gradient_equals_differences(point: tuple[float, float, float]) -> None:
    rows, place = LabelledRows.of(RIGHT, WRONG), np.array(point)
    steps = np.diag(1e-4 * place * (1 - place))
    forth, back = (
        [OverallNodes(rows, place + sign * step, _COARSE).log_likelihood() for step in steps] for sign in (1, -1)
    )
    expected = np.subtract(forth, back) / (2 * np.diag(steps))
    assert_allclose(OverallNodes(rows, place, _COARSE).gradient(), expected, rtol=1e-5, atol=1e-4)
