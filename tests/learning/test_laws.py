"""Laws of the fit: nothing jumps at a border, every layout takes every option, and no harm is done."""

from typing import Any

import numpy as np
import pytest
from crowds import crowd, crowd_with_features
from numpy.testing import assert_allclose, assert_array_equal

from labelonce import MBEM, Annotations, OneCoin, SoftmaxRegression, aggregation, simulate, workers
from labelonce._rules import RULES
from labelonce._types import Codes, Floats
from labelonce.learning import DoubtWarning
from labelonce.learning._default import default_workers

doubted = pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")
pairs = np.arange(8) // 2  # groups of two classes


def many_classes(n_classes: int) -> tuple[Floats, Annotations, Codes]:
    """Return tasks of 50 classes, each labelled once, where as many classes are declared."""
    rng = np.random.default_rng(0)
    y_true = (np.arange(1000) % 50).astype(np.int32)
    X = (rng.normal(size=(50, 12)) * 1.5)[y_true] + rng.normal(size=(1000, 12))
    confusion = simulate.one_coin(np.linspace(0.4, 0.95, 8), 50)
    ann = simulate.annotate(y_true, confusion, simulate.assign(1000, 8, 1, rng), rng)
    classes = np.arange(n_classes)
    return X, Annotations(ann.task, ann.worker, ann.label, ann.tasks, ann.workers, classes, classes), y_true


def grouped(n_tasks: int = 240) -> tuple[Floats, Annotations, Codes]:
    """Return tasks of eight classes whose mistakes stay within pairs."""
    rng = np.random.default_rng(0)
    y_true = (np.arange(n_tasks) % 8).astype(np.int32)
    X = 3 * np.eye(8)[y_true] + rng.normal(size=(n_tasks, 8))
    confusion = simulate.grouped_class_wise_hammer_spammer(6, pairs, 0.7, rng)
    return X, simulate.annotate(y_true, confusion, simulate.assign(n_tasks, 6, 1, rng), rng), y_true


@doubted
def test_fifty_classes_and_fifty_one_are_fitted_alike() -> None:
    found = []
    for n_classes in (50, 51):
        X, ann, y_true = many_classes(n_classes)
        clf = MBEM(SoftmaxRegression(C=0.1), rounds=2).fit(X, ann)
        found.append(np.asarray(clf.posterior_)[np.arange(1000), y_true])
        assert type(default_workers(ann)) is type(default_workers(many_classes(50)[1]))
    assert np.abs(found[0] - found[1]).mean() < 0.01


