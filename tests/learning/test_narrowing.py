"""What known classes do to confidence, and what is said of labels that would narrow the range."""

from typing import Any

import numpy as np
import pytest

import labelonce as lo
from labelonce._kernels import Beliefs
from labelonce._rules import RULES
from labelonce.learning._narrowing import Narrowing
from labelonce.learning._verdict import by_gold

pytestmark = pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")


def beliefs(confidence: Any) -> Beliefs:
    return Beliefs.of(np.stack([confidence, 1 - np.asarray(confidence)], axis=1))


def test_known_classes_bring_confidence_to_the_share_of_right_labels() -> None:
    gold = np.full(2_000, -1, np.int32)
    gold[:200] = np.arange(200) % 10 >= 7  # 70 % of the labels, which are all 0, are right
    found = by_gold(beliefs(np.full(2_000, 0.95)), np.zeros(2_000, np.int32), gold)
    assert found.probability[200:, 0] == pytest.approx(0.7, abs=0.03)


def test_known_classes_that_agree_with_confidence_move_it_little() -> None:
    gold = np.full(1_000, -1, np.int32)
    gold[:100] = np.arange(100) % 10 >= 9
    found = by_gold(beliefs(np.full(1_000, 0.9)), np.zeros(1_000, np.int32), gold)
    assert found.probability[100:, 0] == pytest.approx(0.9, abs=0.01)


def test_calibrated_beliefs_are_distributions_in_which_no_class_is_above_the_label() -> None:
    rng = np.random.default_rng(0)
    posterior = Beliefs.of(rng.dirichlet(np.ones(4), 300))
    labels, gold = posterior.argmax().astype(np.int32), np.full(300, -1, np.int32)
    gold[:50] = rng.integers(4, size=50)
    found = by_gold(posterior, labels, gold)
    assert found.probability.sum(axis=1) == pytest.approx(1.0)
    assert (found.max() <= found.at(np.arange(300), labels) + 1e-12).all()


def test_slots_are_calibrated_as_all_classes_are() -> None:
    rng = np.random.default_rng(0)
    posterior = Beliefs.of(rng.dirichlet(np.ones(4), 300))
    labels, gold = posterior.argmax().astype(np.int32), rng.integers(4, size=300).astype(np.int32)
    on_slots = Beliefs.from_dense(posterior.probability, 4)
    dense, slots = (by_gold(one, labels, gold).to_dense() for one in (posterior, on_slots))
    assert slots == pytest.approx(dense)


def one_label_each(skill: float, *, n: int = 1_500, twice: int = 0, features: float = 0.3) -> tuple[Any, Any, Any]:
    """Return weak features, labels by 30 workers who are all `skill` right, and the truth."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    task = np.concatenate([np.arange(n), np.arange(twice)])
    worker = np.concatenate([rng.integers(30, size=n), rng.integers(30, size=twice)])
    label = np.where(rng.random(len(task)) < skill, y[task], 1 - y[task])
    X = rng.normal(size=(n, 5)) + features * y[:, None]
    keep = ~(worker[n:] == worker[task[n:]]) if twice else np.zeros(0, bool)
    keep = np.concatenate([np.ones(n, bool), keep])
    return X, lo.Annotations.from_arrays(task[keep], worker[keep], label[keep]), y


def fitted(*world: Any, **options: Any) -> lo.MBEM:
    X, annotations, _ = world
    return lo.MBEM().fit(X, annotations, **options)


def width(clf: lo.MBEM) -> float:
    return clf.estimated_accuracy_.high - clf.estimated_accuracy_.low


def test_a_hundred_known_classes_make_confidence_right_and_the_range_narrow() -> None:
    world = one_label_each(0.75)
    known = np.where(np.random.default_rng(1).random(len(world[2])) < 0.1, world[2], -1)
    without, clf = fitted(*world), fitted(*world, gold=known)
    rest = known < 0
    right = float((clf.labels_ == world[2])[rest].mean())
    assert abs(clf.confidence_[rest].mean() - right) < 0.05
    assert width(clf) < 0.7 * width(without)
    assert clf.estimated_accuracy_.low < right < clf.estimated_accuracy_.high


def test_second_labels_narrow_the_range() -> None:
    assert width(fitted(*one_label_each(0.75, twice=300))) < width(fitted(*one_label_each(0.75)))


def test_what_would_narrow_the_range_is_said_in_the_warning() -> None:
    X, annotations, _ = one_label_each(0.75)
    with pytest.warns(lo.DoubtWarning, match=r"second labels would narrow that to about ± \d+ points, \d+ checked"):
        lo.MBEM().fit(X, annotations)


def test_nothing_is_said_of_a_range_that_is_narrow() -> None:
    world = one_label_each(0.95, features=3.0)
    clf = fitted(*world, gold=np.where(np.arange(len(world[2])) < 700, world[2], -1))
    assert width(clf) < 2 * RULES.narrow_range
    assert clf.verdict_.narrowing() is None


def test_more_checked_labels_are_advised_than_there_are_tasks_never() -> None:
    clf = fitted(*one_label_each(0.75, n=60))
    found = clf.verdict_.narrowing()
    assert isinstance(found, Narrowing)
    assert found.checked <= 60
    assert found.second <= 30
