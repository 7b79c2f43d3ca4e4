"""The verdict: mistakes with common causes, workers who differ, and features that rounds must not drift away from."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits

from labelonce import MBEM, SoftmaxRegression, simulate
from labelonce._kernels import Beliefs
from labelonce._rules import RULES
from labelonce._types import Codes, Floats
from labelonce.data import Annotations
from labelonce.learning._causes import surely_contradicted, taken_wrong
from labelonce.learning._verdict import as_correlated, as_people_are, doubt_interval

pytestmark = pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")
N = 900


def crowd(*, hard: bool, per_task: int = 3, seed: int = 0) -> tuple[Floats, Annotations, Codes]:
    """Return tasks on either side of a line, whose workers are wrong at random, or near the line."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 4))
    y_true = (X[:, 0] + 0.2 * rng.normal(size=N) > 0).astype(np.int32)
    chance = 0.45 * np.exp(-((X[:, 0] / 0.5) ** 2)) if hard else np.full(N, 0.15)
    task = np.repeat(np.arange(N), per_task)
    worker = np.concatenate([rng.permutation(12)[:per_task] for _ in range(N)])
    wrong = rng.random(len(task)) < chance[task]
    label = np.where(wrong, 1 - y_true[task], y_true[task])
    return X, Annotations.from_arrays(task, worker, label).align(np.arange(N)), y_true


def fitted(X: Any, ann: Any, **options: Any) -> MBEM:
    return MBEM(SoftmaxRegression(C=0.1), **options).fit(X, ann)


def test_mistakes_where_the_model_is_unsure_have_common_causes_and_others_have_none() -> None:
    found = {hard: fitted(*crowd(hard=hard)[:2], rounds=2) for hard in (True, False)}
    assert found[True].verdict_.common > RULES.common_causes
    assert abs(found[False].verdict_.common) < RULES.common_causes
    assert any("people err together" in one for one in found[True].doubts_)
    assert not any("people err together" in one for one in found[False].doubts_)


def test_pairs_of_labels_narrow_nothing_where_mistakes_have_common_causes() -> None:
    verdict = fitted(*crowd(hard=True)[:2], rounds=2).verdict_
    assert verdict.doubt(second=1e6) == pytest.approx(verdict.doubt())
    assert verdict.doubt(checked=200) < verdict.doubt()


def test_a_model_that_contradicts_labels_leaves_doubt_about_both() -> None:
    X, ann, y_true = crowd(hard=True, per_task=1)
    clf = fitted(X, ann, rounds=2)
    low, high = clf.estimated_accuracy_.low, clf.estimated_accuracy_.high
    assert clf.verdict_.contradicted == pytest.approx((clf.predictions_.argmax(axis=1) != clf.verdict_.labels).mean())
    assert low <= (clf.labels_ == y_true).mean() <= high


def test_workers_who_guess_are_found_although_the_likelihood_counts_little() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, 4))
    y_true = X[:, :3].argmax(axis=1).astype(np.int32)
    confusion = simulate.hammer_spammer(20, 3, 0.3, rng, exact=True)
    ann = simulate.annotate(y_true, confusion, simulate.assign(N, 20, 1, rng), rng)
    clf = fitted(X, ann)
    assert (clf.labels_ == y_true).mean() > 0.9
    hammer = confusion[:, 0, 0] == 1
    assert clf.skill_[hammer].min() > clf.skill_[~hammer].max()


def test_the_votes_model_stays_where_later_rounds_are_no_better() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 5)), rng.integers(0, 2, 400)
    assert fitted(X, y).recipe_["averaged"] == (1,)


def test_intervals_reach_their_end_where_it_is_likeliest() -> None:
    low, high = doubt_interval(np.array([0.9, 0.99, 0.01, 0.5]), np.array([0.001, 0.01, 0.01, 0.01]), 0.9)
    assert (high == 1).tolist() == [False, True, False, False]
    assert (low == 0).tolist() == [False, False, True, False]
    assert (low < high).all()


def test_workers_who_are_always_right_are_within_their_interval() -> None:
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    confusion = simulate.hammer_spammer(20, 10, 0.4, rng, exact=True)
    annotations = simulate.annotate(y, confusion, simulate.assign(len(y), 20, 1, rng), rng)
    clf = MBEM(SoftmaxRegression(), rounds=3).fit(X / 16, annotations)
    low, high = clf.verdict_.skill_interval()
    real = np.bincount(annotations.worker, annotations.label == y[annotations.task]) / np.bincount(annotations.worker)
    assert ((low - 0.01 < real) & (real < high + 0.01)).all()  # of 90 labels each


