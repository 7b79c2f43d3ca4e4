"""RepeatedRows turns posteriors into weighted rows; as_learner says who needs it and who cannot be helped."""

from typing import Any, Self

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from labelonce._kernels import Beliefs
from labelonce._types import Floats
from labelonce.learning._adapter import RepeatedRows, as_learner, check_targets, repeat_rows, repeat_slots
from labelonce.learning._softmax import SoftmaxRegression

TIGHT: dict[str, Any] = {"tol": 1e-9, "max_iter": 10_000}


def features(n_tasks: int = 120) -> Floats:
    return np.random.default_rng(0).normal(size=(n_tasks, 3))


def posteriors(n_tasks: int = 120, n_classes: int = 4) -> Floats:
    return np.random.default_rng(1).dirichlet(np.full(n_classes, 0.3), size=n_tasks)


def weights(n_tasks: int = 120) -> Floats:
    return np.random.default_rng(2).uniform(0.1, 3.0, size=n_tasks)


class Recorder(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Keeps what it was given; predicts the shares of the weights."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        self.X_, self.y_, self.weight_ = X, y, sample_weight
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> Floats:
        shares = np.bincount(self.y_, self.weight_)
        return np.tile(shares / shares.sum(), (len(X), 1))


def test_all_classes_give_the_optimum_of_the_soft_loss() -> None:
    X, targets, weight = features(), posteriors(), weights()
    wrapped = RepeatedRows(LogisticRegression(**TIGHT), top=4).fit(X, targets, weight)
    native = SoftmaxRegression(**TIGHT).fit(X, targets, weight)
    assert_allclose(wrapped.predict_proba(X), native.predict_proba(X), atol=1e-4)


def test_rows_are_the_top_classes_with_weights_that_sum_to_the_tasks() -> None:
    targets = np.array([[0.5, 0.3, 0.2, 0.0], [0.0, 0.0, 0.0, 1.0], [0.1, 0.2, 0.3, 0.4]])
    task, code, weight = repeat_rows(targets, np.array([1.0, 3.0, 0.7]), top=2)
    assert_array_equal(task, [0, 0, 1, 2, 2])
    assert_array_equal(code, [0, 1, 3, 2, 3])
    assert_allclose(weight, [0.625, 0.375, 3.0, 0.3, 0.4])


@pytest.mark.parametrize("top", [1, 2, 3, 4, 9])
def test_weights_of_a_tasks_rows_sum_to_its_weight(top: int) -> None:
    task, code, weight = repeat_rows(posteriors(), weights(), top)
    assert_allclose(np.bincount(task, weight), weights())
    assert np.bincount(task).max() == min(top, 4)
    assert len(set(zip(task.tolist(), code.tolist(), strict=True))) == len(task)


def test_negligible_classes_and_weightless_tasks_get_no_row() -> None:
    targets = np.array([[1 - 1e-7, 1e-7], [0.5, 0.5], [1 - 1e-5, 1e-5]])
    task, code, weight = repeat_rows(targets, np.array([1e9, 0.0, 1.0]), top=3)
    assert_array_equal(task, [0, 2, 2])
    assert_array_equal(code, [0, 0, 1])
    assert_allclose(weight, [1e9, 1 - 1e-5, 1e-5], rtol=1e-12)


def test_uniform_posteriors_favour_no_class() -> None:
    _, code, weight = repeat_rows(np.full((100, 10), 0.1), np.ones(100), top=3)
    assert_allclose(np.bincount(code, weight), np.full(10, 10.0))


def test_the_estimator_gets_rows_codes_and_weights() -> None:
    targets = np.array([[0.5, 0.0, 0.5], [0.0, 0.0, 1.0]])
    inner = RepeatedRows(Recorder()).fit(["red", "blue"], targets, [2.0, 4.0]).estimator_
    assert inner.X_ == ["red", "red", "blue"]
    assert_array_equal(inner.y_, [0, 1, 1])  # positions among the classes seen: 0 and 2
    assert_allclose(inner.weight_, [1.0, 1.0, 4.0])


@pytest.mark.parametrize(
    "kind",
    [sparse.csr_matrix, sparse.bsr_array, sparse.csc_matrix, np.ndarray.tolist, pd.DataFrame, pl.DataFrame],
    ids=["csr", "bsr", "csc", "list", "pandas", "polars"],
)
def test_features_of_any_kind_give_the_same_model(kind: Any) -> None:
    X, targets = features(), posteriors()
    model, dense = RepeatedRows(LogisticRegression(**TIGHT)), RepeatedRows(LogisticRegression(**TIGHT))
    expected = dense.fit(X, targets).predict_proba(X)
    assert_allclose(model.fit(kind(X), targets).predict_proba(kind(X)), expected, atol=1e-6)


def test_hard_targets_are_not_copied() -> None:
    X = features(3)
    assert RepeatedRows(Recorder()).fit(X, np.eye(3)).estimator_.X_ is X


def test_classes_never_seen_have_probability_zero() -> None:
    targets = np.insert(posteriors(n_classes=2), 1, 0.0, axis=1)
    model = RepeatedRows(GaussianNB()).fit(features(), targets)
    assert_array_equal(model.classes_, [0, 1, 2])
    assert_array_equal(model.predict_proba(features())[:, 1], 0.0)
    assert_allclose(model.predict_proba(features()).sum(axis=1), 1.0)


def test_one_class_only_is_predicted_for_certain() -> None:
    model = RepeatedRows(LogisticRegression()).fit(features(5), np.tile([0.0, 1.0, 0.0], (5, 1)))
    assert_array_equal(model.predict_proba(features(2)), np.tile([0.0, 1.0, 0.0], (2, 1)))


def test_the_given_estimator_and_arguments_are_unchanged() -> None:
    inner, targets, weight = LogisticRegression(), posteriors(), weights()
    RepeatedRows(inner, top=2).fit(features(), targets, weight)
    assert not hasattr(inner, "coef_")
    assert_array_equal(targets, posteriors())
    assert_array_equal(weight, weights())


def test_parameters_of_the_estimator_are_reached_by_name() -> None:
    model = clone(RepeatedRows(LogisticRegression())).set_params(estimator__C=0.5, top=2)
    assert model.get_params()["estimator__C"] == 0.5
    assert model.top == 2


@pytest.mark.parametrize(
    "estimator",
    [LogisticRegression(), RandomForestClassifier(), DecisionTreeClassifier(), CalibratedClassifierCV(LinearSVC())],
)
def test_a_classifier_with_weights_is_wrapped(estimator: Any) -> None:
    learner = as_learner(estimator)
    assert isinstance(learner, RepeatedRows)
    assert learner.estimator is estimator
    assert learner.fit(features(), posteriors()).predict_proba(features()).shape == (120, 4)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (KNeighborsClassifier(), r"sample_weight in fit; KNeighborsClassifier does not. Use SoftmaxRegression\(\)"),
        (make_pipeline(GaussianNB()), "sample_weight in fit; Pipeline does not"),
        (GaussianMixture(), "sample_weight in fit; GaussianMixture does not"),
        (LinearSVC(), r"LinearSVC has none. Use CalibratedClassifierCV\(LinearSVC\(\)\)\."),
        (SVC(), r"SVC has none. Use CalibratedClassifierCV\(SVC\(\)\)\."),
        (LinearRegression(), "LinearRegression has none. Use a classifier"),
        (KMeans(), "KMeans has none. Use a classifier"),
        ("logistic", "str has none. Use a classifier"),
        (LogisticRegression, r"got the class LogisticRegression. Write LogisticRegression\(\)\."),
        (SoftmaxRegression, r"got the class SoftmaxRegression. Write SoftmaxRegression\(\)\."),
    ],
)
def test_what_cannot_learn_from_posteriors_is_refused_by_name(estimator: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        as_learner(estimator)


def test_wrapping_by_hand_is_checked_too() -> None:
    with pytest.raises(TypeError, match="KNeighborsClassifier does not"):
        RepeatedRows(KNeighborsClassifier()).fit(features(), posteriors())


def test_a_top_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="top must be an integer of at least 1; got 0"):
        RepeatedRows(GaussianNB(), top=0).fit(features(), posteriors())


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ([0, 1, 1], r"shape \(n_tasks, n_classes\); got \(3,\)"),
        ([[0.5, 0.5]], r"shape \(3, 2\); got \(1, 2\)"),
        ([[1.0, 0.0], [0.5, 0.6], [0.0, 1.0]], r"sum to 1; got 1.1 at \(1,\)"),
    ],
)
def test_targets_that_are_no_posteriors_are_refused(targets: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_targets(targets, 3)


def test_slots_are_repeated_as_the_dense_targets_are() -> None:
    dense = posteriors(n_classes=8)
    targets, weight = Beliefs.from_dense(dense, 8), weights()
    both = (repeat_slots(targets, weight, 3), repeat_rows(dense, weight, 3))
    for found, expected in zip(*(_by_row(*rows) for rows in both), strict=True):
        assert_allclose(found, expected)


def _by_row(task: Any, code: Any, weight: Floats) -> tuple[Any, Any, Floats]:
    order = np.lexsort((code, task))
    return task[order], code[order], weight[order]


def test_a_task_without_mass_on_slots_has_no_row_and_padding_none() -> None:
    classes = np.array([[2, 0], [1, -1], [3, 4]], np.int32)
    targets = Beliefs(np.array([[0.5, 0.4], [1.0, 0.0], [0.0, 0.0]]), 9, classes, np.array([0.1, 0.0, 1.0]))
    task, code, weight = repeat_slots(targets, np.array([1.0, 2.0, 3.0]), 3)
    assert_array_equal(task, [0, 0, 1])
    assert_array_equal(code, [2, 0, 1])
    assert_allclose(weight, [5 / 9, 4 / 9, 2.0])
    fitted = RepeatedRows(GaussianNB()).fit(np.array([[0.0], [1.0], [5.0]]), targets)
    assert fitted.predict_proba(np.array([[1.0]])).shape == (1, 9)
