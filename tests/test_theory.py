"""Alpha, beta and the threshold of one label per task, against plain enumeration and values computed by other code."""

from itertools import product
from math import ceil, comb, prod, sqrt
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from labelonce import simulate, theory
from labelonce._types import Floats
from labelonce.theory import _beta_symmetric, _bound_factor, _crossing_skill, _majority_error

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


def enumerated_beta(confusion: Floats, redundancy: int) -> float:
    """The appendix's definition, word by word: every sequence of workers and of labels."""
    n_workers, n_classes, _ = confusion.shape
    largest = []
    for workers in product(range(n_workers), repeat=redundancy):
        wrong = np.zeros(n_classes)
        for labels in product(range(n_classes), repeat=redundancy):
            pairs = list(zip(workers, labels, strict=True))
            chance = np.array([prod(confusion[w, y, z] for w, z in pairs) for y in range(n_classes)])
            wrong += chance * (1 - chance / chance.sum())
        largest.append(wrong.max())
    return float(np.mean(largest))


def test_alpha_is_the_mean_of_each_workers_worse_class_and_counts_all_wrong_labels() -> None:
    confusion = [[[0.9, 0.1], [0.3, 0.7]], [[0.6, 0.4], [0.2, 0.8]]]
    assert theory.alpha(confusion) == pytest.approx((0.3 + 0.4) / 2)
    assert theory.alpha(simulate.one_coin([0.7], n_classes=4)) == pytest.approx(0.3)


@pytest.mark.parametrize(("n_classes", "redundancy"), [(2, 1), (2, 3), (3, 2)])
def test_beta_equals_the_definition_enumerated(n_classes: int, redundancy: int) -> None:
    confusion = simulate.dirichlet(3, n_classes, rng=0)[[0, 1, 2, 1]]
    before = confusion.copy()
    assert theory.beta(confusion, redundancy) == pytest.approx(enumerated_beta(confusion, redundancy), rel=1e-12)
    assert (confusion == before).all()