@pytest.mark.parametrize("model", [workers.OneCoin, workers.ClassWise])
def test_nothing_jumps_where_memory_decides(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, ann, *_ = crowd_with_features(150)
    below = MBEM(SoftmaxRegression(), rounds=2, worker_model=model()).fit(X, ann)
    monkeypatch.setattr("labelonce.workers._chances.is_large", lambda *_: True)
    above = MBEM(SoftmaxRegression(), rounds=2, worker_model=model()).fit(X, ann)
    assert_allclose(np.asarray(above.posterior_), np.asarray(below.posterior_), atol=5e-3)
    assert_allclose(above.skill_, below.skill_, atol=5e-3)  # there, no classes are taken to be mixed up


@doubted
def test_class_permutations_commute() -> None:
    X, ann, *_ = crowd_with_features()
    order = np.array([2, 0, 1])
    plain, other = (MBEM(SoftmaxRegression(), rounds=2, folds=1).fit(X, one) for one in (ann, ann.relabel(order)))
    assert_allclose(other.posterior_[:, order], plain.posterior_, atol=1e-4)
    assert_allclose(other.skill_, plain.skill_, atol=1e-4)


OPTIONS: dict[str, dict[str, Any]] = {
    "rounds": {"rounds": 3},
    "folds": {"folds": 2},
    "max_fits": {"rounds": "auto", "max_fits": 7},
    "prior": {"prior": np.full(8, 0.125)},
    "random_state": {"random_state": 5},
    "device": {"device": "cpu"},
    "verbose": {"verbose": True},
}


@doubted
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("model", [workers.OneCoin(), workers.Grouped(pairs)], ids=["classes", "slots"])
def test_every_option_is_honoured_in_every_layout(model: Any, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    X, ann, _ = grouped()
    seen: list[Any] = []
    fixed: dict[str, Any] = {"rounds": 2, "worker_model": model, "callbacks": [seen.append]}
    clf = MBEM(SoftmaxRegression(), **(fixed | OPTIONS[option])).fit(X, ann)
    done = [entry["round"] for entry in seen if entry["round"]]
    expected = {
        "rounds": clf.n_rounds_ == 3,
        "folds": clf.n_fits_ in (2 * 2 + 1, 2 + 2 * 2 + 2),  # out-of-fold, or in sample and the last again on halves
        "max_fits": clf.n_fits_ <= 7,
        "prior": bool(np.allclose(clf.prior_, 0.125)),
        "random_state": clf.n_rounds_ == 2,
        "device": clf.n_rounds_ == 2,
        "verbose": "MBEM: round 2" in capsys.readouterr().err,
    }
    assert expected[option]
    assert done == list(range(1, clf.n_rounds_ + 1))


def test_what_slots_cannot_take_is_refused() -> None:
    X, ann, _ = grouped(80)
    with pytest.raises(ValueError, match="confusion must be None with Grouped workers; got it"):
        MBEM(worker_model=workers.Grouped(pairs)).fit(X, ann, confusion=np.tile(np.eye(8), (6, 1, 1)))


def test_a_default_fit_makes_half_of_the_fits_it_once_made() -> None:
    X, ann, *_ = crowd_with_features(150)
    assert MBEM().fit(X, ann).n_fits_ <= 72  # five penalties once took 145


def test_noise_changes_no_label() -> None:
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 2, 400)
    ann = simulate.annotate(y_true, simulate.one_coin(np.full(8, 0.8), 2), simulate.assign(400, 8, 1, rng), rng)
    with pytest.warns(DoubtWarning, match="the features are too weak to judge anybody: the given labels are kept"):
        clf = MBEM(SoftmaxRegression(), rounds=3).fit(rng.normal(size=(400, 5)), ann)
    assert_array_equal(clf.labels_[ann.task], ann.label)


@pytest.mark.parametrize("make", [aggregation.DawidSkene, OneCoin, aggregation.IBCC, aggregation.MACE])
@pytest.mark.parametrize("prior", ["learned", "uniform"])
def test_without_overlap_an_aggregator_returns_the_labels_and_says_so(make: Any, prior: str) -> None:
    ann = crowd(n_classes=4)[0].sample(redundancy=1, random_state=0)
    with pytest.warns(aggregation.RedundancyWarning, match="nothing was learned of anybody"):
        found = make(**({"prior": prior} if "prior" in make().get_params() else {})).fit(ann)
    assert_array_equal(found.labels_[ann.task], ann.label)
    assert np.ptp(found.skill_) == pytest.approx(0)  # nobody is told from anybody
    assert_allclose(found.posterior_.max(axis=1), RULES.skill_prior[0] / sum(RULES.skill_prior))
    assert_allclose(found.confusion_.sum(axis=2), 1)


@pytest.mark.filterwarnings("ignore::labelonce.aggregation.RedundancyWarning")
def test_what_an_aggregator_returns_without_overlap_is_consistent() -> None:
    """Bayes' rule with its workers and its prior gives its posterior."""
    ann = crowd(n_classes=3)[0].sample(redundancy=1, random_state=0)
    found = aggregation.DawidSkene().fit(ann)
    said = found.prior_ * found.confusion_[ann.worker, :, ann.label]
    assert_allclose(found.posterior_[ann.task], said / said.sum(axis=1, keepdims=True), atol=1e-12)


@doubted
def test_known_answers_bring_confidence_nearer_to_the_truth() -> None:
    rng = np.random.default_rng(1)
    y_true = rng.integers(0, 2, 800)
    X = rng.normal(size=(800, 4)) + 0.6 * y_true[:, None]
    ann = simulate.annotate(y_true, simulate.one_coin(np.full(8, 0.62), 2), simulate.assign(800, 8, 1, rng), rng)
    gold = np.where(np.arange(800) < 150, y_true, -1)
    plain, known = (MBEM(SoftmaxRegression(C=0.1), rounds=3).fit(X, ann, gold=one) for one in (None, gold))
    off = [abs(clf.confidence_[150:].mean() - (clf.labels_ == y_true)[150:].mean()) for clf in (plain, known)]
    assert off[1] < max(off[0], 0.03)


def test_the_range_of_the_estimated_accuracy_holds_the_truth() -> None:
    X, ann, y_true, _ = crowd_with_features(400, hammers=0.7)
    clf = MBEM(SoftmaxRegression(), rounds=3).fit(X, ann)
    assert clf.estimated_accuracy_.low <= (clf.labels_ == y_true).mean() <= clf.estimated_accuracy_.high


def test_results_of_numbered_tasks_are_in_the_order_of_their_numbers() -> None:
    X, ann, y_true, _ = crowd_with_features()
    order = np.random.default_rng(0).permutation(len(ann))
    shuffled = Annotations.from_arrays(ann.task[order], ann.worker[order], ann.label[order])
    clf = MBEM(SoftmaxRegression(), rounds=2, worker_model=workers.OneCoin()).fit(X, shuffled)
    assert clf.tasks_.tolist() == list(range(200))
    assert (clf.labels_ == y_true).mean() > 0.8
    voted = aggregation.MajorityVote().fit(shuffled)
    assert_array_equal(voted.labels_[ann.task], ann.label)
