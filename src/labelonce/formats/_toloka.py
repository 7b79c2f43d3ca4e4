"""Toloka's TSV: a row for each task of each assignment."""

import json
from typing import Any

import pyarrow as pa

from labelonce._messages import show
from labelonce.files import File, write_rows
from labelonce.formats._answers import Answers, Fields, choose_field, integers_if_all, same_kind, string_columns

_INPUT, _OUTPUT, _GOLDEN, _ASSIGNMENT = "INPUT:", "OUTPUT:", "GOLDEN:", "ASSIGNMENT:"
_TASK, _WORKER, _STATUS = (_ASSIGNMENT + name for name in ("task_id", "worker_id", "status"))
_UNFINISHED = ("active", "skipped", "expired")


def read(file: File, fields: Fields, *, keep_rejected: bool = False) -> Answers:
    """Return the answers in one output field, and the gold of its control tasks."""
    table = string_columns(file._replace(format="tsv"))
    names = list(table)
    task = _task_column(names, fields.task)
    worker = choose_field(fields.worker or _WORKER, names, "the worker column", "worker")
    outputs = [name for name in names if name.startswith(_OUTPUT)]
    wanted = fields.label and _OUTPUT + fields.label.removeprefix(_OUTPUT)
    label = choose_field(wanted, outputs, "the output field", "label")
    golden = _GOLDEN + label.removeprefix(_OUTPUT)
    n_rows = len(table[task])
    tasks, workers = (integers_if_all(table[name]) for name in (task, worker))
    status = table.get(_STATUS, [""] * n_rows)
    cells = [*table[label], *table.get(golden, [""] * n_rows)]
    labels_of = same_kind([_values(cell) for cell in cells])
    given, gold = labels_of[:n_rows], labels_of[n_rows:]
    answers = Answers()
    if fields.text is not None:
        text = fields.text if fields.text in names else _INPUT + fields.text
        answers.texts = list(zip(tasks, table[choose_field(text, names, "the text column", "text")], strict=True))
    for task_id, worker_id, state, labels, known in zip(tasks, workers, status, given, gold, strict=True):
        if known:
            answers.gold[task_id] = known
        if state.lower() == "rejected" and not keep_rejected:
            answers.left_out["rejected"] += 1
        elif state.lower() in _UNFINISHED:
            answers.left_out[state.lower()] += 1
        elif task_id == "" or worker_id == "":
            raise ValueError(f"{task} and {worker} must not be empty; got {show((task_id, worker_id))}.")
        else:
            answers.add(task_id, worker_id, labels)
    return answers


def _task_column(names: list[str], wanted: str | None) -> str:
    if wanted is None and _TASK in names:
        return _TASK
    known = [name for name in names if name.startswith((_INPUT, _ASSIGNMENT))]
    if wanted is not None:
        return choose_field(wanted if wanted in names else _INPUT + wanted, known, "the task column", "task")
    return choose_field(None, [name for name in known if name.startswith(_INPUT)], "the task column", "task")


def _values(cell: str) -> list[str]:
    """Return the labels in a cell: one, or a JSON array of them."""
    if cell.startswith("["):
        try:
            return [str(value) for value in json.loads(cell)]
        except (json.JSONDecodeError, RecursionError):
            return [cell]
    return [cell] if cell else []


def _cell(label: Any) -> str:
    """Return a label as a cell; as an array of one where it could be taken for an array."""
    text = str(label)
    return json.dumps([text], ensure_ascii=False) if text.startswith("[") else text


def write(table: pa.Table, sink: Any) -> None:
    """Write annotations as accepted assignments, or labels as control tasks with their golden answer."""
    if "worker" not in table.column_names:
        labels = ((row["task"], _cell(row["label"])) for row in table.to_pylist())
        return write_rows(sink, "tsv", [f"{_INPUT}task", f"{_GOLDEN}label"], labels)
    header = [f"{_INPUT}task", f"{_OUTPUT}label", f"{_GOLDEN}label", _TASK, _WORKER, _STATUS]
    rows = ((row["task"], _cell(row["label"]), "", row["task"], row["worker"], "APPROVED") for row in table.to_pylist())
    return write_rows(sink, "tsv", header, rows)
