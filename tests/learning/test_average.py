"""The average of models: one softmax regression, or the mean of probabilities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.tree import DecisionTreeClassifier

import labelonce as lo
from labelonce._types import Floats
from labelonce.learning import AveragedModels, RepeatedRows, SoftmaxRegression
from labelonce.learning._average import average_models


@pytest.fixture
def problem() -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 4)), rng.dirichlet(np.ones(3), 60)


def test_softmax_regressions_become_one_with_the_geometric_mean(problem: tuple[Floats, Floats]) -> None:
    X, targets = problem
    models = [SoftmaxRegression(C=C).fit(X, targets) for C in (0.01, 1.0, 100.0)]
    mean = average_models(models)
    expected = np.exp(np.mean([np.log(model.predict_proba(X)) for model in models], axis=0))
    assert isinstance(mean, SoftmaxRegression)
    assert_allclose(mean.predict_proba(X), expected / expected.sum(axis=1, keepdims=True), rtol=1e-9)


def test_a_class_that_one_of_them_has_not_seen_is_still_possible(problem: tuple[Floats, Floats]) -> None:
    X, targets = problem
    less = np.where([True, True, False], targets, 0.0)
    models = [SoftmaxRegression().fit(X, one / one.sum(axis=1, keepdims=True)) for one in (targets, less)]
    assert (models[1].predict_proba(X)[:, 2] == 0).all()
    assert (average_models(models).predict_proba(X) > 0).all()


def test_other_models_give_the_mean_of_their_probabilities(problem: tuple[Floats, Floats]) -> None:
    X, targets = problem
    models = [RepeatedRows(DecisionTreeClassifier(max_depth=depth, random_state=0)).fit(X, targets) for depth in (1, 3)]
    mean = average_models(models)
    assert_allclose(mean.predict_proba(X), np.mean([model.predict_proba(X) for model in models], axis=0))
    assert_allclose(AveragedModels(models).fit(X, targets).predict_proba(X), mean.predict_proba(X))


def test_one_model_is_its_own_average(problem: tuple[Floats, Floats]) -> None:
    model = SoftmaxRegression().fit(*problem)
    assert average_models([model]) is model


def test_mbem_averages_the_models_of_the_rounds_in_its_recipe() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    confusion = np.tile(0.7 * np.eye(3) + 0.1, (10, 1, 1))
    ann = lo.simulate.annotate(X.argmax(axis=1), confusion, lo.simulate.assign(200, 10, 3, rng), rng)
    clf = lo.MBEM(SoftmaxRegression(C=0.01)).fit(X, ann)
    averaged = clf.recipe_["averaged"]
    assert len(averaged) > 1
    assert averaged == tuple((1 + np.flatnonzero(clf.choices_[0]["near_best"])).tolist())
    models = [lo.MBEM(SoftmaxRegression(C=0.01), rounds=number).fit(X, ann).model_ for number in averaged]
    mean = np.mean([model.coef_ for model in models], axis=0)
    assert_allclose(clf.model_.coef_, mean, atol=1e-3)  # given ones stop early
