"""What is in a set of annotations, what looks wrong, and what can be estimated from it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from labelonce._messages import argument, at_command_line, shorten, show
from labelonce._types import Codes
from labelonce.data import _rows
from labelonce.data._agreement import Figure, agreement
from labelonce.data._annotations import MIN_OVERLAP, Annotations
from labelonce.data._check_extra import extra_notes, extra_problems, repeats_are_systematic
from labelonce.data._spelling import (
    alike,
    blank_twins,
    key,
    look_like_probabilities,
    look_missing,
    misread,
    same_labels,
)

SKILL_LABELS = 10  # a skill of 0.8 is then known to about 0.2 either way: 1.64 * sqrt(0.8 * 0.2 / 10)
ROW_LABELS = 10  # the same for each row of a worker's confusion matrix
_WHOLE = re.compile(r"-?\d+[.,]0")
_SHORTENED = re.compile(r"\d[.,]\d+E\+\d+")  # how a spreadsheet program shows an id of twelve digits or more
_TOTALS = {"total", "totals", "grand total", "sum", "gesamt", "gesamtergebnis", "summe", "somme", "suma"}
_PARTS = re.compile(r"\s*[;,|/&+]\s*")
_ONCE, _MANY = 0.5, 20  # share of labels that nobody repeats, and number of labels, from which they are no classes
_DOMINANT = 0.8  # share of the annotations above which one worker decides nearly all
_MOST = 6  # spellings shown
_BY_LUCK = 0.001  # a worker's constant answer is doubted if luck explains it with less than this chance


Counts = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Finding:
    """One thing that a person should check or know: its kind, how often, and a sentence."""

    kind: str
    count: int
    sentence: str


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
        problems=tuple(_problems(annotations, per_worker, per_answer, agreed, chance)),
        notes=(
            *_answer_notes(annotations, per_answer[:n_classes], per_answer[n_classes:]),
            *_notes(per_task, per_worker, n_groups, overlap),
            *(Finding(*found) for found in extra_notes(annotations)),
        ),
    )


def check_labels(annotations: Annotations, *, spellings_kept: bool = False) -> None:
    """Raise an error if labels are of one class, look like probabilities, or have spellings that are not kept."""
    if len(np.unique(annotations.label)) == 1:
        given = show(annotations.answers[annotations.label[0]])
        raise ValueError(f"labels must be of at least two classes; got only {given}. Is it the right column?")
    found = [*_probabilities(annotations), *([] if spellings_kept else _spellings(annotations))]
    found += _not_classes(annotations, 0.9)
    if found:
        keep = f" If they are classes of their own, add {argument('spellings', 'keep')}." if at_command_line() else ""
        raise ValueError(f"{found[0].sentence}{keep if found[0].kind == 'spelling' else ''}")


def agreement_in(annotations: Any) -> tuple[float | None, Figure | None, int]:
    """Return how often two workers agree, Krippendorff's alpha, and on how many tasks; None where there is none."""
    found = agreement(annotations)
    if found.n_tasks == 0:
        return None, None, 0
    return found.percent.value, None if math.isnan(found.alpha.low) else found.alpha, found.n_tasks


def _given(annotations: Annotations) -> dict[Any, int]:
    counts = np.bincount(annotations.label, minlength=annotations.n_answers)
    return {name: int(n) for name, n in zip(annotations.answers.tolist(), counts, strict=True) if n}


def _spellings(annotations: Annotations) -> Iterator[Finding]:
    """Yield a finding if labels differ only in case, blanks and punctuation."""
    given = _given(annotations)
    groups = [names for names in same_labels(given) if len(names) > 1]
    if groups:
        names = [name for group in groups for name in group]
        listed = ", ".join(f"{show(name)} ({given[name]:,})" for name in names[:_MOST])
        classes = f"{len(groups)} class{'es' if len(groups) > 1 else ''}"
        one_each = argument("normalise") if at_command_line() else "normalise()"
        sentence = (
            f"{len(names)} labels are spellings of {classes}: {listed}{', ...' if len(names) > _MOST else ''}. Give "
            f"them one spelling with {one_each}, or new names with {_relabel()}."
        )
        yield Finding("spelling", len(names), sentence)


def _slips(annotations: Annotations) -> Iterator[Finding]:
    """Yield rare labels that look like a slip of the keyboard."""
    given = _given(annotations)
    for one, other in alike(given):
        if key(one) != key(other):
            sentence = f"labels {show(one)} ({given[one]:,}) and {show(other)} ({given[other]:,}) look alike. "
            yield Finding("spelling", given[one], f"{sentence}If they are one, rename the first with {_relabel()}.")


def _relabel() -> str:
    return f"{argument('relabel')} FILE" if at_command_line() else "relabel(...)"


