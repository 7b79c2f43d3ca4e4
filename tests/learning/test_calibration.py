"""Calibration: predictions that explain the annotations best, and classes that are not lost."""

from typing import Any

import numpy as np
import pytest
from checks import one_hot
from crowds import crowd
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, log_softmax

from labelonce import MBEM, Annotations, SoftmaxRegression, simulate
from labelonce._kernels import Beliefs, Matrices, make_evidence
from labelonce._types import Floats
from labelonce.learning._calibration import (
    Calibration,
    Scores,
    best_exponent,
    calibrate,
    calibrated_log_prior,
    label_shares,
    log_sizes,
    log_wide,
    tempered,
)
from labelonce.workers import Counted

EVEN = np.full((1, 3), 1 / 3)


def calibrated(log_predictions: Floats, found: Calibration) -> Floats:
    return calibrated_log_prior(Beliefs.of(np.exp(log_predictions)), None, None, found)


def found_by(log_predictions: Floats, ann: Annotations, confusion: Floats, prior: Floats, pull: float) -> Calibration:
    scores = Scores.of(Beliefs.of(np.exp(log_predictions)), None)
    return calibrate(scores, make_evidence(ann).messages(Matrices(confusion)), np.atleast_2d(prior), pull)


def test_calibration_never_explains_the_annotations_worse() -> None:
    ann, y_true = crowd()
    evidence, confusion = make_evidence(ann), Counted().fit(ann, y_true).confusion_
    shy = log_softmax(np.log(0.1 * one_hot(y_true, 3) + 0.3), axis=1)
    found = found_by(shy, ann, confusion, EVEN, 0.0)
    better = calibrated(shy, found)
    assert found.exponent[0] > 1
    before, after = (evidence.e_step(Matrices(confusion), shown).log_likelihood for shown in (shy, better))
    assert after > before
    assert_allclose(np.exp(better).sum(axis=1), 1)
    assert_array_equal(better.argmax(axis=1), y_true)


@pytest.mark.parametrize("pull", [0.0, 0.1, 2.0])
def test_no_other_exponent_or_shift_explains_annotations_and_prior_better(pull: float) -> None:
    ann, y_true = crowd()
    evidence, confusion = make_evidence(ann), Counted().fit(ann, y_true).confusion_
    rng = np.random.default_rng(0)
    raw = rng.dirichlet(np.ones(3), ann.n_tasks) + 0.5 * one_hot(y_true, 3)
    log_predictions = np.log(raw / raw.sum(axis=1, keepdims=True))
    prior = np.array([0.2, 0.3, 0.5])

    def score(exponent: Floats, shift: Floats) -> float:
        shown = calibrated(log_predictions, Calibration(exponent, shift))
        likelihood = evidence.e_step(Matrices(confusion), shown).log_likelihood
        return float(likelihood + pull * ann.n_tasks * prior @ np.log(np.exp(shown).mean(axis=0)))

    found = found_by(log_predictions, ann, confusion, prior, pull)
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
    found = found_by(biased, ann, confusion, EVEN, pull)
    assert np.exp(calibrated(biased, found)).mean(axis=0) == pytest.approx(share, abs=0.05)


def test_the_pull_of_the_prior_decides_where_labels_say_nothing() -> None:
    rng = np.random.default_rng(0)
    ann = Annotations.from_arrays(np.arange(300), np.arange(300) % 5, rng.integers(0, 3, 300))
    log_predictions = log_softmax(rng.normal(size=(300, 3)) + np.array([2.0, 0.0, 0.0]), axis=1)
    prior = np.array([0.5, 0.3, 0.2])
    found = found_by(log_predictions, ann, np.full((5, 3, 3), 1 / 3), prior, 0.1)
    assert np.exp(calibrated(log_predictions, found)).mean(axis=0) == pytest.approx(prior, abs=0.01)


def test_slots_for_all_classes_are_calibrated_as_the_classes_are() -> None:
    ann, y_true = crowd()
    confusion, rng = Counted().fit(ann, y_true).confusion_, np.random.default_rng(0)
    dense = Beliefs.of(rng.dirichlet(np.ones(3), ann.n_tasks))
    messages = make_evidence(ann).messages(Matrices(confusion))
    slots = np.stack([rng.permutation(3) for _ in range(ann.n_tasks)]).astype(np.int32)
    there = calibrate(Scores.of(dense, None), messages, EVEN, 0.5)
    own = np.concatenate([np.take_along_axis(messages, slots, axis=1), np.zeros((len(messages), 1))], axis=1)
    here = calibrate(Scores.of(dense.on(slots), None), own, EVEN, 0.5)
    assert_allclose(here.exponent, there.exponent, rtol=1e-3)
    assert_allclose(here.shift, there.shift, atol=2e-3)


