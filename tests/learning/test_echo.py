"""Labels that come back in the predictions which judge them are heard, and predictions that hold none judge then."""

import pickle
from dataclasses import replace
from itertools import islice
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from labelonce import MBEM, Annotations, SoftmaxRegression, simulate
from labelonce._rules import RULES
from labelonce._types import Codes, Floats
from labelonce.learning import _choice, _echo, _mbem
from labelonce.learning._choice import folds_of
from labelonce.learning._echo import compared, echoes, is_sure, share, unheard
from labelonce.learning._problem import Problem
from labelonce.learning._rounds import Fitting, rounds
from labelonce.multilabel import MultiLabelAnnotations, MultiLabelMBEM, SigmoidRegression
from labelonce.workers import Full, Grouped, OneCoin

pytestmark = pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")
ALL = np.ones(4, dtype=bool)


def wide(redundancy: int = 1) -> tuple[Floats, Annotations, Codes]:
    """Return more columns than tasks, of which few tell anything: a learner repeats what it is fitted to."""
    rng = np.random.default_rng(1)
    y_true = rng.integers(8, size=300)
    X = rng.normal(size=(300, 400))
    X[:, :16] += np.tile(np.eye(8), (1, 2))[y_true]
    confusion = simulate.one_coin(np.full(6, 0.85), 8)
    ann = simulate.annotate(y_true, confusion, simulate.assign(300, 6, redundancy, rng), rng)
    return X, ann, y_true.astype(np.int32)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the list to which every fit of a softmax regression is added."""
    fit, made = SoftmaxRegression.fit, []

    def count(self: SoftmaxRegression, *args: Any, **options: Any) -> SoftmaxRegression:
        made.append(1)
        return fit(self, *args, **options)

    monkeypatch.setattr(SoftmaxRegression, "fit", count)
    return made


def test_agreement_is_compared_task_by_task() -> None:
    ann = Annotations.from_arrays([0, 0, 1, 2], [0, 1, 0, 0], [0, 1, 1, 1], classes=[0, 1, 2]).align(np.arange(4))
    found = compared(Problem(np.zeros((4, 1)), ann), ALL, np.array([0, 1, 0, 0]), np.array([1, 0, 2, 0]))
    assert_array_equal(found, [[0, 1, 0], [2, 1, 1]])  # the last task has no label
    assert share(found) == 0.25
    held = np.array([False, True, True, True])
    one = compared(Problem(np.zeros((4, 1)), ann), held, np.array([1, 1, 0]), np.array([2, 0, 0]))
    assert_array_equal(one, [[1, 1], [1, 1]])


def test_an_answer_between_two_classes_agrees_with_both_a_little() -> None:
    labels = SimpleNamespace(
        is_square=False, task=np.arange(3), label=np.array([0, 1, 2]), leaning=np.array([[1, 0], [0.25, 0.75], [0, 0]])
    )
    labels.select = lambda _: labels
    problem: Any = SimpleNamespace(labels=labels, task=np.arange(3), n_tasks=3, rows_of=lambda held: held)
    found = compared(problem, np.ones(3, dtype=bool), np.array([0, 1, 1]), np.array([1, 0, 0]))
    assert_allclose(found, np.array([[1, 0.5], [1, 1]]))  # the last says neither


def test_an_echo_must_be_surely_too_much() -> None:
    most, _ = RULES.echoed
    found = np.stack([(np.arange(1000) < 1000 * (most + 0.02)) * 1.0, np.ones(1000)])
    assert is_sure(found)
    assert not is_sure(found[:, ::10])  # of fewer tasks
    assert not is_sure(np.stack([(np.arange(1000) < 1000 * most) * 1.0, np.ones(1000)]))


def test_rounds_on_other_tasks_do_not_hear_of_labels_and_rounds_out_of_fold_do() -> None:
    X, ann, _ = wide()
    held = np.arange(300) < 75
    fold = np.where(held, 0, 1 + np.arange(300) % 3).astype(np.int32)
    how = Fitting(SoftmaxRegression(C=0.01), Full(), 0, 3, fold=fold)
    label = np.where(held[ann.task], (ann.label + 1) % 8, ann.label)
    other = Annotations(ann.task, ann.worker, label, ann.tasks, ann.workers, ann.classes)
    heard, said = [], []
    for labels in (ann, other):
        problem = Problem(X, labels)
        *_, last = islice(rounds(problem, how), 3)
        heard.append(last.predictions.argmax()[held])
        said.append(unheard(problem, how, last, held).to_dense())
    assert_array_equal(said[0], said[1])
    assert (heard[0] != heard[1]).mean() > 0.2


@pytest.mark.parametrize("options", [{}, {"rounds": 6}])
def test_labels_that_come_back_change_no_labels(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    X, ann, y_true = wide()
    clf = MBEM(SoftmaxRegression(C=0.01), **options).fit(X, ann)
    assert clf.recipe_["predictions"] == "out_of_fold"
    monkeypatch.setattr(_echo, "RULES", replace(RULES, echoed=(1.0, 2.0)))
    deaf = MBEM(SoftmaxRegression(C=0.01), **options).fit(X, ann)
    given = (ann.label == y_true[ann.task]).mean()
    assert (clf.labels_ == y_true).mean() >= given - 0.01
    assert (deaf.labels_ == y_true).mean() < given - 0.05
    repeats = [(one.predictions_.argmax(axis=1) == ann.label).mean() for one in (clf, deaf)]
    assert repeats[0] < repeats[1]
    assert deaf.n_fits_ < clf.n_fits_ < 2 * deaf.n_fits_  # the first fold is enough to know


@pytest.mark.parametrize("options", [{}, {"rounds": 4}])
def test_fits_for_the_echo_are_counted_and_a_resumed_fit_makes_the_same(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, ann, _ = wide()
    made = counted(monkeypatch)
    whole = MBEM(SoftmaxRegression(C=0.01), **options).fit(X, ann)
    assert whole.n_fits_ == len(made)
    saved = [pickle.dumps(clf) for clf in MBEM(SoftmaxRegression(C=0.01), **options).stages(X, ann)]
    for content in (saved[0], saved[2], saved[-1]):
        clf = pickle.loads(content)
        list(clf.stages(X, ann, resume=True))
        assert_array_equal(clf.posterior_, whole.posterior_)
        assert_array_equal(clf.predictions_, whole.predictions_)
        assert (clf.n_fits_, str(clf.history_)) == (whole.n_fits_, str(whole.history_))


def test_what_fits_are_planned_for_the_choice_is_true() -> None:
    X, ann, _ = wide()
    seen: list[Any] = []
    MBEM(SoftmaxRegression(C=0.01), callbacks=[seen.append]).fit(X, ann)
    choosing = [one for one in seen if one["round"] == 0]
    assert seen[: len(choosing)] == choosing  # nothing is said to be chosen once the rounds are over
    assert choosing[-1]["fits"] <= choosing[-1]["planned_fits"]


def test_the_first_round_of_a_choice_by_a_draw_of_the_tasks_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    X, ann, y_true = wide()
    monkeypatch.setattr(_choice, "RULES", replace(RULES, choice_tasks=250))
    made = counted(monkeypatch)
    clf = MBEM(SoftmaxRegression(C=0.01)).fit(X, ann)
    assert clf.recipe_["predictions"] == "out_of_fold"
    assert clf.n_fits_ == len(made)
    assert (clf.labels_ == y_true).mean() >= (ann.label == y_true[ann.task]).mean() - 0.01


@pytest.mark.parametrize("options", [{"max_fits": 15}, {"rounds": 1}, {"folds": 1, "rounds": 3}])
def test_no_fits_are_made_for_it_where_they_are_limited_or_nothing_can_come_back(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, ann, _ = wide()
    monkeypatch.setattr(_mbem, "echoes", None)  # calling it would be an error
    clf = MBEM(SoftmaxRegression(C=0.01), **options).fit(X, ann)
    assert clf.n_fits_ <= 15


@pytest.mark.parametrize("folds", [2, 4])
@pytest.mark.parametrize("workers", [Grouped(np.arange(8) // 2), OneCoin()], ids=["slots", "classes"])
def test_it_is_heard_in_every_layout_and_with_several_labels(workers: Any, folds: int) -> None:
    X, ann, _ = wide(redundancy=2)
    problem = Problem(X, ann)
    how = Fitting(SoftmaxRegression(C=0.01), workers, 0, 3, fold=folds_of(problem, folds, 0))
    first, _, last = islice(rounds(problem, how), 3)
    assert not echoes(problem, how, first, first.predictions)
    known = np.eye(8)[ann.label][np.unique(ann.task, return_index=True)[1]]
    loud = replace(last, predictions=type(first.predictions).of(known))  # which repeat a label
    assert echoes(problem, how, loud, first.predictions)
    clf = MBEM(SoftmaxRegression(C=0.01), rounds=3, folds=folds, worker_model=workers).fit(X, ann)
    assert np.isfinite(np.asarray(clf.predictions_)).all()


def test_questions_are_asked_about_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    y_true = rng.random((150, 3)) < 0.5
    X = np.column_stack([y_true + rng.normal(size=(150, 3)), rng.normal(size=(150, 300))])
    said = np.where(rng.random(y_true.shape) < 0.85, y_true, ~y_true).astype(int)
    row, question = np.divmod(np.arange(450), 3)
    ann = MultiLabelAnnotations.from_arrays(row, question, row % 5, said.ravel(), answers=[0, 1])
    found = []
    for most in (1.0, -1.0):  # never and always too much
        monkeypatch.setattr(_echo, "RULES", replace(RULES, echoed=(most, 2.0)))
        found.append(MultiLabelMBEM(SigmoidRegression(C=0.1), rounds=3).fit(X, ann))
    without, heard = found
    assert without.recipe_["predictions"] == "out_of_fold"
    assert heard.n_fits_ == without.n_fits_ + 3 * 3  # three rounds on the tasks of three folds
    assert np.abs(heard.predictions_ - without.predictions_).max() > 0.01
