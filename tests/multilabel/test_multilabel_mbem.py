"""MBEM for questions: the binary case, recovery with one answer each, laws, conventions and faults."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from labelonce import MBEM, SoftmaxRegression
from labelonce.learning._judge import row_weight
from labelonce.multilabel import (
    MultiLabelAnnotations,
    MultiLabelMBEM,
    PerQuestion,
    SigmoidRegression,
    f1_score,
    mean_average_precision,
)
from labelonce.multilabel._pairs import PairLabels, yes_beliefs
from labelonce.multilabel._question_problem import QuestionProblem
from labelonce.workers import Full


def questions_of(y_true: Any, worker: Any, good: Any, seed: int = 0) -> MultiLabelAnnotations:
    """One judgement per task; who is not good at a question answers it at random. `good` is [worker, question]."""
    rng = np.random.default_rng(seed)
    said = np.where(good[worker], y_true, rng.integers(2, size=y_true.shape))
    names = {f"q{k}": said[:, k] for k in range(y_true.shape[1])}
    return MultiLabelAnnotations.from_wide(pa.table({"task": np.arange(len(worker)), "worker": worker} | names))


@pytest.fixture(scope="module")
def made() -> tuple[Any, Any, Any]:
    """Features, labels, and answers of 10 workers of whom three are good at everything."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 5))
    y_true = (X[:, :4] + 0.4 * X[:, 1:] > [0, 0.3, 0.8, -0.2]).astype(int)
    worker = rng.integers(10, size=700)
    good = np.zeros((10, 4), dtype=bool)
    good[:3] = True
    return X, y_true, questions_of(y_true, worker, good)


FAST: dict[str, Any] = {"rounds": 3}
CLOSE: dict[str, Any] = {"C": 0.1, "tol": 1e-9, "max_iter": 2000}


def test_one_answer_each_is_enough_with_features(made: tuple[Any, Any, Any]) -> None:
    X, y_true, ann = made
    clf = MultiLabelMBEM().fit(X, ann)
    assert (clf.predict(X) == y_true).mean() > 0.93
    right = clf.confusion_[:, :, [0, 1], [0, 1]].mean(axis=(1, 2))
    assert right[:3].min() > right[3:].max() + 0.2


def test_sharing_beats_one_fit_per_question_where_hammers_are_hammers(made: tuple[Any, Any, Any]) -> None:
    X, y_true, ann = made
    shared = MultiLabelMBEM(SigmoidRegression(C=0.1)).fit(X, ann)
    apart = MultiLabelMBEM(SoftmaxRegression(C=0.1), worker_model=Full(), rounds=5).fit(X, ann)
    assert (shared.labels_ == y_true).mean() > (apart.labels_ == y_true).mean()


def test_workers_who_are_good_at_some_questions_are_found() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2000, 6))
    y_true = (X > 0).astype(int)
    good = rng.random((8, 6)) < 0.5
    ann = questions_of(y_true, rng.integers(8, size=2000), good)
    clf = MultiLabelMBEM(SigmoidRegression(C=0.1)).fit(X, ann)
    right = clf.confusion_[:, :, [0, 1], [0, 1]].mean(axis=2)
    assert right[good].mean() > 0.9
    assert right[~good].mean() < 0.6


def test_one_question_is_mbem(made: tuple[Any, Any, Any]) -> None:
    X, _, ann = made
    first = ann.question == 0
    names = ann.questions[ann.question]
    one = MultiLabelAnnotations.from_arrays(ann.task[first], names[first], ann.worker[first], ann.answer[first])
    clf = MultiLabelMBEM(SoftmaxRegression(C=0.1), rounds=3).fit(X, one)
    binary = MBEM(SoftmaxRegression(C=0.1), rounds=3).fit(X, one.of_question("q0"))
    assert_allclose(clf.predict_proba(X)[:, 0], binary.predict_proba(X)[:, 1], rtol=1e-12)
    assert_allclose(clf.posterior_[:, 0], binary.posterior_[:, 1], rtol=1e-12)


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")  # nothing is held out
@pytest.mark.parametrize(
    "heads",
    [
        SigmoidRegression(**CLOSE),
        PerQuestion(SoftmaxRegression(**CLOSE)),
        make_pipeline(StandardScaler(with_mean=False, with_std=False), SigmoidRegression(**CLOSE)),
    ],
)
def test_heads_become_the_model_of_a_single_question(made: tuple[Any, Any, Any], heads: Any) -> None:
    X, _, ann = made
    first = ann.question == 0
    rows = (ann.task[first], ["q0"] * int(first.sum()), ann.worker[first], ann.answer[first])
    one = MultiLabelAnnotations.from_arrays(*rows)
    fixed: dict[str, Any] = {"rounds": 1, "folds": 1}
    clf = MultiLabelMBEM(heads, **fixed).fit(X, one)
    binary = MBEM(SoftmaxRegression(**CLOSE), **fixed).fit(X, one.of_question("q0"))
    assert_allclose(clf.predict_proba(X)[:, 0], binary.predict_proba(X)[:, 1], atol=1e-5)


