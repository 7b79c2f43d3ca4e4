"""The files of labels and of gold of a command: found, read, and refused where they would mislead a fit."""

import os
import warnings
from collections.abc import Sequence
from typing import Any

from labelonce._messages import argument
from labelonce._types import TOOLS
from labelonce.data import Annotations, check, check_labels
from labelonce.files import File
from labelonce.formats import find_labels, listed, read_work
from labelonce.io import read_annotations, read_gold

_MOST_OF_WORK = 2_000_000  # labels whose seconds and pay are read
_OF_QUESTIONS = ("spellings", "question", "answer", "ignore")  # options that are not about how classes are read
_READ = ("task", "label", "multiple", "relabel", "normalise")


def find_files(paths: Any, format: str | None = None) -> list[File]:
    """Return one file of labels, or several, with their formats."""
    return [find_labels(path, format) for path in listed(paths)]


def names_of(files: Sequence[File]) -> str:
    return ", ".join(map(str, files))


def of_classes(source: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a source that `read_annotations` takes."""
    return {name: value for name, value in source.items() if name not in _OF_QUESTIONS}


def work_in(paths: Any, source: dict[str, Any], n_annotations: int) -> Any:
    """Return seconds, pay and time of the labels in files; None where no file knows them, or is gone, or is long."""
    if n_annotations > _MOST_OF_WORK:
        return None
    try:
        files = find_files(paths, source.get("format"))
        return read_work(files, task=source.get("task"), worker=source.get("worker"))
    except (OSError, ValueError):  # the labels themselves were read; this is an extra
        return None


def read_labels(files: Sequence[File], source: dict[str, Any]) -> Annotations:
    """Return the labels in files, read as the options of a command say; what looks wrong with them is a warning.

    Labels of one class are an error, and so are probabilities, and classes spelled in several ways, unless the option
    `spellings` keeps them.
    """
    annotations = read_annotations(files, **of_classes(source))
    try:
        check_labels(annotations, spellings_kept=source.get("spellings") == "keep")
    except ValueError as error:
        raise ValueError(f"{names_of(files)}: {error}") from error
    for problem in check(annotations).problems:
        if problem.kind != "one worker":  # each command says what it means for it
            warnings.warn(f"{names_of(files)}: {problem.sentence}", stacklevel=3)
    return annotations


def choose_gold(
    labels: Sequence[File], gold: str | os.PathLike[str] | None, annotations: Annotations, **source: Any
) -> dict[Any, Any] | None:
    """Return the gold in a file, else that in the exports that the labels came from.

    A warning says that the latter is used, or that it is not. `source` says how the labels were read.
    """
    read = {name: source[name] for name in _READ if source.get(name)}
    own: dict[Any, Any] = {}
    for file in labels:
        own |= read_gold(file, annotations=annotations, **read) if file.format in TOOLS else {}
    given = None if gold is None else read_gold(gold, annotations=annotations, **read)
    if own:
        files = ", ".join(str(file.path) for file in labels if file.format in TOOLS)
        found = f"{files}: its true labels of {len(own):,} task{'s' if len(own) > 1 else ''} are"
        used = given is None or given == own
        sentence = f"{found} used as gold." if used else f"{found} not used, since {argument('gold')} names others."
        warnings.warn(sentence, stacklevel=2)
    return given if given is not None else own or None
