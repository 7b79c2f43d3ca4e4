"""Prodigy's JSON lines: one decision per line, a choice among options or accept against reject."""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from labelonce._messages import argument, show
from labelonce.files import File, whole_text
from labelonce.formats._answers import Answers, Fields, choose_field

_WORKERS = ("_annotator_id", "_session_id")


def read(file: File, fields: Fields, *, keep_rejected: bool = False) -> Answers:
    """Return the options chosen, or where there are none, whether each line was accepted or rejected."""
    rows = list(_rows(file))
    kinds = [kind for kind in ("accept", "answer") if any(_kind(row) == kind for _, row in rows)]
    kind = choose_field(fields.label, kinds, "the decision", "label")
    answers = Answers()
    if fields.text is not None:
        answers.texts = [(_task(row, line, fields.task, kind), row.get(fields.text)) for line, row in rows]
    for line, row in rows:
        answer = row.get("answer")
        if answer == "ignore" or _kind(row) != kind:
            answers.left_out["ignored" if answer == "ignore" else f"without {kind!r}"] += 1
        elif kind == "accept" and answer == "reject" and not keep_rejected:
            answers.left_out["rejected"] += 1
        else:
            labels = (answer,) if kind == "answer" else tuple(row.get("accept") or ())
            workers = (fields.worker,) if fields.worker else _WORKERS
            answers.add(_task(row, line, fields.task, kind), _first(row, line, workers, "worker"), labels)
    return answers


def _rows(file: File) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, text in enumerate(whole_text(file).split(b"\n"), 1):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
        except (json.JSONDecodeError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise ValueError(f"a line must hold one JSON object; got {text[:60]!r} at line {line}. Fix that line.")
        if row.get("answer") not in ("accept", "reject", "ignore"):
            got = f"got {show(row.get('answer'))} at line {line}"
            raise ValueError(f"answer must be accept, reject or ignore; {got}. Export it with db-out.")
        yield line, row


def _kind(row: dict[str, Any]) -> str:
    return "accept" if "accept" in row or "options" in row else "answer"


def _task(row: dict[str, Any], line: int, name: str | None, kind: str) -> Any:
    """Return the input's hash, or of a yes-no question the hash of input and question; else the text."""
    usual = ("_input_hash" if kind == "accept" else "_task_hash", "text")
    return _first(row, line, (name,) if name else usual, "task")


def _first(row: dict[str, Any], line: int, names: tuple[str, ...], role: str) -> Any:
    found = next((row[name] for name in names if row.get(name) is not None), None)
    if found is None:
        raise ValueError(
            f"a line must have {' or '.join(names)}; got {show(list(row))} at line {line}. "
            f"Name the field of the {role} with {argument(role)}"
        )
    return found


def write(table: pa.Table, sink: Any) -> None:
    """Write annotations as accepted choices, or labels as choices to review, with their confidence as score."""
    classes = sorted(set(table.column("label").to_pylist()), key=str)
    options = [{"id": label, "text": str(label)} for label in classes]
    for row in table.to_pylist():
        task, label = row["task"], row["label"]
        line: dict[str, Any] = {"text": str(task), "options": options, "accept": [label]}
        if isinstance(task, int):
            line["_input_hash"] = task
        if "worker" in row:
            line |= {"answer": "accept", "_annotator_id": row["worker"], "_session_id": row["worker"]}
        else:
            line["score"] = row.get("confidence")
        sink.write((json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n").encode())
