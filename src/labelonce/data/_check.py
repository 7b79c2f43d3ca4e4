"""What is in a set of annotations, what looks wrong, and what can be estimated from it."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from labelonce._messages import show
from labelonce._types import Codes
from labelonce.data._agreement import Figure, agreement
from labelonce.data._annotations import MIN_OVERLAP, Annotations
from labelonce.data._problems import SKILL_LABELS, Counts, Finding, extra_notes, problems_in

ROW_LABELS = 10  # the same for each row of a worker's confusion matrix


@dataclass(frozen=True)
class Summary:
    """The fields of every check, whether of classes or of questions."""

    n_annotations: int
    n_tasks: int
    n_workers: int
    redundancy: float
    overlap: float
    agreement: float | None
    alpha: Figure | None
    needs_features: bool
    problems: tuple[Finding, ...]
    notes: tuple[Finding, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Check(Summary):
    """What `check` found.

    Attributes
    ----------
    n_annotations, n_tasks, n_workers, n_classes : int
    redundancy : float
        Annotations per labelled task.
    classes : dict
        Annotations of each class, by its name.
    other_answers : dict
        Annotations of each answer that is no class, by its name; all of them on a scale.
    tasks_by_redundancy : dict
        Number of tasks with 0, 1, 2, ... annotations.
    overlap : float
        Share of labelled tasks that two or more workers can be compared on.
    agreement, chance_agreement : float or None
        How often two annotations of one task by two workers agree, and how often they would by chance alone.
    alpha : data.Figure or None
        Krippendorff's alpha with a 90 % interval; `agreement` has more figures.
    n_groups : int
        Parts of the graph of workers and tasks; workers of two parts share no task, even through others.
    largest_group : float
        Share of the annotations in the largest part.
    labels_per_worker : dict
        Least, median and most annotations of a worker.
    skill_share, confusion_share : float
        Share of workers with enough annotations for a skill, and for a confusion matrix of their own.
    needs_features : bool
        Nearly every task was labelled once: workers can only be learned with a model of the tasks.
    problems, notes : tuple of Finding
        What a person should check, and what limits the estimates.
    """

    n_classes: int
    classes: dict[str, int]
    other_answers: dict[str, int]
    tasks_by_redundancy: dict[int, int]
    chance_agreement: float
    n_groups: int
    largest_group: float
    labels_per_worker: dict[str, float]
    skill_share: float
    confusion_share: float


def check(annotations: Annotations) -> Check:
    """Return what is in annotations, what looks wrong with them and what can be estimated from them.

    Build them with `duplicates="keep"` for repeated rows to be counted.

    Examples
    --------
    >>> ann = Annotations.from_arrays([1, 1, 2, 3], ["x", "y", "x", "y"], ["cat", "Cat ", "dog", "dog"])
    >>> found = check(ann)
    >>> found.redundancy, found.tasks_by_redundancy
    (1.3333333333333333, {1: 2, 2: 1})
    >>> [problem.sentence for problem in found.problems]  # doctest: +ELLIPSIS
    ["2 labels are spellings of 1 class: 'Cat ' (1), 'cat' (1). Give them one spelling with normalise(), or ..."]
    """
    per_task = np.bincount(annotations.task, minlength=annotations.n_tasks)
    per_worker = np.bincount(annotations.worker, minlength=annotations.n_workers)
    per_answer = np.bincount(annotations.label, minlength=annotations.n_answers)
    n_classes = 0 if annotations.is_scale else annotations.n_classes  # of the answers
    given = {str(name): int(n) for name, n in zip(annotations.answers, per_answer, strict=True)}
    agreed, alpha, n_shared = agreement_in(annotations)
    chance = float(((per_answer / len(annotations)) ** 2).sum())
    group_sizes = np.bincount(worker_groups(annotations)[annotations.worker])
    n_groups = int((group_sizes > 0).sum())
    sizes, tasks = np.unique(per_task, return_counts=True)
    overlap = n_shared / int((per_task > 0).sum())
    active = per_worker[per_worker > 0]
    return Check(
        n_annotations=len(annotations),
        n_tasks=annotations.n_tasks,
        n_workers=annotations.n_workers,
        n_classes=annotations.n_classes,
        redundancy=annotations.redundancy,
        classes={str(name): 0 for name in annotations.classes} | dict(list(given.items())[:n_classes]),
        other_answers=dict(list(given.items())[n_classes:]),
        tasks_by_redundancy={int(size): int(n) for size, n in zip(sizes, tasks, strict=True)},
        overlap=overlap,
        agreement=agreed,
        alpha=alpha,
        chance_agreement=chance,
        n_groups=n_groups,
        largest_group=float(group_sizes.max() / len(annotations)),
        labels_per_worker={"min": int(active.min()), "median": float(np.median(active)), "max": int(active.max())},
        skill_share=float((active >= SKILL_LABELS).mean()),
        confusion_share=float((active >= ROW_LABELS * annotations.n_classes).mean()),
        needs_features=overlap < MIN_OVERLAP,
        problems=tuple(problems_in(annotations, per_worker, per_answer, agreed, chance)),
        notes=(
            *_answer_notes(annotations, per_answer[:n_classes], per_answer[n_classes:]),
            *_notes(per_task, per_worker, n_groups, overlap),
            *extra_notes(annotations),
        ),
    )


def agreement_in(annotations: Any) -> tuple[float | None, Figure | None, int]:
    """Return how often two workers agree, Krippendorff's alpha, and on how many tasks; None where there is none."""
    found = agreement(annotations)
    if found.n_tasks == 0:
        return None, None, 0
    return found.percent.value, None if math.isnan(found.alpha.low) else found.alpha, found.n_tasks


