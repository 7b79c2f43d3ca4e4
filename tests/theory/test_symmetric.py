"""The special case against values computed exactly, by other code, and against two slips of the paper."""

from itertools import product
from math import ceil, comb

import numpy as np
import pytest
from numpy.testing import assert_allclose

from labelonce import simulate, theory
from labelonce._types import Floats

RATES = (0.05, 0.1, 0.175, 0.2, 0.3, 0.4)
BETA = {  # one row per redundancy, one column per rate
    1: (0.095, 0.18, 0.28875, 0.32, 0.42, 0.48),
    2: (0.052486, 0.109756, 0.202988, 0.235294, 0.362069, 0.461538),
    3: (0.013787, 0.050597, 0.135682, 0.169354, 0.314659, 0.444343),
    5: (0.002203, 0.015499, 0.068180, 0.095162, 0.242573, 0.413068),
    7: (0.000368, 0.004945, 0.035403, 0.055086, 0.189975, 0.385181),
    9: (0.000063, 0.001616, 0.018751, 0.032472, 0.150331, 0.360043),
}
GRID = np.arange(0.01, 0.5, 0.01).tolist()
IDENTITY = [[[1.0, 0.0], [0.0, 1.0]]]


def symmetric(error_rate: float, n_workers: int = 1) -> Floats:
    return simulate.one_coin([1 - error_rate] * n_workers, n_classes=2)


@pytest.mark.parametrize("redundancy", BETA)
def test_beta_symmetric_has_the_exact_values(redundancy: int) -> None:
    found = [theory.beta_symmetric(error_rate, redundancy) for error_rate in RATES]
    assert_allclose(found, BETA[redundancy], rtol=0, atol=6e-7)


def test_over_estimated_noise_has_the_exact_values() -> None:
    found = [theory.beta_symmetric(0.2, redundancy, 0.05) for redundancy in range(1, 6)]
    assert_allclose(found, [0.35, 0.26, 0.194, 0.1474, 0.1121], rtol=0, atol=6e-5)


def test_the_closed_form_has_the_exact_values() -> None:
    found = [theory.beta_symmetric_bound(0.2, redundancy, 0.05) for redundancy in range(1, 6)]
    assert_allclose(found, [0.375, 0.3, 0.2411, 0.1976, 0.1620], rtol=0, atol=6e-5)


@pytest.mark.parametrize("redundancy", [1, 4, 7])
def test_the_closed_form_is_the_printed_formula(redundancy: int) -> None:
    p = 0.3 + 0.1
    tau = p / (1 - p)
    printed = p**redundancy * sum(
        comb(redundancy, u) / (tau**u + tau ** (redundancy - u)) for u in range(redundancy + 1)
    )
    assert theory.beta_symmetric_bound(0.3, redundancy, 0.1) == pytest.approx(printed, rel=1e-12)


@pytest.mark.parametrize("redundancy", [1, 2, 3, 8, 25])
@pytest.mark.parametrize("error_rate", RATES)
def test_the_closed_form_is_above_the_exact_value_and_equal_only_without_error(
    error_rate: float, redundancy: int
) -> None:  # erratum 3
    exact, bound = theory.beta_symmetric, theory.beta_symmetric_bound
    assert bound(error_rate, redundancy) == pytest.approx(exact(error_rate, redundancy), rel=1e-12)
    assert bound(error_rate, redundancy, 0.01) > exact(error_rate, redundancy, 0.01)


@pytest.mark.parametrize(
    ("error_rate", "redundancy", "exact", "printed"), [(0.32, 28, 0.03621, 0.03605), (0.46, 30, 0.418, 0.3973)]
)
def test_the_truncated_sum_of_the_appendix_is_no_bound(
    error_rate: float, redundancy: int, exact: float, printed: float
) -> None:  # erratum 4
    odds = (1 - error_rate) / error_rate
    truncated = error_rate**redundancy * sum(comb(redundancy, u) * odds**u for u in range(ceil(redundancy / 2) + 1))
    assert truncated == pytest.approx(printed, abs=6e-5)
    assert theory.beta_symmetric(error_rate, redundancy) == pytest.approx(exact, abs=6e-6)
    assert theory.beta_symmetric(error_rate, redundancy) > truncated


