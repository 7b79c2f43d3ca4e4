"""`labelonce check`."""

import shlex
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from labelonce._messages import argument, printable, show
from labelonce._types import TABLES
from labelonce.cli._multilabel import check_questions
from labelonce.cli._print import alpha_of, print_json, print_note, print_plain, problem_lines, read_from
from labelonce.data import ROW_LABELS, SKILL_LABELS, Check, Finding, check, is_panel
from labelonce.files import File, dialect_in_words, first_rows
from labelonce.formats import LeftOutWarning, MissingWarning, advice_on_repeats, question_column
from labelonce.io import read_annotations
from labelonce.planning import wanted_overlap
from labelonce.runs import choose_gold, find_files, has_questions, names_of, of_classes, work_in

_MOST = 12  # classes and sizes shown to a person; JSON has all
_LONGEST = 30
_JUDGES = {"model", "judge", "llm"}  # names of the worker's column in tables of verdicts
_FIRST, _SENTENCE = 100, 3  # rows looked at, and the words that a text has on average, an id or a name not


def run_check(paths: list[Path], source: dict[str, Any], *, as_json: bool) -> int:
    """Print what is in the files; return 0 where nothing looks wrong, else 1."""
    files = find_files(paths, source.get("format"))
    if has_questions(files, source):
        columns = [value for value in source.values() if isinstance(value, str)]
        return check_questions(files, source, _train(files, _typed(source), columns), as_json=as_json)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        annotations = read_annotations(files, **{"duplicates": "keep", "missing": "drop"} | of_classes(source))
        gold = choose_gold(files, None, annotations, **source)
    left_out: Counter[str] = Counter()
    missing = []
    for message in {str(warning.message): warning.message for warning in caught}.values():
        left_out.update(message.counts if isinstance(message, LeftOutWarning) else {})
        if isinstance(message, MissingWarning) and "missing" not in source:
            fix = f"Other commands refuse the file; leave them out with {argument('missing', 'drop')}."
            missing.append(Finding("missing", sum(message.counts.values()), f"{message} {fix}"))
        elif not isinstance(message, LeftOutWarning):
            print_note(str(message))
    found = check(annotations)
    problems = (*missing, *(_advised(one, files, source) for one in found.problems))
    found = replace(found, problems=problems, notes=(*found.notes, *_overlap(found)))
    panel = is_panel(annotations) or source.get("worker", "").casefold() in _JUDGES
    command = _next_step(files, source, found, panel=panel)
    work = _work(work_in(paths, source, found.n_annotations))
    if as_json:
        about: dict[str, Any] = {"file": names_of(files), "format": files[0].format, "left_out": dict(left_out)}
        about["bytes"] = sum(file.path.stat().st_size for file in files)
        about["read_as"] = [dialect_in_words(file) for file in files]
        print_json({**about, **found.to_dict(), "gold": len(gold or {}), "work": work, "next": command})
    else:
        print_plain("\n".join(map(printable, _lines(files, found, left_out, work, command))))
    return 1 if found.problems else 0


def _advised(problem: Finding, files: Sequence[File], source: dict[str, Any]) -> Finding:
    """Return a problem; repeated rows with what to do if they are about several questions."""
    if problem.kind != "duplicates":
        return problem
    names = [source.get(role, role) for role in ("task", "worker", "label")]
    advice = next(filter(None, (advice_on_repeats(file, *names) for file in files)), "")
    return replace(problem, sentence=f"{problem.sentence} {advice}".strip())


def _overlap(found: Check) -> Iterator[Finding]:
    """Yield what would show how right the labels are, where nearly every task has one."""
    n = wanted_overlap(None, found.n_tasks, round(found.overlap * found.n_tasks))
    if found.needs_features and found.n_workers > 1 and n:
        said = f"{n:,} second labels of random tasks would show how right the labels are"
        yield Finding("overlap", n, f"{said}; labelonce next asks for them.")


def _work(table: pa.Table | None) -> dict[str, float]:
    """Return the median seconds per label, the mean pay and their sums, where the files have them."""
    found: dict[str, float] = {}
    for name, typical in (("seconds", np.median), ("pay", np.mean)):
        values = np.array([]) if table is None or name not in table.column_names else table[name].to_numpy()
        values = values[np.isfinite(values)]
        if len(values):
            found |= {f"{name}_per_label": float(typical(values)), name: float(values.sum())}
    return found


def _lines(
    files: Sequence[File], found: Check, left_out: dict[str, int], work: dict[str, float], command: str
) -> Iterator[str]:
    yield f"{read_from(files)}, {found.n_annotations:,} annotations"
    yield ""
    yield "What is in it"
    yield f"  {found.n_tasks:,} tasks, {found.n_workers:,} workers, {found.n_classes:,} classes"
    yield f"  classes: {_shares(found.classes, found.n_annotations)}"
    if found.other_answers:
        yield f"  other answers: {_shares(found.other_answers, found.n_annotations)}"
    sizes = list(found.tasks_by_redundancy.items())
    with_each = ", ".join(f"{n:,} with {size}" for size, n in sizes[:_MOST])
    more = f" and {sum(n for _, n in sizes[_MOST:]):,} with more" if len(sizes) > _MOST else ""
    yield f"  labels per task: {found.redundancy:.3g} on average; {with_each}{more}"
    least, median, most = (found.labels_per_worker[name] for name in ("min", "median", "max"))
    yield f"  labels per worker: {least:,} to {most:,}, median {median:,.4g}"
    paid = []
    if "seconds" in work:
        hours = f"{work['seconds'] / 3600:,.3g} hours in all"
        paid.append(f"{work['seconds_per_label']:,.3g} seconds per label (median), {hours}")
    if "pay" in work:
        paid.append(f"pay of {work['pay_per_label']:,.3g} per label (mean), {work['pay']:,.2f} in all")
    if paid:
        yield f"  work: {'; '.join(paid)}"
    if left_out:
        yield f"  left out: {', '.join(f'{reason} {n:,}' for reason, n in left_out.items())}"
    yield ""
    yield from problem_lines(found)
    yield "What can be estimated"
    yield from (f"  {line}" for line in _estimates(found))
    yield from (f"  {finding.kind}: {finding.sentence}" for finding in found.notes)
    yield ""
    yield f"Next: {command}"


