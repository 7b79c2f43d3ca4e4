"""The search for the most likely population and its quadrature: against sums, differences and a search without them."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import betaln, expit, logit
from scipy.stats import beta

from labelonce._kernels import one_coin_confusion
from labelonce._types import Floats
from labelonce.workers import ClassWise, Full, OneCoin, _intervals
from labelonce.workers._class_wise import _COARSE, _FINE
from labelonce.workers._intervals import beta_interval, one_coin_interval
from labelonce.workers._quadrature import LabelledRows, OverallNodes

LogDensity = Callable[[Floats], tuple[float, Floats]]


def crowd(*, whole: bool) -> Floats:
    """Return counts of 25 workers and four classes: some rows, and one worker, without labels."""
    rng = np.random.default_rng(0)
    counts = rng.gamma(0.5, 4.0, (25, 4, 4)) + np.eye(4) * rng.gamma(2.0, 8.0, (25, 1, 1))
    counts[3], counts[4:8, 1] = 0.0, 0.0
    return np.round(counts) if whole else counts


def search(name: str, counts: Floats) -> tuple[LogDensity, Floats]:
    """Return a log-density that a worker model maximised, and the mode that it found."""
    if name == "mistakes":
        full = Full().fit_counts(counts)
        return full._error_log_density, full._error_mode
    model = {"one coin": OneCoin(), "class wise": ClassWise()}[name].fit_counts(counts)
    return model._log_density, model._mode


every_search = pytest.mark.parametrize("name", ["one coin", "class wise", "mistakes"])
whole_or_not = pytest.mark.parametrize("whole", [True, False])


@every_search
@whole_or_not
def test_the_gradient_equals_differences(name: str, whole: bool) -> None:
    log_density, mode = search(name, crowd(whole=whole))
    for place in (mode, np.full_like(mode, 0.3), np.linspace(0.9, 0.02, len(mode))):
        steps = np.diag(1e-4 * place * (1 - place))
        expected = [(log_density(place + step)[0] - log_density(place - step)[0]) / (2 * step.sum()) for step in steps]
        assert_allclose(log_density(place)[1], expected, rtol=1e-5, atol=1e-3)


@every_search
@whole_or_not
def test_the_mode_is_that_of_a_search_without_derivatives(name: str, whole: bool) -> None:
    log_density, mode = search(name, crowd(whole=whole))

    def loss(logits: Floats) -> float:
        return -float(np.log(expit(logits) * expit(-logits)).sum()) - log_density(expit(logits))[0]

    found = minimize(loss, np.zeros(len(mode)), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9})
    assert_allclose(logit(mode), found.x, atol=3e-3)
    assert loss(logit(mode)) - found.fun < 1e-5


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
def test_the_gradient_of_the_quadrature_equals_differences(point: tuple[float, float, float]) -> None:
    rows, place = LabelledRows.of(RIGHT, WRONG), np.array(point)
    steps = np.diag(1e-4 * place * (1 - place))
    forth, back = (
        [OverallNodes(rows, place + sign * step, _COARSE).log_likelihood() for step in steps] for sign in (1, -1)
    )
    expected = np.subtract(forth, back) / (2 * np.diag(steps))
    assert_allclose(OverallNodes(rows, place, _COARSE).gradient(), expected, rtol=1e-5, atol=1e-4)


def test_ends_are_equal_tails_or_reach_the_mode_or_the_point() -> None:
    law = beta(6, 3)
    low, high = beta_interval(np.array([law.mean()]), np.array([law.var()]), 0.8)
    assert_allclose([low[0], high[0]], law.ppf([0.1, 0.9]))
    law = beta(6, 1)
    low, high = beta_interval(np.array([law.mean(), 1 - law.mean()]), np.full(2, law.var()), 0.9)
    assert_allclose([low[0], high[0]], [law.ppf(0.1), 1.0])
    assert_allclose([low[1], high[1]], [0.0, 1 - law.ppf(0.1)], atol=1e-12)
    mean = np.array([0.0, 0.3, 1.0])
    assert_array_equal(beta_interval(mean, np.zeros(3), 0.9), [mean, mean])


def test_large_arrays_have_the_same_ends_and_one_coin_intervals_their_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    mean, variance = rng.choice([0.2, 0.5, 0.9], (4, 5)), rng.choice([0.01, 0.02], (4, 5))
    expected = beta_interval(mean, variance, 0.9)
    monkeypatch.setattr(_intervals, "_MANY", 1)
    assert_array_equal(beta_interval(mean, variance, 0.9), expected)
    low, high = one_coin_interval(np.array([0.6]), np.array([0.9]), 3)
    assert_allclose(np.einsum("wkk->wk", low), 0.6)
    assert_allclose(low[0, 0, 1], one_coin_confusion(np.array([0.9]), 3)[0, 0, 1])
    assert (low < high).all()


@pytest.mark.parametrize("model", [OneCoin(), ClassWise()], ids=["one coin", "class wise"])
def test_drawn_chances_scatter_as_far_as_labels_leave_them_open(model: OneCoin | ClassWise) -> None:
    model.fit_counts(crowd(whole=True))
    rng = np.random.default_rng(0)
    mean, square = model._moments_at(model._mode)
    drawn = np.array([model.drawn_chances(rng) for _ in range(4_000)])
    assert_allclose(drawn.mean(axis=0), mean, atol=0.03)
    assert_allclose(drawn.var(axis=0), square - mean**2, atol=0.01)
