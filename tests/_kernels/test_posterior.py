import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp, softmax
from scipy.stats import entropy as entropy_of

from labelonce._kernels import entropy, mean_total_variation, normalise, top_class


@pytest.mark.parametrize(("n_tasks", "n_classes"), [(1, 1), (200_000, 2), (30_000, 10), (300, 1000)])
def test_normalise_is_the_softmax_over_all_blocks(n_tasks: int, n_classes: int) -> None:
    log_joint = np.random.default_rng(0).normal(scale=50, size=(n_tasks, n_classes))
    expected, evidence = softmax(log_joint, axis=1), logsumexp(log_joint, axis=1).sum()
    assert normalise(log_joint) == pytest.approx(evidence)
    assert_allclose(log_joint, expected, atol=1e-12)


def test_top_class_is_the_argmax_where_there_is_no_tie() -> None:
    posterior = np.random.default_rng(0).random((100_000, 3))
    assert_array_equal(top_class(posterior, np.random.default_rng(0)), posterior.argmax(axis=1))


def test_ties_are_shared_evenly_among_the_tied_classes_only() -> None:
    posterior = np.tile([0.4, 0.2, 0.4], (20_000, 1))
    share = np.bincount(top_class(posterior, np.random.default_rng(0)), minlength=3) / 20_000
    assert share[1] == 0
    assert_allclose(share[[0, 2]], 0.5, atol=0.02)


@pytest.mark.parametrize(("n_tasks", "n_classes"), [(1, 1), (200_000, 2), (30_000, 10), (300, 1000)])
def test_sums_over_rows_are_the_same_in_blocks(n_tasks: int, n_classes: int) -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(scale=50, size=(n_tasks, n_classes))
    one, other = softmax(scores, axis=1), rng.dirichlet(np.ones(n_classes), n_tasks)
    assert_allclose(entropy(one), entropy_of(one, axis=1), atol=1e-12)
    assert mean_total_variation(one, other) == pytest.approx(np.abs(one - other).sum(axis=1).mean() / 2)


def test_total_variation_is_over_the_last_axis() -> None:
    assert mean_total_variation(np.tile(np.eye(2), (3, 1, 1)), np.tile([[1.0, 0.0], [1.0, 0.0]], (3, 1, 1))) == 0.5
