"""Training on an aggregate, and the oracles: which targets and which tasks they train on."""

import warnings
from typing import Any

import numpy as np
import pytest
from checks import one_hot
from crowds import crowd
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from labelonce import (
    MBEM,
    Annotations,
    DawidSkene,
    MajorityVote,
    OracleConfusion,
    OracleCorrect,
    SoftmaxRegression,
    TrainOnAggregate,
)
from labelonce._kernels import Beliefs
from labelonce._types import Floats

ANN, Y_TRUE = crowd()


def information(posterior: Floats) -> Floats:
    return Beliefs.of(posterior).information()


X = one_hot(Y_TRUE, 3) + 0.5 * np.random.default_rng(0).normal(size=(200, 3))
EXPECTED = {
    "check_supervised_y_2d": "a column of labels is a matrix with one worker, and needs no warning",
}


def trained(targets: Floats, weight: Any = None) -> Floats:
    return SoftmaxRegression().fit(X, targets, weight).predict_proba(X)


@pytest.mark.parametrize("aggregator", [MajorityVote(), DawidSkene()])
def test_soft_targets_are_the_aggregators_posterior(aggregator: Any) -> None:
    model = TrainOnAggregate(aggregator, SoftmaxRegression(), targets="soft").fit(X, ANN)
    posterior = clone(aggregator).fit(ANN).posterior_
    assert_array_equal(model.posterior_, posterior)
    assert_array_equal(model.predict_proba(X), trained(posterior))


@pytest.mark.parametrize("aggregator", [MajorityVote(), DawidSkene()])
def test_hard_targets_are_the_aggregators_labels(aggregator: Any) -> None:
    model = TrainOnAggregate(aggregator, SoftmaxRegression()).fit(X, ANN)
    assert_array_equal(model.predict_proba(X), trained(one_hot(clone(aggregator).fit(ANN).labels_, 3)))


def test_class_ids_are_the_users() -> None:
    names = np.array(["a", "b", "c"], dtype=object)
    named = Annotations.from_arrays(ANN.task, ANN.worker, names[ANN.label])
    model = TrainOnAggregate(DawidSkene(), SoftmaxRegression()).fit(X, named)
    assert set(model.predict(X)) <= set(names)
    assert (model.predict(X) == names[Y_TRUE]).mean() > 0.8


@pytest.mark.parametrize("targets", ["hard", "soft"])
def test_tasks_without_labels_are_not_trained_on(targets: str) -> None:
    matrix = ANN.to_matrix(dense=True)
    matrix[100:] = -1
    model = TrainOnAggregate(MajorityVote(), SoftmaxRegression(), targets=targets).fit(X, matrix)
    labelled = SoftmaxRegression().fit(X[:100], model.posterior_[:100])
    assert_allclose(model.predict_proba(X), labelled.predict_proba(X))


def test_a_pipeline_is_a_learner_too() -> None:
    model = TrainOnAggregate(MajorityVote(), make_pipeline(StandardScaler(), SoftmaxRegression()), targets="soft")
    scaled = StandardScaler().fit_transform(X)
    expected = SoftmaxRegression().fit(scaled, MajorityVote().fit(ANN).posterior_).predict_proba(scaled)
    assert_array_equal(model.fit(X, ANN).predict_proba(X), expected)


def posterior_by_hand(confusion: Floats, prior: Floats) -> Floats:
    posterior = np.tile(prior, (ANN.n_tasks, 1))
    for i, j, z in zip(ANN.task, ANN.worker, ANN.label, strict=True):
        posterior[i] *= confusion[j, :, z]
    return np.asarray(posterior / posterior.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("prior", [None, np.array([0.2, 0.3, 0.5])])
def test_the_oracle_of_confusion_trains_on_bayes_posterior(prior: Any) -> None:
    confusion = np.random.default_rng(0).dirichlet(np.ones(3), (ANN.n_workers, 3))
    model = OracleConfusion(confusion, SoftmaxRegression(), prior=prior).fit(X, ANN)
    expected = posterior_by_hand(confusion, np.ones(3) if prior is None else prior)
    assert_allclose(model.posterior_, expected, atol=1e-9)
    assert_allclose(model.predict_proba(X), trained(expected), atol=1e-6)


def test_the_oracle_of_confusion_may_weight_by_information() -> None:
    confusion = np.random.default_rng(0).dirichlet(np.ones(3), (ANN.n_workers, 3))
    model = OracleConfusion(confusion, SoftmaxRegression(), weighting="information").fit(X, ANN)
    expected = posterior_by_hand(confusion, np.ones(3))
    assert_allclose(model.predict_proba(X), trained(expected, information(expected)), atol=1e-4)


def test_one_round_from_known_workers_is_trained_on_votes_and_on_what_the_workers_say() -> None:
    confusion = np.random.default_rng(0).dirichlet(np.ones(3), (ANN.n_workers, 3))
    found = MBEM(SoftmaxRegression(), rounds=1, folds=1).fit(X, ANN, confusion=confusion)
    said = posterior_by_hand(confusion, np.ones(3))
    told = information(said) * len(said) / information(said).sum()
    targets, weight = np.concatenate([MajorityVote().fit(ANN).posterior_, said]), np.concatenate([np.ones(200), told])
    expected = SoftmaxRegression().fit(np.concatenate([X, X]), targets, weight / 2).predict_proba(X)
    assert_allclose(found.predict_proba(X), expected, atol=1e-4)


def test_workers_known_beforehand_must_be_those_of_the_annotations() -> None:
    with pytest.raises(ValueError, match=r"confusion must have shape \(12, 3, 3\); got \(3, 3\)"):
        MBEM(SoftmaxRegression(), rounds=1).fit(X, ANN, confusion=np.eye(3))


def test_the_oracle_of_correct_labels_trains_on_the_right_tasks_only() -> None:
    single = ANN.sample(redundancy=1, random_state=0)
    right = single.label[np.argsort(single.task)] == Y_TRUE
    assert 0 < right.sum() < len(right)
    model = OracleCorrect(Y_TRUE, SoftmaxRegression()).fit(X, single)
    expected = SoftmaxRegression().fit(X[right], one_hot(Y_TRUE[right], 3)).predict_proba(X)
    assert_allclose(model.predict_proba(X), expected)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (TrainOnAggregate(MajorityVote(), SoftmaxRegression(), targets="firm"), "one of 'hard', 'soft'; got 'firm'"),
        (OracleConfusion(np.eye(3), SoftmaxRegression()), r"confusion must have shape \(12, 3, 3\); got \(3, 3\)"),
        (OracleConfusion(np.eye(3), SoftmaxRegression(), weighting="much"), "'none', 'information'; got 'much'"),
        (OracleCorrect(Y_TRUE[:7], SoftmaxRegression()), "one code for each of 200 tasks; got 7"),
        (OracleCorrect(Y_TRUE + 1, SoftmaxRegression()), r"y_true must be in \[0, 3\); got 3"),
    ],
)
def test_what_does_not_fit_is_named(model: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.fit(X, ANN)


def test_an_unfitted_classifier_says_so() -> None:
    with pytest.raises(NotFittedError, match="OracleCorrect instance is not fitted"):
        OracleCorrect(Y_TRUE, SoftmaxRegression()).predict(X)


def test_scikit_learns_checks_pass() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks of unusual inputs warn
        model = TrainOnAggregate(MajorityVote(), SoftmaxRegression())
        check_estimator(model, on_skip=None, expected_failed_checks=EXPECTED)
