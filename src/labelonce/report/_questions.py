"""The page about several labels at once: every question, how strict the workers are, and what is in doubt."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from labelonce._rules import RULES
from labelonce._types import Codes, Floats
from labelonce.data import MIN_OVERLAP, MOST_NUMBERS
from labelonce.multilabel import MultiLabelAnnotations, f1_score, pair_gold, yes_shares
from labelonce.report._accuracy import Accuracy, on_gold
from labelonce.report._embed import names, rows_of_recipe, rows_of_rounds, short
from labelonce.report._facts import check_same, with_iterations
from labelonce.report._media import shown_of
from labelonce.report._workers import LEVEL

MOST_WORKERS = 60  # rows of the table of workers, strictest and most lenient
MOST_DETAILS = 60  # questions with a part of their own
FEW_ANSWERS = 10  # below which a worker's strictness is not shown
LEANING = 50.0  # answers that an average worker is worth, where workers are put in order
_TASKS, _EXTREMES, _ANSWERS = 4, 4, 6
_CHOICE = ("learner", "by_skill", "predictions", "score")


@dataclass(frozen=True)
class Strictness:
    """One row per worker, or per worker and question: how many answers, the share of yes among them, and that found."""

    worker: Any
    question: Any
    answers: Any
    said: Floats
    found: Floats

    @property
    def value(self) -> Floats:
        """How much less often the worker says yes than the estimated truth."""
        return self.found - self.said

    @property
    def ranked(self) -> Floats:
        """The same, leaning on 0 where answers are few: chance makes few answers extreme."""
        return np.asarray(self.value * self.answers / (self.answers + LEANING))


@dataclass(frozen=True)
class QuestionFacts:
    """A fit on questions and its annotations; `posterior` is of pairs of a task and a question that were asked."""

    fitted: Any
    annotations: MultiLabelAnnotations
    posterior: Floats
    thresholds: Floats

    @property
    def pair_question(self) -> Codes:
        return self.annotations.question[self.annotations.pair_start]

    @cached_property
    def label(self) -> Any:
        """Whether every pair is a yes."""
        return self.posterior > self.thresholds[self.pair_question]

    @cached_property
    def sure(self) -> Floats:
        """The probability of the label of every pair."""
        return np.where(self.label, self.posterior, 1 - self.posterior)

    @property
    def uses_features(self) -> bool:
        """Whether a model of the tasks was fitted."""
        return hasattr(self.fitted, "history_")

    @property
    def estimate(self) -> Any:
        """The estimated share of right answers with its range; None where nothing was held out."""
        verdict = getattr(self.fitted, "verdict_", None)
        return None if verdict is None or not verdict.held_out else verdict.accuracy()

    @property
    def narrowing(self) -> str:
        """What would narrow that range, empty if nothing would."""
        return "" if self.estimate is None else str(self.fitted.verdict_.narrowing() or "")

    @property
    def doubts(self) -> list[str]:
        return list(getattr(self.fitted, "doubts_", []))

    @cached_property
    def comparable(self) -> bool:
        """Whether there is evidence about the true answers besides one answer per question."""
        sizes = np.diff(np.append(self.annotations.pair_start, len(self.annotations)))
        return self.uses_features or bool((sizes > 1).mean() >= MIN_OVERLAP)

    @cached_property
    def confusion(self) -> Floats | None:
        """P(answer | true), [worker, question, true, answer]; None of a vote, or where there is no room for it."""
        ann = self.annotations
        too_large = 2 * ann.n_workers * ann.n_questions * ann.n_answers > MOST_NUMBERS
        return None if too_large else getattr(self.fitted, "confusion_", None)

    def strictness(self, *, by_question: bool) -> Strictness:
        """Return how strict the workers are, overall or on each question."""
        ann = self.annotations
        value = ann.values[ann.answer]
        says = ~np.isnan(value)
        question = ann.question if by_question else np.zeros_like(ann.question)
        key = ann.worker[says].astype(np.int64) * ann.n_questions + question[says]
        cells, cell = np.unique(key, return_inverse=True)
        count = np.bincount(cell)
        said = np.bincount(cell, value[says]) / count
        true = np.bincount(cell, self.posterior[ann.pair[says]]) / count
        worker, asked = np.divmod(cells, ann.n_questions)
        return Strictness(worker, asked, count, said, true)


def read_question_facts(fitted: Any, annotations: MultiLabelAnnotations) -> QuestionFacts:
    """Return the facts of a fitted multi-label model and the annotations of its fit."""
    if not hasattr(fitted, "questions_") or not hasattr(fitted, "thresholds_"):
        raise TypeError(
            "fitted must be a fitted MultiLabelMBEM, MultiLabelDawidSkene or MultiLabelVote where annotations are of "
            f"questions; got {type(fitted).__name__}. Call its fit first, or give annotations.of_question(name)."
        )
    check_same(annotations, fitted, ("tasks", "questions", "workers"))
    start = annotations.pair_start
    posterior = getattr(fitted, "pair_posterior_", None)  # an aggregator's array of all pairs may be large
    if posterior is None:
        posterior = fitted.posterior_[annotations.task[start], annotations.question[start]]
    # A fit with features has thresholds for predictions; its labels of training tasks are those above one half.
    half = np.full(annotations.n_questions, 0.5)
    return QuestionFacts(fitted, annotations, posterior, half if hasattr(fitted, "history_") else fitted.thresholds_)


def questions_accuracy(fitted: Any, annotations: MultiLabelAnnotations, gold: Any) -> Accuracy:
    """Return the share of known answers that the labels have right, with a credible interval under a uniform prior."""
    facts = read_question_facts(fitted, annotations)
    return _accuracy(facts, pair_gold(gold, annotations))


def _accuracy(facts: QuestionFacts, gold: Floats) -> Accuracy:
    known = gold >= 0
    n = int(known.sum())
    if not n:
        raise ValueError("gold must be known for a question that was asked at least; got none. Leave gold out.")
    seen_by_fit = bool(np.isin(facts.posterior[known], (0.0, 1.0)).all())
    return on_gold(float((facts.label[known] == gold[known]).mean()), n, seen_by_fit=seen_by_fit)


def question_context(
    facts: QuestionFacts, gold: Any, *, texts: Any, images: Any, run: list[tuple[str, str]]
) -> dict[str, Any]:
    """Return everything that the template of questions shows."""
    ann, fitted, workers = facts.annotations, facts.fitted, _worker_rows(facts)
    known = np.full(len(ann.pair_start), -1.0) if gold is None else pair_gold(gold, ann)
    n_tasks, n_workers = len(np.unique(ann.task)), len(np.unique(ann.worker))
    asked = np.flatnonzero(np.bincount(ann.question, minlength=ann.n_questions))
    questions = _question_rows(facts, known)
    order = [row["code"] for row in questions if row["code"] in set(asked.tolist())][:MOST_DETAILS]
    return {
        "facts": facts,
        "method": type(fitted).__name__,
        "uses_features": facts.uses_features,
        "comparable": facts.comparable,
        "n": {"answers": len(ann), "tasks": n_tasks, "questions": ann.n_questions, "workers": n_workers}
        | {"pairs": len(ann.pair_start), "redundancy": ann.redundancy}
        | {"unsure": int((facts.sure < RULES.review_keep).sum())},
        "share": {"given": float(np.nanmean(ann.values[ann.answer])), "found": float(facts.label.mean())},
        "accuracy": None if gold is None else _accuracy(facts, known),
        "questions": questions,
        "workers": workers,
        "n_workers_left_out": max(0, n_workers - len(workers)),
        "details": _details(facts, order, texts, images),
        "rounds": rows_of_rounds(getattr(fitted, "history_", [])),
        "choices": _choices(fitted),
        "recipe": rows_of_recipe(_recipe(fitted)),
        "sharing": _sharing(fitted),
        "rules": {"unsure": RULES.review_keep, "few": FEW_ANSWERS, "level": LEVEL},
        "run": run,
    }


def _question_rows(facts: QuestionFacts, gold: Floats) -> list[dict[str, Any]]:
    """Return the questions, those most often true first."""
    ann, question = facts.annotations, facts.pair_question
    n = ann.n_questions
    tasks = np.bincount(question, minlength=n)
    found = np.bincount(question, facts.label, n) / np.maximum(tasks, 1)
    unsure = np.bincount(question, facts.sure < RULES.review_keep, n)
    given, answers, shown = yes_shares(ann, "question"), np.bincount(ann.question, minlength=n), names(ann.questions)
    rows = []
    for k in np.argsort(-found, kind="stable").tolist():
        own = (question == k) & (gold >= 0)
        row = {"code": k, "name": shown[k], "tasks": int(tasks[k]), "answers": int(answers[k])}
        row |= {"given": None if np.isnan(given[k]) else float(given[k]), "found": float(found[k])}
        row |= {"unsure": int(unsure[k]), "threshold": float(facts.thresholds[k]), "known": int(own.sum())}
        if own.any():
            right = facts.label[own].astype(int), gold[own].astype(int)
            row |= {"right": float((right[0] == right[1]).mean())}
            row |= {"f1": f1_score(right[1][:, None], right[0][:, None])}
        rows.append(row)
    return rows


def _worker_rows(facts: QuestionFacts) -> list[dict[str, Any]]:
    """Return the workers with enough answers, the strictest first; of many, both ends of the list."""
    found = facts.strictness(by_question=False)
    order = np.argsort(-found.ranked, kind="stable")
    order = order[found.answers[order] >= FEW_ANSWERS]
    if len(order) > MOST_WORKERS:
        order = np.concatenate([order[: MOST_WORKERS // 2], order[-MOST_WORKERS // 2 :]])
    widest = max(float(np.abs(found.value[order]).max()), 0.05) if len(order) else 1.0
    rates = None if facts.confusion is None else _rates(facts)
    shown = names(facts.annotations.workers)
    rows = []
    for place in order.tolist():
        worker = int(found.worker[place])
        row = {"name": shown[worker], "answers": int(found.answers[place]), "said": float(found.said[place])}
        row |= {"found": float(found.found[place]), "strictness": float(found.value[place])}
        row |= {"width": abs(float(found.value[place])) / widest, "strict": bool(found.value[place] > 0)}
        if rates is not None:
            row |= {"ticks": float(rates[worker, 1]), "invents": float(rates[worker, 0])}
        rows.append(row)
    return rows


def _rates(facts: QuestionFacts) -> Floats:
    """Return P(yes | true no) and P(yes | true yes) of every worker, over the questions it answered."""
    ann, confusion = facts.annotations, facts.confusion
    assert confusion is not None
    weight = np.zeros((ann.n_workers, ann.n_questions))
    np.add.at(weight, (ann.worker, ann.question), 1.0)
    weight /= np.maximum(weight.sum(axis=1, keepdims=True), 1.0)
    value = np.where(np.isnan(ann.values), 0.0, ann.values)
    return np.asarray(np.einsum("wq,wqta,a->wt", weight, confusion, value))


def _details(facts: QuestionFacts, order: list[int], texts: Any, images: Any) -> list[dict[str, Any]]:
    """Return a part for each of some questions: its strictest and most lenient workers, and its least sure tasks."""
    by_question = facts.strictness(by_question=True)
    workers = names(facts.annotations.workers)
    parts = []
    for question in order:
        rows = np.flatnonzero((by_question.question == question) & (by_question.answers >= FEW_ANSWERS))
        rows = rows[np.argsort(-by_question.ranked[rows], kind="stable")]
        strict = [place for place in rows[:_EXTREMES].tolist() if by_question.value[place] > 0]
        lenient = [place for place in rows[::-1][:_EXTREMES].tolist() if by_question.value[place] < 0]
        pairs = np.flatnonzero((facts.pair_question == question) & (facts.sure < RULES.review_keep))
        pairs = pairs[np.argsort(facts.sure[pairs], kind="stable")]
        parts.append(
            {
                "code": question,
                "name": names(facts.annotations.questions[[question]])[0],
                "strict": [_extreme(by_question, place, workers) for place in strict],
                "lenient": [_extreme(by_question, place, workers) for place in lenient],
                "n_unsure": len(pairs),
                "tasks": [_task_row(facts, pair, texts, images) for pair in pairs[:_TASKS].tolist()],
            }
        )
    return parts


def _extreme(found: Strictness, place: int, workers: list[str]) -> dict[str, Any]:
    row = {"name": workers[int(found.worker[place])], "answers": int(found.answers[place])}
    return row | {"said": float(found.said[place]), "found": float(found.found[place])}


def _task_row(facts: QuestionFacts, pair: int, texts: Any, images: Any) -> dict[str, Any]:
    ann = facts.annotations
    first = int(ann.pair_start[pair])
    last = int(ann.pair_start[pair + 1]) if pair + 1 < len(ann.pair_start) else len(ann)
    task, shown = int(ann.task[first]), slice(first, min(last, first + _ANSWERS))
    who, said = names(ann.workers[ann.worker[shown]]), names(ann.answers[ann.answer[shown]])
    return shown_of(task, ann.tasks, texts, images) | {
        "task": names(ann.tasks[[task]])[0],
        "yes": bool(facts.label[pair]),
        "probability": float(facts.posterior[pair]),
        "given": list(zip(who, said, strict=True)),
        "more": max(0, last - first - _ANSWERS),
    }


def _choices(fitted: Any) -> list[dict[str, Any]]:
    """Return the options that were tried, best first."""
    tried = [choice for choice in getattr(fitted, "choices_", []) if set(_CHOICE) <= set(choice)]
    rows = [{name: choice[name] for name in _CHOICE} | {"learner": short(choice["learner"])} for choice in tried]
    return sorted(rows, key=lambda row: -row["score"])


def _recipe(fitted: Any) -> dict[str, Any]:
    used = dict(getattr(fitted, "recipe_", None) or fitted.get_params())
    return with_iterations(used, fitted) if hasattr(fitted, "n_iter_") else used


def _sharing(fitted: Any) -> dict[str, float] | None:
    """Return the weight, in answers, of a worker's overall matrix for a question, by true no and yes."""
    found = getattr(fitted, "question_strength_", None)
    return None if found is None else {"no": float(found[0]), "yes": float(found[1])}
