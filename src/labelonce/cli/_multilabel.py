"""What the commands do with files of questions, several labels at once, and with runs on them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from labelonce._messages import printable
from labelonce.cli._print import (
    alpha_of,
    print_json,
    print_plain,
    print_rows,
    print_status,
    print_table,
    problem_lines,
    read_from,
    warnings_as_notes,
)
from labelonce.files import File
from labelonce.io import detect_format, write
from labelonce.multilabel import MultiLabelAggregator, MultiLabelCheck, MultiLabelDawidSkene, MultiLabelVote
from labelonce.runs import QuestionOutcome, RunRecord, choose_question_gold, names_of, read_questions, ticked_table

METHODS: dict[str, type[MultiLabelAggregator]] = {"majority-vote": MultiLabelVote, "dawid-skene": MultiLabelDawidSkene}
_MOST = 12
_MOST_QUESTIONS = 30


def aggregate_questions(
    files: Sequence[File],
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
    with warnings_as_notes():
        annotations = read_questions(files, source)
        known = choose_question_gold(files, gold, annotations, **source)
        model = METHODS[method]().fit(annotations, gold=known)
    if output is not None:
        _write(model, output, output_format, files, source)
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
    model: MultiLabelAggregator, output: Path, output_format: str | None, files: Sequence[File], source: dict[str, Any]
) -> None:
    if detect_format(output, format=output_format, reading=False) != "label-studio":
        write(model, output, format=output_format)
        return
    origin: dict[str, Any] = {name: source[name] for name in ("task", "label") if name in source}
    if len(files) == 1 and files[0].format == "label-studio":
        origin["like"] = files[0]
    ticked = ticked_table(model.tasks_, model.questions_, model.labels_, model.posterior_)
    write(ticked, output, format=output_format, multiple="join", **origin)


def check_questions(files: Sequence[File], source: dict[str, Any], command: str, *, as_json: bool) -> int:
    """Print what is in files of questions; return 0 where nothing looks wrong, else 1."""
    with warnings_as_notes():
        annotations = read_questions(files, source, duplicates="keep", missing="drop")
    found = annotations.check()
    if as_json:
        print_json({"file": names_of(files), "format": files[0].format, **found.to_dict(), "next": command})
    else:
        print_plain("\n".join(map(printable, [*_lines(files, found), "", f"Next: {command}"])))
    return 1 if found.problems else 0


def _lines(files: Sequence[File], found: MultiLabelCheck) -> Iterator[str]:
    yield f"{read_from(files)}, {found.n_annotations:,} answers to questions"
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
    yield from problem_lines(found)
    yield "What can be estimated"
    if found.agreement is None:
        yield "  agreement: unknown, no question has two answers"
    else:
        yield f"  agreement: two answers to a question agree in {found.agreement:.0%} of cases{alpha_of(found)}"
    yield from (f"  {finding.kind}: {finding.sentence}" for finding in found.notes)


def summary_of_questions(record: RunRecord, folder: Path) -> str:
    """Return what came out of a run on questions in a few lines."""
    result = cast(QuestionOutcome, record.result)
    answers = f"{record.data.annotations:,} answers to {len(result.questions):,} questions about"
    agrees = f"the model agrees with {result.agreement:.1%} of the answers"
    said = [f"yes to {np.mean(result.shares):.1%} of the questions about tasks; {agrees}"]
    return in_lines(record, folder, answers, "answers", said)


def in_lines(record: RunRecord, folder: Path, labels: str, unit: str, found: list[str]) -> str:
    """Return what every summary of a run says, around the lines about what was `found`."""
    data, recipe = record.data, record.recipe
    without = data.tasks - data.labelled_tasks
    more = f", {without:,} more tasks without {unit}" if without else ""
    lines = [
        f"{folder}: {labels} {data.labelled_tasks:,} tasks by {data.workers:,} workers "
        f"(redundancy {data.redundancy:.3g}){more}",
        f"model: {recipe.learner}, {recipe.rounds} rounds, {recipe.predictions} predictions; {recipe.workers} workers",
        f"{record.result.estimated_accuracy}",
        *found,
        f"trained {record.finished} from {record.options.named_labels}, seed {record.options.seed}",
    ]
    return "\n".join(map(printable, lines))


def print_questions(result: QuestionOutcome) -> None:
    """Print every question's share of yes, the most common first."""
    order = np.argsort(-np.array(result.shares), kind="stable")[:_MOST_QUESTIONS]
    shown = ["" if share is None else f"{share:.1%}" for share in result.given]
    rows = [[result.questions[k], shown[k], f"{result.shares[k]:.1%}"] for k in order.tolist()]
    more = len(result.questions) - len(rows)
    title = f"The {len(rows)} most common of {len(result.questions):,} questions" if more else "Questions"
    print_table(title, ["question", "yes among answers", "yes found"], rows)


QUESTION_WORKER = ["worker", "answers", "yes", "strictness"]


def question_worker_row(worker: dict[str, Any]) -> list[Any]:
    """Return what a table shows of a worker who answered questions."""
    return [worker["worker"], worker["annotations"], f"{worker['yes_share']:.1%}", f"{worker['strictness']:+.3f}"]
