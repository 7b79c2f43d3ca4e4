import numpy as np
from crowds import crowd
from numpy.testing import assert_allclose, assert_array_equal

from labelonce._kernels import AnnotationSums, posterior_of


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


def test_without_values_annotations_are_counted() -> None:
    sums = AnnotationSums(crowd(n_tasks=20, n_workers=7)[0])
    assert_array_equal(sums.by_task(), 5)
    assert sums.by_worker().sum() == sums.by_class().sum() == 100


def test_gold_is_one_hot_and_its_joint_is_the_likelihood() -> None:
    log_joint = np.log([[0.1, 0.3], [0.2, 0.2]])
    posterior, log_likelihood = posterior_of(log_joint, np.array([0, -1], dtype=np.int32))
    assert_allclose(posterior, np.array([[1, 0], [0.5, 0.5]]))
    assert_allclose(log_likelihood, np.log(0.1) + np.log(0.4))
