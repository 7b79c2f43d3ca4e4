"""Calibration: predictions that explain the annotations best, and classes that are not lost."""

from typing import Any

import numpy as np
import pytest
from checks import one_hot
from crowds import crowd
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax

from labelonce import MBEM, Annotations, SoftmaxRegression, simulate
from labelonce._kernels import ScipyEngine
from labelonce._types import Floats
from labelonce.learning._calibration import Calibration, calibrate, label_shares, sample_tasks
from labelonce.workers import Counted


def calibrated(log_predictions: Floats, found: Calibration) -> Floats:
    moved = log_predictions.copy()
    found.apply(moved)
    normalised: Floats = log_softmax(moved, axis=1)
    return normalised


EVEN = np.full(3, 1 / 3)


def test_calibration_never_explains_the_annotations_worse() -> None:
    ann, y_true = crowd()
    engine = ScipyEngine(ann, "float64")
    confusion = Counted().fit(ann, y_true).confusion_
    log_confusion = np.log(np.maximum(confusion, 1e-10))
    shy = log_softmax(np.log(0.1 * one_hot(y_true, 3) + 0.3), axis=1)
    found = calibrate(shy, engine, confusion, EVEN, pull=0.0)
    better = calibrated(shy, found)
    assert found.exponent > 1
    assert engine.e_step(log_confusion, better).log_likelihood > engine.e_step(log_confusion, shy).log_likelihood
    assert_allclose(np.exp(better).sum(axis=1), 1)
    assert_array_equal(better.argmax(axis=1), y_true)


@pytest.mark.parametrize("pull", [0.0, 0.1, 2.0])
def test_no_other_exponent_or_shift_explains_annotations_and_prior_better(pull: float) -> None:
    ann, y_true = crowd()
    engine, confusion = ScipyEngine(ann, "float64"), Counted().fit(ann, y_true).confusion_
    rng = np.random.default_rng(0)
    log_predictions = np.log(rng.dirichlet(np.ones(3), ann.n_tasks) + 0.5 * one_hot(y_true, 3))
    prior = np.array([0.2, 0.3, 0.5])

    def score(exponent: float, shift: Floats) -> float:
        shown = calibrated(log_predictions, Calibration(exponent, shift))
        likelihood = engine.e_step(np.log(np.maximum(confusion, 1e-10)), shown).log_likelihood
        return float(likelihood + pull * ann.n_tasks * prior @ np.log(np.exp(shown).mean(axis=0)))

    found = calibrate(log_predictions, engine, confusion, prior, pull)
    best = score(found.exponent, found.shift)
    for _ in range(50):
        near = found.exponent * np.exp(0.2 * rng.normal()), found.shift + 0.2 * rng.normal(size=3)
        assert score(*near) <= best + 1e-3


@pytest.mark.parametrize(("shares", "pull"), [((1, 1, 1), 0.0), ((1, 1, 1), 1.0), ((1, 2, 3), 0.0), ((1, 2, 3), 0.1)])
def test_shifts_bring_back_a_class_that_is_predicted_too_rarely(shares: tuple[int, ...], pull: float) -> None:
    rng = np.random.default_rng(0)
    share = np.array(shares) / sum(shares)
    y_true = rng.choice(3, 3000, p=share)
    confusion = simulate.hammer_spammer(20, 3, 0.5, rng, exact=True)
    ann = simulate.annotate(y_true, confusion, simulate.assign(3000, 20, 1, rng), rng)
    fair = log_softmax(2.0 * np.eye(3)[y_true] + rng.normal(size=(3000, 3)), axis=1)
    biased = log_softmax(fair + np.array([0.0, 0.0, -4.0]), axis=1)
    assert (biased.argmax(axis=1) == 2).mean() < 0.1
    found = calibrate(biased, ScipyEngine(ann, "float64"), confusion, EVEN, pull)
    assert np.exp(calibrated(biased, found)).mean(axis=0) == pytest.approx(share, abs=0.05)


def test_the_pull_of_the_prior_decides_where_labels_say_nothing() -> None:
    rng = np.random.default_rng(0)
    ann = Annotations.from_arrays(np.arange(300), np.arange(300) % 5, rng.integers(0, 3, 300))
    log_predictions = log_softmax(rng.normal(size=(300, 3)) + np.array([2.0, 0.0, 0.0]), axis=1)
    guessing = np.full((5, 3, 3), 1 / 3)
    prior = np.array([0.5, 0.3, 0.2])
    found = calibrate(log_predictions, ScipyEngine(ann, "float64"), guessing, prior, 0.1)
    assert np.exp(calibrated(log_predictions, found)).mean(axis=0) == pytest.approx(prior, abs=0.01)


def test_a_calibration_can_be_taken_back() -> None:
    log_predictions = log_softmax(np.random.default_rng(0).normal(size=(50, 3)), axis=1)
    moved, found = log_predictions.copy(), Calibration(1.7, np.array([0.3, -0.2, 1.0]))
    found.apply(moved)
    assert np.abs(moved - log_predictions).max() > 0.1
    found.undo(moved)
    assert_allclose(moved, log_predictions)


def test_many_tasks_are_represented_by_some_with_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    ann = Annotations.from_matrix(np.where(np.arange(400)[:, None] % 4 == 0, [[0, 1]], -1))
    engine = ScipyEngine(ann, "float64")
    drawn, sample = sample_tasks(ann, engine)
    assert_array_equal(drawn, np.arange(400) % 4 == 0)
    assert_array_equal(sample.vote_counts(), engine.vote_counts()[drawn])
    monkeypatch.setattr("labelonce.learning._calibration._ENOUGH_TASKS", 30)
    drawn, sample = sample_tasks(ann, engine)
    assert drawn.sum() == 30
    assert drawn[1::4].sum() == drawn[2::4].sum() == drawn[3::4].sum() == 0
    assert_array_equal(sample.vote_counts(), engine.vote_counts()[drawn])


def test_few_tasks_with_labels_all_count() -> None:
    ann, _ = crowd()
    engine = ScipyEngine(ann, "float64")
    assert sample_tasks(ann, engine) == (slice(None), engine)


def test_label_shares_count_what_was_given() -> None:
    ann = Annotations.from_matrix([[0, 0, 2], [2, 2, 2], [0, -1, 1]])
    counts = ScipyEngine(ann, "float64").m_step(np.full((3, 3), 1 / 3))
    assert_allclose(label_shares(counts), np.array([4, 2, 5]) / 11)


@pytest.mark.parametrize("seed", range(3))
def test_a_balance_that_is_known_finds_mistakes_that_all_workers_share(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y_true = np.arange(600) % 2
    X = np.column_stack([3.0 * y_true - 1.5 + rng.normal(size=600), rng.normal(size=(600, 2))])
    taken = (y_true == 1) & (X[:, 0] < 1.5)  # for the other class, by everybody
    label = np.where(rng.random(600) < 0.1, 1 - y_true, np.where(taken, 0, y_true))
    ann = Annotations.from_arrays(range(600), rng.integers(10, size=600), label)
    given: dict[str, Any] = {"rounds": 8, "folds": 1}
    left, known = (MBEM(SoftmaxRegression(), prior=prior, **given).fit(X, ann) for prior in ("uniform", [0.5, 0.5]))
    right = [float((clf.predict(X) == y_true).mean()) for clf in (left, known)]
    assert right[1] > right[0] + 0.05
    assert abs(known.predict_proba(X)[:, 1].mean() - 0.5) < abs(left.predict_proba(X)[:, 1].mean() - 0.5) / 2
