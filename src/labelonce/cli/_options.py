"""The options of the commands, each declared once. No library is loaded for `--help`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from labelonce.aggregation._registry import COMMANDS

Method = StrEnum("Method", COMMANDS)  # type: ignore[misc]  # no literal: the members are those of the registry
DAWID_SKENE = Method("dawid-skene")


class Duplicates(StrEnum):
    """What to do when one worker labelled one task more than once."""

    ERROR = "error"
    FIRST = "first"
    LAST = "last"
    KEEP = "keep"


class Model(StrEnum):
    """The learners by their names on the command line."""

    SOFTMAX = "softmax"
    BOOST = "boost"


class Crowd(StrEnum):
    """The simulated crowds by their names on the command line."""

    HAMMER_SPAMMER = "hammer-spammer"
    CLASS_WISE = "class-wise"
    ADVERSARIAL = "adversarial"


class Format(StrEnum):
    """The file formats by their names on the command line."""

    CSV = "csv"
    TSV = "tsv"
    PARQUET = "parquet"
    JSONL = "jsonl"
    ARROW = "arrow"
    LABEL_STUDIO = "label-studio"
    MTURK = "mturk"
    TOLOKA = "toloka"
    PRODIGY = "prodigy"
    MATRIX = "matrix"


class Rejected(StrEnum):
    """What to do with answers that were rejected or cancelled."""

    DROP = "drop"
    KEEP = "keep"


class Multiple(StrEnum):
    """What to do with an answer of several labels."""

    ERROR = "error"
    JOIN = "join"
    SPLIT = "split"


class Engine(StrEnum):
    """The engines by their names on the command line."""

    AUTO = "auto"
    SCIPY = "scipy"
    TORCH = "torch"


LabelsFile = Annotated[
    Path,
    typer.Argument(
        help="Labels: csv, tsv, parquet, jsonl or arrow, also .gz and .zst; or an export of Label Studio, MTurk, "
        "Toloka or Prodigy."
    ),
]
FormatOption = Annotated[Format | None, typer.Option("--format", help="The file's format, where it is not recognised.")]
TaskColumn = Annotated[str | None, typer.Option(help="Column or field of task ids; default: task, or the tool's own.")]
WorkerColumn = Annotated[
    str | None, typer.Option(help="Column or field of worker ids; default: worker, or the tool's own.")
]
LabelColumn = Annotated[
    str | None, typer.Option(help="Column, control or question of the labels; default: label, or the only one.")
]
RejectedOption = Annotated[Rejected | None, typer.Option(help="Rejected or cancelled answers in a tool's export.")]
MultipleOption = Annotated[Multiple | None, typer.Option(help="Answers of several labels in a tool's export.")]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, for programs.")]
DuplicatesOption = Annotated[Duplicates, typer.Option(help="If one worker labelled one task more than once.")]
LabelsOutput = Annotated[
    Path | None, typer.Option("--output", "-o", help="Where the labels go, by suffix; default: CSV on stdout.")
]
RunFolder = Annotated[Path, typer.Argument(help="A run folder that train wrote.")]

SOURCE = {
    "format": "--format",
    "task": "--task-column",
    "worker": "--worker-column",
    "label": "--label-column",
    "rejected": "--rejected",
    "multiple": "--multiple",
}


def source_of(
    format: Format | None,
    columns: tuple[str | None, str | None, str | None],
    rejected: Rejected | None,
    multiple: Multiple | None,
) -> dict[str, Any]:
    """Return the options of the file of labels as `read_annotations` takes them, those of SOURCE."""
    return dict(zip(SOURCE, (format, *columns, rejected, multiple), strict=True))
