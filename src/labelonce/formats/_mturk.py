"""Amazon Mechanical Turk's batch results: a CSV file with one row per assignment."""

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from labelonce._messages import show
from labelonce.files import File, write_rows
from labelonce.formats._answers import (
    SEPARATOR,
    Answers,
    Fields,
    choose_field,
    integers_if_all,
    same_kind,
    string_columns,
)

_ANSWER, _INPUT = "Answer.", "Input."
_JSON = "Answer.taskAnswers"  # where the crowd-* elements put everything, as JSON
_STATUS = ("AssignmentStatus", "Reject")

_Labels = Callable[[dict[str, str]], list[str]]


def read(file: File, fields: Fields, *, keep_rejected: bool = False) -> Answers:
    """Return the answers to one question of the batch."""
    table = string_columns(file._replace(format="csv"))
    names = list(table)
    task = _column(names, fields.task or "HITId", _INPUT, "task")
    worker = _column(names, fields.worker or "WorkerId", "", "worker")
    columns, labels_of = _question(table, fields.label)
    kept = [task, worker, *columns, *(name for name in _STATUS if name in names)]
    rows = [dict(zip(kept, cells, strict=True)) for cells in zip(*(table[name] for name in kept), strict=True)]
    answers = Answers()
    tasks, workers = (integers_if_all(table[name]) for name in (task, worker))
    labels = same_kind([labels_of(row) for row in rows])
    if fields.text is not None:
        answers.texts = list(zip(tasks, table[_column(names, fields.text, _INPUT, "text")], strict=True))
    for task_id, worker_id, row, found in zip(tasks, workers, rows, labels, strict=True):
        if not keep_rejected and (row.get("AssignmentStatus", "").lower() == "rejected" or row.get("Reject", "")):
            answers.left_out["rejected"] += 1
        elif task_id == "" or worker_id == "":
            raise ValueError(f"{task} and {worker} must not be empty; got {show(dict(list(row.items())[:2]))}.")
        else:
            answers.add(task_id, worker_id, found)
    return answers


def _column(names: list[str], name: str, prefix: str, role: str) -> str:
    for full in (name, prefix + name):
        if full in names:
            return full
    known = [found for found in names if not found.startswith(_ANSWER)]
    return choose_field(name, known, f"the {role} column", role)


def _question(table: dict[str, list[str]], wanted: str | None) -> tuple[list[str], _Labels]:
    """Return the columns of the question and how to read the labels off a row."""
    name = wanted.removeprefix(_ANSWER) if wanted else None
    plain = [found.removeprefix(_ANSWER) for found in table if found.startswith(_ANSWER) and found != _JSON]
    boxes = _check_boxes(plain)
    if _JSON in table:
        keys = list(dict.fromkeys(key for cell in table[_JSON] for key in _json_row(cell)))
        if name in keys or (name is None and not plain):
            key = choose_field(name, keys, "the question", "label")
            return [_JSON], lambda row: _json_labels(row[_JSON], key)
        plain += keys
    loose = [found for found in plain if not any(found in members for members in boxes.values())]
    key = choose_field(name, [*loose, *boxes], "the question", "label") if name not in plain else str(name)
    if key in boxes and key not in plain:
        columns = {_ANSWER + member: member[len(key) + 1 :] for member in boxes[key]}
        return list(columns), lambda row: [label for full, label in columns.items() if row[full].lower() == "true"]
    full = _ANSWER + key
    return [full], lambda row: [label for label in row[full].split(SEPARATOR) if label]


def _check_boxes(plain: list[str]) -> dict[str, list[str]]:
    """Return the questions that have a true-or-false column for every label: `animal.cat`, `animal.dog`."""
    members: dict[str, list[str]] = {}
    for name in plain:
        if "." in name:
            members.setdefault(name.rpartition(".")[0], []).append(name)
    return {question: names for question, names in members.items() if len(names) > 1}


def _json_row(cell: str) -> dict[str, Any]:
    try:
        found = json.loads(cell or "{}")
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{_JSON} must hold JSON; got {show(cell)}. Download the results again.") from error
    if isinstance(found, list):
        found = found[0] if found else {}
    return found if isinstance(found, dict) else {}


def _json_labels(cell: str, key: str) -> list[str]:
    value = _json_row(cell).get(key)
    if isinstance(value, dict):
        value = value.get("label", value.get("labels", [label for label, on in value.items() if on is True]))
    if value is None or value == "":
        return []
    return [str(label) for label in value] if isinstance(value, list) else [str(value)]


def write(table: pa.Table, sink: Any) -> None:
    """Write annotations as a batch of approved assignments."""
    if "worker" not in table.column_names:
        raise ValueError("mturk must hold workers' annotations; got labels without workers. Write .csv instead.")
    odd = next((label for label in table.column("label").to_pylist() if SEPARATOR in str(label)), None)
    if odd is not None:
        raise ValueError(f"a label must be without {SEPARATOR!r}, which divides labels in mturk; got {odd!r}.")
    header = ["HITId", "AssignmentId", "WorkerId", "AssignmentStatus", "Input.task", "Answer.label"]
    rows = ((row["task"], row["worker"], row["label"]) for row in table.to_pylist())
    assignments = ((task, i, worker, "Approved", task, label) for i, (task, worker, label) in enumerate(rows))
    write_rows(sink, "csv", header, assignments)
