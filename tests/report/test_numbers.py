"""The numbers of the report: against brute force, and on crowds whose truth is known."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from crowds import crowd
from numpy.testing import assert_allclose

import labelonce as lo
from labelonce._kernels import ScipyEngine, floored_log
from labelonce.data import Annotations
from labelonce.report import worker_seconds
from labelonce.report._accuracy import estimated_accuracy, judged_without, softened_posterior
from labelonce.report._calibration import gold_calibration, label_calibration, without_label
from labelonce.report._counts import Counts
from labelonce.report._facts import Facts, read_facts
from labelonce.report._money import compare_redundancy
from labelonce.report._review import disagreements, least_sure
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


def test_a_model_is_softened_to_its_held_out_score() -> None:
    X = np.random.default_rng(0).normal(size=(400, 4))
    y_true = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)
    confusion = lo.simulate.one_coin([0.95, 0.9, 0.7, 0.6], 2)
    ann = lo.simulate.annotate(y_true, confusion, lo.simulate.assign(400, 4, 1, rng=0), rng=0)
    clf = lo.MBEM(lo.SoftmaxRegression(), posterior="joint", max_rounds=3).fit(X, ann)
    facts = read_facts(clf, ann)
    engine = ScipyEngine(ann, "float64")
    unchanged = engine.e_step(floored_log(clf.confusion_), floored_log(clf.predictions_)).posterior
    assert_allclose(softened_posterior(facts, 0.0), unchanged, atol=1e-3)
    chance = engine.e_step(floored_log(clf.confusion_), np.log([0.5, 0.5])).posterior
    assert_allclose(softened_posterior(facts, -100.0), chance, atol=2e-2)
    accuracy = estimated_accuracy(facts)
    assert accuracy is not None
    assert accuracy.kind == "held_out"
    assert accuracy.low <= accuracy.value <= accuracy.high == facts.promised


def test_a_fit_without_held_out_labels_only_promises() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    ann = lo.Annotations.from_arrays(np.arange(60), np.arange(60) % 3, (X[:, 0] > 0).astype(int))
    clf = lo.MBEM(lo.SoftmaxRegression(), rounds=1, posterior="joint", predictions="in_sample").fit(X, ann)
    accuracy = estimated_accuracy(read_facts(clf, ann))
    assert accuracy is not None
    assert accuracy.kind == "promise"


@pytest.mark.filterwarnings("ignore::labelonce.RedundancyWarning")
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
    confusion = np.stack([good] * 8 + [guess, liar, blind, good])
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 3, 1500)
    assignment = lo.simulate.assign(1500, 11, 5, rng, replace=False)
    assignment[0, 0] = 11
    ann = lo.simulate.annotate(y_true, confusion, assignment, rng)
    fitted = lo.DawidSkene().fit(ann)
    table = worker_table(read_facts(fitted, ann))
    flags = [{name for name, on in zip(FLAGS, row, strict=True) if on} for row in table.flags]
    assert flags[:8] == [set()] * 8
    assert flags[8:11] == [{"spammer"}, {"adversary"}, {"class-blind"}]
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


def test_large_crowds_take_the_one_coin_population(monkeypatch: pytest.MonkeyPatch) -> None:
    confusion = lo.simulate.one_coin(np.linspace(0.5, 1, 20), 3)
    ann, _ = crowd(n_tasks=500, redundancy=4, confusion=confusion)
    fitted = lo.DawidSkene().fit(ann)
    facts = read_facts(fitted, ann)
    small = worker_table(facts)
    monkeypatch.setattr("labelonce.report._workers._MOST_CELLS", 0)
    large = worker_table(facts)
    assert_allclose(small.low, large.low, atol=0.06)
    assert_allclose(small.high, large.high, atol=0.06)


def test_votes_of_equal_workers_follow_theory() -> None:
    ann, _ = crowd(n_tasks=300, redundancy=3, confusion=lo.simulate.one_coin([0.8] * 10, 2))
    confusion = lo.simulate.one_coin([0.8] * 10, 2)
    facts = read_facts(lo.DawidSkene().fit(ann), ann)
    known = replace(facts, belief_confusion=confusion)
    money = compare_redundancy(known, 0.895)
    assert money is not None
    for row in money.rows:
        error = lo.theory.majority_error(0.2, row.redundancy)
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


def test_tasks_to_look_at() -> None:
    ann = lo.Annotations.from_matrix([[0, 0, 0], [1, 1, 1], [0, 1, -1], [1, 1, 0], [0, 0, 1]] * 4)
    facts = read_facts(lo.MajorityVote().fit(ann), ann)
    assert set(least_sure(facts)[:4]) == {2, 7, 12, 17}
    assert len(disagreements(facts)) == 0
    against = replace(facts, predictions=np.tile([0.1, 0.9], (20, 1)))
    assert set(disagreements(against)) == {0, 5, 10, 15, 4, 9, 14, 19}
    assert set(disagreements(against)[:4]) == {0, 5, 10, 15}


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
