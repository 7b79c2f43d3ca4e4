from itertools import product

import numpy as np
import pytest
from crowds import crowd
from numpy.testing import assert_allclose

from labelonce import Annotations, OneCoin, metrics
from labelonce._types import Codes
from labelonce.baselines import DataProgramming


def sources(n_tasks: int = 3000, seed: int = 0) -> tuple[Annotations, Codes]:
    """Six sources: four vote on everything at times, one finds class 1 and one class 0 alone."""
    rng = np.random.default_rng(seed)
    y_true = rng.integers(0, 2, n_tasks).astype(np.int32)
    coverage = np.array([[0.5, 0.5], [0.6, 0.6], [0.4, 0.4], [0.7, 0.7], [0.05, 0.8], [0.8, 0.05]])
    accuracy = np.array([0.7, 0.8, 0.65, 0.75, 0.9, 0.9])
    votes = rng.random((n_tasks, 6)) < coverage[:, y_true].T
    given = np.where(rng.random((n_tasks, 6)) < accuracy, y_true[:, None], 1 - y_true[:, None])
    return Annotations.from_matrix(np.where(votes, given, -1)), y_true


def test_recovers_accuracy_and_coverage_of_its_own_model() -> None:
    ann, _ = sources()
    model = DataProgramming(coverage="class").fit(ann)
    assert_allclose(model.accuracy_, [0.7, 0.8, 0.65, 0.75, 0.9, 0.9], atol=0.05)
    assert_allclose(model.coverage_[4:], [[0.05, 0.8], [0.8, 0.05]], atol=0.06)


def test_silence_is_evidence_and_coverage_by_source_leaves_one_coin() -> None:
    ann, y_true = sources()
    by_class, by_source = (DataProgramming(coverage=kind).fit(ann).posterior_ for kind in ("class", "source"))
    assert metrics.accuracy(y_true, by_class) > metrics.accuracy(y_true, by_source) + 0.05
    ann, _ = crowd()
    ours, one_coin = (model.fit(ann) for model in (DataProgramming(tol=1e-11), OneCoin(tol=1e-11)))
    assert_allclose(ours.posterior_, one_coin.posterior_, atol=1e-7)


@pytest.mark.parametrize("coverage", ["source", "class"])
def test_likelihood_is_that_of_the_whole_matrix(coverage: str) -> None:
    matrix = np.array([[0, 1, -1], [1, 1, -1], [-1, 0, 0], [1, -1, 1], [0, 0, 0]])
    model = DataProgramming(coverage=coverage, smoothing=(0.0, 0.0), max_iter=2000, tol=1e-12)
    model.fit(Annotations.from_matrix(matrix))
    total = 0.0
    for row in matrix:
        joint = np.array(model.prior_)
        for k, (worker, given) in product(range(2), enumerate(row)):
            votes = model.coverage_[worker, k]
            joint[k] *= 1 - votes if given < 0 else votes * model.confusion_[worker, k, given]
        total += np.log(joint.sum())
    assert_allclose(model.log_likelihood_[-1], total, atol=1e-6)
