"""What looks wrong with annotations: spellings, ids, repeats, rows that are none, workers, optional columns."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from labelonce._messages import argument, at_command_line, shorten, show
from labelonce._types import Codes
from labelonce.data import _rows, _spelling
from labelonce.data._annotations import Annotations

SKILL_LABELS = 10  # a skill of 0.8 is then known to about 0.2 either way: 1.64 * sqrt(0.8 * 0.2 / 10)
_WHOLE = re.compile(r"-?\d+[.,]0")
_SHORTENED = re.compile(r"\d[.,]\d+E\+\d+")  # how a spreadsheet program shows an id of twelve digits or more
_TOTALS = {"total", "totals", "grand total", "sum", "gesamt", "gesamtergebnis", "summe", "somme", "suma"}
_PARTS = re.compile(r"\s*[;,|/&+]\s*")
_ONCE, _MANY = 0.5, 20  # share of labels that nobody repeats, and number of labels, from which they are no classes
_DOMINANT = 0.8  # share of the annotations above which one worker decides nearly all
_MOST = 6  # spellings shown
_BY_LUCK = 0.001  # a worker's constant answer is doubted if luck explains it with less than this chance
Counts = npt.NDArray[np.integer[Any]]
MOST_ORDERS = 24  # of four choices; a column with more values numbers the rows
SYSTEMATIC = 0.5  # share of the pairs of a worker and a task that are repeated, from which repeats are no accident


@dataclass(frozen=True)
class Finding:
    """One thing that a person should check or know: its kind, how often, and a sentence."""

    kind: str
    count: int
    sentence: str


def _given(annotations: Annotations) -> dict[Any, int]:
    counts = np.bincount(annotations.label, minlength=annotations.n_answers)
    return {name: int(n) for name, n in zip(annotations.answers.tolist(), counts, strict=True) if n}


def spellings(annotations: Annotations) -> Iterator[Finding]:
    """Yield a finding if labels differ only in case, blanks and punctuation."""
    given = _given(annotations)
    groups = [names for names in _spelling.same_labels(given) if len(names) > 1]
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
    for one, other in _spelling.alike(given):
        if _spelling.key(one) != _spelling.key(other):
            sentence = f"labels {show(one)} ({given[one]:,}) and {show(other)} ({given[other]:,}) look alike. "
            yield Finding("spelling", given[one], f"{sentence}If they are one, rename the first with {_relabel()}.")


def _relabel() -> str:
    return f"{argument('relabel')} FILE" if at_command_line() else "relabel(...)"


def probabilities(annotations: Annotations) -> Iterator[Finding]:
    n = _spelling.look_like_probabilities(annotations.answers)
    if n:
        sentence = (
            f"labels must be classes; got {n:,} different numbers between 0 and 1, such as "
            f"{show(annotations.answers[annotations.label[0]])}, which look like probabilities. Make classes of them "
            "first, such as yes from 0.5 on; a column probability keeps the numbers."
        )
        yield Finding("probabilities", n, sentence)


def not_classes(annotations: Annotations, share: float = _ONCE) -> Iterator[Finding]:
    """Yield a finding if most of many labels were given once: ids, scores or free texts."""
    given = _given(annotations)
    once = [name for name, n in given.items() if n == 1]
    many_once = len(given) > _MANY and len(once) > share * len(annotations)
    if many_once and not _spelling.look_like_probabilities(annotations.answers):
        sentence = (
            f"{len(once):,} of the {len(annotations):,} labels are given only once, such as {show(once[0])}: they look "
            f"like ids, numbers or free texts, and not like classes. With {argument('label')} another column is read."
        )
        yield Finding("not classes", len(once), sentence)


def check_labels(annotations: Annotations, *, spellings_kept: bool = False) -> None:
    """Raise an error if labels are of one class, look like probabilities, or have spellings that are not kept."""
    if len(np.unique(annotations.label)) == 1:
        given = show(annotations.answers[annotations.label[0]])
        raise ValueError(f"labels must be of at least two classes; got only {given}. Is it the right column?")
    found = [*probabilities(annotations), *([] if spellings_kept else spellings(annotations))]
    found += not_classes(annotations, 0.9)
    if found:
        keep = f" If they are classes of their own, add {argument('spellings', 'keep')}." if at_command_line() else ""
        raise ValueError(f"{found[0].sentence}{keep if found[0].kind == 'spelling' else ''}")


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


def problems_in(
    annotations: Annotations, per_worker: Counts, per_answer: Counts, agreed: float | None, chance: float
) -> Iterator[Finding]:
    yield from _repeats(annotations)
    yield from probabilities(annotations)
    yield from spellings(annotations)
    yield from _slips(annotations)
    yield from not_classes(annotations)
    yield from _joined(annotations)
    yield from _odd_ids(annotations)
    yield from _no_annotations(annotations)
    yield from _odd_orders(annotations)
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
    per_task = np.bincount(annotations.task)
    n_pairs = int((per_task.astype(np.int64) * (per_task - 1) // 2).sum())
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
        odd = _spelling.look_missing(ids, strict=role == "label")
        if odd:
            fix = f"leave them out with {_relabel()}, without a new name" if role == "label" else "drop their rows"
            sentence = f"{role} ids {shorten(odd)} look like missing values. If they are, {fix}, or fill them in."
            yield Finding("odd ids", len(odd), sentence)
        if ids.dtype == object and (wrong := next(filter(_spelling.misread, ids), None)):
            right = show(_spelling.misread(wrong))
            sentence = f"{role} ids such as {show(wrong)} look like {right} in a wrong encoding."
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
        twins = _spelling.blank_twins(ids, case=role == "worker") if role != "label" else []
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


def extra_notes(annotations: Annotations) -> Iterator[Finding]:
    """Yield a finding for each optional column, for families by name, and for repeats."""
    if annotations.probability is not None:
        likelier = annotations.probability.max(axis=1)
        stated, mean = int((~np.isnan(likelier)).sum()), float(np.nansum(likelier))
        sentence = (
            f"{stated:,} of {len(annotations):,} labels come with a probability, on average {mean / max(stated, 1):.2f}"
        )
        yield Finding("stated probabilities", stated, f"{sentence} for the likelier class.")
    if annotations.weight is not None:
        low, high = float(annotations.weight.min()), float(annotations.weight.max())
        yield Finding("weights", len(annotations), f"labels carry weights from {low:.3g} to {high:.3g}.")
    yield from _families(annotations)
    yield from _consistency(annotations)


def _odd_orders(annotations: Annotations) -> Iterator[Finding]:
    """Yield a finding if a column called order is not about the order of the choices."""
    orders = annotations.orders
    if orders is not None and len(orders) > MOST_ORDERS:
        keep = argument("plain") if at_command_line() else "plain=True"
        sentence = f"column order has {len(orders):,} values, such as {show(orders[0])}: it does not look like the"
        sentence += f" order of the choices. Leave it out with {keep}, or rename it."
        yield Finding("orders", len(orders), sentence)


def is_panel(annotations: Annotations) -> bool:
    """Return whether the labels look like those of language models: with families or orders."""
    return annotations.order is not None or _family_codes(annotations) is not None


def repeats_are_systematic(annotations: Annotations) -> bool:
    """Return whether most pairs of a judge and a task are repeated, not always with the same label: no accident.

    Judges have families; rows of other workers that repeat may be about several questions.
    """
    again = _rows.repeats(annotations.task, annotations.worker)
    same = annotations.label[1:] == annotations.label[:-1]
    n_pairs = (again & ~np.append(False, again[:-1])).sum()  # of a worker and a task that have a repeat
    most = n_pairs > SYSTEMATIC * (~again).sum()
    return bool(most and not same[again[1:]].all() and _family_codes(annotations) is not None)


def _family_codes(annotations: Annotations) -> Codes | None:
    return annotations.name_families() if annotations.family is None else annotations.family


def _families(annotations: Annotations) -> Iterator[Finding]:
    codes = _family_codes(annotations)
    if codes is None:
        return
    sizes = np.bincount(codes)
    largest = np.flatnonzero(codes == sizes.argmax())[:2]
    such = " and ".join(show(annotations.workers[one]) for one in largest)
    n = int((sizes > 0).sum())
    by_name = ", by their names" if annotations.family is None else ""
    sentence = (
        f"the {len(codes):,} workers are of {n:,} families{by_name}, such as {such}: "
        "members of a family share mistakes. labelonce judges and JudgePanel take that into account."
    )
    yield Finding("families", n, sentence)


def _consistency(annotations: Annotations) -> Iterator[Finding]:
    again = _rows.repeats(annotations.task, annotations.worker)
    if not again.any() or not (annotations.order is not None or repeats_are_systematic(annotations)):
        return
    same = annotations.label[1:] == annotations.label[:-1]
    worker = annotations.worker[again]
    n, agreed = (np.bincount(worker, weights, annotations.n_workers) for weights in (None, same[again[1:]]))
    share = np.divide(agreed, n, out=np.ones(len(n)), where=n > 0)
    least = int(share.argmin())
    orders = "" if annotations.orders is None else f", in {len(annotations.orders)} orders of the choices"
    sentence = (
        f"{again.sum():,} answers repeat a worker and a task{orders}; {same[again[1:]].mean():.0%} of them are the "
        f"same as before, least of worker {show(annotations.workers[least])} ({share[least]:.0%})."
    )
    yield Finding("consistency", int(again.sum()), sentence)
