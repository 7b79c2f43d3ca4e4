"""BoostedTrees: LightGBM's own multiclass on labels, native cross-entropy on posteriors."""

import sys
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.utils.estimator_checks import check_estimator

from labelonce._types import Floats
from labelonce.learning._boost import BoostedTrees, _softmax_objective

lightgbm = pytest.importorskip("lightgbm")

COUNTS_ROWS = "LightGBM's bins and leaves count rows, not weights"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": COUNTS_ROWS,
    "check_sample_weight_equivalence_on_sparse_data": COUNTS_ROWS,
}


def problem(n_tasks: int = 400, n_classes: int = 3) -> tuple[Floats, Floats]:
    """Features on a grid, and the posteriors they imply."""
    X = np.random.default_rng(0).integers(-3, 4, size=(n_tasks, 4)).astype(np.float64)
    scores = X @ np.random.default_rng(1).normal(size=(4, n_classes))
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return X, odds / odds.sum(axis=1, keepdims=True)


def cross_entropy(targets: Floats, probabilities: Floats) -> float:
    return float(-(targets * np.log(probabilities)).sum(axis=1).mean())


def test_scikit_learns_checks_pass() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks of unusual inputs warn, and array API is not switched on
        model = BoostedTrees(n_estimators=10, min_child_samples=1)
        check_estimator(model, on_skip=None, expected_failed_checks=EXPECTED)


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris], ids=["two classes", "three classes"])
def test_labels_give_the_trees_of_lightgbms_multiclass(load: Any) -> None:
    X, y = load(return_X_y=True)
    ours = BoostedTrees(n_estimators=20, num_leaves=7).fit(X, np.eye(y.max() + 1)[y])
    settings = {"objective": "multiclass", "num_class": y.max() + 1, "num_leaves": 7, "learning_rate": 0.05}
    rows = lightgbm.Dataset(X, y)
    theirs = lightgbm.train({**settings, "verbosity": -1, "num_threads": 2}, rows, num_boost_round=20)
    assert_allclose(ours.predict_proba(X), theirs.predict(X), atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_posteriors_of_new_tasks_are_predicted_better_than_by_their_shares(n_classes: int) -> None:
    X, targets = problem(2_000, n_classes)
    probabilities = BoostedTrees(n_estimators=100).fit(X[::2], targets[::2]).predict_proba(X[1::2])
    entropy = cross_entropy(targets[1::2], targets[1::2])
    by_shares = cross_entropy(targets[1::2], np.tile(targets[::2].mean(axis=0), (1_000, 1)))
    assert cross_entropy(targets[1::2], probabilities) - entropy < 0.25 * (by_shares - entropy)


def test_the_derivatives_are_those_of_the_loss() -> None:
    (_, targets), weight = problem(5), np.array([1.0, 2.0, 0.5, 3.0, 1.0])
    scores = np.random.default_rng(2).normal(size=(5, 3))
    gradient, hessian = _softmax_objective(targets, weight)(scores, None)
    step = np.zeros(3)
    step[1] = 1e-5

    def loss(scores: Floats) -> Floats:
        losses: Floats = np.log(np.exp(scores).sum(axis=1)) - (targets * scores).sum(axis=1)
        return weight * losses

    above, here, below = loss(scores + step), loss(scores), loss(scores - step)
    assert_allclose(gradient[:, 1], (above - below) / 2e-5, rtol=1e-6)
    assert_allclose(hessian[:, 1], 3 / 2 * (above - 2 * here + below) / 1e-10, rtol=1e-3)


def test_weights_act_as_repeated_rows() -> None:
    (X, targets), weight = problem(), np.tile([1, 3], 200)
    model = BoostedTrees(n_estimators=20, min_child_samples=1)
    weighted = model.fit(X, targets, weight).predict_proba(X)
    twice = np.repeat(np.arange(400), weight)
    assert_allclose(weighted, model.fit(X[twice], targets[twice]).predict_proba(X), atol=1e-6)


def test_rows_of_weight_zero_change_nothing() -> None:
    (X, targets), weight = problem(), np.tile([1.0, 0.0], 200)
    model = BoostedTrees(n_estimators=10)
    weighted = model.fit(X, targets, weight).predict_proba(X)
    assert_allclose(weighted, model.fit(X[::2], targets[::2]).predict_proba(X), rtol=1e-9)


def test_the_result_depends_on_the_seed_and_not_on_the_threads() -> None:
    X, targets = problem()
    model = BoostedTrees(n_estimators=4, colsample_bytree=0.5, n_jobs=1)
    first = model.fit(X, targets).predict_proba(X)
    assert_allclose(clone(model).set_params(n_jobs=2).fit(X, targets).predict_proba(X), first, rtol=1e-9)
    assert np.abs(clone(model).set_params(random_state=1).fit(X, targets).predict_proba(X) - first).max() > 1e-3


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array], ids=["csr", "csc array"])
def test_sparse_features_give_the_same_model(kind: Any) -> None:
    X, targets = problem()
    model = BoostedTrees(n_estimators=10)
    dense = model.fit(X, targets).predict_proba(X)
    assert_allclose(model.fit(kind(X), targets).predict_proba(kind(X)), dense, atol=1e-6)


