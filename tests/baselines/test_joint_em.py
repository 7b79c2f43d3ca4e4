"""Raykar's EM and candidate labels: their equations, their fixed points, and the laws of every learner from crowds."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crowds import crowd_with_features, rearranged, with_empty_columns
from engines import brute_force_votes
from numpy.testing import assert_allclose, assert_array_equal

import labelonce as lo
from labelonce import Annotations, SoftmaxRegression
from labelonce._sklearn import ConvergenceWarning
from labelonce.baselines import CandidateLabels, Raykar

TIGHT: dict[str, Any] = {"C": 1.0, "tol": 1e-9, "max_iter": 5000}
METHODS: list[Any] = [Raykar, CandidateLabels]


def tight(Model: Any, **options: Any) -> Any:
    """Return a model whose EM goes to the end."""
    return Model(SoftmaxRegression(**TIGHT), **{"tol": 1e-10, "max_iter": 5000} | options)


@pytest.mark.parametrize("Model", METHODS)
def test_one_worker_who_is_always_right_is_the_truth(Model: Any) -> None:
    X, _, y_true, _ = crowd_with_features()
    options = {"smoothing": 0.0} if Model is Raykar else {}
    plain = SoftmaxRegression(**TIGHT).fit(X, y_true)
    assert_allclose(tight(Model, **options).fit(X, y_true).predict_proba(X), plain.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("Model", METHODS)
def test_predictions_follow_permutations(Model: Any) -> None:
    X, ann, *_ = crowd_with_features(redundancy=3)
    X_other, ann_other, _, label = rearranged(X, ann)
    found = tight(Model).fit(X, ann).predict_proba(X)
    renamed = tight(Model).fit(X_other, ann_other).predict_proba(X)
    assert_allclose(renamed[:, label], found, atol=1e-5)


@pytest.mark.parametrize("Model", METHODS)
def test_a_worker_and_a_class_without_labels_are_fine(Model: Any) -> None:
    X, ann, *_ = crowd_with_features(redundancy=3)
    more = with_empty_columns(ann)
    found, plain = (tight(Model).fit(X, one) for one in (more, ann))
    assert_array_equal(found.predict(X), plain.predict(X))
    assert_allclose(found.predict_proba(X)[:, -1], 0, atol=1e-8)


@pytest.mark.parametrize("Model", METHODS)
def test_tasks_without_labels_change_nothing(Model: Any) -> None:
    X, ann, *_ = crowd_with_features(redundancy=3)
    matrix = ann.to_matrix(dense=True)
    some = Annotations.from_matrix(np.where(np.arange(200)[:, None] < 150, matrix, -1))
    found = tight(Model).fit(X, some).predict_proba(X)
    assert_allclose(found, tight(Model).fit(X[:150], Annotations.from_matrix(matrix[:150])).predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("Model", METHODS)
def test_gold_is_kept_and_helps(Model: Any) -> None:
    X, ann, y_true, _ = crowd_with_features(redundancy=3, hammers=0.2)
    gold = {task: y_true[task] for task in range(100)}
    clf = tight(Model).fit(X, ann, gold=gold)
    assert_array_equal(clf.labels_[:100], y_true[:100])
    assert clf.score(X, y_true) > tight(Model).fit(X, ann).score(X, y_true)


def test_the_penalised_likelihood_of_raykar_never_falls() -> None:
    X, ann, *_ = crowd_with_features(redundancy=2)
    reached = []
    for n_iter in range(1, 8):
        with pytest.warns(ConvergenceWarning, match=f"max_iter={n_iter}"):
            clf = tight(Raykar, max_iter=n_iter).fit(X, ann)
        reached.append(clf.log_likelihood_[-1] - 0.5 * (clf.model_.coef_**2).sum() / clf.model_.C)
        assert len(clf.log_likelihood_) == clf.n_iter_ == n_iter
    assert (np.diff(reached) > -1e-7).all()


def test_raykar_with_two_classes_has_the_papers_sensitivity_and_specificity() -> None:
    X, ann, *_ = crowd_with_features(n_classes=2, redundancy=3, hammers=0.5)
    clf = tight(Raykar, smoothing=0.0).fit(X, ann)
    mu = clf.posterior_[:, 1]
    for worker in range(ann.n_workers):
        own = ann.worker == worker
        weight, given = mu[ann.task[own]], ann.label[own]
        assert clf.confusion_[worker, 1, 1] == pytest.approx((weight * given).sum() / weight.sum(), abs=1e-6)
        specificity = ((1 - weight) * (1 - given)).sum() / (1 - weight).sum()
        assert clf.confusion_[worker, 0, 0] == pytest.approx(specificity, abs=1e-6)


def test_raykar_finds_the_workers_and_beats_the_votes() -> None:
    X, ann, y_true, confusion = crowd_with_features(600, 10, redundancy=3, hammers=0.3)
    clf = Raykar(tol=1e-5).fit(X, ann)
    vote = lo.TrainOnAggregate(lo.MajorityVote(), SoftmaxRegression()).fit(X, ann)
    assert lo.metrics.confusion_error(confusion, clf.confusion_) < 0.1
    assert clf.score(X, y_true) > vote.score(X, y_true) + 0.03
    assert clf.score_annotations(X, ann) > vote.score_annotations(X, ann)


def test_one_label_per_task_is_a_fixed_point_of_raykar_without_smoothing() -> None:
    X, ann, *_ = crowd_with_features(redundancy=1)
    clf = tight(Raykar, smoothing=0.0, tol=1e-6).fit(X, ann)
    assert_array_equal(clf.labels_, ann.label)
    plain = SoftmaxRegression(**TIGHT).fit(X, ann.label)
    assert_allclose(clf.predict_proba(X), plain.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("weighting", ["votes", "none"])
def test_candidates_settle_at_the_papers_equation(weighting: str) -> None:
    X, ann, *_ = crowd_with_features(redundancy=3)
    clf = tight(CandidateLabels, weighting=weighting).fit(X, ann)
    counts = brute_force_votes(ann)
    joint = clf.predict_proba(X) * (counts if weighting == "votes" else counts > 0)
    assert_allclose(clf.posterior_, joint / joint.sum(axis=1, keepdims=True), atol=1e-8)
    assert_array_equal(clf.posterior_ > 0, counts > 0)


def test_candidates_beat_the_raw_labels_where_one_of_them_is_right() -> None:
    X, _, y_true, _ = crowd_with_features(300)
    other = (y_true + np.random.default_rng(0).integers(1, 3, 300)) % 3
    rows = np.where(np.random.default_rng(1).random(300) < 0.9, other, -1)
    sets = Annotations.from_matrix(np.column_stack([y_true, rows]))
    chosen = CandidateLabels().fit(X, sets)
    raw = lo.TrainOnAggregate(lo.MajorityVote(), SoftmaxRegression(), targets="soft").fit(X, sets)
    assert (chosen.labels_ == y_true).mean() > 0.9
    assert chosen.score(X, y_true) >= raw.score(X, y_true)


def test_an_unknown_weighting_is_refused() -> None:
    X, ann, *_ = crowd_with_features()
    with pytest.raises(ValueError, match="'most'"):
        CandidateLabels(weighting="most").fit(X, ann)


@pytest.mark.usefixtures("skops")
@pytest.mark.parametrize("Model", METHODS)
def test_a_saved_model_predicts_the_same(Model: Any, tmp_path: Path) -> None:
    X, ann, *_ = crowd_with_features(redundancy=3)
    clf = Model().fit(X, ann)
    lo.save(clf, tmp_path / "model.skops")
    assert_array_equal(lo.load(tmp_path / "model.skops").predict_proba(X), clf.predict_proba(X))
