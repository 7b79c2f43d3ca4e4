"""The model is that of the votes where rounds leave labels that are shown as right in the end."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import labelonce as lo

pytestmark = pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")


def problem(columns: int, gap: float) -> tuple[np.ndarray, np.ndarray, lo.Annotations]:
    """Return weak features, true classes, and one label of each task by workers who are all alike."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 500)
    X = rng.normal(size=(500, columns))
    X[:, :5] += gap * (2 * y - 1)[:, None]
    confusion = np.stack([np.array([[skill, 1 - skill], [1 - skill, skill]]) for skill in np.linspace(0.75, 0.85, 10)])
    return X, y, lo.simulate.annotate(y, confusion, lo.simulate.assign(500, 10, 1, rng), rng)


def test_rounds_that_drift_give_no_model() -> None:
    X, _, annotations = problem(columns=250, gap=0.35)
    clf = lo.MBEM([lo.SoftmaxRegression(C=C) for C in (0.1, 1.0)]).fit(X, annotations)
    assert clf.recipe_["averaged"] == (1,)
    votes = lo.SoftmaxRegression(C=clf.recipe_["learner"].C).fit(X, np.eye(2)[annotations.label])
    assert_allclose(clf.predict_proba(X), votes.predict_proba(X), atol=0.02)


def test_rounds_that_are_believed_keep_their_model() -> None:
    X, y, annotations = problem(columns=5, gap=1.0)
    clf = lo.MBEM([lo.SoftmaxRegression(C=C) for C in (0.1, 1.0)]).fit(X, annotations)
    assert (clf.labels_ == y).mean() > 0.95
    assert clf.recipe_["rounds"] == max(clf.recipe_["averaged"])


def spammers(n_tasks: int) -> tuple[np.ndarray, np.ndarray, lo.Annotations]:
    """Return features that tell ten classes apart, and workers who know one class in ten and guess the others."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 10, n_tasks)
    X = rng.normal(size=(10, 32))[y] + 0.8 * rng.normal(size=(n_tasks, 32))
    confusion = lo.simulate.class_wise_hammer_spammer(50, 10, 0.1, rng)
    return X, y, lo.simulate.annotate(y, confusion, lo.simulate.assign(n_tasks, 50, 1, rng), rng)


def test_rounds_that_predict_labels_left_out_better_are_believed() -> None:
    X, y, annotations = spammers(1500)
    clf = lo.MBEM().fit(X, annotations)
    assert (annotations.label == y).mean() < 0.25
    scores = [entry["held_out_score"] for entry in clf.history_]
    assert scores[-1] > scores[0]
    assert max(clf.recipe_["averaged"]) > 1
    assert (clf.predict(X) == y).mean() > 0.6
    assert (clf.labels_ == y).mean() > 0.6
    assert clf.estimated_accuracy_.low < (clf.labels_ == y).mean() < clf.estimated_accuracy_.high
