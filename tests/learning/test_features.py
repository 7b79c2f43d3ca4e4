"""Pipelines: transformers fitted once, the last step is the learner."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from labelonce import MBEM, Annotations, SoftmaxRegression
from labelonce._rules import RULES
from labelonce._types import Codes, Floats
from labelonce.learning import RepeatedRows, Standardiser, default_learner
from labelonce.learning._features import Features, given_learners

ANN = Annotations.from_matrix([[0, 0, 1], [0, 0, 0], [1, 1, 1], [1, 0, 1]])
X = np.array([[0.0, 5.0, 1.0], [0.1, 3.0, 1.0], [0.9, 5.0, 1.0], [1.0, 3.0, 2.0]])


def pipeline(*transformers: Any) -> Pipeline:
    return make_pipeline(*transformers, SoftmaxRegression(C=3.0))


def fitted(*transformers: Any, X: Any = X, ann: Annotations = ANN) -> Features:
    (given,) = given_learners(pipeline(*transformers))
    return given.features.fit(X, ann)


def test_a_pipeline_is_its_transformers_and_its_learner() -> None:
    (given,) = given_learners(pipeline(StandardScaler()))
    assert isinstance(given.learner, SoftmaxRegression)
    assert given.learner.C == 3.0
    assert_allclose(given.features.fit(X, ANN).transform(X), StandardScaler().fit_transform(X))


def test_a_classifier_alone_has_no_transformers() -> None:
    (given,) = given_learners(LogisticRegression())
    assert isinstance(given.learner, RepeatedRows)
    assert given.features.fit(X, ANN).transform(X) is X
    assert given.whole is given.learner


@pytest.mark.parametrize("nothing", [None, "passthrough"])
@pytest.mark.parametrize("unlabelled", [0, 1])
def test_steps_that_do_nothing_are_passed_over(nothing: Any, unlabelled: int) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    ann = Annotations.from_matrix(np.where(np.arange(60) < unlabelled, -1, X[:, 0] > 0)[:, None])
    steps = [("before", nothing), ("scale", StandardScaler()), ("after", nothing), ("learner", SoftmaxRegression())]
    clf = MBEM(Pipeline(steps), rounds=1).fit(X, ann)
    plain = MBEM(Pipeline([steps[1], steps[3]]), rounds=1).fit(X, ann)
    assert_array_equal(clf.predict_proba(X), plain.predict_proba(X))
    assert_allclose(clf._features.transform(X), StandardScaler().fit_transform(X))


def test_a_pipeline_of_nothing_but_a_learner_leaves_features_alone() -> None:
    for steps in ([], [("none", None)], [("none", "passthrough")]):
        (given,) = given_learners(Pipeline([*steps, ("learner", SoftmaxRegression())]))
        assert given.features.fit(X, ANN).transform(X) is X


def test_the_recipe_has_the_steps_under_their_own_names() -> None:
    steps = [("scale", StandardScaler()), ("nothing", None), ("model", SoftmaxRegression(C=3.0))]
    X = np.random.default_rng(0).normal(size=(60, 3))
    found = MBEM(Pipeline(steps), rounds=1).fit(X, X[:, 0] > 0).recipe_["learner"]
    assert [name for name, _ in found.steps] == ["scale", "nothing", "model"]
    assert found.get_params()["model__C"] == 3.0
    assert not hasattr(found["scale"], "mean_")


def test_learners_with_the_same_transformer_share_it() -> None:
    scaler = StandardScaler()
    first, second, third = given_learners([pipeline(scaler), pipeline(scaler), pipeline(StandardScaler())])
    assert first.features is second.features is not third.features
    assert len({id(given.features) for given in given_learners(default_learner(X))}) == 1


def test_transformers_that_want_labels_get_the_majority_vote() -> None:
    seen: list[list[int]] = []

    def score(X: Floats, y: Codes) -> Floats:
        seen.append(y.tolist())
        return np.arange(X.shape[1], 0.0, -1.0)

    chosen = fitted(SelectKBest(score, k=1)).transform(X)
    assert seen == [[0, 0, 1, 1]]
    assert_allclose(chosen, X[:, :1])


def test_the_transformer_given_stays_unfitted() -> None:
    scaler = StandardScaler()
    fitted(scaler)
    assert not hasattr(scaler, "mean_")


def test_the_default_is_standardised_features_and_softmax_regressions_of_many_strengths() -> None:
    choices = default_learner(X)
    assert [one[-1].C for one in choices] == list(RULES.penalties)
    assert {type(one[0]) for one in choices} == {Standardiser}
    assert [type(one) for one in default_learner(sparse.csr_array(X))] == [SoftmaxRegression] * len(choices)


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(ValueError, match=r"learner must not be an empty list; got \[\]"):
        given_learners([])


def test_transformers_that_want_labels_do_not_see_tasks_without() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = (X[:, 0] > 0).astype(int)
    X[100:, 1] += 5  # tells labelled from unlabelled tasks
    ann = Annotations.from_matrix(np.where(np.arange(600) < 100, y, -1)[:, None], classes=[0, 1])
    features = fitted(StandardScaler(), SelectKBest(k=1), X=X, ann=ann)
    assert_allclose(features.transform(X), StandardScaler().fit_transform(X)[:, :1])


@pytest.mark.parametrize("kind", ["coo", "bsr", "dia", "csc", "csr"])
def test_sparse_features_of_any_kind(kind: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    ann = Annotations.from_matrix((X[:, :1] > 0).astype(int))
    dense = MBEM(SoftmaxRegression(), rounds=2).fit(X, ann)
    of_kind = MBEM(SoftmaxRegression(), rounds=2).fit(sparse.csr_matrix(X).asformat(kind), ann)
    assert_allclose(of_kind.posterior_, dense.posterior_, atol=1e-4)
