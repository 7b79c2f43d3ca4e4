"""Confidence is what the labels and models that did not see the task can promise, and no more."""

import re
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import labelonce as lo
from labelonce.learning._confidence import calibrated, flatness, highest_skills, reconciled, share_right, skills
from labelonce.workers import Full


def noisy(seed: int = 0, *, redundancy: int = 1, noise: float = 1.0) -> tuple[Any, Any, lo.Annotations, Any]:
    """Three overlapping classes, 20 workers of which half guess: features, true labels, annotations, confusion."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=900)
    X = np.eye(3)[y] @ rng.normal(scale=2.0, size=(3, 8)) + noise * rng.normal(size=(900, 8))
    confusion = lo.simulate.hammer_spammer(20, 3, 0.5, rng, exact=True)
    return X, y, lo.simulate.annotate(y, confusion, lo.simulate.assign(900, 20, redundancy, rng), rng), confusion


def fitted(X: Any, ann: lo.Annotations, **options: Any) -> lo.MBEM:
    return lo.MBEM(lo.SoftmaxRegression(), rounds=4, **options).fit(X, ann)


@pytest.mark.parametrize("redundancy", [1, 3])
@pytest.mark.parametrize("noise", [2.0, 3.0])
def test_labels_are_right_about_as_often_as_they_say(redundancy: int, noise: float) -> None:
    X, y, ann, _ = noisy(redundancy=redundancy, noise=noise)
    clf = fitted(X, ann)
    right = clf.labels_ == y
    assert abs(clf.confidence_.mean() - right.mean()) < 0.06
    order = np.argsort(clf.confidence_)
    assert right[order[:180]].mean() < right[order[180:]].mean()
    assert clf.estimated_accuracy_.low <= right.mean() <= clf.estimated_accuracy_.high


def test_the_posterior_of_the_rounds_is_surer_of_itself() -> None:
    X, y, ann, _ = noisy(noise=3.0)
    clf = fitted(X, ann)
    wrong = (clf.labels_ != y).mean()
    assert 1 - clf.posterior_.max(axis=1).mean() < 0.7 * wrong  # what the calibration is for


def test_confidence_is_the_calibrated_probability_of_the_label() -> None:
    X, _, ann, _ = noisy()
    clf = fitted(X, ann)
    label = np.searchsorted(clf.classes_, clf.labels_)
    assert_allclose(clf.calibrated_.sum(axis=1), 1.0)
    assert (clf.confidence_ == clf.calibrated_[np.arange(900), label]).all()
    assert (clf.to_frame()["confidence"].to_numpy() == clf.confidence_).all()
    assert clf.estimated_accuracy_.value == pytest.approx(clf.confidence_.mean())


def test_without_held_out_models_confidence_is_the_posterior() -> None:
    X, _, ann, _ = noisy()
    clf = fitted(X, ann, confidence="posterior")
    assert (clf.calibrated_ == clf.posterior_).all()
    assert (lo.MBEM.paper().confidence, lo.MBEM().confidence) == ("posterior", "held_out")


def test_skill_intervals_hold_the_share_of_right_labels() -> None:
    inside = []
    for seed in range(3):
        X, y, ann, _ = noisy(seed)
        clf = fitted(X, ann)
        frame = clf.workers_to_frame().sort_by("worker")
        low, high = frame["skill_low"].to_numpy(), frame["skill_high"].to_numpy()
        right = np.bincount(ann.worker, ann.label == y[ann.task]) / np.bincount(ann.worker)
        inside.append(((low <= right) & (right <= high)).mean())
    assert np.mean(inside) > 0.85


def test_a_label_by_a_good_worker_against_the_model_lowers_confidence() -> None:
    n = 400
    y = np.arange(n) % 2
    label = y.copy()
    label[0] = 1 - y[0]
    ann = lo.Annotations.from_matrix(np.where(np.arange(10) == (np.arange(n) % 10)[:, None], label[:, None], -1))
    predictions = np.where(np.eye(2, dtype=bool)[y], 0.9, 0.1)
    found = calibrated(ann, predictions, Full(), None, seed=0).posterior[np.arange(n), y]
    assert found[0] < 0.9 < found[1:].min()


def test_gold_settles_its_tasks_and_the_trust() -> None:
    X, y, ann, _ = noisy(noise=3.0)
    gold = {int(task): int(y[task]) for task in range(200)}
    clf = lo.MBEM(lo.SoftmaxRegression(), rounds=3).fit(X, ann, gold=gold)
    assert (clf.confidence_[:200] == 1).all()
    assert clf.confidence_[200:].max() < 1


def test_confidence_follows_a_permutation_of_the_classes() -> None:
    X, _, ann, _ = noisy()
    clf, other = fitted(X, ann), fitted(X, ann.relabel([2, 0, 1]))
    assert_allclose(other.calibrated_[:, [2, 0, 1]], clf.calibrated_, atol=1e-3)


def test_a_worker_without_labels_is_unknown() -> None:
    ann = lo.Annotations.from_matrix([[0, -1], [1, -1], [0, -1], [1, -1]])
    posterior = np.array([[0.9, 0.1], [0.1, 0.9], [0.9, 0.1], [0.1, 0.9]])
    skill, low, high = skills(ann, posterior, posterior)
    assert skill[0] == pytest.approx(0.9)
    assert (low[1], high[1]) == (pytest.approx(0, abs=1e-3), pytest.approx(1, abs=1e-3))


def test_a_worker_who_seems_never_wrong_may_be() -> None:
    ann = lo.Annotations.from_matrix([[0, 1]] * 20)
    posterior = np.tile([1.0, 0.0], (20, 1))
    skill, low, high = skills(ann, posterior, posterior)
    assert_allclose(skill, [1.0, 0.0])
    assert 0.8 < low[0] < 0.95 < high[0] == 1.0
    assert low[1] == pytest.approx(0.0, abs=1e-3)
    assert 0.05 < high[1] < 0.2


def test_the_estimate_widens_where_the_rounds_promised_more() -> None:
    posterior, labels = np.array([[0.8, 0.2]] * 50), np.zeros(50, dtype=np.int32)
    modest, bold = share_right(posterior, labels, 0.8), share_right(posterior, labels, 0.99)
    assert modest.value == bold.value == pytest.approx(0.8)
    assert bold.high - bold.low > modest.high - modest.low


def test_a_model_that_memorised_its_labels_is_told_on() -> None:
    from sklearn.tree import DecisionTreeClassifier

    X, _, ann, _ = noisy(noise=3.0)
    clf = lo.MBEM(DecisionTreeClassifier(random_state=0), rounds=1, predictions="in_sample")
    with pytest.warns(lo.DoubtWarning) as told:
        clf.fit(X, ann)
    sentences = "\n".join(str(one.message) for one in told)
    assert re.search(r"disagrees with 0\.0% of the labels .*it has memorised labels", sentences)
    assert re.search(r"the rounds are .*% sure of their labels, and models that did not see the task", sentences)
    assert clf.confidence_.mean() < clf.posterior_.max(axis=1).mean() - 0.2


def predicted(seed: int, exponent: float) -> tuple[lo.Annotations, Any]:
    """Calibrated predictions of four classes, raised to a power, and labels of which 70 % are right."""
    rng = np.random.default_rng(seed)
    calibrated = rng.dirichlet([0.4] * 4, size=3000)
    y = (rng.random(3000)[:, None] > calibrated.cumsum(axis=1)).sum(axis=1).clip(max=3)
    confusion = lo.simulate.one_coin([0.9] * 10 + [0.5] * 10, 4)
    ann = lo.simulate.annotate(y, confusion, lo.simulate.assign(3000, 20, 1, rng), rng)
    powers = calibrated**exponent
    return ann, powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("exponent", "undone"), [(2.5, 0.4), (5.0, 0.2)])
def test_predictions_surer_than_the_labels_bear_out_are_flattened(exponent: float, undone: float) -> None:
    assert flatness(*predicted(0, exponent)) == pytest.approx(undone, abs=0.1)


@pytest.mark.parametrize("exponent", [0.5, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_predictions_that_are_not_too_sure_stay_as_they_are(seed: int, exponent: float) -> None:
    assert flatness(*predicted(seed, exponent)) == 1.0


def test_rounds_that_confirm_themselves_are_told_on() -> None:
    from sklearn.datasets import make_classification

    X, y = make_classification(2000, 20, n_informative=8, n_classes=4, random_state=2)  # not for a linear model
    rng = np.random.default_rng(2)
    confusion = lo.simulate.dirichlet(40, 4, rng)
    ann = lo.simulate.annotate(y, confusion, lo.simulate.assign(2000, 40, 1, rng), rng)
    clf = lo.MBEM(lo.SoftmaxRegression(), rounds=5)
    with pytest.warns(lo.DoubtWarning, match="the rounds have confirmed themselves"):
        clf.fit(X, ann)
    right = (clf.labels_ == y).mean()
    assert clf.confidence_.mean() - right < (clf.posterior_.max(axis=1).mean() - right) / 2
    assert clf.estimated_accuracy_.low <= right


def test_no_class_is_shown_as_more_probable_than_the_label() -> None:
    X, _, ann, _ = noisy(noise=3.0)
    clf = fitted(X, ann)
    assert_array_equal(clf.confidence_, clf.calibrated_.max(axis=1))
    assert_allclose(clf.calibrated_.sum(axis=1), 1)
    frame = clf.to_frame()
    columns = np.stack([frame[f"posterior_{one}"].to_numpy() for one in clf.classes_], axis=1)
    assert_array_equal(frame["confidence"].to_numpy(), columns.max(axis=1))


def test_labels_stay_those_of_the_rounds() -> None:
    posterior, labels = np.array([[0.1, 0.6, 0.3], [0.5, 0.4, 0.1]]), np.array([2, 0])
    assert_allclose(reconciled(posterior, labels), [[0.1, 0.45, 0.45], [0.5, 0.4, 0.1]])


def crowd_of_skill(skill: Any, n_each: int = 200) -> tuple[lo.Annotations, Any]:
    """Return annotations with one label per task by workers of some skills, and the truth, of three classes."""
    rng = np.random.default_rng(0)
    worker = np.repeat(np.arange(len(skill)), n_each)
    y = rng.integers(0, 3, len(worker))
    right = rng.random(len(worker)) < np.asarray(skill)[worker]
    label = np.where(right, y, (y + rng.integers(1, 3, len(y))) % 3)
    return lo.Annotations.from_arrays(np.arange(len(y)), worker, label), y


def test_workers_may_be_better_than_a_model_that_agrees_with_nobody_says() -> None:
    ann, y = crowd_of_skill([0.7, 0.8, 0.9])
    rng = np.random.default_rng(1)
    picks = np.where(rng.random(len(y)) < 0.6, y, (y + 1) % 3)  # a model that is right for 60 % of the tasks
    assert (highest_skills(ann, picks) > [0.7, 0.8, 0.9]).all()


def test_a_perfect_worker_tells_how_right_the_model_is() -> None:
    ann, y = crowd_of_skill([1 / 3, 1.0, 1.0, 1.0])
    rng = np.random.default_rng(1)
    picks = np.where(rng.random(len(y)) < 0.6, y, (y + 1) % 3)
    assert highest_skills(ann, picks)[0] < 0.5


def test_labels_of_hard_tasks_are_trusted_less() -> None:
    rng = np.random.default_rng(0)
    y, hard = rng.integers(0, 3, 600), rng.random((600, 1)) < 0.4
    alike, unlike = (
        np.where(rng.random((600, 6)) < share, y[:, None], (y[:, None] + 1) % 3)
        for share in (0.78, np.where(hard, 0.45, 1.0))  # as many are right, but mistakes are in the same tasks
    )
    predictions, trusts = 0.4 * np.eye(3)[y] + 0.2, []
    for labels in (alike, unlike):
        ann = lo.Annotations.from_matrix(labels)
        found = lo.DawidSkene().fit(ann).posterior_
        trusts.append(calibrated(ann, predictions, Full(), None, seed=0, promised=found).trust)
    assert trusts[1] < 0.6 * trusts[0]


def test_reconciling_keeps_the_mass_and_lowers_only_what_is_above_the_label() -> None:
    rng = np.random.default_rng(0)
    posterior, labels = rng.dirichlet(np.ones(5), size=200), rng.integers(0, 5, 200).astype(np.int32)
    found = reconciled(posterior, labels)
    own = found[np.arange(200), labels]
    assert_allclose(found.sum(axis=1), 1.0)
    assert_array_equal(found.max(axis=1), own)
    others = np.arange(5) != labels[:, None]
    assert_allclose(found[others], np.minimum(posterior, own[:, None])[others])
