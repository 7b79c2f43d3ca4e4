"""SoftmaxRegression: scikit-learn's LogisticRegression on labels, its weighted repetition on posteriors."""

import tracemalloc
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from labelonce._types import Floats
from labelonce.learning._softmax import SoftmaxRegression, loss_and_gradient

TIGHT: dict[str, Any] = {"tol": 1e-9, "max_iter": 10_000}


def features(n_tasks: int = 200, n_features: int = 4) -> Floats:
    return np.random.default_rng(0).normal(size=(n_tasks, n_features))


def posteriors(n_tasks: int = 200, n_classes: int = 3) -> Floats:
    return np.random.default_rng(1).dirichlet(np.full(n_classes, 0.5), size=n_tasks)


def weights(n_tasks: int = 200) -> Floats:
    return np.random.default_rng(2).uniform(0.1, 3.0, size=n_tasks)


def repeated(X: Any, targets: Floats, weight: Floats, C: float) -> LogisticRegression:
    """The oracle: every row once for every class, weighted by its probability."""
    n_tasks, n_classes = targets.shape
    rows, codes = np.repeat(np.arange(n_tasks), n_classes), np.tile(np.arange(n_classes), n_tasks)
    return LogisticRegression(C=C, **TIGHT).fit(X[rows], codes, (targets * weight[:, None]).ravel())


def test_scikit_learns_checks_pass() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks of unusual inputs warn, and array API is not switched on
        check_estimator(SoftmaxRegression(), on_skip=None)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_give_the_coefficients_of_logistic_regression(C: float, n_classes: int) -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes], y[y < n_classes]
    ours, theirs = SoftmaxRegression(C=C, **TIGHT).fit(X, y), LogisticRegression(C=C, **TIGHT).fit(X, y)
    slopes = ours.coef_ if n_classes > 2 else ours.coef_[1:] - ours.coef_[:1]
    assert_allclose(slopes, theirs.coef_, atol=1e-4)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("n_classes", [2, 3, 8])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csc_array], ids=["dense", "csr", "csc array"])
def test_posteriors_act_as_weighted_repeated_rows(n_classes: int, kind: Any) -> None:
    X, targets, weight = features(), posteriors(n_classes=n_classes), weights()
    ours = SoftmaxRegression(C=0.3, **TIGHT).fit(kind(X), targets, weight)
    oracle = repeated(X, targets, weight, C=0.3)
    assert_allclose(ours.predict_proba(kind(X)), oracle.predict_proba(X), atol=1e-5)


def test_the_gradient_is_that_of_the_loss() -> None:
    X, targets, weight = features(20), posteriors(20), weights(20)[:, None]
    point, step = np.random.default_rng(3).normal(size=15), 1e-6 * np.eye(15)
    loss = [loss_and_gradient(point + d, X, targets, weight, 0.7)[0] for d in (*step, *-step)]
    slope = (np.array(loss[:15]) - loss[15:]) / 2e-6
    assert_allclose(loss_and_gradient(point, X, targets, weight, 0.7)[1], slope, rtol=1e-5)


def test_a_weight_of_two_is_the_row_twice() -> None:
    X, targets, weight = features(), posteriors(), np.tile([1.0, 2.0], 100)
    weighted = SoftmaxRegression(**TIGHT).fit(X, targets, weight)
    twice = np.repeat(np.arange(200), weight.astype(int))
    assert_allclose(weighted.coef_, SoftmaxRegression(**TIGHT).fit(X[twice], targets[twice]).coef_, atol=1e-6)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_rows_of_weight_zero_change_nothing(kind: Any) -> None:
    X, targets, weight = features(), posteriors(), weights()
    weight[::3] = 0.0
    keep = weight > 0
    with_zeros = SoftmaxRegression().fit(kind(X), targets, weight)
    without = SoftmaxRegression().fit(kind(X[keep]), targets[keep], weight[keep])
    assert_allclose(with_zeros.coef_, without.coef_, atol=1e-9)
    assert_allclose(with_zeros.intercept_, without.intercept_, atol=1e-9)


def test_a_label_whose_rows_all_weigh_nothing_is_no_class() -> None:
    model = SoftmaxRegression().fit(features(4), ["a", "b", "c", "a"], [1.0, 1.0, 0.0, 1.0])
    assert_array_equal(model.classes_, ["a", "b"])


