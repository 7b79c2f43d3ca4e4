"""The tasks of a project: their ids, what people see of them, and what a model learns from them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from labelonce._messages import shorten, show
from labelonce._types import Ids
from labelonce.files._open import locate, naming
from labelonce.files._table_reader import read_table
from labelonce.formats._answers import Fields
from labelonce.runs._inputs import read_features, read_texts, tasks_of
from labelonce.service._settings import Settings, Source

IMAGE_TYPES = {
    ".bmp": "image/bmp",
    ".gif": "image/gif",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
}


class Tasks:
    """All tasks, in the order of their file.

    Attributes
    ----------
    ids : (n_tasks,)
        As in the file, integers or strings.
    names : list of str
        The same as strings: what the service and the database call them.
    texts, images : list or None
        What is shown of them; images are paths.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        path = folder / settings.tasks
        file = locate(path)
        shown = [name for name in (settings.text, settings.image) if name]
        with naming(file):
            table = read_table(file, [settings.task, *shown])
            self.ids: Ids = tasks_of(table, settings.task, file)
            self.texts = _strings(table, settings.text) if settings.text else None
            files = _strings(table, settings.image) if settings.image else None
        self.names = [str(one) for one in self.ids.tolist()]
        self.place = {name: place for place, name in enumerate(self.names)}
        self.images = None if files is None else [_inside(folder, name, path) for name in files]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def digest(self) -> str:
        """What changes whenever a task is added, taken out or moved."""
        return hashlib.sha256("\0".join(self.names).encode()).hexdigest()

    def shown(self, name: str) -> dict[str, Any]:
        """Return what a worker sees of a task."""
        place = self.place[name]
        return {
            "task": name,
            "text": None if self.texts is None else self.texts[place],
            "has_image": self.images is not None,
        }


def guessed_source(path: Path, *, task: str, text: str, image: str) -> Source:
    """Return what a model can learn from: numbers where the tasks have some, otherwise texts or images."""
    file = locate(path)
    with naming(file):
        table = read_table(file, [task, *[name for name in (text, image) if name]])
    others = [name for name in table.column_names if name not in (task, text, image)]
    if others and all(_is_number(table.schema.field(name).type) for name in others):
        return "features"
    return "text" if text else "images" if image else "nothing"


def check_tasks(path: Path, settings: Settings) -> None:
    """Raise where a table is no table of tasks, or a fit could not learn from it, before anybody labels."""
    Tasks(path.parent, replace(settings, tasks=path.name))
    shown = tuple(name for name in (settings.text, settings.image) if name)
    if settings.learn_from == "features":
        read_features(path, task=settings.task, ignore=shown)
    elif settings.learn_from == "text":
        read_texts(path, settings.text, fields=Fields(settings.task))


def thumbnails(paths: list[Path], *, most: int = 16) -> Any:
    """Return the images as rows of numbers, all brought to one small size: what a quick model learns from."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            "learning from images needs Pillow; install it with: pip install 'labelonce[images]'."
        ) from error
    with Image.open(paths[0]) as first:
        size = (min(most, first.width), min(most, first.height))
    rows = []
    for path in paths:
        with Image.open(path) as image:
            rows.append(np.asarray(image.convert("RGB").resize(size), dtype=np.float32).reshape(-1))
    found = np.stack(rows) / 255
    if (found.reshape(len(found), -1, 3).std(axis=2) == 0).all():  # grey
        found = found[:, ::3]
    return found


def _strings(table: pa.Table, name: str) -> list[str]:
    if name not in table.column_names:
        raise ValueError(f"the table must have a column {name!r}; got none among {shorten(table.column_names, 20)}.")
    found = table.column(name).cast(pa.string()).to_pylist()
    for row, value in enumerate(found):
        if value is None:
            raise ValueError(f"column {name!r} must have a value in every row; got none at row {row}.")
    return [str(value) for value in found]


def _inside(folder: Path, name: str, file: Path) -> Path:
    """Return where an image lies; it must lie in the project, since it is shown to everybody with a token."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()) or path.suffix.lower() not in IMAGE_TYPES:
        kinds = ", ".join(IMAGE_TYPES)
        raise ValueError(f"{file} must name images ({kinds}) below {folder}; got {show(name)}.")
    return path


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def features_table(tasks: Tasks, X: Any) -> pa.Table:
    """Return rows of numbers as a table that a run can read."""
    return pa.table({"task": pa.array(tasks.ids)} | {f"pixel {place}": X[:, place] for place in range(X.shape[1])})
