"""Chances on a grid: any population is found again."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from labelonce._types import Floats
from labelonce.workers._chance_grid import ChanceGrid, chance_grid


def learned(right: Floats, wrong: Floats, steps: int = 10) -> ChanceGrid:
    """Return what is learned from right and wrong labels by worker and row."""
    chances = ChanceGrid(*right.shape)
    grid = chances.grid
    for _ in range(steps):
        chances.learn(right[:, :, None] * np.log(grid) + wrong[:, :, None] * np.log1p(-grid))
    return chances


def labels(chance: Floats, n: int, seed: int = 0) -> tuple[Floats, Floats]:
    right = np.random.default_rng(seed).binomial(n, chance).astype(np.float64)
    return right, n - right


def test_experts_of_some_classes_are_told_from_guessers_by_few_labels() -> None:
    rng = np.random.default_rng(1)
    chance = np.where(rng.random((500, 10)) < 0.2, 1.0, 0.1)
    found = learned(*labels(chance, 5)).chance()
    assert np.sqrt(((found - chance) ** 2).mean()) < 0.09
    assert found[chance == 1].min() > 0.85


def test_rows_lean_on_the_worker_where_workers_differ() -> None:
    """Good and bad workers: a row without labels is as the worker's others are."""
    chance = np.repeat(np.where(np.arange(200) < 100, 0.9, 0.3)[:, None], 6, axis=1)
    right, wrong = labels(chance, 20)
    right[:, 5] = wrong[:, 5] = 0.0
    found = learned(right, wrong).chance()[:, 5]
    assert found[:100].min() > found[100:].max() + 0.3


@pytest.mark.parametrize("n_rows", [1, 4])
def test_intervals_cover_chances_of_many_labels(n_rows: int) -> None:
    chance = np.random.default_rng(2).uniform(0.2, 0.95, (300, n_rows))
    mean, variance = learned(*labels(chance, 400)).moments()
    assert np.abs(mean - chance).mean() < 0.03
    inside = np.abs(mean - chance) < 2 * np.sqrt(variance)
    assert inside.mean() > 0.9


def test_a_worker_without_labels_is_one_of_the_population() -> None:
    right, wrong = labels(np.full((100, 1), 0.7), 30)
    right[0] = wrong[0] = 0.0
    found = learned(right, wrong)
    assert found.chance()[0, 0] == pytest.approx(0.7, abs=0.05)
    a, b = found.population_
    assert a / (a + b) == pytest.approx(0.7, abs=0.05)


def test_the_grid_is_symmetric_and_inside() -> None:
    grid = chance_grid(9)
    assert_allclose(grid + grid[::-1], 1)
    assert 0 < grid[0] < grid[-1] < 1
