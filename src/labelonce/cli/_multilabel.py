"""`labelonce aggregate` and `labelonce check` for files of questions: several labels at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from labelonce._messages import printable
from labelonce.cli._print import print_json, print_plain, print_rows, print_status, warnings_as_notes
from labelonce.files._open import File
from labelonce.formats._answers import SEPARATOR
from labelonce.io import detect_format, write
from labelonce.multilabel import (
    MultiLabelAggregator,
    MultiLabelAnnotations,
    MultiLabelCheck,
    MultiLabelDawidSkene,
    MultiLabelVote,
    read_multilabel,
)
from labelonce.multilabel._read import is_multilabel

METHODS: dict[str, type[MultiLabelAggregator]] = {
    "majority-vote": MultiLabelVote,
    "dawid-skene": MultiLabelDawidSkene,
}
QUESTIONS = "questions"  # of --multiple: check boxes of an export as questions
_MOST = 12


def has_questions(file: File, source: dict[str, Any]) -> bool:
    """Return whether a file is to be read as questions: by its columns, or as --multiple says."""
    return source.get("multiple") == QUESTIONS or is_multilabel(file)


def read_questions(file: File, source: dict[str, Any], **more: Any) -> MultiLabelAnnotations:
    """Return the questions in a file, read as the options say."""
    if source.get("classes"):
        raise ValueError(f"--classes must be left out for questions; got {','.join(map(str, source['classes']))}.")
    names = ("task", "worker", "answers", "duplicates", "rejected")
    kept: dict[str, Any] = {name: source[name] for name in names if name in source}
    if "label" in source:
        kept["question"] = source["label"]
    return read_multilabel(file, **(more | kept))


def aggregate_questions(
    file: File,
    source: dict[str, Any],
    *,
    method: str,
    gold: Path | None,
    output: Path | None,
    output_format: str | None,
    workers: Path | None,
    as_json: bool,
) -> None:
    """Fit the method to questions, write one row per task and question, and the workers with their strictness."""
    if method not in METHODS:
        raise ValueError(f"--method must be {' or '.join(METHODS)} for questions; got {method}.")
    if gold is not None:
        raise ValueError(f"--gold must be left out for questions; got {gold}. From Python, fit(gold=...) takes it.")
    with warnings_as_notes():
        annotations = read_questions(file, source)
        model = METHODS[method]().fit(annotations)
    if output is not None:
        _write(model, output, output_format, file, source)
    elif not as_json:
        print_rows(model.to_frame())
    if workers is not None:
        write(model.workers_to_frame(), workers)
    found: dict[str, Any] = {"method": method, "annotations": len(annotations), "tasks": annotations.n_tasks}
    found |= {"questions": annotations.questions.tolist(), "workers": annotations.n_workers}
    found |= {"yes_share": float((model.labels_ == 1).sum() / (model.labels_ >= 0).sum())}
    if not as_json:
        print_status(f"{annotations!r}")
        print_status(f"{method}: {found['yes_share']:.1%} of the questions about tasks are answered yes")
        return
    if output is None:
        found["labels"] = model.to_frame().to_pylist()
    print_json(found | {"output": output and str(output), "workers_output": workers and str(workers)})


def _write(
    model: MultiLabelAggregator, output: Path, output_format: str | None, file: File, source: dict[str, Any]
) -> None:
    if detect_format(output, format=output_format, reading=False) != "label-studio":
        write(model, output, format=output_format)
        return
    origin: dict[str, Any] = {name: source[name] for name in ("task", "label") if name in source}
    if file.format == "label-studio":
        origin["like"] = file
    write(ticked_table(model), output, format=output_format, multiple="join", **origin)


def ticked_table(model: MultiLabelAggregator) -> pa.Table:
    """Return one row per task with a label: the labels joined, and the least sure of them as confidence.

    Tasks without a label are left out, since an export has no prediction for "none".
    """
    labels, posterior = model.labels_, model.posterior_
    tasks = np.flatnonzero((labels == 1).any(axis=1))
    names = model.questions_.astype(str)
    joined = [SEPARATOR.join(names[labels[task] == 1]) for task in tasks]
    sure = [float(posterior[task][labels[task] == 1].min()) for task in tasks]
    return pa.table({"task": pa.array(model.tasks_[tasks]), "label": joined, "confidence": sure})


def check_questions(file: File, source: dict[str, Any], *, as_json: bool) -> int:
    """Print what is in a file of questions; return 0 where nothing looks wrong, else 1."""
    with warnings_as_notes():
        annotations = read_questions(file, source, duplicates="keep")
    found = annotations.check()
    if as_json:
        print_json({"file": str(file.path), "format": file.format, **found.to_dict()})
    else:
        print_plain("\n".join(map(printable, _lines(file, found))))
    return 1 if found.problems else 0


def _lines(file: File, found: MultiLabelCheck) -> Iterator[str]:
    yield f"{file.path}: {file.format}, {found.n_annotations:,} answers to questions"
    yield ""
    yield "What is in it"
    yield f"  {found.n_tasks:,} tasks, {found.n_questions:,} questions, {found.n_workers:,} workers"
    yield f"  answers: {', '.join(f'{name} {n / found.n_annotations:.1%}' for name, n in found.answers.items())}"
    asked = {name: share for name, share in found.yes_share.items() if share is not None}
    shown = sorted(asked.items(), key=lambda item: -item[1])
    more = f" and {len(shown) - _MOST:,} more" if len(shown) > _MOST else ""
    yield f"  yes: {', '.join(f'{name} {share:.1%}' for name, share in shown[:_MOST])}{more}"
    yield f"  answers per question: {found.redundancy:.3g}; {found.asked_share:.0%} of all questions were asked"
    yield ""
    yield "What looks wrong" if found.problems else "What looks wrong: nothing"
    yield from (f"  {problem.kind}: {problem.sentence}" for problem in found.problems)
    yield ""
    yield "What can be estimated"
    if found.agreement is None:
        yield "  agreement: unknown, no question has two answers"
    else:
        yield f"  agreement: two answers to a question agree in {found.agreement:.0%} of cases"
    yield from (f"  {finding.kind}: {finding.sentence}" for finding in found.notes)
