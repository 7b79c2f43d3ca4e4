from itertools import product

import numpy as np
import pytest
from crowds import crowd
from numpy.testing import assert_allclose
from scipy.special import betaln, digamma, expit, logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning

from labelonce import Annotations, OneCoin, datasets
from labelonce._types import Floats
from labelonce.baselines import BeliefPropagation, MeanField
from labelonce.baselines._belief_propagation import WorkerMessages, log_odds, n_nodes

TREE = [[0, -1, -1, 1], [2, 2, -1, -1], [-1, 1, -1, -1], [-1, -1, 0, 1], [-1, -1, 2, -1]]


def exact_posterior(ann: Annotations, prior: Floats) -> Floats:
    """P(true label | annotations) by a sum over all combinations of true labels, skills integrated out."""
    n_classes, labels = ann.n_classes, np.bincount(ann.worker, minlength=ann.n_workers)
    posterior = np.zeros((ann.n_tasks, n_classes))
    for y_true in product(range(n_classes), repeat=ann.n_tasks):
        right = np.bincount(ann.worker, np.array(y_true)[ann.task] == ann.label, ann.n_workers)
        log_joint = (betaln(2 + right, 1 + labels - right) - (labels - right) * np.log(n_classes - 1)).sum()
        posterior[np.arange(ann.n_tasks), y_true] += np.exp(log_joint) * prior[list(y_true)].prod()
    return np.asarray(posterior / posterior.sum(axis=1, keepdims=True))


def by_counting(right: Floats, n_classes: int) -> Floats:
    """Liu's message of one worker: a sum over how many of the other labels are right."""
    message, n_labels = np.empty_like(right), len(right)
    for j in range(n_labels):
        n_right = np.ones(1)
        for p in np.delete(right, j):
            n_right = np.convolve(n_right, [1 - p, p])
        c = np.arange(n_labels)
        pairs = [(c + own, n_labels - c - own) for own in (1, 0)]  # right and wrong
        factor = [betaln(2 + good, 1 + bad) - bad * np.log(n_classes - 1) for good, bad in pairs]
        top = max(factor[0].max(), factor[1].max())
        message[j] = np.log(n_right @ np.exp(factor[0] - top)) - np.log(n_right @ np.exp(factor[1] - top))
    return message


def one_worker(n_labels: int, n_classes: int) -> Annotations:
    zero = np.zeros(n_labels, int)
    return Annotations.from_arrays(np.arange(n_labels), zero, zero, classes=range(n_classes))


@pytest.mark.parametrize("prior", [np.full(3, 1 / 3), np.array([0.2, 0.3, 0.5])])
def test_is_exact_on_a_tree(prior: Floats) -> None:
    ann = Annotations.from_matrix(TREE, classes=range(3))
    model = BeliefPropagation(prior=prior, tol=1e-12).fit(ann)
    assert_allclose(model.posterior_, exact_posterior(ann, prior), atol=1e-9)


def test_is_near_the_exact_posterior_where_there_are_loops() -> None:
    ann, _ = crowd(n_tasks=8, n_workers=7)
    exact = exact_posterior(ann, np.full(3, 1 / 3))
    near, field = (np.abs(model.fit(ann).posterior_ - exact).max() for model in (BeliefPropagation(), MeanField()))
    assert near < 0.1
    assert near < field


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("n_labels", [1, 2, 7, 60, 250])
def test_messages_equal_a_sum_over_the_number_of_right_labels(n_labels: int, n_classes: int) -> None:
    right = np.random.default_rng(0).beta(3, 1, n_labels)
    message = WorkerMessages(one_worker(n_labels, n_classes), 2.0, 1.0).send(right)
    assert_allclose(message, by_counting(right, n_classes), rtol=1e-6, atol=1e-9)


def test_many_labels_have_the_mean_of_the_skill_nodes_by_the_root_and_exact_odds() -> None:
    right = (np.arange(10_000) % 10 > 0).astype(float)
    workers = WorkerMessages(one_worker(10_000, 2), 2.0, 1.0)
    workers.send(right)
    assert_allclose(workers.skill, 9_002 / 10_003, rtol=1e-7)
    labels = np.array([1, 10, 1000, 100_000])
    nodes = n_nodes(labels)
    assert (nodes[:2] * 2 > labels[:2] + 1).all()
    assert (nodes[2:] >= 3 * np.sqrt(labels[2:])).all()
    assert (nodes[2:] < 5 * np.sqrt(labels[2:])).all()
    posterior = np.array([[1.0, 1e-30, 2e-30], [0.2, 0.3, 0.5]])
    assert_allclose(log_odds(posterior)[0, 0], -np.log(3e-30))
    assert_allclose(expit(log_odds(posterior)[1]), posterior[1])


@pytest.mark.data
def test_equals_the_paper_s_sums_on_a_part_of_bluebird() -> None:
    ann = datasets.load("bluebird").annotations
    assert ann is not None
    ann = ann.select(np.arange(ann.n_tasks) < 20)
    message, log_joint = np.zeros(len(ann)), np.zeros((ann.n_tasks, 2))
    for _ in range(4):
        own = log_joint[ann.task, ann.label] - message
        right = expit(own - log_joint[ann.task, 1 - ann.label])
        for a in range(ann.n_workers):
            rows = ann.worker == a
            message[rows] = by_counting(right[rows], 2)
        log_joint = np.zeros_like(log_joint)
        np.add.at(log_joint, (ann.task, ann.label), message)
    with pytest.warns(ConvergenceWarning, match="stopped after 4 sweeps"):
        model = BeliefPropagation(max_iter=4, tol=0.0).fit(ann)
    assert_allclose(model.posterior_, softmax(log_joint, axis=1), atol=1e-9)


def test_damping_ends_in_the_same_place_and_few_labels_count_for_less_than_in_one_coin() -> None:
    ann, _ = crowd()
    plain, damped = (BeliefPropagation(damping=share, tol=1e-9).fit(ann) for share in (0.0, 0.5))
    assert_allclose(damped.posterior_, plain.posterior_, atol=1e-6)
    assert damped.n_iter_ > plain.n_iter_
    ann = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0]])
    sure, careful = (model.fit(ann).posterior_[0, 0] for model in (OneCoin(), MeanField()))
    assert careful > 0.5
    assert careful != sure


def updated_by_hand(ann: Annotations, sweeps: int) -> Floats:
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
    assert_allclose(model.posterior_, updated_by_hand(ann, 15), atol=1e-9)


def test_bound_is_just_below_the_exact_evidence() -> None:
    ann = Annotations.from_matrix([[0, 0, 1, 0], [1, 1, 1, 1], [2, 2, 0, 2], [0, 0, 0, 0], [1, 1, 0, 1]])
    evidence = -np.inf
    for y_true in product(range(3), repeat=5):
        right = np.bincount(ann.worker, np.array(y_true)[ann.task] == ann.label)
        log_joint = betaln(2 + right, 1 + 5 - right) - betaln(2, 1) - (5 - right) * np.log(2)
        evidence = logsumexp([evidence, log_joint.sum() - 5 * np.log(3)])
    bound = MeanField().fit(ann).log_likelihood_[-1]
    assert evidence - 0.5 < bound < evidence