def _probabilities(annotations: Annotations) -> Iterator[Finding]:
    n = look_like_probabilities(annotations.answers)
    if n:
        sentence = (
            f"labels must be classes; got {n:,} different numbers between 0 and 1, such as "
            f"{show(annotations.answers[annotations.label[0]])}, which look like probabilities. Make classes of them "
            "first, such as yes from 0.5 on; a column probability keeps the numbers."
        )
        yield Finding("probabilities", n, sentence)


def _not_classes(annotations: Annotations, share: float = _ONCE) -> Iterator[Finding]:
    """Yield a finding if most of many labels were given once: ids, scores or free texts."""
    given = _given(annotations)
    once = [name for name, n in given.items() if n == 1]
    if len(given) > _MANY and len(once) > share * len(annotations) and not look_like_probabilities(annotations.answers):
        sentence = (
            f"{len(once):,} of the {len(annotations):,} labels are given only once, such as {show(once[0])}: they look "
            f"like ids, numbers or free texts, and not like classes. With {argument('label')} another column is read."
        )
        yield Finding("not classes", len(once), sentence)


def _joined(annotations: Annotations) -> Iterator[Finding]:
    """Yield a finding if cells hold several labels at once."""
    given = _given(annotations)
    names = {name.strip() for name in given if isinstance(name, str)}
    parts = {name: _PARTS.split(name) for name in given if isinstance(name, str)}
    several = [name for name, some in parts.items() if len(some) > 1 and names.issuperset(some)]
    if several:
        n = sum(given[name] for name in several)
        sentence = (
            f"labels such as {show(several[0])} ({n:,} annotations) are several others in one cell; each combination "
            "counts as a class of its own. If a task may have several labels, write a row for each label, with yes or "
            f"no behind, and name both columns ({argument('question')}, {argument('answer')})."
        )
        yield Finding("several labels", n, sentence)


def _no_annotations(annotations: Annotations) -> Iterator[Finding]:
    """Yield rows of a spreadsheet that are no annotations: its header again, and totals."""
    tables = annotations.tasks, annotations.workers, annotations.answers
    codes = annotations.task, annotations.worker, annotations.label
    again = [np.flatnonzero(ids == name) for ids, name in zip(tables, annotations.names, strict=True)]
    if all(map(len, again)):
        rows = np.all([code == place[0] for code, place in zip(codes, again, strict=True)], axis=0)
        if rows.any():
            sentence = f"{rows.sum():,} rows hold the names of the columns, {shorten(annotations.names)}, again."
            yield Finding("odd rows", int(rows.sum()), f"{sentence} Delete them.")
    for role, ids, code in zip(("task", "worker"), tables, codes, strict=False):
        for place in np.flatnonzero([str(name).strip().casefold() in _TOTALS for name in ids]):
            rows = code == place
            if rows.sum() == 1:
                yield Finding("odd rows", 1, f"{role} {show(ids[place])} looks like a row of totals. Delete that row.")


def _problems(
    annotations: Annotations, per_worker: Counts, per_answer: Counts, agreed: float | None, chance: float
) -> Iterator[Finding]:
    yield from _repeats(annotations)
    yield from _probabilities(annotations)
    yield from _spellings(annotations)
    yield from _slips(annotations)
    yield from _not_classes(annotations)
    yield from _joined(annotations)
    yield from _odd_ids(annotations)
    yield from _no_annotations(annotations)
    yield from (Finding(*found) for found in extra_problems(annotations))
    given, active = np.flatnonzero(per_answer), np.flatnonzero(per_worker)
    if len(given) == 1:
        sentence = f"every label is {show(annotations.answers[given[0]])}: with one class nothing can be learned."
        yield Finding("one class", 1, sentence)
    top = int(per_worker.argmax())
    name, share = show(annotations.workers[top]), per_worker[top] / len(annotations)
    if len(active) == 1:
        yield Finding("one worker", 1, f"every label is by worker {name}: there is nobody to compare with.")
    elif share > _DOMINANT and len(annotations) >= 2 * SKILL_LABELS:
        yield Finding("one busy worker", 1, f"worker {name} gave {share:.0%} of the labels; the result is theirs.")
    if len(given) > 1:
        yield from _constant_workers(annotations, per_worker, per_answer)
    n_pairs = _n_pairs(np.bincount(annotations.task))
    if agreed is not None and agreed < chance + 2 * np.sqrt(chance * (1 - chance) / n_pairs) and n_pairs >= 100:
        sentence = (
            f"two labels of one task agree in {agreed:.0%} of cases, chance alone gives {chance:.0%}. "
            "Either most workers guess, or these are not the right columns."
        )
        yield Finding("agreement by chance", n_pairs, sentence)


