"""Metrics against plain loops, scikit-learn and scipy."""

import re
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import sklearn.metrics
from numpy.testing import assert_array_equal
from scipy import stats

from labelonce import metrics, simulate


@pytest.fixture
def posterior() -> Any:
    """Return a posterior with many ties for the top class, shape (300, 4)."""
    counts = np.random.default_rng(0).integers(0, 4, size=(300, 4)) + np.array([1, 0, 0, 0])
    return counts / counts.sum(axis=1, keepdims=True)


@pytest.fixture
def y_true() -> Any:
    """Return class codes, a fifth of them unknown."""
    return np.random.default_rng(1).integers(-1, 4, size=300)


def right_shares(y_true: Any, posterior: Any) -> list[float]:
    shares = []
    for true, row in zip(y_true, posterior, strict=True):
        tied = [k for k in range(len(row)) if row[k] == max(row)]
        if true >= 0:
            shares.append(1 / len(tied) if true in tied else 0.0)
    return shares


def test_accuracy_shares_ties_and_is_scikit_learns(y_true: Any, posterior: Any) -> None:
    assert metrics.accuracy(y_true, posterior) == pytest.approx(np.mean(right_shares(y_true, posterior)), rel=1e-12)
    labels = np.random.default_rng(2).integers(4, size=300)
    expected = sklearn.metrics.accuracy_score(y_true[y_true >= 0], labels[y_true >= 0])
    assert metrics.accuracy(y_true, labels) == pytest.approx(expected, rel=1e-12)
    assert metrics.accuracy([1], [[0.5 + 1e-11, 0.5 - 1e-11]]) == 0.5
    assert metrics.accuracy([1], [[0.5 + 1e-8, 0.5 - 1e-8]]) == 0.0


def test_log_loss_is_scikit_learns(y_true: Any) -> None:
    posterior = np.random.default_rng(3).dirichlet(np.ones(4), size=300)
    expected = sklearn.metrics.log_loss(y_true[y_true >= 0], posterior[y_true >= 0], labels=range(4))
    assert metrics.log_loss(y_true, posterior) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_log_loss_of_an_impossible_class_is_that_of_epsilon(dtype: Any) -> None:
    epsilon = np.finfo(np.float32 if dtype == np.float32 else np.float64).eps
    assert metrics.log_loss([1], np.array([[1, 0]], dtype=dtype)) == pytest.approx(-np.log(epsilon), rel=1e-12)


@pytest.mark.parametrize("n_bins", [1, 7, 15])
def test_calibration_error_is_that_of_a_loop_over_bins(n_bins: int, posterior: Any) -> None:
    rng = np.random.default_rng(5)
    posterior = np.vstack([posterior, rng.dirichlet(np.ones(4), size=300)])
    y_true = np.array([rng.choice(4, p=row) for row in posterior])  # so that the bins err both ways
    y_true[::7] = -1
    shares, top = np.array(right_shares(y_true, posterior)), posterior[y_true >= 0].max(axis=1)
    expected = 0.0
    for i in range(n_bins):
        inside = (top > i / n_bins) & (top <= (i + 1) / n_bins)
        if inside.any():
            expected += inside.mean() * abs(shares[inside].mean() - top[inside].mean())
    assert metrics.calibration_error(y_true, posterior, n_bins) == pytest.approx(expected, rel=1e-12)


def test_calibration_bins_hold_their_upper_edge_and_err_nowhere_where_labels_follow() -> None:
    error = metrics.calibration_error([0, 1], [[0.5, 0.25, 0.25], [0.7, 0.2, 0.1]], n_bins=4)
    assert error == pytest.approx((abs(1 - 0.5) + abs(0 - 0.7)) / 2)
    posterior = np.repeat([[0.7, 0.3], [0.1, 0.9]], 10, axis=0)
    assert metrics.calibration_error([0] * 7 + [1] * 12 + [0], posterior) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("shape", [None, (5,), (5, 3)])
def test_confusion_error_is_that_of_a_loop(shape: Any) -> None:
    first, second = simulate.dirichlet(5, 3, 0), simulate.dirichlet(5, 3, 1)
    weight = None if shape is None else np.random.default_rng(0).random(shape)
    total, mass = 0.0, 0.0
    for worker in range(5):
        for true in range(3):
            w = 1.0 if weight is None else float(weight[worker] if shape == (5,) else weight[worker, true])
            total += w * sum(abs(first[worker, true, given] - second[worker, true, given]) for given in range(3)) / 2
            mass += w
    assert metrics.confusion_error(first, second, weight=weight) == pytest.approx(total / mass, rel=1e-12)