def test_an_estimate_within_epsilon_can_exceed_the_closed_form() -> None:
    lopsided = [[[0.95, 0.05], [0.15, 0.85]]]
    beta = theory.beta(symmetric(0.1), 7, estimate=lopsided)
    assert beta > theory.beta_symmetric_bound(0.1, 7, 0.05) > theory.beta_symmetric(0.1, 7, 0.05)


@pytest.mark.parametrize("redundancy", [1, 2, 3])
@pytest.mark.parametrize(("error_rate", "epsilon"), [(0.1, 0.05), (0.05, 0.1), (0.3, 0.1), (0.0, 0.1)])
def test_no_estimate_within_epsilon_exceeds_the_worst_case(error_rate: float, epsilon: float, redundancy: int) -> None:
    step = np.array([-1, -0.5, 0, 0.5, 1]) * epsilon
    right = np.unique(np.clip(1 - error_rate + step, 0, 1 - 1e-12))
    matrices = [[[a, 1 - a], [1 - b, b]] for a, b in product(right, repeat=2)]
    worst = max(
        theory.beta(symmetric(error_rate, 2), redundancy, estimate=pair)
        for pair in product(matrices[::3] + matrices[-1:], repeat=2)
    )
    assert worst <= theory.beta_symmetric_worst_case(error_rate, redundancy, epsilon) + 1e-12


@pytest.mark.parametrize("error_rate", [0.0, *RATES])
def test_the_worst_case_is_exact_without_error(error_rate: float) -> None:
    exact = theory.beta_symmetric(error_rate, 5)
    assert theory.beta_symmetric_worst_case(error_rate, 5) == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("error_rate", GRID)
def test_one_label_has_beta_two_rho_times_one_minus_rho(error_rate: float) -> None:
    assert theory.beta_symmetric(error_rate, 1) == pytest.approx(2 * error_rate * (1 - error_rate), rel=1e-12)


@pytest.mark.parametrize("error_rate", GRID)
def test_beta_falls_with_redundancy(error_rate: float) -> None:
    beta = [theory.beta_symmetric(error_rate, redundancy) for redundancy in range(1, 51)]
    assert (np.diff(beta) < 0).all()


@pytest.mark.parametrize("error_rate", GRID)
def test_beta_is_between_the_majority_error_and_twice_it(error_rate: float) -> None:  # Cover and Hart
    for redundancy in range(1, 51):
        error, beta = theory.majority_error(error_rate, redundancy), theory.beta_symmetric(error_rate, redundancy)
        assert error * (1 - 1e-9) <= beta <= 2 * error * (1 - error) * (1 + 1e-9)


@pytest.mark.parametrize("redundancy", [1, 2, 5])
@pytest.mark.parametrize("error_rate", RATES)
def test_one_minus_two_beta_is_the_mean_squared_margin(error_rate: float, redundancy: int) -> None:
    mean_square = 0.0
    for labels in product([0, 1], repeat=redundancy):
        n_wrong = sum(labels)
        first = error_rate**n_wrong * (1 - error_rate) ** (redundancy - n_wrong)
        second = error_rate ** (redundancy - n_wrong) * (1 - error_rate) ** n_wrong
        mean_square += (first + second) / 2 * ((first - second) / (first + second)) ** 2
    assert 1 - 2 * theory.beta_symmetric(error_rate, redundancy) == pytest.approx(mean_square, rel=1e-9)


@pytest.mark.parametrize("redundancy", [1, 2, 3, 6])
def test_majority_error_equals_the_enumeration(redundancy: int) -> None:
    expected = 0.0
    for wrong in product([0, 1], repeat=redundancy):
        lost = {-1: 0.0, 0: 0.5, 1: 1.0}[int(np.sign(2 * sum(wrong) - redundancy))]
        expected += lost * 0.3 ** sum(wrong) * 0.7 ** (redundancy - sum(wrong))
    assert theory.majority_error(0.3, redundancy) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("redundancy", [1, 2, 5])
def test_perfect_workers_leave_no_noise(redundancy: int) -> None:
    assert theory.beta_symmetric(0.0, redundancy) == theory.beta_symmetric_bound(0.0, redundancy) == 0
    assert theory.beta_symmetric_worst_case(0.0, redundancy) == theory.majority_error(0.0, redundancy) == 0
    assert theory.beta(IDENTITY, redundancy) == theory.alpha(IDENTITY) == 0


def test_many_labels_neither_overflow_nor_underflow() -> None:
    assert 0 < theory.beta_symmetric(0.4, 5000) < 1e-40