def _shares(counts: dict[str, int], total: int) -> str:
    by_size = sorted(counts.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{_name(name)} {n / total:.1%}" for name, n in by_size[:_MOST])
    return shown + (f" and {len(by_size) - _MOST:,} more" if len(by_size) > _MOST else "")


def _name(label: str) -> str:
    plain = label == label.strip() and label.isprintable() and len(label) <= _LONGEST
    return label if plain else show(label, _LONGEST)


def _estimates(found: Check) -> Iterator[str]:
    if found.agreement is None:
        yield "agreement: unknown, no task has labels by two workers"
    else:
        agree, chance = f"{found.agreement:.0%}", f"{found.chance_agreement:.0%}"
        yield f"agreement: two labels of a task agree in {agree} of cases, by chance {chance}{alpha_of(found)}"
    yield f"skills: {found.skill_share:.0%} of the workers have at least {SKILL_LABELS} labels, enough for a skill"
    wanted = ROW_LABELS * found.n_classes
    share = f"{found.confusion_share:.0%} of the workers"
    yield f"confusion matrices: {share} have {wanted:,} labels, {ROW_LABELS} per class"
    if found.agreement is None:
        yield "comparable workers: none, because nobody shares a task with anybody"
    elif found.n_groups == 1:
        yield "comparable workers: all, through the tasks that they share"
    else:
        yield f"comparable workers: the largest group that shares tasks holds {found.largest_group:.0%} of the labels"


def _next_step(files: Sequence[File], source: dict[str, Any], found: Check, *, panel: bool) -> str:
    problems = {problem.kind for problem in found.problems}
    if found.n_classes == 1:
        return "get labels of a second class, or name the right column with --label-column"
    if "probabilities" in problems:
        return "make classes of the probabilities"
    paths = [str(file.path) for file in files]
    names = [source.get(role, role) for role in ("task", "worker", "label")]
    column = question_column(files[0], *names) if "duplicates" in problems else None
    if column is not None and "duplicates" not in source:
        keys = [part for role in ("task", "worker") if role in source for part in (argument(role), source[role])]
        asked = [argument("question"), column, argument("answer"), names[2]]
        return shlex.join(["labelonce", "check", *paths, *keys, *asked])
    named = _typed(source)
    if panel and not found.needs_features:
        return shlex.join(["labelonce", "judges", *paths, *named])
    if "missing" in problems:
        named += [argument("missing"), "drop"]
    if any("spellings of" in problem.sentence for problem in found.problems) and "spellings" not in source:
        named.append(argument("normalise"))
    if "duplicates" in problems and "duplicates" not in source:
        named += [argument("duplicates"), "last"]
    if not (found.needs_features or found.n_workers == 1):
        on_scale = any(note.kind == "scale" for note in found.notes)  # where nobody is right or wrong
        method = "dawid-skene" if found.confusion_share >= 0.5 or on_scale else "one-coin"
        targets = ["--method", method, "-o", "clean.csv", "--workers", "workers.csv"]
        return shlex.join(["labelonce", "aggregate", *paths, *named, *targets])
    return _train(files, named, no_texts=names)


def _train(files: Sequence[File], options: list[str], no_texts: list[str]) -> str:
    """Return the command that trains on labels; texts are in none of the columns `no_texts`."""
    column = _text_column(files[0], ignore=no_texts)
    features = ["--features", "features.parquet"] if column is None else ["--text", column]
    return shlex.join(["labelonce", "train", *(str(file.path) for file in files), *options, *features, "-o", "run"])


def _typed(source: dict[str, Any]) -> list[str]:
    """Return options as they are typed."""
    typed = []
    for name, value in source.items():
        if value is True:
            typed.append(argument(name))
            continue
        for one in value if name == "ignore" else [value]:
            typed += [argument(name), one if isinstance(one, str) else ",".join(map(str, one))]
    return typed


def _text_column(file: File, ignore: list[str]) -> str | None:
    """Return the column whose first rows read most like sentences, None where no column does."""
    if file.format not in TABLES:
        return None
    try:
        rows = first_rows(file)
    except pa.ArrowException:  # in a column that nobody asked for
        return None
    lengths = {}
    for name in set(rows.column_names) - set(ignore):
        column = rows.column(rows.column_names.index(name)).slice(0, _FIRST)
        words = [len(value.split()) for value in column.to_pylist() if isinstance(value, str)]
        if words and np.mean(words) >= _SENTENCE:
            lengths[name] = float(np.mean(words))
    return max(sorted(lengths), key=lengths.__getitem__, default=None)
