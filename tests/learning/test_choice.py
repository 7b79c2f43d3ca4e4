"""What held-out labels choose: learners by their worth, rounds that find classes of their own, gains that are sure."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import labelonce as lo
from labelonce.learning._choice import worths
from labelonce.learning._cross_fit import CrossFit, surely_more
from labelonce.learning._rounds import swaps


def trial(*means: float, overfits: bool = False) -> Any:
    """Return a trial of ten labels whose rounds have these mean scores."""
    return SimpleNamespace(
        overfits=overfits, scores=[np.full(10, mean) for mean in means], problem=SimpleNamespace(labels=np.zeros(10))
    )


def test_a_learner_that_overfits_is_worth_its_second_round_or_the_first_and_the_gain_of_the_others() -> None:
    plain, better, overfits = trial(-0.44, -0.40, -0.42), trial(-0.43), trial(-0.41, -0.40, -0.35, overfits=True)
    assert_allclose(worths([plain, better, overfits]), [-0.40, -0.43, -0.41 + 0.04])
    assert_allclose(worths([overfits, trial(-0.5, -0.3, -0.1, overfits=True)]), [-0.41, -0.32])
    assert_allclose(worths([trial(-0.4, -0.5, overfits=True)]), [-0.4])
    assert worths([trial(overfits=True), plain]).argmax() == 1  # one that has done no round yet


def problem(label: Any, n_classes: int, gold: Any = None, confusion: Any = None) -> Any:
    """Return a problem with one label per row."""
    labels = SimpleNamespace(is_square=True, n_classes=n_classes, task=np.arange(len(label)), label=label)
    return SimpleNamespace(labels=labels, kind=None, gold=gold, confusion=confusion)


def test_rounds_that_exchange_classes_are_seen_and_poor_workers_are_not_taken_for_it() -> None:
    rng = np.random.default_rng(0)
    true = rng.integers(0, 4, 2000)
    guessed = np.where(rng.random(2000) < 0.1, true, rng.integers(0, 4, 2000))
    mostly_zero = np.where(rng.random(2000) < 0.3, true, 0)
    for label in (guessed, mostly_zero):
        assert not swaps(problem(label, 4), true.astype(np.int32))
        assert not swaps(problem(label, 4), rng.integers(0, 4, 2000, dtype=np.int32))
    assert swaps(problem(np.where(rng.random(2000) < 0.5, true, 0), 4), np.array([0, 2, 1, 3], dtype=np.int32)[true])


def test_known_classes_or_workers_may_show_that_most_labels_mislead() -> None:
    rng = np.random.default_rng(0)
    true = rng.integers(0, 2, 1000, dtype=np.int32)
    label = np.where(rng.random(1000) < 0.3, true, 1 - true)
    known = np.where(np.arange(1000) < 100, true, -1)
    assert swaps(problem(label, 2), true)
    assert not swaps(problem(label, 2, gold=known), true)
    assert not swaps(problem(label, 2, confusion=np.full((1, 2, 2), 0.5)), true)
    assert swaps(problem(label, 2, gold=np.where(known >= 0, label, -1)), true)  # known classes say that they do not


def test_adversaries_are_believed_the_other_way_round_where_classes_are_known() -> None:
    rng = np.random.default_rng(0)
    X, worker = rng.normal(size=(1000, 5)), rng.integers(0, 20, 1000)
    y = (X[:, 0] > 0).astype(int)
    label = np.where(rng.random(1000) < np.where(worker < 14, 0.15, 0.9), y, 1 - y)
    annotations = lo.Annotations.from_arrays(np.arange(1000), worker, label)
    clf = lo.MBEM(random_state=0).fit(X, annotations, gold={task: int(y[task]) for task in range(200)})
    assert (clf.labels_ == y)[200:].mean() > 0.95
    assert clf.score(X, y) > 0.95


def test_a_model_that_finds_classes_of_its_own_changes_no_label() -> None:
    rng = np.random.default_rng([12, 1])
    X = rng.uniform(0, 4, size=(1500, 2))
    y = (X[:, 0].astype(int) + 2 * X[:, 1].astype(int)) % 4  # no line tells these apart
    confusion = np.tile(0.1 / 3 + (0.9 - 0.1 / 3) * np.eye(4), (15, 1, 1))
    annotations = lo.simulate.annotate(y, confusion, lo.simulate.assign(1500, 15, 1, rng), rng)
    with pytest.warns(lo.DoubtWarning):
        clf = lo.MBEM(random_state=0).fit(X, annotations)
    assert (clf.labels_ == y).mean() > (annotations.label == y).mean() - 0.01


def test_a_gain_is_sure_where_it_is_more_than_chance() -> None:
    noise = np.random.default_rng(0).normal(size=1000)
    assert surely_more(0.5 * (noise - noise.mean()), 1000) == 0
    assert 0.2 < surely_more(0.5 + 0.1 * noise, 2000) < 0.25  # two labels per row


def test_workers_who_are_counted_better_are_no_gain_of_the_labels() -> None:
    before = np.random.default_rng(0).normal(size=1000)

    def gain(with_later_workers: float, **known: Any) -> float:
        run = {"overfits": False, "scores": [before, before + 0.5], "_by_task": np.stack}
        run |= {"_first_scores": [before, before + with_later_workers], "problem": SimpleNamespace(labels=before)}
        return CrossFit.sure_gain(SimpleNamespace(**run | known), 2)  # type: ignore[arg-type]

    assert gain(0.0) == gain(-0.2) == pytest.approx(0.5)
    assert gain(0.4) == pytest.approx(0.1)
    assert gain(0.6) == gain(0.0, overfits=True) == gain(0.0, scores=[before]) == 0
