"""`labelonce compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labelonce._annotations import Annotations
from labelonce.aggregation import compare_aggregators
from labelonce.cli._print import stderr, stdout, table
from labelonce.io import read_annotations, write

_COLUMNS = ["method", "agrees", "held out", "seconds"]  # no wider than 80 characters with the gold's
_GOLD_COLUMNS = ["accuracy", "log-loss"]


def run_compare(
    annotations: Annotations, gold: Path | None, seed: int, *, columns: tuple[str, str], output: Path | None
) -> None:
    """Print the table of methods and the recommended one; `columns` of the gold file: task, label."""
    known = None if gold is None else _read_gold(gold, *columns)
    stderr.print(f"{annotations!r}", markup=False)
    comparison = compare_aggregators(annotations, gold=known, random_state=seed)
    rows = comparison.to_frame().to_pylist()
    keys = ["agreement", "held_out", "seconds", *(["accuracy", "log_loss"] if known else [])]
    shown = [[row["method"], *(_number(row[key]) for key in keys)] for row in rows]
    heads = [*_COLUMNS, *(_GOLD_COLUMNS if known else [])]
    stdout.print(table("Aggregators, best prediction of held-out labels first", heads, shown))
    for row in rows:
        if row["note"]:
            stderr.print(f"note: {row['method']}: {row['note']}", markup=False)
    stdout.print(f"Take {comparison.recommended}: {comparison.reason}", markup=False)
    if output is not None:
        write(comparison.to_frame(), output)


def _read_gold(path: Path, task: str, label: str) -> dict[Any, Any]:
    """Return the true label of each task; one task with two is an error."""
    table = read_annotations(path, task=task, worker=task, label=label)
    return dict(zip(table.tasks[table.task].tolist(), table.classes[table.label].tolist(), strict=True))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
