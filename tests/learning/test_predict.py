"""Predictions by models that did not see the task."""

from typing import Any, Self

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator

from labelonce._types import Floats
from labelonce.learning import SoftmaxRegression
from labelonce.learning._predict import fit_to_rows, n_rows, out_of_fold, take_rows


class Witness(BaseEstimator):  # type: ignore[misc]
    """A learner that says class 0 of rows it was fitted to, class 1 of others."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        assert (np.asarray(sample_weight) > 0).all()
        assert len(X) == len(y) > 0
        self.seen_ = {float(row[0]) for row in X}
        return self

    def predict_proba(self, X: Any) -> Floats:
        return np.array([[1.0, 0.0] if float(row[0]) in self.seen_ else [0.0, 1.0] for row in X])


def folds(n_tasks: int, weight: Floats, seed: int = 0) -> Floats:
    X, targets = np.arange(float(n_tasks))[:, None], np.full((n_tasks, 2), 0.5)
    return out_of_fold(Witness(), X, targets, weight, n_folds=5, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("n_tasks", [2, 5, 23])
def test_no_model_saw_the_task_it_speaks_of(n_tasks: int) -> None:
    assert_array_equal(folds(n_tasks, np.ones(n_tasks)), np.tile([0.0, 1.0], (n_tasks, 1)))


def test_tasks_of_weight_zero_are_predicted_but_not_fitted() -> None:
    weight = np.array([1.0, 0.0] * 10)
    assert_array_equal(folds(20, weight), np.tile([0.0, 1.0], (20, 1)))


def test_the_only_task_with_a_label_gets_equal_probabilities() -> None:
    predictions = folds(6, np.eye(6)[2])
    assert predictions[2].tolist() == [0.5, 0.5]
    assert_array_equal(folds(1, np.ones(1)), [[0.5, 0.5]])


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, sparse.csr_array, list])
def test_rows_are_counted_and_selected_in_any_kind_of_table(kind: Any) -> None:
    X = kind(np.arange(6.0).reshape(3, 2))
    assert n_rows(X) == 3
    assert take_rows(X, np.arange(3)) is X
    some = take_rows(X, np.array([0, 2]))
    dense = some.toarray() if sparse.issparse(some) else np.asarray(some)
    assert dense.tolist() == [[0.0, 1.0], [4.0, 5.0]]


def test_the_learner_given_stays_unfitted() -> None:
    learner = SoftmaxRegression()
    fitted = fit_to_rows(learner, np.eye(3), np.eye(3), np.ones(3), np.arange(2))
    assert not hasattr(learner, "coef_")
    assert_array_equal(fitted.predict_proba(np.eye(3))[:, 2], 0)


def test_all_rows_in_another_order_are_taken_in_that_order() -> None:
    X = np.arange(6.0).reshape(3, 2)
    assert take_rows(X, np.array([2, 0, 1])).tolist() == X[[2, 0, 1]].tolist()
    assert take_rows(X, np.arange(3)) is X
