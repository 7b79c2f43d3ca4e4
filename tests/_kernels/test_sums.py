import numpy as np
import pytest
from crowds import crowd
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp, softmax
from scipy.stats import entropy as entropy_of
from threadpoolctl import threadpool_info

from labelonce._kernels import (
    AnnotationSums,
    blas_threads,
    entropy,
    mean_total_variation,
    normalise,
    posterior_of,
    top_class,
)


def test_sums_equal_a_loop() -> None:
    ann, _ = crowd(n_tasks=20, n_workers=7)
    sums, values = AnnotationSums(ann), np.random.default_rng(0).random(len(ann))
    by_task, by_worker, by_class = np.zeros(20), np.zeros(7), np.zeros((20, 3))
    for i, a, s, value in zip(ann.task, ann.worker, ann.label, values, strict=True):
        by_task[i] += value
        by_worker[a] += value
        by_class[i, s] += value
    assert_allclose(sums.by_task(values), by_task)
    assert_allclose(sums.by_worker(values), by_worker)
    assert_allclose(sums.by_class(values), by_class)
    assert_array_equal(sums.at_label(by_class), by_class[ann.task, ann.label])


def test_without_values_annotations_are_counted_and_gold_is_one_hot() -> None:
    sums = AnnotationSums(crowd(n_tasks=20, n_workers=7)[0])
    assert_array_equal(sums.by_task(), 5)
    assert sums.by_worker().sum() == sums.by_class().sum() == 100
    log_joint = np.log([[0.1, 0.3], [0.2, 0.2]])
    posterior, log_likelihood = posterior_of(log_joint, np.array([0, -1], dtype=np.int32))
    assert_allclose(posterior, np.array([[1, 0], [0.5, 0.5]]))
    assert_allclose(log_likelihood, np.log(0.1) + np.log(0.4))


@pytest.mark.parametrize(("n_tasks", "n_classes"), [(1, 1), (200_000, 2), (30_000, 10), (300, 1000)])
def test_normalise_is_the_softmax_over_all_blocks(n_tasks: int, n_classes: int) -> None:
    log_joint = np.random.default_rng(0).normal(scale=50, size=(n_tasks, n_classes))
    expected, evidence = softmax(log_joint, axis=1), logsumexp(log_joint, axis=1).sum()
    assert normalise(log_joint) == pytest.approx(evidence)
    assert_allclose(log_joint, expected, atol=1e-12)


def test_top_class_is_the_argmax_and_ties_are_shared_evenly_among_the_tied() -> None:
    posterior = np.random.default_rng(0).random((100_000, 3))
    assert_array_equal(top_class(posterior, np.random.default_rng(0)), posterior.argmax(axis=1))
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


def threads() -> set[int]:
    np.ones((2, 2)) @ np.ones((2, 2))  # load the library
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_small_products_use_one_thread_and_give_the_others_back_and_large_ones_keep_theirs() -> None:
    before = threads()
    with blas_threads(1000):
        assert threads() == {1}
    assert threads() == before
    with blas_threads(10**9):
        assert threads() == before