def _repeats(annotations: Annotations) -> Iterator[Finding]:
    again = _rows.repeats(annotations.task, annotations.worker, annotations.order)
    if not again.any() or (annotations.order is None and repeats_are_systematic(annotations)):
        return
    other = again.copy()
    other[1:] &= annotations.label[1:] != annotations.label[:-1]
    first = int(np.argmax(again))
    who, what = annotations.workers[annotations.worker[first]], annotations.tasks[annotations.task[first]]
    yield Finding(
        "duplicates",
        int(again.sum()),
        f"{again.sum():,} rows repeat a worker and a task ({other.sum():,} with another label), first worker "
        f"{show(who)} on task {show(what)}. Choose what to keep with "
        f"{argument('duplicates', 'first', 'last', 'keep')}.",
    )


def _odd_ids(annotations: Annotations) -> Iterator[Finding]:
    tables = {"task": annotations.tasks, "worker": annotations.workers, "label": annotations.answers}
    for role, ids in tables.items():
        odd = look_missing(ids, strict=role == "label")
        if odd:
            fix = f"leave them out with {_relabel()}, without a new name" if role == "label" else "drop their rows"
            sentence = f"{role} ids {shorten(odd)} look like missing values. If they are, {fix}, or fill them in."
            yield Finding("odd ids", len(odd), sentence)
        if ids.dtype == object and (wrong := next(filter(misread, ids), None)):
            sentence = f"{role} ids such as {show(wrong)} look like {show(misread(wrong))} in a wrong encoding."
            yield Finding("odd ids", 1, f"{sentence} Save the file again as UTF-8, from where it came.")
        if ids.dtype == object and (short := next(filter(_SHORTENED.fullmatch, ids), None)):
            sentence = f"{role} ids such as {show(short)} were shortened by a spreadsheet program: different ids may"
            yield Finding("odd ids", 1, f"{sentence} now be the same. Export the file again, and import ids as text.")
        if ids.dtype == object and role != "label" and all(_WHOLE.fullmatch(name) for name in ids):
            sentence = (
                f"{role} ids such as {show(ids[0])} are whole numbers with decimals, which do not match "
                f"{show(ids[0][:-2])} in another file. Write them as whole numbers."
            )
            yield Finding("odd ids", len(ids), sentence)
        twins = blank_twins(ids, case=role == "worker") if role != "label" else []
        if twins:
            one, other = twins[0]
            sentence = f"{role} ids {show(one)} and {show(other)} look alike ({len(twins):,} such pairs). Fix the file."
            yield Finding("odd ids", len(twins), sentence)


def _constant_workers(annotations: Annotations, per_worker: Counts, per_answer: Counts) -> Iterator[Finding]:
    order = _rows.stable_order(annotations.worker, annotations.n_workers)
    start = _rows.first_rows(annotations.worker, annotations.n_workers)
    active = np.flatnonzero(per_worker)
    label = annotations.label[order]
    low = np.minimum.reduceat(label, start[active])
    high = np.maximum.reduceat(label, start[active])
    n = per_worker[active]
    luck = (per_answer[low] / len(annotations)) ** n
    found = active[(low == high) & (n >= SKILL_LABELS) & (luck < _BY_LUCK)]
    if len(found):
        first = int(found[0])
        sentence = (
            f"{len(found):,} of {len(active):,} workers always give one label, such as worker "
            f"{show(annotations.workers[first])} with {per_worker[first]:,} labels. Look at their work."
        )
        yield Finding("constant workers", len(found), sentence)


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
        first, last = (
            f"{show(annotations.answers[place])} for {show(annotations.classes[place])}" for place in (0, -1)
        )
        sentence = f"no answer is a class: they are taken as a scale, from {first} to {last}."
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
        sentence = (
            f"{few:,} of {len(active):,} workers gave fewer than {SKILL_LABELS} labels: too few to know their skill."
        )
        yield Finding("few labels", few, sentence)
    if overlap < MIN_OVERLAP:
        sentence = (
            f"{overlap:.0%} of the tasks have two or more labels: without features no method can tell the workers "
            "apart. MBEM learns them together with a model of the tasks; second labels for about 1 task in 20 say how "
            "good its answer is."
        )
        yield Finding("one label per task", int((per_task == 1).sum()), sentence)
    elif n_groups > 1:
        sentence = (
            f"workers and tasks fall into {n_groups:,} groups that share no task: skills compare only within one."
        )
        yield Finding("groups", n_groups, sentence)


def _n_pairs(per_task: Counts) -> int:
    return int((per_task.astype(np.int64) * (per_task - 1) // 2).sum())


def worker_groups(annotations: Annotations) -> Codes:
    """Return the connected group of each worker: two are together if tasks and workers lead from one to the other."""
    n_tasks, n_workers = annotations.n_tasks, annotations.n_workers
    ones = np.ones(len(annotations), dtype=np.int8)
    edges = sparse.coo_array((ones, (annotations.task, annotations.worker + n_tasks)), shape=(n_tasks + n_workers,) * 2)
    groups: Codes = connected_components(edges, directed=False)[1][n_tasks:]
    return groups
