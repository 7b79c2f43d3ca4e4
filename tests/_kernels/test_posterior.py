import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp, softmax

from labelonce._kernels import normalise, top_class


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
