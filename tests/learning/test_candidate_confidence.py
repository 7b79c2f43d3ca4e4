"""Confidence at many classes: labels are right as often as they say, whatever the groups are worth."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import labelonce as lo
from labelonce import Annotations, simulate, workers
from labelonce._kernels import Candidates
from labelonce.learning._candidate_confidence import reconciled_candidates
from labelonce.learning._confidence import reconciled

GROUP = np.arange(100) // 10
pytestmark = pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")


def weak(redundancy: int = 1, *, n_labels: int = 6000, seed: int = 7) -> tuple[Any, Any, Annotations]:
    """Return features that tell half of the classes or less, true labels, and annotations of a grouped crowd."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 100, n_labels // redundancy)
    X = rng.normal(size=(100, 20))[y] + 1.2 * rng.normal(size=(len(y), 20))
    crowd = simulate.grouped_hammer_spammer(60, GROUP, 0.3, rng)
    return X, y, simulate.annotate(y, crowd, simulate.assign(len(y), 60, redundancy, rng), rng)


def fitted(X: Any, ann: Annotations, model: Any, **options: Any) -> lo.MBEM:
    return lo.MBEM(lo.SoftmaxRegression(C=0.1, tol=1e-3), worker_model=model, rounds=3).fit(X, ann, **options)


@pytest.mark.parametrize("redundancy", [1, 3])
def test_labels_are_right_about_as_often_as_they_say(redundancy: int) -> None:
    X, y, ann = weak(redundancy)
    clf = fitted(X, ann, workers.Grouped(GROUP))
    right = clf.labels_ == y
    assert right.mean() > (lo.MajorityVote().fit(ann).labels_ == y).mean() + 0.3
    assert abs(clf.confidence_.mean() - right.mean()) < 0.05
    assert clf.estimated_accuracy_.low <= right.mean() <= clf.estimated_accuracy_.high
    order = np.argsort(clf.confidence_)
    assert right[order[: len(y) // 5]].mean() < right[order[len(y) // 5 :]].mean()


def test_groups_that_labels_leave_do_no_harm() -> None:
    """Classes dealt to groups at random: with labels bound to them, every label would be taken to be right."""
    X, y, ann = weak()
    clf = fitted(X, ann, workers.Grouped(np.arange(100) % 10))
    right = (clf.labels_ == y).mean()
    assert right > (ann.label == y).mean() + 0.2
    assert clf.worker_model_.leak_ > 0.8
    assert abs(clf.confidence_.mean() - right) < 0.1


def test_no_class_is_shown_as_more_probable_than_the_label() -> None:
    X, _, ann = weak()
    clf = fitted(X, ann, workers.Grouped(GROUP))
    shown: Any = clf.calibrated_
    assert_allclose(shown.probability.sum(axis=1) + shown.rest, 1.0)
    assert_allclose(clf.confidence_, shown.probability.max(axis=1))


def test_labels_and_rivals_are_reconciled_as_in_an_array() -> None:
    rng = np.random.default_rng(0)
    dense = rng.dirichlet(np.ones(6), size=30)
    labels = rng.integers(0, 6, 30).astype(np.int32)
    found = reconciled_candidates(Candidates.from_dense(dense, 6), labels)
    assert_allclose(found.to_dense(), reconciled(dense, labels))


def test_gold_settles_its_tasks_and_the_trust() -> None:
    X, y, ann = weak()
    gold = np.where(np.arange(len(y)) % 20 == 0, y, -1)
    clf = fitted(X, ann, workers.Grouped(GROUP), gold=gold)
    assert_allclose(clf.confidence_[::20], 1.0)
    assert clf.trust_ != 0.75


def test_mistakes_without_groups_are_counted_once_where_predictions_tie() -> None:
    """Two classes that a model cannot tell apart: which of them it picks is up to rounding."""
    X, _, ann = weak(n_labels=3000)
    clf = lo.MBEM(lo.SoftmaxRegression(C=1e-7, tol=1e-3), worker_model=workers.Grouped(), rounds=2).fit(X, ann)
    assert np.isfinite(clf.confidence_).all()
