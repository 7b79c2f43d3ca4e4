"""Aggregators of questions: the laws, the binary case, what is shared and how far, and the faults."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from questions import crowd

from labelonce import DawidSkene
from labelonce._kernels import make_evidence
from labelonce.aggregation import RedundancyWarning
from labelonce.multilabel import MultiLabelAggregator, MultiLabelAnnotations, MultiLabelDawidSkene, MultiLabelVote
from labelonce.multilabel._pairs import PairLabels, yes_beliefs
from labelonce.multilabel._shared_workers import STRENGTHS, strength

MODELS = [
    MultiLabelVote(),
    MultiLabelDawidSkene(),
    MultiLabelDawidSkene(sharing="full", power=0.7),
    MultiLabelDawidSkene(sharing="none"),
    MultiLabelDawidSkene(context="votes", threshold="expected_f1"),
]


def rows(ann: MultiLabelAnnotations) -> tuple[Any, ...]:
    return ann.tasks[ann.task], ann.questions[ann.question], ann.workers[ann.worker], ann.answers[ann.answer]


def shuffled(ann: MultiLabelAnnotations, seed: int = 0) -> MultiLabelAnnotations:
    """The same answers under other ids, so that tasks, questions and workers are in another order."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(ann))
    task, question, worker, answer = (column[order] for column in rows(ann))
    return MultiLabelAnnotations.from_arrays(task, question, 1000 - worker, answer, answers=[0, 1])


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_order_of_tasks_questions_and_workers_does_not_matter(model: MultiLabelAggregator) -> None:
    ann = crowd().annotations
    other = shuffled(ann)
    first, second = model.fit(ann).posterior_, model.fit(other).posterior_
    tasks = np.argsort(other.tasks)
    questions = [int(np.flatnonzero(other.questions == one)[0]) for one in ann.questions]
    assert_allclose(second[tasks][:, questions], first, atol=1e-8)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_renamed_answers_change_nothing(model: MultiLabelAggregator) -> None:
    ann = crowd().annotations
    names = np.array(["nein", "ja"], dtype=object)
    task, question, worker, _ = rows(ann)
    other = MultiLabelAnnotations.from_arrays(task, question, worker, names[ann.answer], answers=["nein", "ja"])
    assert_allclose(model.fit(other).posterior_, model.fit(ann).posterior_, atol=1e-12)


def test_nothing_shared_is_dawid_skene_for_every_question_and_for_one() -> None:
    ann = crowd(per_question=True).annotations
    posterior = MultiLabelDawidSkene(sharing="none", tol=1e-10, max_iter=3000).fit(ann).posterior_
    for k, question in enumerate(ann.questions):
        binary = DawidSkene(tol=1e-16, max_iter=3000).fit(ann.of_question(question))
        assert_allclose(posterior[:, k], binary.posterior_[:, 1], atol=1e-5)
    ann = crowd(n_questions=1).annotations
    model = MultiLabelDawidSkene(tol=1e-10, max_iter=3000).fit(ann)
    binary = DawidSkene(tol=1e-16, max_iter=3000).fit(ann.of_question("q0"))
    assert_allclose(model.posterior_[:, 0], binary.posterior_[:, 1], atol=1e-5)
    assert_allclose(model.confusion_[:, 0], binary.confusion_, atol=1e-4)


def test_a_question_nobody_ticked_is_no_and_one_everybody_ticked_is_yes() -> None:
    truth = np.zeros((300, 3), dtype=bool)
    truth[:150, 0] = True
    ann = crowd(y_true=truth).annotations
    task, question, worker, answer = rows(ann)
    answer = np.where(question == "q1", 0, np.where(question == "q2", 1, answer))
    labels = MultiLabelDawidSkene().fit(MultiLabelAnnotations.from_arrays(task, question, worker, answer)).labels_
    assert not labels[:, 1].any()
    assert labels[:, 2].all()


def test_workers_who_always_say_the_same_are_not_believed() -> None:
    made = crowd(redundancy=5, n_tasks=400)
    task, question, worker, answer = rows(made.annotations)
    answer = np.where(worker == 0, 1, np.where(worker == 1, 0, answer))
    ann = MultiLabelAnnotations.from_arrays(task, question, worker, answer)
    model = MultiLabelDawidSkene().fit(ann)
    by_vote = MultiLabelVote().fit(ann).labels_
    assert (model.labels_ == made.y_true).mean() > (by_vote == made.y_true).mean() + 0.03
    assert_allclose(model.worker_confusion_[:2, 0, 1], model.worker_confusion_[:2, 1, 1], atol=0.15)
    workers = model.workers_to_frame().to_pydict()
    assert workers["worker"][0] == 1  # the strictest
    assert workers["worker"][-1] == 0


def test_sharing_beats_one_fit_per_question_where_answers_are_few() -> None:
    right: dict[str, list[float]] = {"learned": [], "none": []}
    for seed in range(4):
        made = crowd(n_tasks=120, n_questions=12, n_workers=25, redundancy=3, yes=0.15, seed=seed)
        for sharing, found in right.items():
            labels = MultiLabelDawidSkene(sharing=sharing).fit(made.annotations).labels_
            found.append(float((labels == made.y_true).mean()))
    assert np.mean(right["learned"]) > np.mean(right["none"])


