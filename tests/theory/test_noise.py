"""Alpha and beta of any workers, against plain enumeration of the appendix."""

from itertools import product
from math import prod, sqrt

import numpy as np
import pytest

from labelonce import simulate, theory
from labelonce._types import Floats

GRID = np.arange(0.01, 0.5, 0.01).tolist()


def symmetric(error_rate: float, n_workers: int = 1) -> Floats:
    return simulate.one_coin([1 - error_rate] * n_workers, n_classes=2)


def enumerated_beta(confusion: Floats, redundancy: int, estimate: Floats) -> float:
    """The appendix's definition, word by word: every sequence of workers and of labels."""
    n_workers, n_classes, _ = confusion.shape
    largest = []
    for workers in product(range(n_workers), repeat=redundancy):
        wrong = np.zeros(n_classes)
        for labels in product(range(n_classes), repeat=redundancy):
            pairs = list(zip(workers, labels, strict=True))
            chance = np.array([prod(confusion[w, y, z] for w, z in pairs) for y in range(n_classes)])
            weight = np.array([prod(estimate[w, y, z] for w, z in pairs) for y in range(n_classes)])
            wrong += chance * (1 - weight / weight.sum())
        largest.append(wrong.max())
    return float(np.mean(largest))


def test_alpha_of_symmetric_workers_is_their_error_rate() -> None:
    assert theory.alpha(symmetric(0.2, n_workers=5)) == pytest.approx(0.2)


def test_alpha_takes_each_workers_worse_class_and_then_the_mean() -> None:
    confusion = [[[0.9, 0.1], [0.3, 0.7]], [[0.6, 0.4], [0.2, 0.8]]]
    assert theory.alpha(confusion) == pytest.approx((0.3 + 0.4) / 2)


def test_alpha_counts_all_wrong_labels_of_many_classes() -> None:
    assert theory.alpha(simulate.one_coin([0.7], n_classes=4)) == pytest.approx(0.3)


@pytest.mark.parametrize(("n_classes", "redundancy"), [(2, 1), (2, 3), (3, 2)])
def test_beta_equals_the_definition_enumerated(n_classes: int, redundancy: int) -> None:
    confusion = simulate.dirichlet(3, n_classes, rng=0)[[0, 1, 2, 1]]
    estimate = simulate.dirichlet(4, n_classes, rng=1)
    expected = enumerated_beta(confusion, redundancy, estimate)
    assert theory.beta(confusion, redundancy, estimate=estimate) == pytest.approx(expected, rel=1e-12)


def test_beta_counts_alike_workers_as_often_as_they_are() -> None:
    confusion = simulate.dirichlet(2, 2, rng=0)[[0, 0, 1, 0]]
    assert theory.beta(confusion, 3) == pytest.approx(enumerated_beta(confusion, 3, confusion), rel=1e-12)


def test_beta_in_many_chunks_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    confusion = simulate.dirichlet(5, 2, rng=0)
    whole = theory.beta(confusion, 3)
    monkeypatch.setattr("labelonce.theory._noise._CHUNK", 64)
    assert theory.beta(confusion, 3) == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize("redundancy", [1, 2, 3, 8])
@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_beta_of_symmetric_workers_is_the_special_case(redundancy: int, epsilon: float) -> None:
    general = theory.beta(symmetric(0.2, 3), redundancy, estimate=symmetric(0.2 + epsilon, 3))
    assert general == pytest.approx(theory.beta_symmetric(0.2, redundancy, epsilon), rel=1e-12)


def test_beta_of_one_label_uses_the_weights_of_the_paper() -> None:
    right, other = 0.9, 0.6  # section 4.1: weights pi_y / (1 + pi_y - pi_-y) and (1 - pi_-y) / (1 + pi_y - pi_-y)
    wrong_if_first = right * (1 - other) / (1 + right - other) + (1 - right) * other / (1 + other - right)
    wrong_if_second = other * (1 - right) / (1 + other - right) + (1 - other) * right / (1 + right - other)
    confusion = [[[right, 1 - right], [1 - other, other]]]
    assert theory.beta(confusion, 1) == pytest.approx(max(wrong_if_first, wrong_if_second), rel=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_label_of_hammers_and_spammers_has_beta_equal_to_alpha(n_classes: int) -> None:
    confusion = simulate.hammer_spammer(10, n_classes, quality=0.3, rng=0, exact=True)
    assert theory.alpha(confusion) == pytest.approx(0.7 * (1 - 1 / n_classes))
    assert theory.beta(confusion, 1) == pytest.approx(theory.alpha(confusion), rel=1e-12)


@pytest.mark.parametrize("error_rate", GRID)
def test_one_label_of_any_other_symmetric_worker_has_beta_above_alpha(error_rate: float) -> None:
    assert theory.beta(symmetric(error_rate), 1) > theory.alpha(symmetric(error_rate))


def test_beta_of_hammers_and_spammers_needs_a_task_of_spammers_only() -> None:
    confusion = simulate.hammer_spammer(4, 2, quality=0.25, rng=0, exact=True)
    assert theory.beta(confusion, 3) == pytest.approx(0.75**3 / 2, rel=1e-12)


def test_beta_does_not_change_its_arguments() -> None:
    confusion, estimate = simulate.dirichlet(3, 2, rng=0), simulate.dirichlet(3, 2, rng=1)
    before = confusion.copy(), estimate.copy()
    theory.beta(confusion, 2, estimate=estimate)
    assert (confusion == before[0]).all()
    assert (estimate == before[1]).all()


def test_monte_carlo_is_within_its_standard_errors() -> None:
    confusion, estimate = simulate.dirichlet(6, 3, rng=0), simulate.dirichlet(6, 3, rng=1)
    exact = theory.beta(confusion, 2, estimate=estimate)
    found = [theory.beta_monte_carlo(confusion, 2, seed, estimate=estimate, draws=400) for seed in range(50)]
    score = np.array([(one.mean - exact) / one.standard_error for one in found])
    assert abs(score.mean()) < 3 / sqrt(50)
    assert 0.7 < score.std() < 1.3


def test_monte_carlo_repeats_with_its_seed() -> None:
    confusion = simulate.dirichlet(6, 2, rng=0)
    first, again, other = (theory.beta_monte_carlo(confusion, 2, seed, draws=50) for seed in (0, 0, 1))
    assert first == again != other
