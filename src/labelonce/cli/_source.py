"""The file of labels that a command aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labelonce._messages import show
from labelonce.cli._print import print_note, warnings_as_notes
from labelonce.data import Annotations
from labelonce.data._check import check_two_classes, spelling_doubts
from labelonce.files._open import File
from labelonce.io import check_target, read_annotations
from labelonce.runs._gold import choose_gold
from labelonce.runs._questions import has_questions


def check_outputs(read: Sequence[Path | None], **outputs: tuple[Path | None, str | None]) -> None:
    """Raise where a file could not be written, or would take the place of one that is read or written too.

    Outputs are given by the name of their option, each with its format.
    """
    taken = {path.resolve() for path in read if path is not None}
    for option, (path, format) in outputs.items():
        if path is None and format is not None:
            raise ValueError(f"--output-format must go with --{option}; got {format} and no file. Name one.")
        if path is None:
            continue
        check_target(path, format=format)
        if path.resolve() in taken:
            raise ValueError(
                f"--{option} must not be a file that is read or written already; got {path}. Name another one."
            )
        taken.add(path.resolve())


def check_no_questions(file: File, source: dict[str, Any], command: str) -> None:
    """Raise where a file has several labels at once, which a command cannot take."""
    if has_questions(file, source):
        raise ValueError(
            f"{file.path}: {command} must have one label per row; got questions, several labels at once. Use "
            "labelonce aggregate or train."
        )


def read_comparable(file: File, source: dict[str, Any], gold: Path | None) -> tuple[Annotations, dict[Any, Any] | None]:
    """Return the annotations, read as `source` says, and their gold: that in a file, else that in the export.

    Raise where an aggregator would return the labels unchanged. Doubts about their spelling are printed as notes.
    """
    with warnings_as_notes():
        annotations = read_annotations(file, **source)
        known = choose_gold(file, gold, annotations, **source)
    check_two_classes(annotations, file.path)
    if len(np.unique(annotations.worker)) == 1:
        who = show(annotations.workers[annotations.worker[0]])
        raise ValueError(
            f"{file.path}: labels must be by at least two workers; got only {who}, whose labels would come back "
            "unchanged. Is it the right column? With features, labelonce train learns from one worker too."
        )
    for doubt in spelling_doubts(annotations):
        print_note(doubt.sentence)
    return annotations, known