@pytest.mark.parametrize("redundancy", [1, 2, 3, 8])
def test_beta_of_symmetric_workers_is_the_special_case(redundancy: int) -> None:
    assert theory.beta(symmetric(0.2, 3), redundancy) == pytest.approx(_beta_symmetric(0.2, redundancy), rel=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_label_of_hammers_and_spammers_has_beta_equal_to_alpha(n_classes: int) -> None:
    confusion = simulate.hammer_spammer(10, n_classes, quality=0.3, rng=0, exact=True)
    assert theory.alpha(confusion) == pytest.approx(0.7 * (1 - 1 / n_classes))
    assert theory.beta(confusion, 1) == pytest.approx(theory.alpha(confusion), rel=1e-12)


@pytest.mark.parametrize("error_rate", GRID)
def test_one_label_of_any_other_symmetric_worker_has_beta_above_alpha(error_rate: float) -> None:
    assert theory.beta(symmetric(error_rate), 1) > theory.alpha(symmetric(error_rate))


@pytest.mark.parametrize("redundancy", BETA)
def test_beta_of_alike_workers_has_the_exact_values(redundancy: int) -> None:
    found = [_beta_symmetric(error_rate, redundancy) for error_rate in RATES]
    assert_allclose(found, BETA[redundancy], rtol=0, atol=6e-7)


@pytest.mark.parametrize("redundancy", [1, 4, 7])
def test_the_closed_form_of_the_paper_is_the_exact_value_of_known_workers(redundancy: int) -> None:
    tau = 0.3 / 0.7
    terms = [comb(redundancy, u) / (tau**u + tau ** (redundancy - u)) for u in range(redundancy + 1)]
    assert _beta_symmetric(0.3, redundancy) == pytest.approx(0.3**redundancy * sum(terms), rel=1e-12)


@pytest.mark.parametrize(
    ("error_rate", "redundancy", "exact", "printed"), [(0.32, 28, 0.03621, 0.03605), (0.46, 30, 0.418, 0.3973)]
)
def test_the_sum_of_the_appendix_is_no_bound(error_rate: float, redundancy: int, exact: float, printed: float) -> None:
    odds = (1 - error_rate) / error_rate
    truncated = error_rate**redundancy * sum(comb(redundancy, u) * odds**u for u in range(ceil(redundancy / 2) + 1))
    assert truncated == pytest.approx(printed, abs=6e-5)
    assert _beta_symmetric(error_rate, redundancy) == pytest.approx(exact, abs=6e-6)
    assert _beta_symmetric(error_rate, redundancy) > truncated


@pytest.mark.parametrize("error_rate", GRID)
def test_beta_falls_with_redundancy_between_the_majority_error_and_twice_it(error_rate: float) -> None:
    beta = [_beta_symmetric(error_rate, redundancy) for redundancy in range(1, 51)]
    error = np.array([_majority_error(error_rate, redundancy) for redundancy in range(1, 51)])
    assert (np.diff(beta) < 0).all()
    assert (error * (1 - 1e-9) <= beta).all()
    assert (beta <= 2 * error * (1 - error) * (1 + 1e-9)).all()  # Cover and Hart 1967


@pytest.mark.parametrize("redundancy", [1, 2, 3, 6])
def test_majority_error_equals_the_enumeration(redundancy: int) -> None:
    expected = 0.0
    for wrong in product([0, 1], repeat=redundancy):
        lost = {-1: 0.0, 0: 0.5, 1: 1.0}[int(np.sign(2 * sum(wrong) - redundancy))]
        expected += lost * 0.3 ** sum(wrong) * 0.7 ** (redundancy - sum(wrong))
    assert _majority_error(0.3, redundancy) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("redundancy", [1, 2, 5])
def test_perfect_workers_leave_no_noise(redundancy: int) -> None:
    assert theory.beta(IDENTITY, redundancy) == theory.alpha(IDENTITY) == 0
    assert _beta_symmetric(0.0, redundancy) == _majority_error(0.0, redundancy) == 0
    assert 0 < _beta_symmetric(0.4, 1000 * redundancy) < 1e-8  # neither overflow nor underflow


@pytest.mark.parametrize(
    ("redundancy", "skill"), [(2, 0.8218), (3, 0.8233), (4, 0.8099), (5, 0.8015), (7, 0.7853), (9, 0.7726)]
)
def test_crossing_skills_are_the_exact_ones(redundancy: int, skill: float) -> None:
    assert _crossing_skill(redundancy) == pytest.approx(skill, abs=6e-5)


@pytest.mark.parametrize("redundancy", [2, 3, 10, 1000])
def test_one_label_is_better_exactly_above_the_crossing(redundancy: int) -> None:
    crossing = _crossing_skill(redundancy)
    for skill in 1 - np.array(GRID[:-1]):
        better = _bound_factor(1 - skill, 1) < _bound_factor(1 - skill, redundancy)
        assert better == (skill > crossing)


def test_the_label_once_threshold_and_the_factors_are_those_of_methods() -> None:
    threshold = theory.label_once_threshold()
    assert threshold.skill == pytest.approx(1 - 0.17668, abs=6e-6)
    assert threshold.rival == 3
    beta, error = 0.314659, 0.216
    assert _bound_factor(0.3, 3) == pytest.approx(sqrt(3) / (1 - 2 * beta), rel=1e-5)
    assert _bound_factor(0.3, 3, "variance") == pytest.approx(sqrt(3 / (1 - 2 * beta)), rel=1e-5)
    assert _bound_factor(0.3, 3, "hard") == pytest.approx(sqrt(3) / (1 - 2 * error), rel=1e-12)


@pytest.mark.parametrize(
    ("error_rate", "best"),
    [(0.1766, 1), (0.1768, 3), (0.234, 3), (0.236, 4), (0.250, 4), (0.252, 5), (0.30, 7), (0.35, 14), (0.40, 32)],
)
def test_best_redundancy_by_the_theorem(error_rate: float, best: int) -> None:
    assert theory.best_redundancy(error_rate) == best


@pytest.mark.parametrize("bound", ["hard", "variance"])
def test_one_label_is_always_best_by_the_sharper_arguments(bound: Any) -> None:
    assert {theory.best_redundancy(rate, bound=bound) for rate in np.arange(0.005, 0.5, 0.005).tolist()} == {1}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.alpha([[0.5, 0.5]]), r"confusion must have shape .*; got \(1, 2\)\."),
        (lambda: theory.alpha([[[0.5, 0.4], [0.5, 0.5]]]), r"confusion must sum to 1; got 0\.9 at \(0, 0\)"),
        (lambda: theory.beta(IDENTITY, 0), r"redundancy must be .* at least 1; got 0\."),
        (
            lambda: theory.beta(simulate.dirichlet(50, 2, rng=0), 5),
            r"at most 4194304 terms; got 101200320: 3162510 sets of workers times 32 of labels\. Give fewer",
        ),
        (lambda: theory.beta(IDENTITY, 23), r"at most 4194304 terms; got 8388608: 1 sets"),
        (lambda: theory.best_redundancy(0.5), r"error_rate must be in \[0, 0\.5\); got 0\.5\."),
        (lambda: theory.best_redundancy(-0.1), r"error_rate must be at least 0; got -0\.1\."),
        (lambda: theory.best_redundancy(0.1, bound="soft"), r"bound must be one of .*'variance'; got 'soft'\."),  # type: ignore[arg-type]
        (lambda: theory.best_redundancy(0.1, max_redundancy=0), r"max_redundancy must be .* at least 1; got 0\."),
        (lambda: theory.label_once_threshold(1), r"max_redundancy must be .* at least 2; got 1\."),
    ],
)
def test_an_argument_out_of_range_is_named_with_its_value(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