def test_kinds_of_rows_have_exponents_of_their_own() -> None:
    rng = np.random.default_rng(0)
    logits, kind = rng.normal(size=4000) * 2, np.arange(4000, dtype=np.int32) % np.int32(2)
    y_true = (rng.random(4000) < expit(logits)).astype(np.int64)
    confusion = np.tile([[0.8, 0.2], [0.2, 0.8]], (10, 1, 1))
    ann = simulate.annotate(y_true, confusion, simulate.assign(4000, 10, 1, rng), rng)
    shown = log_softmax(np.column_stack([np.zeros(4000), logits * np.where(kind == 0, 1.0, 3.0)]), axis=1)
    scores = Scores.of(Beliefs.of(np.exp(shown)), None, kind)
    found = calibrate(scores, make_evidence(ann).messages(Matrices(confusion)), np.full((2, 2), 0.5), 0.0)
    assert 1.7 < found.exponent[0] / found.exponent[1] < 4.0  # 3, and a little of the belief that they are the same


def test_the_best_power_of_predictions_is_found() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(5000, 3)) * 2
    y_true = np.array([rng.choice(3, p=one) for one in np.exp(log_softmax(logits, axis=1))])
    label = np.where(rng.random(5000) < 0.6, y_true, rng.integers(0, 3, 5000))
    said = np.log(np.full((5000, 3), 0.4 / 3) + 0.6 * one_hot(label, 3))
    assert best_exponent(log_softmax(logits / 2, axis=1), said, (0.05, 5.0)) == pytest.approx(2.0, rel=0.15)


def test_label_shares_count_what_was_given_and_one_more_of_each() -> None:
    ann = Annotations.from_matrix([[0, 0, 2], [2, 2, 2], [0, -1, 1]])
    assert_allclose(label_shares(ann, None), [np.array([4, 2, 5]) / 11])
    by_kind = label_shares(ann, np.array([0, 1, 0]))
    assert_allclose(by_kind, [np.array([4, 2, 2]) / 8, np.array([1, 1, 4]) / 6])


@pytest.mark.parametrize("seed", range(3))
def test_a_balance_that_is_known_finds_mistakes_that_all_workers_share(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y_true = np.arange(600) % 2
    X = np.column_stack([3.0 * y_true - 1.5 + rng.normal(size=600), rng.normal(size=(600, 2))])
    taken = (y_true == 1) & (X[:, 0] < 1.5)  # for the other class, by everybody
    label = np.where(rng.random(600) < 0.1, 1 - y_true, np.where(taken, 0, y_true))
    ann = Annotations.from_arrays(range(600), rng.integers(10, size=600), label)
    given: dict[str, Any] = {"rounds": 8, "folds": 1}
    left, known = (MBEM(SoftmaxRegression(), prior=prior, **given).fit(X, ann) for prior in (None, [0.5, 0.5]))
    right = [float((clf.predict(X) == y_true).mean()) for clf in (left, known)]
    assert right[1] > right[0] + 0.05
    assert abs(known.predict_proba(X)[:, 1].mean() - 0.5) < abs(left.predict_proba(X)[:, 1].mean() - 0.5) / 2


@pytest.mark.parametrize("exponent", [0.05, 1.0, 3.0])
def test_a_power_of_predictions_on_slots_is_that_on_all_classes(exponent: float) -> None:
    """Each class of the rest counts: else a weak model would seem to know the group of every label."""
    rng = np.random.default_rng(0)
    slots = np.stack([rng.permutation(9)[:3] for _ in range(40)]).astype(np.int32)
    own = rng.dirichlet(np.ones(4), 40)  # the six classes of the rest are equally probable
    dense = np.repeat(own[:, 3:] / 6, 9, axis=1)
    np.put_along_axis(dense, slots, own[:, :3], axis=1)
    few = Beliefs(own[:, :3], 9, slots, own[:, 3])
    expected, found = (tempered(log_wide(one), exponent, log_sizes(one)) for one in (Beliefs.of(dense), few))
    assert_allclose(found[:, :3], np.take_along_axis(expected, slots, axis=1), atol=1e-9)
