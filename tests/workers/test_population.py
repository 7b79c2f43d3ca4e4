"""The search for the most likely population: its derivatives, and the same mode as by a search without them."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit, logit

from labelonce._types import Floats
from labelonce.workers import ClassWise, Full, OneCoin

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
