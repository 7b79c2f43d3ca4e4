"""The numbers of the report: against brute force, and on crowds whose truth is known."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from crowds import crowd
from numpy.testing import assert_allclose
from scipy.stats import norm

import labelonce as lo
from labelonce import theory
from labelonce._kernels import ScipyEngine
from labelonce._types import Estimate
from labelonce.data import Annotations
from labelonce.multilabel import average_precision
from labelonce.report import worker_seconds
from labelonce.report._accuracy import estimated_accuracy, judged_without
from labelonce.report._classes import (
    class_figures,
    expected_average_precision,
    gold_calibration,
    label_calibration,
    without_label,
)
from labelonce.report._facts import Counts, Facts, read_facts
from labelonce.report._money import compare_redundancy, workers_by_belief
from labelonce.report._review import least_sure, overruled, review_rows
from labelonce.report._work import work_figures
from labelonce.report._workers import FLAGS, worker_table


@pytest.fixture
def small() -> Facts:
    ann, _ = crowd(n_tasks=30, redundancy=3, confusion=lo.simulate.dirichlet(5, 3, rng=0))
    return read_facts(lo.DawidSkene().fit(ann), ann)


def test_leaving_a_label_out_is_the_posterior_of_the_others(small: Facts) -> None:
    ann = small.annotations
    prior = lo.DawidSkene().fit(ann).prior_
    found = without_label(small.belief[ann.task], small.belief_confusion[ann.worker], ann.label)
    for row in range(0, len(ann), 7):
        others = np.flatnonzero((ann.task == ann.task[row]) & (np.arange(len(ann)) != row))
        expected = prior * np.prod([small.confusion[ann.worker[i], :, ann.label[i]] for i in others], axis=0)
        assert_allclose(found[row], expected / expected.sum(), atol=1e-6)


def test_counts_without_a_label_are_those_of_the_other_annotations(small: Facts) -> None:
    ann = small.annotations
    counts = small.counts
    rows = np.arange(0, len(ann), 11)
    whole = counts.confusion_without(ann.worker[rows], ann.label[rows], small.belief[ann.task[rows]])
    column = counts.column_without(ann.worker[rows], ann.label[rows], small.belief[ann.task[rows]])
    assert_allclose(whole.sum(axis=2), 1)
    assert_allclose(whole[np.arange(len(rows)), :, ann.label[rows]], column)
    for place, row in enumerate(rows):
        kept = np.arange(len(ann)) != row
        rest = Annotations(ann.task[kept], ann.worker[kept], ann.label[kept], ann.tasks, ann.workers, ann.classes)
        left = ScipyEngine(rest, "float64").m_step(small.belief)[ann.worker[row]]
        all_counts = counts.counts
        crowd_mean = np.einsum("wkk->", all_counts) / all_counts.sum()
        skill = (np.trace(left) + 4 * crowd_mean) / (left.sum() + 4)
        leaning = left + 10 * np.where(np.eye(3, dtype=bool), skill, (1 - skill) / 2)
        assert_allclose(whole[place], leaning / leaning.sum(axis=1, keepdims=True), atol=1e-9)


def test_judging_by_the_same_workers_changes_nothing(small: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    def same(_: Any, worker: Any, label: Any, *__: Any) -> Any:
        return small.belief_confusion[worker, :, label]

    monkeypatch.setattr(Counts, "column_without", same)
    assert_allclose(judged_without(small, small.labelled, 10.0), small.belief, atol=1e-9)


@pytest.mark.parametrize("kind", [lo.MajorityVote, lo.DawidSkene, lo.OneCoin])
def test_the_estimate_holds_the_truth_where_the_posterior_promises_too_much(kind: Any) -> None:
    ann, y_true = crowd(1, n_tasks=1000, redundancy=5, confusion=lo.simulate.dirichlet(40, 10, rng=1))
    fitted = kind().fit(ann)
    facts = read_facts(fitted, ann)
    accuracy = estimated_accuracy(facts)
    assert accuracy is not None
    assert accuracy.low < np.mean(facts.label == y_true) < accuracy.high


def with_features(**options: Any) -> tuple[lo.MBEM, lo.Annotations]:
    X = np.random.default_rng(0).normal(size=(400, 4))
    y_true = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)
    confusion = lo.simulate.one_coin([0.95, 0.9, 0.7, 0.6], 2)
    ann = lo.simulate.annotate(y_true, confusion, lo.simulate.assign(400, 4, 1, rng=0), rng=0)
    return lo.MBEM(lo.SoftmaxRegression(), rounds=2, **options).fit(X, ann), ann


def test_estimate_skills_intervals_and_simulated_votes_of_a_fit_with_features_are_its_own() -> None:
    clf, ann = with_features()
    facts = read_facts(clf, ann)
    accuracy = estimated_accuracy(facts)
    assert accuracy is not None
    assert Estimate(accuracy.value, accuracy.low, accuracy.high) == clf.estimated_accuracy_
    assert accuracy.kind == "held_out"
    assert facts.promised == pytest.approx(clf.posterior_.max(axis=1).mean())
    table, frame = worker_table(facts), clf.workers_to_frame().sort_by("worker")
    assert_allclose(table.low, frame["skill_low"].to_numpy())
    assert_allclose(table.high, frame["skill_high"].to_numpy())
    assert_allclose(table.wrong, frame["annotations"].to_numpy() * (1 - frame["skill"].to_numpy()))
    right = np.einsum("wkk->wk", workers_by_belief(facts)).mean(axis=1)
    said = np.bincount(ann.worker, clf.posterior_[ann.task, ann.label]) / np.bincount(ann.worker)
    assert_allclose(right, said, atol=0.03)


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")  # which says so
def test_a_fit_that_held_nothing_out_only_promises() -> None:
    clf, ann = with_features(folds=1)
    accuracy = estimated_accuracy(read_facts(clf, ann))
    assert accuracy is not None
    assert accuracy.kind == "promise"


@pytest.mark.filterwarnings("ignore::labelonce.aggregation.RedundancyWarning")
def test_one_label_per_task_without_features_tells_nothing() -> None:
    ann, _ = crowd(n_tasks=100, redundancy=1, confusion=lo.simulate.one_coin([0.9] * 5, 3))
    fitted = lo.DawidSkene().fit(ann)
    facts = read_facts(fitted, ann)
    assert estimated_accuracy(facts) is None
    assert label_calibration(facts) is None
    assert compare_redundancy(facts, 0.9) is None


def test_flags_find_the_workers_they_are_meant_for() -> None:
    good, guess = np.eye(3) * 0.9 + 0.1 / 3, np.full((3, 3), 1 / 3)
    liar = (1 - np.eye(3)) / 2
    blind = np.array([[0.95, 0.05, 0], [0.05, 0.95, 0], [0.5, 0.5, 0]])
    always = np.tile([0.0, 1.0, 0.0], (3, 1))
    confusion = np.stack([good] * 8 + [guess, liar, blind, good, always])
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 3, 1500)
    assignment = lo.simulate.assign(1500, 11, 5, rng, replace=False)
    assignment[0, 0], assignment[1:60, 0] = 11, 12
    ann = lo.simulate.annotate(y_true, confusion, assignment, rng)
    fitted = lo.DawidSkene().fit(ann)
    table = worker_table(read_facts(fitted, ann))
    flags = [{name for name, on in zip(FLAGS, row, strict=True) if on} for row in table.flags]
    assert flags[:8] == [set()] * 8
    assert flags[8:11] == [{"spammer"}, {"adversary"}, {"class-blind"}]
    assert flags[12] == {"one label"}
    assert table.no_better_than_guessing[[8, 9, 12]].all()
    assert table.blind[10].tolist() == [False, False, True]
    assert ((table.low <= table.skill) & (table.skill <= table.high)).all()


def test_a_worker_with_hardly_a_label_has_too_few() -> None:
    rng = np.random.default_rng(0)
    confusion = lo.simulate.one_coin(rng.beta(1, 1, 40), 2)
    ann, _ = crowd(n_tasks=600, redundancy=4, confusion=confusion)
    workers = np.where(np.arange(len(ann)) == 0, 40, ann.worker).astype(np.int32)
    ann = Annotations(ann.task, workers, ann.label, ann.tasks, np.arange(42), ann.classes)
    fitted = lo.DawidSkene().fit(ann)
    table = worker_table(read_facts(fitted, ann))
    assert table.flags[40:, FLAGS.index("too few labels")].all()
    assert not table.flags[:40, FLAGS.index("too few labels")].any()


def test_a_weak_model_is_no_lack_of_labels() -> None:
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 2, 400)
    ann = lo.simulate.annotate(y_true, lo.simulate.one_coin([0.8] * 4, 2), lo.simulate.assign(400, 4, 1, rng), rng)
    with pytest.warns(lo.DoubtWarning, match="too weak"):
        clf = lo.MBEM(lo.SoftmaxRegression(), rounds=3).fit(rng.normal(size=(400, 5)), ann)
    flags = worker_table(read_facts(clf, ann)).flags
    assert flags[:, FLAGS.index("hard to judge")].any()
    assert not flags[:, FLAGS.index("too few labels")].any()


def test_large_crowds_take_the_one_coin_population(monkeypatch: pytest.MonkeyPatch) -> None:
    confusion = lo.simulate.one_coin(np.linspace(0.5, 1, 20), 3)
    ann, _ = crowd(n_tasks=500, redundancy=4, confusion=confusion)
    fitted = lo.DawidSkene().fit(ann)
    facts = read_facts(fitted, ann)
    small = worker_table(facts)
    monkeypatch.setattr("labelonce.report._facts._MOST_CELLS", 0)
    large = worker_table(facts)
    assert_allclose(small.low, large.low, atol=0.06)
    assert_allclose(small.high, large.high, atol=0.06)


def test_votes_of_equal_workers_follow_theory() -> None:
    ann, _ = crowd(n_tasks=300, redundancy=3, confusion=lo.simulate.one_coin([0.8] * 10, 2))
    confusion = lo.simulate.one_coin([0.8] * 10, 2)
    facts = read_facts(lo.DawidSkene().fit(ann), ann)
    known = replace(facts, judge=SimpleNamespace(confusion_=confusion))
    money = compare_redundancy(known, 0.895)
    assert money is not None
    for row in money.rows:
        error = theory._majority_error(0.2, row.redundancy)
        assert abs(1 - row.vote - error) < 0.015
        assert row.weighted >= row.vote - 0.015
    assert money.three.labels == 900
    assert money.vote_needs is not None
    assert money.vote_needs.redundancy in (3, 5)


def test_gold_calibration_is_the_expected_calibration_error() -> None:
    ann, y_true = crowd(n_tasks=400, redundancy=3, confusion=lo.simulate.dirichlet(20, 4, rng=0))
    facts = read_facts(lo.DawidSkene().fit(ann), ann)
    found = gold_calibration(facts, y_true.astype(np.int32))
    assert found.error == pytest.approx(lo.metrics.calibration_error(y_true, facts.posterior, n_bins=10), abs=1e-3)
    assert sum(bin["n"] for bin in found.bins) == 400


def test_expected_labels_of_a_right_model_come_as_often_as_promised() -> None:
    ann, _ = crowd(n_tasks=4000, redundancy=4, confusion=lo.simulate.one_coin(np.linspace(0.5, 0.95, 30), 3))
    found = label_calibration(read_facts(lo.OneCoin().fit(ann), ann))
    assert found is not None
    assert found.error < 0.02


def test_tasks_to_look_at_are_least_sure_or_overruled_by_a_majority() -> None:
    ann = lo.Annotations.from_matrix([[0, 0, 0], [1, 1, 1], [0, 1, -1], [1, 1, 0], [0, 0, 1]] * 4)
    facts = read_facts(lo.MajorityVote().fit(ann), ann)
    assert set(least_sure(facts)[:4]) == {2, 7, 12, 17}
    assert len(overruled(facts)) == 0
    ann = lo.Annotations.from_matrix([[0, 0, 1], [0, 1, -1], [1, 1, 1], [1, 0, 0]])
    facts = read_facts(lo.MajorityVote().fit(ann), ann)
    posterior = np.array([[0.3, 0.7], [0.1, 0.9], [0.6, 0.4], [0.9, 0.1]])
    decided = replace(facts, posterior=posterior, label=posterior.argmax(axis=1).astype(np.int32))
    assert overruled(decided).tolist() == [0, 2]  # a tie is no majority to overrule


def test_an_adversary_must_stand_out_from_all_workers_looked_at() -> None:
    confusion = lo.simulate.one_coin([0.9] * 60, 3)
    ann, _ = crowd(n_tasks=600, redundancy=5, confusion=confusion)
    facts = read_facts(lo.DawidSkene().fit(ann), ann)
    few, many = (_interval_of_one(facts, n) for n in (1, 60))
    assert few[0]
    assert not many[0]


def _interval_of_one(facts: Facts, n_seen: int) -> list[bool]:
    """Return who is an adversary where the first worker is just below guessing, among so many with labels."""

    class Fixed:
        def skill_interval(self, _: Any, *, level: float) -> Any:
            doubt = 0.03 * float(norm.ppf((1 + level) / 2))
            return skill - doubt, skill + doubt

    skill = np.full(60, 0.9)
    chance = worker_table(facts).chance[0]
    skill[0] = chance - 0.06
    labels = np.where(np.arange(60) < n_seen, facts.labels_per_worker, 0)
    changed = replace(facts, worker_model=Fixed(), skill=skill)  # type: ignore[arg-type]  # only its interval is used
    changed.__dict__["labels_per_worker"] = labels
    return [bool(flag) for flag in worker_table(changed).flags[:, 0]]


def test_no_task_is_shown_with_another_class_that_is_more_probable() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=600)
    X = np.eye(3)[y] @ rng.normal(scale=2.0, size=(3, 8)) + 3 * rng.normal(size=(600, 8))
    confusion = lo.simulate.hammer_spammer(20, 3, 0.5, rng, exact=True)
    ann = lo.simulate.annotate(y, confusion, lo.simulate.assign(600, 20, 1, rng), rng)
    facts = read_facts(lo.MBEM(lo.SoftmaxRegression(), rounds=4).fit(X, ann), ann)
    rows = review_rows(facts, np.arange(600, dtype=np.int32), None, None)
    assert all(row["confidence"] >= row["second_confidence"] for row in rows)
    undecided = [row for row in rows if row["undecided"]]
    assert 0 < len(undecided) < 100
    assert all(row["confidence"] == row["second_confidence"] for row in undecided)


def test_seconds_ignore_order_breaks_and_unknown_times() -> None:
    when = np.array(["2026-01-01T00:00:00", "2026-01-01T00:00:04", "2026-01-01T00:00:08", "2026-01-02T00:00:00"])
    found = worker_seconds(["a"] * 4, timestamp=when.astype("datetime64[s]")[[2, 0, 3, 1]])
    assert found == {"a": 4.0}
    assert worker_seconds(["a", "b"], lead_time=[np.nan, 3.0]) == {"b": 3.0}
    with pytest.raises(ValueError, match="either lead_time or timestamp; got neither"):
        worker_seconds(["a"])
    with pytest.raises(ValueError, match=r"lead_time must be finite and not negative; got -1\.0 at row 1"):
        worker_seconds(["a", "b"], lead_time=[1.0, -1.0])
    with pytest.raises(ValueError, match=r"timestamp must have one entry per label, 1; got shape \(2,\)"):
        worker_seconds(["a"], timestamp=[1.0, 2.0])


def test_the_expected_average_precision_is_that_of_drawn_classes() -> None:
    rng = np.random.default_rng(0)
    chance = rng.beta(0.1, 3, 20_000)
    truth = (rng.random(20_000) < chance).astype(int)[:, None]
    found = average_precision(truth, chance[:, None])[0]
    assert expected_average_precision(chance) == pytest.approx(found, abs=0.03)
    assert found > 5 * chance.mean()


def test_figures_of_classes_are_the_expected_ones_of_drawn_truths() -> None:
    rng = np.random.default_rng(0)
    posterior = rng.dirichlet([0.6, 0.3, 0.03], 3000)
    labels = posterior.argmax(axis=1).astype(np.int32)
    drawn = (posterior.cumsum(axis=1) < rng.random((3000, 1))).sum(axis=1)
    for k, one in enumerate(class_figures(posterior, labels)):
        assert one.share == pytest.approx((drawn == k).mean(), abs=0.03)
        assert one.precision == pytest.approx((drawn[labels == k] == k).mean(), abs=0.06)
        assert one.recall == pytest.approx((labels[drawn == k] == k).mean(), abs=0.06)
        assert (one.threshold is None) == (k < 2)


def test_no_other_threshold_has_a_higher_expected_f1() -> None:
    chance = np.random.default_rng(0).beta(0.1, 2, 500)
    one = class_figures(np.column_stack([1 - chance, chance]), (chance > 0.5).astype(np.int32))[1]
    assert one.threshold is not None

    def f1(threshold: float) -> float:
        chosen = chance > threshold
        return float(2 * chance[chosen].sum() / (chosen.sum() + chance.sum()))

    assert f1(one.threshold) == pytest.approx(one.f1)
    assert max(map(f1, np.linspace(0, 0.99, 500))) <= f1(one.threshold) + 1e-12


def test_work_that_becomes_worse_is_seen_by_worker_and_over_time() -> None:
    confusion = lo.simulate.one_coin([0.95] * 4, 2)
    ann = lo.simulate.annotate(np.zeros(400, dtype=int), confusion, lo.simulate.assign(400, 4, 1, rng=0), rng=0)
    when = np.arange(400.0) + 1.7e9
    posterior = np.column_stack([np.where(np.arange(400) < 200, 0.95, 0.5)] * 2)
    pairs = {"task": ann.tasks[ann.task], "worker": ann.workers[ann.worker]}
    found = work_figures(pairs | {"time": when[ann.task], "pay": np.full(400, 0.05)}, ann, posterior)
    assert found.drifts.all()
    assert np.nansum(found.pay) == pytest.approx(20)
    right = [one.right for one in found.periods]
    assert_allclose([right[0], right[-1]], [0.95, 0.5])
    assert sum(one.labels for one in found.periods) == 400
