"""Factors are the matrices that they stand for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from labelonce._kernels import Factors, Mistakes, one_coin_confusion
from labelonce._types import Floats

GROUP = np.array([0, 1, 0, 2, 1, 0, 1], dtype=np.int32)


def uneven(seed: int = 0) -> Factors:
    """Return factors with two rows, a few pairs of uneven shares, and something for all other labels."""
    rng = np.random.default_rng(seed)
    mistakes = Mistakes.of([0, 0, 1, 3, 3, 3, 3], [1, 4, 0, 0, 1, 2, 4], 5)
    pairs = np.bincount(mistakes.true, minlength=5)
    left = np.where(pairs == 4, 0.0, 0.3)
    share = rng.uniform(0.2, 1, len(mistakes))
    share *= ((1 - left) / np.bincount(mistakes.true, share, 5).clip(1e-9))[mistakes.true]
    other = np.where(pairs == 0, 0.25, left / np.maximum(4 - pairs, 1))
    return Factors(rng.uniform(0.1, 0.9, (3, 2)), np.array([0, 1, 1, 0, 1], np.int32), mistakes, share, other)


FACTORS = {
    "one coin": Factors.one_coin(np.array([0.8, 0.3]), 4),
    "class-wise": Factors.one_coin(np.array([[0.8, 0.3, 0.1], [0.2, 0.4, 1.0]]), 3),
    "groups": Factors.inside(np.array([[0.7], [0.2]]), np.zeros(7, np.int32), GROUP),
    "crowd": uneven(),
}


def brute_force(factors: Factors) -> Floats:
    matrix = np.zeros(factors.shape)
    for worker, true, given in np.ndindex(*factors.shape):
        right = factors.right[worker, factors.row[true]]
        pair = np.flatnonzero((factors.mistakes.true == true) & (factors.mistakes.given == given))
        share = factors.share[pair[0]] if len(pair) else factors.other_share[true]
        matrix[worker, true, given] = right if true == given else (1 - right) * share
    return matrix


@pytest.mark.parametrize("name", FACTORS)
def test_matrices_are_what_the_formula_says(name: str) -> None:
    factors = FACTORS[name]
    expected = brute_force(factors)
    assert_allclose(factors.dense(), expected, rtol=1e-12)
    assert_allclose(factors.confusion(1), expected[1], rtol=1e-12)
    entries = factors.probability(*np.indices(factors.shape))
    assert_allclose(entries, expected, rtol=1e-12)


@pytest.mark.parametrize("name", FACTORS)
def test_labels_are_drawn_with_the_chances_of_the_matrix(name: str) -> None:
    factors = FACTORS[name]
    n, (n_workers, n_classes, _) = 4000, factors.shape
    worker, true = (np.repeat(part.ravel(), n).astype(np.int32) for part in np.indices((n_workers, n_classes)))
    uniform = np.tile((np.arange(n) + 0.5) / n, n_workers * n_classes)  # an even grid: shares are exact to one step
    counts = np.zeros(factors.shape)
    np.add.at(counts, (worker, true, factors.draw(worker, true, uniform)), 1)
    lone = np.flatnonzero(factors.dense().sum(axis=2)[0] < 1 - 1e-9)  # a group of one: nobody errs anywhere else
    kept = np.setdiff1d(np.arange(n_classes), lone)
    assert_allclose(counts[:, kept] / n, factors.dense()[:, kept], atol=2 / n)


@pytest.mark.parametrize("name", FACTORS)
def test_skill_is_the_mean_diagonal(name: str) -> None:
    factors = FACTORS[name]
    prior = np.random.default_rng(0).dirichlet(np.ones(factors.n_classes))
    assert_allclose(factors.skill(prior), np.einsum("wkk,k->w", factors.dense(), prior), rtol=1e-12)
    assert_array_equal(factors.diagonal(), np.einsum("wkk->wk", factors.dense()))


def test_one_coin_factors_are_the_one_coin_matrices_and_some_workers_keep_theirs() -> None:
    right = np.array([[0.8, 0.2, 0.5], [0.1, 0.9, 0.3]])
    assert_allclose(Factors.one_coin(right, 3).dense(), one_coin_confusion(right, 3), rtol=1e-12)
    assert_allclose(Factors.one_coin(right[:, 0], 5).dense(), one_coin_confusion(right[:, 0], 5), rtol=1e-12)
    assert_array_equal(Factors.one_coin(right[:, 0], 1).dense(), np.ones((2, 1, 1)))
    factors = uneven()
    assert_array_equal(factors.select([2, 0]).dense(), factors.dense()[[2, 0]])


def test_matrices_above_the_stated_size_are_refused_before_they_are_made() -> None:
    factors = Factors.one_coin(np.full(2000, 0.5), 1000)
    with pytest.raises(ValueError, match=r"at most 134,217,728 entries .* got 2,000 workers with 1,000 x 1,000"):
        factors.dense()
    assert factors.confusion(7).shape == (1000, 1000)