def test_missing_features_are_allowed() -> None:
    X, targets = problem()
    X[::5, 0] = np.nan
    assert_allclose(BoostedTrees(n_estimators=5).fit(X, targets).predict_proba(X).sum(axis=1), 1.0)


def test_a_class_without_mass_has_probability_zero() -> None:
    X, targets = problem(n_classes=2)
    padded = BoostedTrees(n_estimators=5).fit(X, np.insert(targets, 1, 0.0, axis=1)).predict_proba(X)
    assert_array_equal(padded[:, 1], 0.0)
    assert_allclose(padded[:, [0, 2]], BoostedTrees(n_estimators=5).fit(X, targets).predict_proba(X), rtol=1e-9)


def test_one_class_only_is_predicted_for_certain() -> None:
    model = BoostedTrees().fit(problem()[0], np.tile([0.0, 1.0, 0.0], (400, 1)))
    assert_array_equal(model.predict_proba(problem()[0][:2]), np.tile([0.0, 1.0, 0.0], (2, 1)))


def test_features_that_tell_nothing_give_the_class_shares() -> None:
    targets = problem()[1]
    probabilities = BoostedTrees(n_estimators=5).fit(np.ones((400, 2)), targets).predict_proba(np.ones((1, 2)))
    assert_allclose(probabilities[0], targets.mean(axis=0), rtol=1e-6)


def test_labels_come_back_as_they_were() -> None:
    X, targets = problem()
    labels = np.array(["ant", "bee", "cat"])[targets.argmax(axis=1)]
    assert BoostedTrees(n_estimators=50).fit(X, labels).score(X, labels) > 0.9


def test_too_few_tasks_for_a_split_are_a_warning_with_the_numbers() -> None:
    X, targets = problem(30)
    with pytest.warns(UserWarning, match="cannot split 30 tasks with min_child_samples=20.*to 15 or less"):
        BoostedTrees().fit(X, targets)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_estimators": 0}, "n_estimators must be an integer of at least 1; got 0"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0; got 0.0"),
        ({"learning_rate": 1.5}, r"learning_rate must be in \[0, 1\]; got 1.5"),
        ({"num_leaves": 1}, "num_leaves must be an integer of at least 2; got 1"),
        ({"min_child_samples": 0}, "min_child_samples must be an integer of at least 1; got 0"),
        ({"reg_lambda": -1.0}, "reg_lambda must be at least 0; got -1.0"),
        ({"colsample_bytree": 0}, "colsample_bytree must be above 0; got 0"),
        ({"random_state": -3}, "random_state must be an integer of at least 0; got -3"),
        ({"n_jobs": -2}, "n_jobs must be an integer of at least -1; got -2"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BoostedTrees(**parameters).fit(*problem())


def test_without_lightgbm_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(ImportError, match=r"BoostedTrees needs LightGBM; .* pip install 'labelonce\[boost\]'\."):
        BoostedTrees().fit(*problem())