def _answer_notes(annotations: Annotations, per_class: Counts, per_other: Counts) -> Iterator[Finding]:
    unused = int((per_class == 0).sum())
    if unused:
        yield Finding("unused classes", unused, f"{unused:,} classes were never given.")
    if annotations.is_square:
        return
    never = int((per_other == 0).sum())
    if never:
        yield Finding("unused answers", never, f"{never:,} answers were never given.")
    if annotations.is_scale:
        ends = (f"{show(annotations.answers[at])} for {show(annotations.classes[at])}" for at in (0, -1))
        sentence = f"no answer is a class: they are taken as a scale, from {' to '.join(ends)}."
        yield Finding("scale", annotations.n_answers, sentence)
        return
    n = int(per_other.sum())
    sentence = (
        f"{n:,} of {len(annotations):,} labels are answers that are no class; Dawid-Skene, IBCC and MBEM learn what "
        "they tell, other methods leave them out."
    )
    yield Finding("other answers", n, sentence)


def _notes(per_task: Counts, per_worker: Counts, n_groups: int, overlap: float) -> Iterator[Finding]:
    bare = int((per_task == 0).sum())
    if bare:
        yield Finding("unlabelled tasks", bare, f"{bare:,} tasks have no label.")
    active = per_worker[per_worker > 0]
    few = int((active < SKILL_LABELS).sum())
    if few:
        sentence = f"{few:,} of {len(active):,} workers gave fewer than {SKILL_LABELS} labels: too few to know their"
        yield Finding("few labels", few, f"{sentence} skill.")
    if overlap < MIN_OVERLAP:
        sentence = (
            f"{overlap:.0%} of the tasks have two or more labels: without features no method can tell the workers "
            "apart. MBEM learns them together with a model of the tasks; second labels for about 1 task in 20 say how "
            "good its answer is."
        )
        yield Finding("one label per task", int((per_task == 1).sum()), sentence)
    elif n_groups > 1:
        sentence = f"workers and tasks fall into {n_groups:,} groups that share no task: skills compare only within"
        yield Finding("groups", n_groups, f"{sentence} one.")


def worker_groups(annotations: Annotations) -> Codes:
    """Return the connected group of each worker: two are together if tasks and workers lead from one to the other."""
    n_tasks, n_workers = annotations.n_tasks, annotations.n_workers
    ones = np.ones(len(annotations), dtype=np.int8)
    edges = sparse.coo_array((ones, (annotations.task, annotations.worker + n_tasks)), shape=(n_tasks + n_workers,) * 2)
    groups: Codes = connected_components(edges, directed=False)[1][n_tasks:]
    return groups
