"""The ceiling: agreement that stops rising with how sure the model is tells how right the workers are."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from labelonce import MBEM, SoftmaxRegression
from labelonce._rules import RULES
from labelonce._types import Codes, Floats
from labelonce.data import Annotations
from labelonce.learning._candidates import Link, below_ceiling
from labelonce.learning._ceiling import Curve

pytestmark = pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")
N = 3000
SKILLS = (0.6, 0.7, 0.8, 0.9, 0.98)


def curve(slope: float, skill: float, seed: int = 0) -> Curve:
    """Return the curve of two classes whose log-odds grow with the margin, and labels by workers of one skill."""
    rng = np.random.default_rng(seed)
    margin = np.abs(rng.normal(size=N))
    right = rng.random(N) < 1 / (1 + np.exp(-slope * margin))
    agrees = np.where(right, rng.random(N) < skill, rng.random(N) < 1 - skill)
    return Curve.of(rng.integers(2, size=N).astype(np.int32), margin, agrees.astype(float), np.ones(N))


def likelihoods(found: Curve) -> Floats:
    return np.array([found.log_likelihood(np.full(2, skill), np.full(2, 1 - skill)) for skill in SKILLS])


def test_strong_features_show_how_right_workers_are() -> None:
    found = likelihoods(curve(slope=12, skill=0.7))
    assert int(np.argmax(found)) == SKILLS.index(0.7)
    assert found.max() > np.delete(found, SKILLS.index(0.7)).max() + 3


def test_weak_features_and_good_workers_are_not_taken_for_poor_workers() -> None:
    found = likelihoods(curve(slope=1, skill=0.9))
    assert found[SKILLS.index(0.9)] > found.max() - 1
    assert found[SKILLS.index(0.6)] < found.max() - 3


def test_features_that_say_nothing_are_no_evidence() -> None:
    found = likelihoods(curve(slope=0, skill=0.8))
    assert found.max() - found.min() < 1


def test_cells_hold_every_label_once() -> None:
    rng = np.random.default_rng(0)
    predicted, weight = rng.integers(5, size=500).astype(np.int32), rng.random(500)
    agrees = rng.random(500)
    found = Curve.of(predicted, rng.random(500), agrees, weight)
    assert found.n.sum() == pytest.approx(weight.sum())
    assert found.agree.sum() == pytest.approx((weight * agrees).sum())
    for k in range(5):
        assert found.n[found.predicted == k].sum() == pytest.approx(weight[predicted == k].sum())


def labelled(skill: float, *, noise: bool) -> tuple[Floats, Annotations, Codes]:
    """Return tasks and one label each by workers who are all alike."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 5))
    y_true = rng.integers(3, size=4000) if noise else X[:, :3].argmax(axis=1)
    label = np.where(rng.random(4000) < skill, y_true, (y_true + rng.integers(1, 3, size=4000)) % 3)
    ann = Annotations.from_arrays(np.arange(4000), rng.integers(20, size=4000), label)
    return X, ann.align(np.arange(4000)), y_true.astype(np.int32)


def fitted(X: Floats, ann: Annotations) -> MBEM:
    return MBEM(SoftmaxRegression(C=0.1), rounds=3).fit(X, ann)


def test_poor_workers_who_are_all_alike_are_corrected_where_features_are_strong() -> None:
    X, ann, y_true = labelled(0.7, noise=False)
    clf = fitted(X, ann)
    assert (clf.labels_ == y_true).mean() > (ann.label == y_true).mean() + 0.08
    assert clf.skill_.mean() < 0.8


def test_where_features_say_nothing_labels_are_as_good_as_those_of_people() -> None:
    X, ann, y_true = labelled(0.6, noise=True)
    clf = fitted(X, ann)
    assert (clf.labels_ == ann.label).all()
    assert clf.confidence_.mean() <= RULES.people[0] + 1e-9
    assert clf.estimated_accuracy_.low < (clf.labels_ == y_true).mean() < clf.estimated_accuracy_.high
    low, high = clf.verdict_.skill_interval()
    assert (low < 0.6).all()
    assert (high > 0.6).all()


def test_agreement_that_rises_says_nothing_against_poor_workers() -> None:
    def told(*ceilings: float) -> list[float]:
        taus = (0.6, 0.8, 0.95)
        found: Any = [
            SimpleNamespace(tau=t, place=0, link=Link(), ceiling=c) for t, c in zip(taus, ceilings, strict=True)
        ]
        said: list[float] = below_ceiling(found).tolist()
        return said

    assert told(-9.0, -5.0, -1.0) == [-1.0, -1.0, -1.0]  # surest for good workers: nothing is told
    assert told(-1.0, -5.0, -9.0) == [-1.0, -5.0, -9.0]  # it stops rising: workers are no better
    assert told(-5.0, -1.0, -9.0) == [-1.0, -1.0, -9.0]
