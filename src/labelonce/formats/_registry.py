"""The file formats of other tools by name: how each is recognised, read and written."""

import json
import os
import re
from typing import Any

import pyarrow as pa

from labelonce._types import REJECTED
from labelonce._validate import check_choice
from labelonce.files import File, header_line, locate, naming, text
from labelonce.formats import _label_studio, _matrix, _mturk, _prodigy, _toloka
from labelonce.formats._answers import Answers, Fields

TOOL_FORMATS: dict[str, Any] = {  # each with `read` and `write`
    "label-studio": _label_studio,
    "mturk": _mturk,
    "toloka": _toloka,
    "prodigy": _prodigy,
    "matrix": _matrix,
}


def find_labels(path: str | os.PathLike[str], format: str | None = None, *, hint: bool = True) -> File:
    """Return a file of labels with its format: the one named, or that of the tool that wrote it where its start tells.

    A file that was found before is returned as it is; `hint` as in `locate`.
    """
    if isinstance(path, File):
        return path
    file = locate(path, format, hint=hint, in_parts=True)
    if format is None and file.format in _MARKS:
        with naming(file), text(file) as stream:
            first_line = header_line(stream.start(2**16))
        return file._replace(format=_MARKS[file.format](first_line) or file.format)
    return file


def _tool_of_table(first_line: bytes) -> str | None:
    names = {name.strip(b'" \r') for name in re.split(rb"[,;\t|]", first_line)}
    if {b"HITId", b"WorkerId"} <= names:
        return "mturk"
    return "toloka" if b"ASSIGNMENT:worker_id" in names else None


def _tool_of_jsonl(first_line: bytes) -> str | None:
    try:
        row = json.loads(first_line)
    except (ValueError, RecursionError):
        return None
    return "prodigy" if isinstance(row, dict) and {"answer", "_task_hash"} <= row.keys() else None


_MARKS = {"csv": _tool_of_table, "tsv": _tool_of_table, "jsonl": _tool_of_jsonl}


def read(file: File, fields: Fields, rejected: str | None = None) -> Answers:
    """Return the answers in a tool's file, and the gold that came with them."""
    check_choice(rejected or "drop", "rejected", REJECTED)
    found: Answers = TOOL_FORMATS[file.format].read(file, fields, keep_rejected=rejected == "keep")
    return found


def check_target(file: File) -> None:
    """Raise where `write` could not."""
    if file.format == "matrix":
        _matrix.check_target(file)


def write(table: pa.Table, sink: Any, format: str, **options: Any) -> None:
    """Write a table of annotations (task, worker, label) or of labels (task, label, confidence)."""
    missing = {"task", "label"} - set(table.column_names)
    if missing:
        raise ValueError(f"a table for {format} must have columns task and label; got {table.column_names}.")
    if options and format != "label-studio":
        raise TypeError(f"{', '.join(options)} must be left out except for label-studio; got format {format!r}.")
    TOOL_FORMATS[format].write(table, sink, **options)