def test_learners_may_be_lists_with_steps_any_classifier_or_a_pipeline(made: tuple[Any, Any, Any]) -> None:
    X, _, ann = made
    clf = MultiLabelMBEM([make_pipeline(StandardScaler(), SigmoidRegression()), SigmoidRegression()], rounds=1)
    assert len(clf.fit(X, ann).choices_) == 2
    X, y_true, ann = made
    clf = MultiLabelMBEM(make_pipeline(StandardScaler(), LogisticRegression(C=0.1)), **FAST).fit(X, ann)
    assert isinstance(clf.model_, PerQuestion)
    assert (clf.predict(X) == y_true).mean() > 0.85


@pytest.mark.parametrize(
    ("learner", "kind", "said"),
    [
        (3, TypeError, "must have predict_proba; int has none"),
        (SigmoidRegression, TypeError, "must be an instance; got the class SigmoidRegression"),
        ([], ValueError, r"must not be an empty list; got \[\]"),
    ],
)
def test_what_is_no_learner_is_refused(learner: Any, kind: type[Exception], said: str) -> None:
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(kind, match=said):
        MultiLabelMBEM(learner).fit(X, (X > 0).astype(int))


def test_the_paper_is_the_papers_mbem_for_every_label(made: tuple[Any, Any, Any]) -> None:
    X, _, ann = made
    clf = MultiLabelMBEM.paper(SoftmaxRegression(C=0.1)).fit(X, ann)
    for k, question in enumerate(ann.questions):
        wanted = MBEM.paper(SoftmaxRegression(C=0.1)).fit(X, ann.of_question(question)).predict_proba(X)
        assert_allclose(clf.predict_proba(X)[:, k], wanted[:, 1], rtol=1e-12)


def test_the_order_of_questions_and_names_of_workers_do_not_matter(made: tuple[Any, Any, Any]) -> None:
    X, _, ann = made
    order = [2, 0, 3, 1]
    other = MultiLabelAnnotations.from_arrays(
        ann.task, ann.questions[ann.question], 99 - ann.worker, ann.answer, questions=ann.questions[order]
    )
    first = MultiLabelMBEM(SigmoidRegression(C=0.1, tol=1e-8), **FAST).fit(X, ann)
    second = MultiLabelMBEM(SigmoidRegression(C=0.1, tol=1e-8), **FAST).fit(X, other)
    assert_allclose(second.predict_proba(X), first.predict_proba(X)[:, order], atol=1e-3)


def test_heads_are_softmax_regressions() -> None:
    rng = np.random.default_rng(0)
    X, target, weight = rng.normal(size=(80, 4)), rng.random((80, 3)), rng.random((80, 3))
    heads = SigmoidRegression(C=0.3, tol=1e-9, max_iter=2000).fit(X, target, weight)
    for k in range(3):
        both = np.stack([1 - target[:, k], target[:, k]], axis=1)
        one = SoftmaxRegression(C=0.3, tol=1e-9, max_iter=2000).fit(X, both, weight[:, k])
        assert_allclose(heads.predict_proba(X)[:, k], one.predict_proba(X)[:, 1], atol=1e-5)


def test_tasks_and_questions_that_were_not_asked(made: tuple[Any, Any, Any]) -> None:
    X, y_true, ann = made
    kept = (ann.task < 600) & ~((ann.question == 1) & (ann.task % 2 == 0))
    part = MultiLabelAnnotations.from_arrays(
        ann.task[kept], ann.questions[ann.question][kept], ann.worker[kept], ann.answer[kept], questions=ann.questions
    )
    clf = MultiLabelMBEM(SigmoidRegression(C=0.1), **FAST).fit(X, part.align(np.arange(700)))
    assert clf.posterior_.shape == y_true.shape
    assert not np.isnan(clf.posterior_).any()
    assert (clf.predict(X[600:]) == y_true[600:]).mean() > 0.85


@pytest.mark.parametrize("workers", [None, Full()])
def test_a_question_nobody_ticked_and_one_everybody_ticked(made: tuple[Any, Any, Any], workers: Any) -> None:
    X, _, ann = made
    answer = np.where(ann.question == 0, 0, np.where(ann.question == 1, 1, ann.answer))
    told = MultiLabelAnnotations.from_arrays(ann.task, ann.questions[ann.question], ann.worker, answer)
    learner = SigmoidRegression(C=0.1) if workers is None else SoftmaxRegression(C=0.1)
    clf = MultiLabelMBEM(learner, worker_model=workers, rounds=2).fit(X, told)
    given = clf.predict(X)
    assert not given[:, 0].any()
    assert given[:, 1].all()


def test_rows_are_matched_by_task_ids(made: tuple[Any, Any, Any]) -> None:
    X, _, ann = made
    order = np.random.default_rng(0).permutation(700)
    clf = MultiLabelMBEM(SigmoidRegression(C=0.1), **FAST).fit(X[order], ann, tasks=order)
    assert clf.tasks_.tolist() == order.tolist()
    with pytest.raises(ValueError, match="each of the 700 rows of X; got 3 ids"):
        MultiLabelMBEM().fit(X, ann, tasks=[1, 2, 3])
    with pytest.raises(ValueError, match="700 tasks of the annotations; got 5 rows"):
        MultiLabelMBEM().fit(X[:5], ann)


