"""MBEM where answers are more than the classes, or a scale."""

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from labelonce import MBEM, Annotations, SoftmaxRegression, learning, simulate, workers
from labelonce._types import Codes, Floats
from labelonce.learning._calibration import label_shares

Problem = tuple[Floats, Annotations, Codes]


def problem(confusion: Floats, n_tasks: int = 1500, redundancy: int = 1, **options: Any) -> Problem:
    """Return features, answers of workers of this confusion, and the truth, which the features tell nearly always."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_tasks, 4))
    y_true = (X[:, 0] + 0.3 * rng.normal(size=n_tasks) > 0).astype(np.int32)
    assignment = simulate.assign(n_tasks, len(confusion), redundancy, rng, replace=False)
    return X, simulate.annotate(y_true, confusion, assignment, rng, **options), y_true


def skipping(n_workers: int = 12, others: float = 0.5) -> Floats:
    """Return workers of whom a third is good, the others guess; all skip class 1 four times as often."""
    right = np.where(np.arange(n_workers) % 3 == 0, 0.95, others)
    skip = np.tile(np.array([0.15, 0.6])[:, None], (n_workers, 1, 1))
    return np.concatenate([(1 - skip) * simulate.one_coin(right, 2), skip], axis=2)


def scale(n_workers: int = 12) -> Floats:
    """Return workers on a scale of five: a third of them leans clearly, the others hardly."""
    clear = np.array([[0.45, 0.3, 0.15, 0.07, 0.03], [0.03, 0.07, 0.15, 0.3, 0.45]])
    dull = np.array([[0.22, 0.2, 0.2, 0.2, 0.18], [0.18, 0.2, 0.2, 0.2, 0.22]])
    return np.where((np.arange(n_workers) % 3 == 0)[:, None, None], clear, dull)


def quick(**options: Any) -> MBEM:
    return MBEM(SoftmaxRegression(), rounds=3, **options)


def test_skipped_tasks_tell_their_class() -> None:
    X, ann, y_true = problem(skipping())
    with_skips, without = quick().fit(X, ann), quick().fit(X, ann.only_classes())
    assert with_skips.confusion_.shape == (12, 2, 3)
    said = [np.log(clf.posterior_[np.arange(1500), y_true]).mean() for clf in (with_skips, without)]
    assert said[0] > said[1] + 0.01
    assert_allclose(with_skips.confusion_[:, :, 2].mean(axis=0), [0.15, 0.6], atol=0.08)


def test_good_workers_are_found_among_those_who_skip() -> None:
    X, ann, _ = problem(skipping())
    table = quick().fit(X, ann).workers_to_frame()
    assert table.column_names == ["worker", "annotations", "skill", "skill_low", "skill_high", "other_answers"]
    assert set(table["worker"].to_pylist()[:4]) == {0, 3, 6, 9}
    assert table["skill"].to_numpy()[:4].min() > 0.75  # among the answers that are classes
    assert_allclose(table["other_answers"].to_numpy(), 0.375, atol=0.12)


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")
def test_a_scale_is_learned_with_one_answer_per_task() -> None:
    X, ann, y_true = problem(scale(), answers=list("abcde"))
    clf = quick().fit(X, ann)
    assert (clf.predict(X) == y_true).mean() > 0.87
    assert_allclose(clf.confusion_, scale(), atol=0.2)
    assert set(np.argsort(-clf.skill_)[:4].tolist()) == {0, 3, 6, 9}
    assert clf.answers_.tolist() == list("abcde")
    assert clf.workers_to_frame().column_names == ["worker", "annotations", "skill", "skill_low", "skill_high"]


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")
def test_several_answers_per_task_are_calibrated_by_each_other() -> None:
    X, ann, y_true = problem(skipping(), n_tasks=600, redundancy=3)
    clf = quick().fit(X, ann)
    assert (clf.labels_ == y_true).mean() > 0.88
    assert clf.estimated_accuracy_.low < (clf.labels_ == y_true).mean() < clf.estimated_accuracy_.high


def test_the_papers_algorithm_takes_other_answers() -> None:
    X, ann, y_true = problem(skipping(others=0.7))
    clf = MBEM.paper(SoftmaxRegression()).fit(X, ann)
    assert isinstance(clf.worker_model_, workers.Counted)
    assert (clf.predict(X) == y_true).mean() > 0.85


def test_the_recipe_is_chosen_with_other_answers() -> None:
    X, ann, y_true = problem(skipping(), n_tasks=500, redundancy=2)
    clf = MBEM([SoftmaxRegression(C=0.1), SoftmaxRegression(C=1.0)], rounds=2).fit(X, ann)
    assert (clf.predict(X) == y_true).mean() > 0.85
    assert np.isfinite(clf.history_[-1]["held_out_score"])


def test_an_answer_that_nobody_gave_changes_nothing() -> None:
    X, ann, _ = problem(simulate.one_coin(np.linspace(0.5, 0.95, 8), 2))
    more = Annotations(ann.task, ann.worker, ann.label, ann.tasks, ann.workers, ann.classes, np.arange(3))
    plain, with_it = quick().fit(X, ann), quick().fit(X, more)
    assert_allclose(with_it.posterior_, plain.posterior_, atol=1e-6)
    assert_allclose(with_it.skill_, plain.skill_, atol=1e-6)


def test_a_task_that_was_only_skipped_is_learned_from_its_features() -> None:
    X, ann, y_true = problem(skipping())
    clf = quick().fit(X, ann)
    skipped = ann.task[ann.label == 2]
    assert (clf.labels_[skipped] == y_true[skipped]).mean() > 0.8


def test_a_fit_is_scored_saved_and_resumed_with_its_answers() -> None:
    X, ann, _ = problem(skipping(), n_tasks=300)
    whole, stages = quick().fit(X, ann), quick().stages(X, ann)
    assert whole.score(X, ann) > 0.5
    assert -2 < whole.score_annotations(X, ann) < -0.2
    next(stages)
    copy = pickle.loads(pickle.dumps(next(stages)))
    assert copy.annotations_ == ann
    with pytest.raises(ValueError, match=r"resume needs the annotations of the fit, .* 3 answers.*; got .*2 classes"):
        list(copy.stages(X, ann.only_classes(), resume=True))
    list(copy.stages(X, ann, resume=True))
    assert_allclose(copy.posterior_, whole.posterior_, atol=1e-12)


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")  # 300 answers, each of which says little
def test_reviews_list_answers_that_are_classes() -> None:
    X, ann, _ = problem(skipping(), n_tasks=300)
    table = quick().fit(X, ann).review(least=0.0)
    assert table.num_rows == len(ann.only_classes())
    X, ann, _ = problem(scale(), n_tasks=300, answers=list("abcde"))
    with pytest.raises(ValueError, match=r"which can be wrong; got the scale \['a', 'b', 'c', 'd', 'e'\]"):
        quick().fit(X, ann).review()


def test_workers_of_right_and_wrong_refuse_a_scale_before_any_fit() -> None:
    X, ann, _ = problem(scale(), n_tasks=60, answers=list("abcde"))
    with pytest.raises(ValueError, match="MBEM with OneCoin must have answers that are classes; got the scale"):
        quick(worker_model=workers.OneCoin()).fit(X, ann)


def test_one_coin_workers_take_other_answers() -> None:
    X, ann, y_true = problem(skipping())
    clf = quick(worker_model=workers.OneCoin()).fit(X, ann)
    assert clf.confusion_.shape == (12, 2, 3)
    assert (clf.predict(X) == y_true).mean() > 0.85


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")
def test_a_crowd_that_only_skips_is_refused_unless_there_is_gold() -> None:
    ann = Annotations.from_matrix(np.full((40, 2), 2), classes=[0, 1], answers=[0, 1, 2])
    X = np.arange(40.0)[:, None]
    with pytest.raises(ValueError, match=r"some answers must be classes, \[0, 1\]; got none in 80 annotations"):
        quick().fit(X, ann)
    clf = quick().fit(X, ann, gold={0: 0, 1: 0, 38: 1, 39: 1})
    assert clf.predict([[0.0], [39.0]]).tolist() == [0, 1]


def test_shares_of_labels_are_those_of_classes() -> None:
    label = np.repeat([0, 1, 2], [29, 9, 100])
    matrix = Annotations.from_matrix(label[:, None], classes=[0, 1], answers=[0, 1, 2])
    for ann in (matrix, matrix.only_classes()):
        assert_allclose(label_shares(ann, None), [[0.75, 0.25]])


def test_answers_equal_to_the_classes_leave_the_fit_as_it_is() -> None:
    X, ann, _ = problem(simulate.one_coin(np.linspace(0.5, 0.95, 8), 2), n_tasks=300)
    same = Annotations(ann.task, ann.worker, ann.label, ann.tasks, ann.workers, ann.classes, ann.classes.copy())
    assert pickle.dumps(quick().fit(X, same)) == pickle.dumps(quick().fit(X, ann))


def test_a_model_trained_by_a_round_counts_as_its_answers_lean() -> None:
    X, ann, _ = problem(skipping(), n_tasks=300)
    clf = quick().fit(X, ann)
    square = ann.only_classes()
    expected = (clf.predict_proba(X).argmax(axis=1)[square.task] == square.label).mean()
    assert clf.history_[-1]["agreement"] == pytest.approx(expected)
    assert learning.annotation_log_likelihood(ann, clf.predictions_, clf.confusion_) < 0
