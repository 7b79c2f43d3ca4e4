"""The file formats of other tools by name: how each is read, written and recognised."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa

from labelonce._validate import check_choice
from labelonce.data._annotations import Annotations, Duplicates
from labelonce.files._open import File, check_start, head, naming
from labelonce.formats import _label_studio, _matrix, _mturk, _prodigy, _toloka
from labelonce.formats._answers import Answers, Fields, to_annotations


class Format(NamedTuple):
    """How a tool's file is read and written."""

    read: Callable[..., Answers]
    write: Callable[..., None]


FORMATS = {
    "label-studio": Format(_label_studio.read, _label_studio.write),
    "mturk": Format(_mturk.read, _mturk.write),
    "toloka": Format(_toloka.read, _toloka.write),
    "prodigy": Format(_prodigy.read, _prodigy.write),
    "matrix": Format(_matrix.read, _matrix.write),
}
SUFFIXES = {".json": "label-studio", ".npy": "matrix"}
REJECTED = ("drop", "keep")
MULTIPLE = ("error", "join", "split")


def read(
    file: File,
    fields: Fields,
    *,
    rejected: str | None = None,
    multiple: str | None = None,
    classes: Any = None,
    duplicates: Duplicates = "error",
) -> Annotations:
    """Return the annotations in a tool's file; what is left out is counted in a `LeftOutWarning`."""
    answers = _answers(file, fields, rejected)
    check_choice(multiple or "error", "multiple", MULTIPLE)
    options: dict[str, Any] = {"classes": classes, "duplicates": duplicates}
    return to_annotations(answers, str(file.path), multiple=multiple or "error", **options)


def read_gold(file: File, fields: Fields) -> dict[Any, Any]:
    """Return the true labels that came with a tool's file, by task."""
    return _answers(file, fields, None).gold


def _answers(file: File, fields: Fields, rejected: str | None) -> Answers:
    check_choice(rejected or "drop", "rejected", REJECTED)
    check_start(file)
    return FORMATS[file.format].read(file, fields, keep_rejected=rejected == "keep")


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
    FORMATS[format].write(table, sink, **options)


def recognise(file: File) -> str:
    """Return the tool that wrote a csv, tsv or jsonl file, or the file's own format if none is recognised."""
    with naming(file):
        start = head(file).removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0]
    if file.format == "jsonl":
        try:
            row = json.loads(start)
        except (ValueError, RecursionError):
            return file.format
        return "prodigy" if isinstance(row, dict) and {"answer", "_task_hash"} <= row.keys() else file.format
    names = {name.strip(b'" \r') for name in re.split(rb"[,\t]", start)}
    if file.format == "csv" and {b"HITId", b"WorkerId"} <= names:
        return "mturk"
    if file.format == "tsv" and b"ASSIGNMENT:worker_id" in names:
        return "toloka"
    return file.format
