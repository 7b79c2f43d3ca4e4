"""`labelonce show`."""

from pathlib import Path
from typing import Any

from labelonce._messages import printable
from labelonce.cli._judges import RECORD, show_panel
from labelonce.cli._multilabel import (
    QUESTION_WORKER,
    in_lines,
    print_questions,
    question_worker_row,
    summary_of_questions,
)
from labelonce.cli._print import cell, print_json, print_plain, print_table
from labelonce.report import ClassFigures
from labelonce.runs import QuestionOutcome, RunFolder, RunRecord, as_train_wrote, class_figures_of, read_json, read_run

_MOST_CLASSES = 20


def run_show(folder: Path, *, n_workers: int, as_json: bool) -> None:
    """Print what a run found: a summary, its rounds and its workers, and the questions of a run on several.

    A folder that `labelonce judges` wrote is a panel.
    """
    if (folder / RECORD).is_file():
        show_panel(read_json(folder / RECORD, "Run labelonce judges again."), as_json=as_json, n_workers=n_workers)
        return
    record = read_run(folder)
    with as_train_wrote(folder):
        _show(folder, record, n_workers=n_workers, as_json=as_json)


def _show(folder: Path, record: RunRecord, *, n_workers: int, as_json: bool) -> None:
    workers = RunFolder(folder).table("workers.parquet").to_pylist()
    asked = record.result if isinstance(record.result, QuestionOutcome) else None
    figures = {} if asked is not None else class_figures_of(folder)
    if as_json:
        classes = [{"class": name} | vars(one) for name, one in figures.items()]
        print_json(record.to_dict() | {"class_figures": classes, "workers": workers})
        return
    print_plain(summary_of(record, folder))
    for doubt in record.result.estimated_accuracy.doubts:
        print_plain(printable(f"doubt: {doubt}"))
    on_questions = asked is not None
    names = {"round": "round", "agreement": "agreement", "mean_confidence": "own confidence"}
    names |= {"posterior_change": "change"} | ({} if on_questions else {"held_out_score": "held-out score"})
    rows = [[cell(getattr(entry, key)) for key in names] for entry in record.rounds]
    if rows:
        print_table("Rounds", list(names.values()), rows)
    if asked is not None:
        print_questions(asked)
    _print_classes(figures)
    best, worst = ("strictest", "most lenient") if on_questions else ("best", "worst")
    shown, title = workers, f"Workers, {best} first"
    if len(workers) > n_workers:
        shown = workers[: (n_workers + 1) // 2] + workers[len(workers) - n_workers // 2 :]
        title = f"The {best} and the {worst} of {len(workers):,} workers"
    columns = QUESTION_WORKER if on_questions else ["worker", "labels", "skill", "90 % interval", "flags"]
    as_row = question_worker_row if on_questions else worker_row
    print_table(title, columns, [as_row(worker) for worker in shown])


def _print_classes(figures: dict[Any, ClassFigures]) -> None:
    """Print the expected figures of the classes, most frequent first; with many classes, both ends of the list."""
    rows = []
    for name, one in sorted(figures.items(), key=lambda item: -item[1].share):
        numbers = (one.share, one.precision, one.recall, one.average_precision, one.threshold)
        rows.append([name, *("" if number is None else f"{number:.1%}" for number in numbers)])
    if not any(row[-1] for row in rows):
        rows = [row[:-1] for row in rows]
    columns = ["class", "tasks", "precision", "recall", "average precision", "best threshold"]
    title = "Classes, expected figures of our labels"
    if len(rows) > _MOST_CLASSES:
        title, half = f"{title}: the largest and the smallest of {len(rows):,}", _MOST_CLASSES // 2
        rows = rows[:half] + rows[-half:]
    if rows:
        print_table(title, columns[: len(rows[0])], rows)


def worker_row(worker: dict[str, Any]) -> list[Any]:
    """Return what a table shows of a worker."""
    skill, interval = f"{worker['skill']:.2f}", f"{worker['skill_low']:.2f} to {worker['skill_high']:.2f}"
    return [worker["worker"], worker["annotations"], skill, interval, ", ".join(worker.get("flags", []))]


def summary_of(record: RunRecord, folder: Path) -> str:
    """Return what came out of a run in a few lines."""
    if isinstance(record.result, QuestionOutcome):
        return summary_of_questions(record, folder)
    result, labels = record.outcome, f"{record.data.annotations:,} labels of"
    shares = [f"{name} {share:.0%}" for name, share in zip(result.classes[:10], result.shares, strict=False)]
    agrees = f"the model agrees with {result.agreement:.1%} of the workers' labels"
    classes = f"classes: {', '.join(shares)}{', ...' if len(result.classes) > 10 else ''}"
    return in_lines(record, folder, labels, "labels", [agrees, classes])