def test_confusion_error_max_is_the_largest_difference_of_weighted_rows_of_any_answers() -> None:
    first = simulate.one_coin([0.9, 0.5, 0.8], 2)
    second = simulate.one_coin([0.8, 1.0, 0.5], 2)
    assert metrics.confusion_error(first, second, norm="max") == pytest.approx(0.5)
    assert metrics.confusion_error(first, second, norm="max", weight=[3, 0, 1]) == pytest.approx(0.3)
    true, found = np.array([[[0.5, 0.2, 0.3], [0.1, 0.9, 0.0]]]), np.array([[[0.5, 0.3, 0.2], [0.1, 0.9, 0.0]]])
    assert metrics.confusion_error(true, found) == pytest.approx(0.05)
    assert metrics.confusion_error(true, found, norm="max") == pytest.approx(0.1)


@pytest.mark.parametrize("norm", ["total_variation", "max"])
def test_opposite_workers_are_at_distance_one(norm: Any) -> None:
    hammer, liar = simulate.one_coin([1.0], 2), simulate.one_coin([0.0], 2)
    assert metrics.confusion_error(hammer, liar, norm=norm) == 1
    assert metrics.confusion_error(hammer, hammer, norm=norm) == 0


def test_rank_correlation_is_scipys_with_ties() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(6, size=40) / 5, rng.integers(9, size=40) / 8
    expected = stats.spearmanr(first, second).statistic
    assert metrics.rank_correlation(first, second) == pytest.approx(expected, rel=1e-12)


def test_unknown_tasks_are_left_out(y_true: Any, posterior: Any) -> None:
    known, before = y_true >= 0, (y_true.copy(), posterior.copy())
    for metric in (metrics.accuracy, metrics.log_loss, metrics.calibration_error):
        assert metric(y_true, posterior) == metric(y_true[known], posterior[known])
    assert_array_equal(y_true, before[0])
    assert_array_equal(posterior, before[1])


HALF = np.full((3, 2, 2), 0.5)
BAD_CALLS: list[tuple[Callable[[], Any], str]] = [
    (lambda: metrics.accuracy([-1, -1], [0, 1]), "got -1 for all 2"),
    (lambda: metrics.log_loss([-1], [[0.5, 0.5]]), "got -1 for all 1"),
    (lambda: metrics.accuracy([0, 1], [0, -1]), "got -1 at position 1"),
    (lambda: metrics.accuracy([0, 1], [0, 1, 1]), "shape (3,); got shape (2,)"),
    (lambda: metrics.accuracy([0], [[[1.0]]]), "(n_tasks, n_classes); got (1, 1, 1)"),
    (lambda: metrics.accuracy([0, 2], [[0.5, 0.5]] * 2), "in [0, 2); got 2 at position 1 (1 in total)"),
    (lambda: metrics.accuracy([0, -2], [[0.5, 0.5]] * 2), "in [0, 2); got -2 at position 1 (1 in total)"),
    (lambda: metrics.log_loss([0], [0.5, 0.5]), "posterior must have shape (n_tasks, n_classes); got (2,)"),
    (lambda: metrics.log_loss([0, 0], [[1, 0], [0.5, 0.6]]), "posterior must sum to 1; got 1.1 at (1,)"),
    (lambda: metrics.calibration_error([0], [[1.0, 0.0]], 0), "n_bins must be an integer of at least 1; got 0"),
    (lambda: metrics.confusion_error(HALF, HALF[:2]), "confusion must have shape (3, 2, 2); got (2, 2, 2)"),
    (lambda: metrics.confusion_error(HALF[0], HALF[0]), "at least as many answers as classes; got (2, 2)"),
    (lambda: metrics.confusion_error(HALF, HALF, norm=cast(Any, "l2")), "'total_variation', 'max'; got 'l2'"),
    (lambda: metrics.confusion_error(HALF, HALF, weight=[1, 2]), "weight must have shape (3,) or (3, 2); got (2,)"),
    (lambda: metrics.confusion_error(HALF, HALF, weight=[1, -2, 1]), "at least 0; got -2.0 at (1,) (1 in total)"),
    (lambda: metrics.confusion_error(HALF, HALF, weight=[0, 0, 0]), "got 0 for all 3"),
    (lambda: metrics.rank_correlation([1, 1, 1], [1, 2, 3]), "skill_true must differ between workers"),
    (lambda: metrics.rank_correlation([1, 2, 3], [2, 2, 2]), "got 2.0 for all 3"),
    (lambda: metrics.rank_correlation([1, 2, 3], [1, 2]), "one entry per worker, 3 as skill_true; got 2"),
    (lambda: metrics.rank_correlation([1, 2], [1, np.nan]), "skill must be finite; got nan at worker 1"),
    (lambda: metrics.rank_correlation([1], [1]), "for two at least; got shape (1,)"),
]


@pytest.mark.parametrize(("call", "message"), BAD_CALLS, ids=[message for _, message in BAD_CALLS])
def test_bad_argument_is_named_with_its_value(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


@pytest.mark.parametrize("y_true", [[0.0, 1.0], ["0", "1"]])
def test_true_labels_must_be_codes(y_true: Any) -> None:
    with pytest.raises(TypeError, match="y_true where not -1 must be a one-dimensional integer array; got"):
        metrics.accuracy(y_true, [[0.5, 0.5]] * 2)
