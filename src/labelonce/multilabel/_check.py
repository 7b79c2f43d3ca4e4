"""What is in a set of multi-label annotations, what looks wrong, and what can be estimated from it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from labelonce._messages import show
from labelonce._types import Floats
from labelonce.data import MIN_OVERLAP, SKILL_LABELS, Finding, Summary, agreement_in, alike
from labelonce.multilabel._annotations import MultiLabelAnnotations, said_by

_CONSTANT = 30  # answers after which a worker who always says the same is worth a look


@dataclass(frozen=True)
class MultiLabelCheck(Summary):
    """What `MultiLabelAnnotations.check` found.

    Attributes
    ----------
    n_annotations, n_tasks, n_workers, n_questions : int
    redundancy : float
        Answers to a question about a task, of those that anybody was asked.
    answers : dict
        How often each answer was given.
    yes_share : dict
        Mean value of the answers to each question, None for one that nobody was asked.
    asked_share : float
        Share of all pairs of task and question that anybody was asked about.
    overlap : float
        Share of these with answers by two workers or more.
    agreement : float or None
        How often the answers of two workers to one question about one task are the same.
    alpha : data.Figure or None
        Krippendorff's alpha with a 90 % interval.
    needs_features : bool
        Nearly every question was answered once: workers can only be learned with a model of the tasks.
    problems, notes : tuple of Finding
        What a person should check, and what limits the estimates.
    """

    n_questions: int
    answers: dict[str, int]
    yes_share: dict[str, float | None]
    asked_share: float


def check(annotations: MultiLabelAnnotations) -> MultiLabelCheck:
    """Return what is in annotations, what looks wrong with them and what can be estimated from them."""
    sizes = np.diff(np.append(annotations.pair_start, len(annotations)))
    agreed, alpha, n_shared = agreement_in(annotations)
    overlap = n_shared / len(sizes)
    given = np.bincount(annotations.answer, minlength=annotations.n_answers)
    shares = yes_shares(annotations, "question")
    return MultiLabelCheck(
        n_annotations=len(annotations),
        n_tasks=annotations.n_tasks,
        n_questions=annotations.n_questions,
        n_workers=annotations.n_workers,
        redundancy=annotations.redundancy,
        answers={str(name): int(n) for name, n in zip(annotations.answers, given, strict=True)},
        yes_share={
            str(name): None if np.isnan(share) else float(share)
            for name, share in zip(annotations.questions, shares, strict=True)
        },
        asked_share=len(sizes) / (annotations.n_tasks * annotations.n_questions),
        overlap=overlap,
        agreement=agreed,
        alpha=alpha,
        needs_features=overlap < MIN_OVERLAP,
        problems=tuple(_problems(annotations, shares)),
        notes=tuple(_notes(annotations, overlap)),
    )


def yes_shares(annotations: MultiLabelAnnotations, by: str) -> Floats:
    """Return the mean value of the answers by "question", "worker" or "task"; NaN where there is none."""
    total, count = said_by(annotations, by)
    return np.asarray(np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0))


def _problems(annotations: MultiLabelAnnotations, shares: Floats) -> Iterator[Finding]:
    for kind, wanted, word in (("never ticked", 0.0, "no"), ("always ticked", 1.0, "yes")):
        found = np.flatnonzero(shares == wanted)
        if len(found):
            first = show(annotations.questions[found[0]])
            sentence = f"{len(found):,} questions were always answered {word}, such as {first}: they cannot be learned."
            yield Finding(kind, len(found), sentence)
    names = {name: int(n) for name, n in zip(annotations.questions, np.bincount(annotations.question), strict=False)}
    for one, other in alike(names):
        sentence = f"questions {show(one)} and {show(other)} look alike. Fix the file if they are one."
        yield Finding("spelling", 2, sentence)
    by_worker, counts = yes_shares(annotations, "worker"), np.bincount(annotations.worker)
    uneven = (np.nanmin(shares) < 1) & (np.nanmax(shares) > 0)
    for wanted, word in ((0.0, "no"), (1.0, "yes")):
        found = np.flatnonzero((by_worker[: len(counts)] == wanted) & (counts >= _CONSTANT))
        if len(found) and uneven and annotations.n_workers > 1:
            who = int(found[0])
            sentence = (
                f"{len(found):,} workers always answer {word}, such as worker {show(annotations.workers[who])} with "
                f"{counts[who]:,} answers. Look at their work."
            )
            yield Finding("constant workers", len(found), sentence)


def _notes(annotations: MultiLabelAnnotations, overlap: float) -> Iterator[Finding]:
    asked = np.bincount(annotations.question, minlength=annotations.n_questions)
    if (asked == 0).any():
        yield Finding("not asked", int((asked == 0).sum()), f"{(asked == 0).sum():,} questions were never asked.")
    bare = np.bincount(annotations.task, minlength=annotations.n_tasks) == 0
    if bare.any():
        yield Finding("unlabelled tasks", int(bare.sum()), f"{bare.sum():,} tasks have no answer.")
    counts = np.bincount(annotations.worker, minlength=annotations.n_workers)
    few = int(((counts > 0) & (counts < SKILL_LABELS)).sum())
    if few:
        sentence = f"{few:,} workers gave fewer than {SKILL_LABELS} answers: too few to know their strictness."
        yield Finding("few labels", few, sentence)
    if overlap < MIN_OVERLAP:
        sentence = (
            f"{overlap:.0%} of the questions have two or more answers: without features no method can tell the workers "
            "apart. MultiLabelMBEM learns them together with a model of the tasks."
        )
        yield Finding("one label per task", len(annotations.pair_start), sentence)