def test_the_strength_of_sharing_tells_the_crowds_apart_and_is_largest_without_counts() -> None:
    alike = MultiLabelDawidSkene().fit(crowd(n_tasks=600, n_questions=8, redundancy=5).annotations)
    apart = MultiLabelDawidSkene().fit(crowd(n_tasks=600, n_questions=8, redundancy=5, per_question=True).annotations)
    assert alike.question_strength_.min() > 40
    assert apart.question_strength_.max() < 20  # the true one: Beta(2, 5), a strength of 7
    assert strength(np.zeros((5, 2)), np.full((5, 2), 0.5)) == STRENGTHS[-1]


@pytest.mark.parametrize("size", [1.0, 4.0, 30.0])
def test_the_strength_of_raw_counts_is_found(size: float) -> None:
    rng = np.random.default_rng(0)
    base = rng.dirichlet([2, 2, 2], size=3000)
    chance = np.array([rng.dirichlet(size * row) for row in base])
    counts = np.array([rng.multinomial(20, row) for row in chance]).astype(float)
    assert strength(counts, base) == pytest.approx(size, rel=0.12)


def test_maybe_is_worth_what_it_is_found_to_say() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random(1500) < 0.4
    said = np.where(truth[:, None], *(rng.choice(3, (1500, 4), p=p) for p in ([0.1, 0.3, 0.6], [0.85, 0.1, 0.05])))
    task = np.repeat(np.arange(1500), 4)
    words = np.array(["no", "maybe", "yes"], dtype=object)[said.ravel()]
    ann = MultiLabelAnnotations.from_arrays(task, ["a"] * 6000, np.tile(np.arange(4), 1500), words)
    model = MultiLabelDawidSkene(sharing="learned", power=1.0).fit(ann)
    assert_allclose(model.crowd_confusion_, [[0.85, 0.1, 0.05], [0.1, 0.3, 0.6]], atol=0.04)


def test_not_asked_is_neither_yes_nor_no() -> None:
    ann = crowd(n_tasks=50).annotations
    kept = ~((ann.task < 10) & (ann.question == 0))
    part = MultiLabelAnnotations.from_arrays(*(column[kept] for column in rows(ann)), questions=ann.questions)
    model = MultiLabelVote().fit(part)
    assert np.isnan(model.posterior_[:10, 0]).all()
    assert (model.labels_[:10, 0] == -1).all()
    assert len(model.to_frame()) == 190


def test_gold_is_kept_and_judges_the_workers() -> None:
    made = crowd(n_tasks=60, redundancy=2)
    gold = np.where(np.arange(60)[:, None] < 30, made.y_true, -1)
    model = MultiLabelDawidSkene().fit(made.annotations, gold=gold)
    assert_allclose(model.posterior_[:30], made.y_true[:30])
    by_id = {(int(t), f"q{q}"): int(made.y_true[t, q]) for t in range(30) for q in range(4)}
    assert_allclose(MultiLabelDawidSkene().fit(made.annotations, gold=by_id).posterior_, model.posterior_)
    with pytest.raises(ValueError, match=r"got \(99, 'q0'\)"):
        model.fit(made.annotations, gold={(99, "q0"): 1})


def test_one_answer_each_is_worth_a_warning_and_other_annotations_are_refused() -> None:
    ann = crowd(redundancy=1).annotations
    with pytest.warns(RedundancyWarning, match="only 0 of 1,200 questions"):
        MultiLabelDawidSkene().fit(ann)
    with pytest.raises(TypeError, match="got list"):
        MultiLabelVote().fit([1, 2])  # type: ignore[arg-type]
    MultiLabelDawidSkene().fit(crowd(n_questions=150, n_tasks=40, redundancy=2).annotations)


def test_arguments_are_unchanged_and_repeats_are_equal() -> None:
    ann = crowd().annotations
    before = ann.to_frame()
    first = MultiLabelDawidSkene().fit(ann).pair_posterior_
    assert ann.to_frame() == before
    assert_allclose(MultiLabelDawidSkene().fit(ann).pair_posterior_, first, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"sharing": "some"}, "got 'some'"),
        ({"power": 0.0}, r"above 0; got 0\.0"),
        ({"power": 2}, "got 2"),
        ({"context": "all"}, "got 'all'"),
        ({"threshold": "best"}, "got 'best'"),
        ({"max_iter": 0}, "got 0"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        MultiLabelDawidSkene(**options).fit(crowd(n_tasks=5).annotations)


def test_a_row_is_a_task_and_a_question_and_is_answered_by_cells() -> None:
    ann = crowd(n_tasks=20, redundancy=2).annotations
    labels, posterior = PairLabels.of(ann), np.random.default_rng(0).random(len(ann.pair_start))
    counts = np.zeros((ann.n_workers, ann.n_questions, 2, 2))
    for worker, question, pair, answer in zip(ann.worker, ann.question, ann.pair, ann.answer, strict=True):
        counts[worker, question, :, answer] += 1 - posterior[pair], posterior[pair]
    found = make_evidence(labels).tallies(yes_beliefs(posterior)).values
    assert_allclose(found, counts[labels.cell_worker, labels.cell_question], atol=1e-12)
