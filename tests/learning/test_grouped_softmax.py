"""GroupedSoftmax: two softmax regressions, fitted to labels, arrays or slots alike."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime

from labelonce import SoftmaxRegression
from labelonce._kernels import Beliefs
from labelonce._rules import RULES
from labelonce._types import Codes, Floats
from labelonce.learning import GroupedSoftmax
from labelonce.learning import _slot_softmax as growing
from labelonce.learning._grouped_softmax import targets_of_groups
from labelonce.learning._slot_softmax import slot_loss
from labelonce.learning._softmax import loss_and_gradient

GROUP = np.array([0, 1, 0, 1, 2, 2, 0])


def problem(n: int = 700) -> tuple[Floats, Codes]:
    rng = np.random.default_rng(0)
    y = (np.arange(n) % 7).astype(np.int32)
    return rng.normal(size=(7, 5))[y] * 2 + rng.normal(size=(n, 5)), y


def soft_targets(n: int = 700) -> Floats:
    return np.random.default_rng(1).dirichlet(np.full(7, 0.3), n)


def test_each_part_is_the_softmax_regression_of_its_tasks() -> None:
    X, y = problem()
    found = GroupedSoftmax(GROUP, C=0.5, tol=1e-8).fit(X, y)
    by_group = SoftmaxRegression(C=0.5, tol=1e-8).fit(X, GROUP[y]).predict_proba(X)
    expected = np.empty((700, 7))
    for group in range(3):
        members = np.flatnonzero(group == GROUP)
        own = np.isin(y, members)
        inside = SoftmaxRegression(C=0.5 * (1 + (len(members) == 2)), tol=1e-8).fit(X[own], y[own])
        expected[:, members] = by_group[:, [group]] * inside.predict_proba(X)
    assert_allclose(found.predict_proba(X), expected, atol=1e-3)


def test_arrays_and_slots_give_the_same() -> None:
    X, _ = problem()
    soft, weight = soft_targets(), np.random.default_rng(2).random(700)
    dense = GroupedSoftmax(GROUP).fit(X, soft, weight)
    sparse = GroupedSoftmax(GROUP).fit(X, Beliefs.from_dense(soft, 7), weight)
    assert_allclose(sparse.predict_proba(X), dense.predict_proba(X), atol=1e-5)


def test_predictions_on_slots_are_those_of_all_classes() -> None:
    X, y = problem()
    model = GroupedSoftmax(GROUP).fit(X, y)
    dense = model.predict_proba(X)
    own = np.stack([y, np.where(y % 2, -1, (y + 1) % 7)], axis=1).astype(np.int32)
    found = model.predict_slots(X, own, 2)
    there = found.codes >= 0
    assert_array_equal(found.codes[:, :2][own >= 0], own[own >= 0])
    expected = np.take_along_axis(dense, np.maximum(found.codes, 0), axis=1)
    assert_allclose(found.probability[there], expected[there], atol=1e-6)
    assert_allclose(found.probability.sum(axis=1) + found.rest, 1, atol=1e-6)
    assert (found.argmax() == dense.argmax(axis=1)).mean() > 0.99


@pytest.mark.parametrize("rest", [0.0, 0.2])
def test_the_loss_on_slots_is_that_of_the_dense_targets(rest: float) -> None:
    X, _ = problem(60)
    mass = np.random.default_rng(3).dirichlet(np.ones(3), 60) * (1 - rest)
    classes = np.stack([np.random.default_rng(i).permutation(7)[:3] for i in range(60)]).astype(np.int32)
    targets = Beliefs(mass, 7, classes, np.full(60, rest))
    weight = np.random.default_rng(4).dirichlet(np.ones(60))
    flat = np.random.default_rng(5).normal(size=42)
    value, gradient = slot_loss(flat, X, targets, weight, 0.1)
    expected, slope = loss_and_gradient(flat, X, targets.to_dense(), weight[:, None], 0.1)
    assert value == pytest.approx(expected, rel=1e-9)
    assert_allclose(gradient, slope, atol=1e-9)
    by_differences = approx_fprime(flat, lambda one: slot_loss(one, X, targets, weight, 0.1)[0], 1e-6)
    assert_allclose(gradient, by_differences, atol=1e-4)


def test_softmax_regression_takes_slots() -> None:
    X, _ = problem()
    soft = soft_targets()
    dense = SoftmaxRegression(C=0.1).fit(X, soft).predict_proba(X)
    sparse = SoftmaxRegression(C=0.1).fit(X, Beliefs.from_dense(soft, 7)).predict_proba(X)
    assert_allclose(sparse, dense, atol=1e-4)


def test_samples_that_grow_end_near_the_same_model(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = problem(7000)
    whole = GroupedSoftmax(GROUP).fit(X, y).predict_proba(X)
    monkeypatch.setattr(growing, "RULES", replace(RULES, slot_sample=10))
    assert np.abs(GroupedSoftmax(GROUP).fit(X, y).predict_proba(X) - whole).mean() < 0.01


def test_a_warm_start_is_where_the_last_fit_ended() -> None:
    X, y = problem()
    model = GroupedSoftmax(GROUP, warm_start=True).fit(X, y)
    cold = model.n_iter_
    assert model.fit(X, y).n_iter_ < cold / 2


def test_a_class_without_targets_is_never_predicted() -> None:
    X, y = problem()
    soft = np.eye(7)[np.where(y == 6, 0, y)]
    assert_allclose(GroupedSoftmax(GROUP).fit(X, soft).predict_proba(X)[:, 6], 0, atol=1e-12)


def test_targets_of_groups_are_sums() -> None:
    soft = soft_targets(50)
    found = targets_of_groups(Beliefs.from_dense(soft, 7), GROUP).to_dense()
    expected = np.stack([soft[:, group == GROUP].sum(axis=1) for group in range(3)], axis=1)
    assert_allclose(found, expected, atol=2e-3)


def test_groups_of_another_number_of_classes_are_told() -> None:
    X, y = problem()
    with pytest.raises(ValueError, match="one entry per class, 7; got 3"):
        GroupedSoftmax([0, 0, 1]).fit(X, y)
