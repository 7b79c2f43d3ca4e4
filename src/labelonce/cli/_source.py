"""The file of labels that a command aggregates."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labelonce._messages import show
from labelonce.cli._print import warnings_as_notes
from labelonce.data import Annotations
from labelonce.files import File
from labelonce.io import check_target
from labelonce.runs import choose_gold, has_questions, names_of, read_labels


def check_outputs(read: Sequence[Path | None], **outputs: tuple[Path | None, str | None]) -> None:
    """Raise an error if a file could not be written, or would overwrite one that is read or written too.

    Outputs are given by the name of their option, each with its format.
    """
    taken = {os.path.realpath(path) for path in read if path is not None}
    for option, (path, format) in outputs.items():
        if path is None and format is not None:
            raise ValueError(f"--output-format must go with --{option}; got {format} and no file. Name one.")
        if path is None:
            continue
        check_target(path, format=format)
        if os.path.realpath(path) in taken:
            raise ValueError(
                f"--{option} must not be a file that is read or written already; got {path}. Name another one."
            )
        taken.add(os.path.realpath(path))


def check_no_questions(files: Sequence[File], source: dict[str, Any], command: str) -> None:
    """Raise an error if files have several labels per task and the command does not take them."""
    if has_questions(files, source):
        raise ValueError(
            f"{names_of(files)}: {command} must have one label per row; got questions, several labels at once. Use "
            "labelonce aggregate or train."
        )


def read_comparable(
    files: Sequence[File], source: dict[str, Any], gold: Path | None
) -> tuple[Annotations, dict[Any, Any] | None]:
    """Return the annotations, read as `source` says, and their gold: that in a file, else that in the exports.

    Raise where an aggregator would return the labels unchanged. What looks wrong with the labels is printed as notes.
    """
    with warnings_as_notes():
        annotations = read_labels(files, source)
        known = choose_gold(files, gold, annotations, **source)
    if len(np.unique(annotations.worker)) == 1:
        who = show(annotations.workers[annotations.worker[0]])
        raise ValueError(
            f"{names_of(files)}: labels must be by at least two workers; got only {who}, whose labels would come back "
            "unchanged. Is it the right column? With features, labelonce train learns from one worker too."
        )
    return annotations, known