def test_an_indicator_matrix_is_one_workers_answers() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = (X > 0).astype(int)
    clf = MultiLabelMBEM(SigmoidRegression(C=1.0), **FAST).fit(X, y)
    assert clf.predict(X).dtype == np.int32
    assert (clf.predict(X) == y).mean() > 0.95


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")  # nothing can be told
@pytest.mark.parametrize("n_tasks", [1, 2])
def test_very_few_tasks_are_fitted(n_tasks: int) -> None:
    X = np.random.default_rng(0).normal(size=(n_tasks, 2))
    assert MultiLabelMBEM().fit(X, (X > 0).astype(int)).predict(X).shape == (n_tasks, 2)


def test_gold_is_kept_and_tables_have_a_row_per_answer_and_per_worker(made: tuple[Any, Any, Any]) -> None:
    X, y_true, ann = made
    gold = np.where(np.arange(700)[:, None] < 200, y_true, -1)
    clf = MultiLabelMBEM(SigmoidRegression(C=0.1), **FAST).fit(X, ann, gold=gold)
    assert_allclose(clf.posterior_[:200], y_true[:200])
    X, _, ann = made
    clf = MultiLabelMBEM(SigmoidRegression(C=0.1), **FAST).fit(X, ann)
    assert clf.to_frame().column_names == ["task", "question", "label", "probability"]
    assert clf.to_frame().num_rows == 2800
    assert clf.workers_to_frame().num_rows == 10


def test_repeats_are_equal_and_a_clone_is_unfitted(made: tuple[Any, Any, Any]) -> None:
    X, _, ann = made
    clf = MultiLabelMBEM([SigmoidRegression(C=0.1), SigmoidRegression(C=1.0)], rounds=2)
    first = clf.fit(X, ann).predict_proba(X)
    assert_allclose(clone(clf).fit(X, ann).predict_proba(X), first, rtol=0, atol=0)
    assert not hasattr(clone(clf), "posterior_")
    assert [choice["held_out_scores"][0] < 0 for choice in clf.choices_] == [True, True]


def test_weights_are_one_a_pair_on_average() -> None:
    ann = MultiLabelAnnotations.from_arrays([0, 1, 2, 0, 1], list("aaabb"), [0] * 5, [0, 1, 1, 0, 1])
    problem = QuestionProblem(np.zeros((3, 1)), PairLabels.of(ann))
    order = np.lexsort((problem.task, problem.kind))
    said = np.empty(5)
    said[order] = [0.5, 0.9, 1.0, 0.5, 0.5]
    weight = row_weight(problem, yes_beliefs(said))[order]
    assert weight[:3].sum() == pytest.approx(3)
    assert weight[0] == 0
    assert weight[3:].tolist() == [1.0, 1.0]  # where nothing is known, answers are all there is


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rounds": 0}, "got 0"),
        ({"folds": 0}, "got 0"),
        ({"algorithm": "all"}, "got 'all'"),
        ({"threshold": "x"}, "got 'x'"),
        ({"prior": [0.1]}, r"share of yes in \[0, 1\] for 4 questions; got \[0\.1\]"),
    ],
)
def test_wrong_options_are_named(made: tuple[Any, Any, Any], options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        MultiLabelMBEM(**options).fit(made[0], made[2])


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")  # features that say nothing are one of the cases
@pytest.mark.parametrize(("strength", "ranking"), [(0.3, False), (0.5, True)])
def test_rare_answers_are_no_worse_than_the_votes(strength: float, ranking: bool) -> None:
    rng = np.random.default_rng(2)
    y_true = (rng.random((1200, 6)) < [0.02, 0.03, 0.05, 0.05, 0.08, 0.1]).astype(int)
    X = strength * y_true @ rng.normal(size=(6, 12)) + rng.normal(size=(1200, 12))
    worker, misses, invents = rng.integers(15, size=600), rng.beta(4, 4, 15), rng.beta(1.5, 40, 15)
    yes = np.where(y_true[:600] == 1, 1 - misses[worker][:, None], invents[worker][:, None])
    said = (rng.random(yes.shape) < yes).astype(int)
    names = {f"q{k}": said[:, k] for k in range(6)}
    ann = MultiLabelAnnotations.from_wide(pa.table({"task": np.arange(600), "worker": worker} | names))
    clf = MultiLabelMBEM().fit(X[:600], ann)
    for average in ("micro", "macro"):
        given = f1_score(y_true[:600], said, average=average)
        assert f1_score(y_true[:600], clf.labels_, average=average) > given - 0.01
    ours = mean_average_precision(y_true[:600], clf.posterior_)
    assert ours > mean_average_precision(y_true[:600], said) - 0.01
    assert (clf.labels_ != said).any() == ranking
    assert_allclose(clf.confidence_.mean(), clf.estimated_accuracy_.value)
    if ranking:  # a yes is predicted about as often as it is there, though seldom more likely than not
        assert 0.5 < clf.predict(X[600:]).sum() / y_true[600:].sum() < 1.5
