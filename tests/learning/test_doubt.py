"""Doubt: the warnings, with the numbers seen, and silence where all is well."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from labelonce import MBEM, Annotations, DoubtWarning, SoftmaxRegression, simulate
from labelonce._types import Estimate
from labelonce.learning._doubt import (
    doubts_about_contradictions,
    doubts_about_drift,
    doubts_about_features,
    doubts_about_labels,
)
from labelonce.learning._narrowing import Narrowing

LABEL = np.repeat([0, 1], 10)
ANN = Annotations.from_arrays(np.arange(20), np.zeros(20, dtype=int), LABEL)


def drift(predicted: Any, ann: Annotations = ANN) -> list[str]:
    return list(doubts_about_drift(ann, predicted))


def test_features_that_say_no_more_than_the_shares_of_labels_are_named() -> None:
    (message,) = doubts_about_features(-0.72, -0.69, 100.0)
    assert "held-out labels is -0.720, and -0.690 by how often" in message
    assert "tasks=..." in message
    assert len(list(doubts_about_features(-0.68, -0.69, 3.0))) == 1
    assert not list(doubts_about_features(-0.6, -0.69, 50.0))


def test_labels_that_are_kept_against_the_model_are_named() -> None:
    (message,) = doubts_about_labels(1000, 51, Estimate(0.8, 0.75, 0.85), None)
    assert "for 51 of 1,000 tasks the model prefers another class" in message
    assert not list(doubts_about_labels(1000, 50, Estimate(0.8, 0.75, 0.85), None))


def test_a_wide_range_is_named() -> None:
    (message,) = doubts_about_labels(1000, 0, Estimate(0.8, 0.6, 0.95), Narrowing(60, 0.08, 100, 0.05))
    assert "60% to 95% of the labels shown may be right. 60 second labels would narrow that to about" in message


def test_single_labels_that_the_model_contradicts_are_named() -> None:
    (message,) = doubts_about_contradictions(0.2, 0.05)
    assert "contradict 20% of the labels shown, while only 5% of them are" in message
    assert not list(doubts_about_contradictions(0.2, 0.0))


def test_drifted_classes_are_named() -> None:
    (message,) = drift(np.where(np.arange(20) < 3, 0, 1))
    assert "predicts class 1 for 85.0% of the tasks while 50.0% of the labels say so (drift 0.35, above 0.3)" in message


def test_a_class_is_named_by_its_id() -> None:
    named = Annotations.from_arrays(ANN.task, ANN.worker, np.array(["no", "yes"])[LABEL])
    assert "predicts class 'yes' for 85.0%" in drift(np.where(np.arange(20) < 3, 0, 1), named)[0]


@pytest.mark.parametrize("n_wrong", [0, 3, 5])
def test_a_fit_in_order_is_silent(n_wrong: int) -> None:
    assert drift(np.where(np.arange(20) < n_wrong, 1, LABEL)) == []


def test_one_class_leaves_no_doubt() -> None:
    assert drift(np.zeros(4, dtype=int), Annotations.from_matrix(np.zeros((4, 1), dtype=int))) == []


def test_the_warning_points_at_the_call_of_fit_and_stays_on_the_object() -> None:
    model = MBEM(SoftmaxRegression(), rounds=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(np.zeros((20, 1)), ANN)
    assert [one.filename for one in caught] == [__file__] * len(model.doubts_)
    assert [str(one.message) for one in caught] == [f"MBEM: {one}" for one in model.doubts_]
    assert "too weak to judge anybody" in model.doubts_[0]


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")
def test_labels_stay_where_features_say_nothing() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    ann = simulate.annotate(y, simulate.one_coin(np.full(8, 0.7), 2), simulate.assign(400, 8, 1, rng), rng)
    found = MBEM(SoftmaxRegression(), rounds=3).fit(rng.normal(size=(400, 4)), ann)
    assert found.labels_[ann.task].tolist() == ann.label.tolist()
    assert found.estimated_accuracy_.low < 0.75


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")
@pytest.mark.parametrize("chosen", [True, False])
def test_workers_with_tasks_of_their_own_are_named_and_their_skills_are_less_sure(chosen: bool) -> None:
    rng = np.random.default_rng(0)
    y = np.sort(rng.integers(0, 3, 600))  # as in batches that are sorted
    worker = np.arange(600) // 60 if chosen else rng.integers(0, 10, 600)
    label = np.where(rng.random(600) < 0.9, y, rng.integers(0, 3, 600))
    X = 2 * np.eye(3)[y] + rng.normal(size=(600, 3))
    found = MBEM(SoftmaxRegression(), rounds=2).fit(X, Annotations.from_arrays(np.arange(600), worker, label))
    assert any("workers have tasks of other classes than the rest" in one for one in found.doubts_) == chosen
    plain = replace(found.verdict_, shift=None).skill_interval()
    low, high = found.verdict_.skill_interval()
    assert bool(((high - low) > (plain[1] - plain[0])).any()) == chosen
    assert ((low <= plain[0]) & (high >= plain[1])).all()


def test_tasks_without_a_label_are_as_the_classes_are_shared_where_features_say_nothing() -> None:
    rng = np.random.default_rng(1)
    y, X = rng.integers(0, 6, 240), rng.normal(size=(240, 200))
    confusion = simulate.one_coin([0.7, 0.8], 6)
    ann = simulate.annotate(y, confusion, simulate.assign(240, 2, 1, rng), rng)
    some = Annotations(ann.task[:105], ann.worker[:105], ann.label[:105], ann.tasks, ann.workers, ann.classes)
    with pytest.warns(DoubtWarning, match="too weak to judge anybody"):
        clf = MBEM(SoftmaxRegression(), random_state=0).fit(X, some)
    assert clf.confidence_[105:].mean() < 0.4 < 0.7 < clf.confidence_[:105].mean()
    assert clf.estimated_accuracy_.low < (clf.labels_ == y).mean() < clf.estimated_accuracy_.high