@pytest.mark.parametrize("y", [["no", "yes"] * 100, [True, False] * 100, [7, -1] * 100, [0.0, 1.0] * 100])
def test_labels_of_any_kind_come_back(y: list[Any]) -> None:
    model = SoftmaxRegression().fit(np.c_[np.tile([-1.0, 1.0], 100)], y)
    assert_array_equal(model.classes_, np.unique(y))
    assert_array_equal(model.predict([[-1.0], [1.0]]), y[:2])


def test_posteriors_follow_a_relabelling_of_the_classes() -> None:
    X, targets, order = features(), posteriors(), [2, 0, 1]
    relabelled = SoftmaxRegression(**TIGHT).fit(X, targets[:, order]).predict_proba(X)
    assert_allclose(relabelled, SoftmaxRegression(**TIGHT).fit(X, targets).predict_proba(X)[:, order], atol=1e-6)


def test_a_class_without_mass_has_probability_zero() -> None:
    X, targets = features(), posteriors(n_classes=2)
    padded = SoftmaxRegression(**TIGHT).fit(X, np.insert(targets, 1, 0.0, axis=1))
    assert_allclose(
        padded.predict_proba(X)[:, [0, 2]], repeated(X, targets, np.ones(200), 1.0).predict_proba(X), atol=1e-5
    )
    assert_array_equal(padded.predict_proba(X)[:, 1], 0.0)
    assert_array_equal(padded.coef_[1], 0.0)


def test_one_class_only_is_predicted_for_certain() -> None:
    model = SoftmaxRegression().fit(features(5), ["cat"] * 5)
    assert_array_equal(model.predict(features(3)), ["cat"] * 3)
    assert_array_equal(model.predict_proba(features(3)), np.ones((3, 1)))


def test_one_column_with_all_the_mass_is_predicted_for_certain() -> None:
    model = SoftmaxRegression().fit(features(5), np.tile([0.0, 1.0, 0.0], (5, 1)))
    assert_array_equal(model.predict_proba(features(3)), np.tile([0.0, 1.0, 0.0], (3, 1)))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_float32_features_agree_with_float64(kind: Any) -> None:
    X, targets = features(), posteriors()
    half, model = kind(X.astype(np.float32)), SoftmaxRegression(tol=1e-6)
    single = model.fit(half, targets).predict_proba(half)
    assert_allclose(single, model.fit(X, targets).predict_proba(X), atol=1e-4)
    assert_allclose(single.sum(axis=1), 1.0, rtol=1e-12)


def test_sparse_features_are_never_made_dense() -> None:
    wide = sparse.random_array((3_000, 200_000), density=1e-5, rng=np.random.default_rng(0), format="csr")
    tracemalloc.start()
    model = SoftmaxRegression().fit(wide, posteriors(3_000, 2))
    model.predict_proba(wide)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 500e6 < 8 * 3_000 * 200_000


def test_a_thousand_classes_are_told_apart() -> None:
    X = np.random.default_rng(0).normal(size=(1_000, 20))
    assert SoftmaxRegression(C=10.0, tol=1e-4).fit(X, np.eye(1_000)).score(X, np.arange(1_000)) > 0.95


def test_the_loss_of_large_scores_is_finite() -> None:
    X, targets = features(20), posteriors(20)
    loss, gradient = loss_and_gradient(np.full(15, 1e6) * np.arange(15), X, targets, np.ones((20, 1)), 0.0)
    assert np.isfinite(loss)
    assert np.isfinite(gradient).all()


def test_large_scores_give_certain_predictions() -> None:
    model = SoftmaxRegression(C=1e6).fit(np.c_[np.linspace(-1, 1, 50)], np.arange(50) >= 25)
    probabilities = model.predict_proba([[-1e9], [1e9]])
    assert_array_equal(probabilities, [[1.0, 0.0], [0.0, 1.0]])


def test_a_warm_start_takes_up_where_the_last_fit_ended() -> None:
    X, targets = features(), posteriors()
    model = SoftmaxRegression(warm_start=True, tol=1e-6).fit(X, targets)
    cold, first = model.n_iter_, model.coef_
    assert model.fit(X, targets).n_iter_ <= 1 < cold
    assert_allclose(model.coef_, first, atol=1e-4)


