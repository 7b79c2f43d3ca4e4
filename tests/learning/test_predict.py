"""Predictions by models that did not see the task."""

from typing import Any, Self

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.naive_bayes import GaussianNB

from labelonce import Annotations
from labelonce._kernels import Beliefs
from labelonce._sklearn import count_rows
from labelonce._types import Floats
from labelonce.learning import RepeatedRows, SoftmaxRegression
from labelonce.learning._predict import predict_beliefs, take_rows
from labelonce.learning._problem import Problem, fitted
from labelonce.learning._rounds import asker, fit_parts


class Witness(BaseEstimator):  # type: ignore[misc]
    """A learner that says class 0 of rows it was fitted to, class 1 of others."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        assert (np.asarray(sample_weight) > 0).all()
        assert len(X) == len(y) > 0
        self.seen_ = {float(row[0]) for row in X}
        return self

    def predict_proba(self, X: Any) -> Floats:
        return np.array([[1.0, 0.0] if float(row[0]) in self.seen_ else [0.0, 1.0] for row in X])


def folds(n_tasks: int, weight: Floats) -> Floats:
    """Return what models of five folds say of the tasks that they did not see."""
    labels = np.where(np.arange(n_tasks) % 2, 0, 1)[:, None]
    problem = Problem(np.arange(float(n_tasks))[:, None], Annotations.from_matrix(labels, classes=[0, 1]))
    learner, fold = RepeatedRows(Witness()), (np.arange(n_tasks) % 5).astype(np.int32)
    targets = Beliefs.of(np.full((n_tasks, 2), 0.5))
    parts = fit_parts(problem, learner, targets, weight, fold, [None] * (int(fold.max()) + 1))
    return np.asarray(asker(problem, parts, fold)(None, 0))


@pytest.mark.parametrize("n_tasks", [2, 5, 23])
def test_no_model_saw_the_task_it_predicts(n_tasks: int) -> None:
    assert_array_equal(folds(n_tasks, np.ones(n_tasks)), np.tile([0.0, 1.0], (n_tasks, 1)))


def test_tasks_of_weight_zero_are_predicted_but_not_fitted() -> None:
    weight = np.array([1.0, 0.0] * 10)
    assert_array_equal(folds(20, weight), np.tile([0.0, 1.0], (20, 1)))


def test_nothing_is_known_where_a_fold_leaves_nothing() -> None:
    assert_array_equal(folds(6, np.eye(6)[2]), np.full((6, 2), 0.5))


@pytest.mark.parametrize("top", [0, 1, 2, 3, 5])
def test_predictions_on_slots_have_the_most_probable_classes_as_well(top: int) -> None:
    X, slots = np.random.default_rng(0).normal(size=(30, 3)), np.tile(np.array([[2, -1]], dtype=np.int32), (30, 1))
    model = RepeatedRows(GaussianNB()).fit(X, np.eye(3)[X.argmax(axis=1)], np.ones(30))
    found, dense = predict_beliefs(model, X, slots, top), model.predict_proba(X)
    assert_allclose(found.at(np.arange(30), np.full(30, 2)), dense[:, 2])
    assert_allclose(found.probability.sum(axis=1) + found.rest, 1)
    assert top == 0 or (found.argmax() == dense.argmax(axis=1)).all()


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, sparse.csr_array, list])
def test_rows_are_counted_and_selected_in_any_kind_of_table(kind: Any) -> None:
    X = kind(np.arange(6.0).reshape(3, 2))
    assert count_rows(X) == 3
    assert take_rows(X, np.arange(3)) is X
    some = take_rows(X, np.array([0, 2]))
    dense = some.toarray() if sparse.issparse(some) else np.asarray(some)
    assert dense.tolist() == [[0.0, 1.0], [4.0, 5.0]]


def test_the_learner_given_stays_unfitted() -> None:
    learner = SoftmaxRegression()
    model = fitted(learner, np.eye(2), np.eye(3)[:2], np.ones(2), None)
    assert not hasattr(learner, "coef_")
    assert_array_equal(model.predict_proba(np.eye(2))[:, 2], 0)


def test_slots_and_the_best_classes_keep_their_probabilities() -> None:
    X = np.random.default_rng(0).normal(size=(30, 4))
    model = SoftmaxRegression().fit(X, np.arange(30) % 5)
    dense, slots = model.predict_proba(X), np.full((30, 1), 3, np.int32)
    found = predict_beliefs(model, X, slots, 2)
    assert_array_equal(found.codes[:, 0], 3)
    assert_array_equal(found.argmax(), dense.argmax(axis=1))
    assert_allclose(found.at(np.arange(30), found.argmax()), dense.max(axis=1))
    assert_allclose(found.wide().sum(axis=1), 1)


def test_all_rows_in_another_order_are_taken_in_that_order() -> None:
    X = np.arange(6.0).reshape(3, 2)
    assert take_rows(X, np.array([2, 0, 1])).tolist() == X[[2, 0, 1]].tolist()
    assert take_rows(X, np.arange(3)) is X
