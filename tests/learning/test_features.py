"""Pipelines: transformers fitted once, the last step is the learner."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from labelonce import MBEM, Annotations, SoftmaxRegression
from labelonce._types import Codes, Floats
from labelonce.learning import RepeatedRows
from labelonce.learning._features import DEFAULT_C, Features, learners_of

ANN = Annotations.from_matrix([[0, 0, 1], [0, 0, 0], [1, 1, 1], [1, 0, 1]])
X = np.array([[0.0, 5.0, 1.0], [0.1, 3.0, 1.0], [0.9, 5.0, 1.0], [1.0, 3.0, 2.0]])


def test_a_pipeline_is_its_transformers_and_its_learner() -> None:
    ((features, learner),) = learners_of(make_pipeline(StandardScaler(), SoftmaxRegression(C=3.0)))
    assert isinstance(learner, SoftmaxRegression)
    assert learner.C == 3.0
    assert_allclose(features.fit(X, ANN).transform(X), StandardScaler().fit_transform(X))


def test_a_classifier_alone_has_no_transformers() -> None:
    ((features, learner),) = learners_of(LogisticRegression())
    assert isinstance(learner, RepeatedRows)
    assert features.fit(X, ANN).transform(X) is X
    assert features.joined(learner) is learner


def test_steps_that_pass_through_are_left_out() -> None:
    pipeline = Pipeline([("none", "passthrough"), ("learner", SoftmaxRegression())])
    ((features, _),) = learners_of(pipeline)
    assert features.steps == []


def test_transformers_that_want_labels_get_the_majority_vote() -> None:
    seen: list[list[int]] = []

    def score(X: Floats, y: Codes) -> Floats:
        seen.append(y.tolist())
        return np.arange(X.shape[1], 0.0, -1.0)

    chosen = Features([SelectKBest(score, k=1)]).fit(X, ANN).transform(X)
    assert seen == [[0, 0, 1, 1]]
    assert_allclose(chosen, X[:, :1])


def test_the_transformer_given_stays_unfitted() -> None:
    scaler = StandardScaler()
    Features([scaler]).fit(X, ANN)
    assert not hasattr(scaler, "mean_")


def test_joined_gives_back_the_pipeline() -> None:
    joined = Features([StandardScaler()]).joined(SoftmaxRegression())
    assert [type(step) for _, step in joined.steps] == [StandardScaler, SoftmaxRegression]


def test_no_learner_means_softmax_regressions_of_many_strengths() -> None:
    assert [learner.C for _, learner in learners_of(None)] == list(DEFAULT_C)


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(ValueError, match=r"learner must not be an empty list; got \[\]"):
        learners_of([])


def test_transformers_that_want_labels_do_not_see_tasks_without() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = (X[:, 0] > 0).astype(int)
    X[100:, 1] += 5  # tells labelled from unlabelled tasks
    ann = Annotations.from_matrix(np.where(np.arange(600) < 100, y, -1)[:, None], classes=[0, 1])
    features = Features([StandardScaler(), SelectKBest(k=1)]).fit(X, ann)
    assert_allclose(features.transform(X), StandardScaler().fit_transform(X)[:, :1])


@pytest.mark.parametrize("kind", ["coo", "bsr", "dia", "csc", "csr"])
def test_sparse_features_of_any_kind(kind: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    ann = Annotations.from_matrix((X[:, :1] > 0).astype(int))
    dense = MBEM(SoftmaxRegression(), rounds=2).fit(X, ann)
    of_kind = MBEM(SoftmaxRegression(), rounds=2).fit(sparse.csr_matrix(X).asformat(kind), ann)
    assert_allclose(of_kind.posterior_, dense.posterior_, atol=1e-4)