def test_a_warm_start_reaches_the_same_optimum() -> None:
    X, targets = features(), posteriors()
    warm = SoftmaxRegression(warm_start=True, **TIGHT).fit(X, targets[::-1]).fit(X, targets)
    assert_allclose(warm.coef_, SoftmaxRegression(**TIGHT).fit(X, targets).coef_, atol=1e-6)


def test_a_warm_start_forgets_other_classes_and_shapes() -> None:
    X, targets = features(), posteriors()
    model = SoftmaxRegression(warm_start=True).fit(X, targets)
    cold = SoftmaxRegression().fit(X[:, :2], targets)
    assert_allclose(model.fit(X[:, :2], targets).coef_, cold.coef_, atol=1e-9)


def test_a_warm_start_revives_a_class_that_had_no_mass() -> None:
    X, targets = features(), posteriors()
    model = SoftmaxRegression(warm_start=True, **TIGHT).fit(X, np.tile([0.5, 0.5, 0.0], (200, 1))).fit(X, targets)
    assert_allclose(model.coef_, SoftmaxRegression(**TIGHT).fit(X, targets).coef_, atol=1e-6)


def test_without_a_warm_start_the_last_fit_is_forgotten() -> None:
    X, targets = features(), posteriors()
    again = SoftmaxRegression().fit(X, targets[::-1]).fit(X, targets)
    assert_allclose(again.coef_, SoftmaxRegression().fit(X, targets).coef_, atol=1e-9)


def test_the_argmax_of_the_scores_is_the_prediction() -> None:
    model = SoftmaxRegression().fit(features(), posteriors())
    assert_array_equal(model.predict(features()), model.decision_function(features()).argmax(axis=1))
    assert_array_equal(model.predict(features()), model.predict_proba(features()).argmax(axis=1))


def test_names_of_features_are_kept() -> None:
    frame = pd.DataFrame(features(n_features=2), columns=["length", "width"])
    model = SoftmaxRegression().fit(frame, posteriors())
    assert_array_equal(model.feature_names_in_, ["length", "width"])
    assert model.n_features_in_ == 2


def test_arguments_are_unchanged() -> None:
    X, targets, weight = features(), posteriors(), weights()
    SoftmaxRegression().fit(X, targets, weight).predict_proba(X)
    assert_array_equal(X, features())
    assert_array_equal(targets, posteriors())
    assert_array_equal(weight, weights())


def test_a_clone_has_the_parameters_and_no_memory() -> None:
    model = clone(SoftmaxRegression(C=0.5, warm_start=True).fit(features(), posteriors()))
    assert model.get_params() == {"C": 0.5, "max_iter": 500, "tol": 1e-5, "warm_start": True}
    assert not hasattr(model, "coef_")


def test_too_few_iterations_are_a_warning_with_the_numbers() -> None:
    with pytest.warns(ConvergenceWarning, match=r"after 2 iterations with a gradient of \d.*tol=1e-05.*max_iter=2 or"):
        SoftmaxRegression(max_iter=2).fit(features(), posteriors())


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (np.nan, r"targets must be probabilities; got nan at \(4, 1\) \(1 in total\)"),
        (-0.25, r"targets must be probabilities; got -0.25 at \(4, 1\)"),
        (7.0, r"targets must sum to 1; got 7\.\d+ at \(4,\) \(1 in total\)"),
    ],
)
def test_targets_that_are_no_probabilities_are_refused(entry: float, message: str) -> None:
    targets = posteriors()
    targets[4, 1] = entry
    with pytest.raises(ValueError, match=message):
        SoftmaxRegression().fit(features(), targets)


def test_targets_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(200, 3\); got \(150, 3\)"):
        SoftmaxRegression().fit(features(), posteriors(150))


def test_a_continuous_label_is_refused() -> None:
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        SoftmaxRegression().fit(features(3), [0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0.0}, "C must be above 0; got 0.0"),
        ({"C": -1.0}, "C must be at least 0; got -1.0"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1; got 0"),
        ({"tol": -1e-3}, "tol must be at least 0; got -0.001"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SoftmaxRegression(**parameters).fit(features(), posteriors())


@pytest.mark.parametrize(
    ("weight", "message"), [(np.zeros(200), "at least one non-zero"), (-weights(), "Negative values")]
)
def test_weights_that_are_no_weights_are_refused(weight: Floats, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SoftmaxRegression().fit(features(), posteriors(), weight)
