"""The label-once threshold against values computed exactly, by other code."""

from math import sqrt
from typing import Any

import numpy as np
import pytest

from labelonce import theory

GRID = np.arange(0.01, 0.5, 0.01).tolist()


@pytest.mark.parametrize(
    ("redundancy", "skill"), [(2, 0.8218), (3, 0.8233), (4, 0.8099), (5, 0.8015), (7, 0.7853), (9, 0.7726)]
)
def test_crossing_skills_are_the_exact_ones(redundancy: int, skill: float) -> None:
    assert theory.crossing_skill(redundancy) == pytest.approx(skill, abs=6e-5)


@pytest.mark.parametrize("redundancy", [2, 3, 10, 1000])
def test_one_label_is_better_exactly_above_the_crossing(redundancy: int) -> None:
    crossing = theory.crossing_skill(redundancy)
    for skill in 1 - np.array(GRID[:-1]):
        better = theory.bound_factor(1 - skill, 1) < theory.bound_factor(1 - skill, redundancy)
        assert better == (skill > crossing)


def test_the_label_once_threshold_is_set_by_three_labels() -> None:
    threshold = theory.label_once_threshold()
    assert threshold.skill == pytest.approx(1 - 0.17668, abs=6e-6)
    assert threshold.rival == 3


@pytest.mark.parametrize(
    ("error_rate", "best"),
    [(0.1766, 1), (0.1768, 3), (0.234, 3), (0.236, 4), (0.250, 4), (0.252, 5), (0.30, 7), (0.35, 14), (0.40, 32)],
)
def test_best_redundancy_by_the_theorem(error_rate: float, best: int) -> None:
    assert theory.best_redundancy(error_rate) == best


def test_two_labels_are_never_best() -> None:
    assert 2 not in {theory.best_redundancy(rate, max_redundancy=5) for rate in np.arange(0.001, 0.499, 0.002).tolist()}


@pytest.mark.parametrize("error_rate", np.arange(0.005, 0.5, 0.005).tolist())
@pytest.mark.parametrize("bound", ["hard", "variance"])
def test_one_label_is_always_best_by_the_sharper_arguments(bound: Any, error_rate: float) -> None:
    assert theory.best_redundancy(error_rate, bound=bound) == 1


def test_the_factors_are_those_of_methods() -> None:
    beta, error = 0.314659, 0.216
    assert theory.bound_factor(0.3, 3) == pytest.approx(sqrt(3) / (1 - 2 * beta), rel=1e-5)
    assert theory.bound_factor(0.3, 3, "variance") == pytest.approx(sqrt(3 / (1 - 2 * beta)), rel=1e-5)
    assert theory.bound_factor(0.3, 3, "hard") == pytest.approx(sqrt(3) / (1 - 2 * error), rel=1e-12)


def test_the_theorems_bound_is_proportional_to_its_factor() -> None:
    setting = {"n_annotations": 10**6, "vc_dimension": 10}
    bound = [theory.excess_risk_bound(theory.beta_symmetric(0.3, r), redundancy=r, **setting) for r in (1, 5)]
    factor = [theory.bound_factor(0.3, r) for r in (1, 5)]
    assert bound[0] / bound[1] == pytest.approx(factor[0] / factor[1], rel=1e-12)
