from itertools import product

import numpy as np
import pytest
from crowds import crowd
from numpy.testing import assert_allclose
from scipy.special import betaln, digamma, logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning

from labelonce import Annotations, OneCoin, datasets
from labelonce._types import Floats
from labelonce.baselines import MeanField


def by_hand(ann: Annotations, sweeps: int) -> Floats:
    """The paper's updates over a dense matrix: worker by worker, then task by task."""
    matrix, n_classes = ann.to_matrix(dense=True), ann.n_classes
    given = matrix[:, :, None] == np.arange(n_classes)
    posterior = given.sum(axis=1) / given.sum(axis=(1, 2))[:, None]
    for _ in range(sweeps):
        agreed = np.einsum("iak,ik->a", given, posterior)
        labels = (matrix >= 0).sum(axis=0)
        weight = digamma(2 + agreed) - digamma(1 + labels - agreed) + np.log(n_classes - 1)
        posterior = softmax(np.einsum("iak,a->ik", given, weight), axis=1)
    return np.asarray(posterior)


@pytest.mark.parametrize("name", ["simulated", pytest.param("bluebird", marks=pytest.mark.data)])
def test_equals_the_updates_done_by_hand(name: str) -> None:
    ann = crowd(n_tasks=60)[0] if name == "simulated" else datasets.load(name).annotations
    assert ann is not None
    with pytest.warns(ConvergenceWarning, match="after 15 iterations"):
        model = MeanField(tol=0.0, max_iter=15).fit(ann)
    assert_allclose(model.posterior_, by_hand(ann, 15), atol=1e-9)


def test_bound_is_just_below_the_exact_evidence() -> None:
    ann = Annotations.from_matrix([[0, 0, 1, 0], [1, 1, 1, 1], [2, 2, 0, 2], [0, 0, 0, 0], [1, 1, 0, 1]])
    evidence = -np.inf
    for y_true in product(range(3), repeat=5):
        right = np.bincount(ann.worker, np.array(y_true)[ann.task] == ann.label)
        log_joint = betaln(2 + right, 1 + 5 - right) - betaln(2, 1) - (5 - right) * np.log(2)
        evidence = logsumexp([evidence, log_joint.sum() - 5 * np.log(3)])
    bound = MeanField().fit(ann).log_likelihood_[-1]
    assert evidence - 0.5 < bound < evidence


def test_workers_with_few_labels_count_for_less_than_in_one_coin() -> None:
    ann = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0]])
    sure, careful = (model.fit(ann).posterior_[0, 0] for model in (OneCoin(), MeanField()))
    assert careful > 0.5
    assert careful != sure