def test_mistakes_that_all_share_look_like_features_that_do_not_determine_the_class() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 800)
    X = np.eye(4)[y] + 0.3 * rng.normal(size=(800, 4))
    other = np.where(rng.random(800) < 0.15, (y + 1) % 4, y)  # what people take a task for, all alike, or what it is
    right = np.tile(0.05 / 3 + (0.95 - 0.05 / 3) * np.eye(4), (10, 1, 1))
    for seen, true, doubts in ((other, y, 1), (other, other, 1), (y, y, 0)):
        annotations = simulate.annotate(seen, right, simulate.assign(800, 10, 3, np.random.default_rng(1)), rng)
        clf = MBEM(random_state=0).fit(X, annotations)
        assert sum("surest" in one for one in clf.doubts_) == doubts
        estimate, actual = clf.estimated_accuracy_, (clf.labels_ == true).mean()
        assert estimate.low <= actual <= estimate.high
        if true is seen:  # a warning, and a wide range, but what independent workers agree on is believed
            assert abs(clf.confidence_.mean() - actual) < 0.03
            assert abs(clf.skill_.mean() - 0.95) < 0.03


def test_labels_of_one_row_are_less_sure_where_errors_may_correlate_and_single_ones_are_not() -> None:
    chance = np.array([[0.98, 0.02], [0.98, 0.02], [1 - 1e-13, 1e-13]])
    labels = SimpleNamespace(task=np.array([0, 1, 1, 1, 2]))
    case: Any = SimpleNamespace(of_questions=False, evidence=SimpleNamespace(labels=labels))
    found = as_correlated(case, Beliefs.of(chance), np.zeros(3, dtype=np.int32)).to_dense()
    assert_allclose(found[[0, 2]], chance[[0, 2]], rtol=1e-12)
    assert 0.5 < found[1, 0] < 0.98
    case.of_questions = True
    assert_allclose(as_correlated(case, Beliefs.of(chance), np.zeros(3, dtype=np.int32)).to_dense(), chance)


@pytest.mark.parametrize(("n_rare", "right", "deviation"), [(50, 0.77, 0.18), (1, 0.99, 0.18 * 0.01 / 0.23)])
def test_where_nothing_is_told_few_labels_are_wrong_if_nearly_all_are_of_one_class(
    n_rare: int, right: float, deviation: float
) -> None:
    labels = (np.arange(100) < n_rare).astype(np.int32)
    votes = Beliefs.of(np.eye(2)[labels])
    case: Any = SimpleNamespace(of_questions=False, n_pairs=0, labelled=np.ones(100, dtype=bool), votes=votes)
    posterior = Beliefs.of(0.002 + 0.996 * np.eye(2)[labels])
    found, _, variance = as_people_are(case, posterior, labels)
    assert found.max().mean() == pytest.approx(right)
    assert variance == pytest.approx(deviation**2)


def test_single_labels_that_predictions_contradict_far_more_than_they_are_taken_to_be_wrong() -> None:
    labels, predicted = np.zeros(100, dtype=np.int32), (np.arange(100) < 20).astype(np.int32)
    case: Any = SimpleNamespace(gold=None, kind=None, n_pairs=0, labelled=np.arange(100) < 90, predicted=predicted)
    confidence = np.full(100, 0.96)
    assert taken_wrong(case, labels, confidence) == pytest.approx(0.04)
    assert taken_wrong(case, labels, np.full(100, 0.85)) == 0  # that many are taken to be wrong
    for known in ({"n_pairs": 100}, {"gold": labels}, {"predicted": labels}):
        assert taken_wrong(SimpleNamespace(**vars(case) | known), labels, confidence) == 0  # type: ignore[arg-type]


def test_only_a_model_that_is_mostly_right_where_it_is_surest_throws_doubt_on_labels() -> None:
    labels = np.zeros(500, dtype=np.int32)
    sure = np.linspace(0.99, 0.51, 500)
    evidence = SimpleNamespace(labels=SimpleNamespace(task=np.repeat(np.arange(500), 2)))

    def case(share: float, **known: Any) -> Any:
        wrong = np.arange(500) % 100 < 100 * share
        said = SimpleNamespace(max=lambda: sure)
        usual = {"gold": None, "kind": None, "evidence": evidence, "predictions": said, "predicted": wrong * 1}
        return SimpleNamespace(**usual | known)

    confidence = np.full(500, 0.99)
    assert surely_contradicted(case(0.2), labels, confidence) == pytest.approx(0.19)
    assert surely_contradicted(case(0.4), labels, confidence) == 0  # the model is wrong where it is sure
    assert surely_contradicted(case(0.05), labels, confidence) == 0  # there are few
    assert surely_contradicted(case(0.2, gold=labels), labels, confidence) == 0  # known classes tell more
    single = SimpleNamespace(labels=SimpleNamespace(task=np.arange(500)))
    assert surely_contradicted(case(0.2, evidence=single), labels, confidence) == 0
