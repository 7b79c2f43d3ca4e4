"""The tasks of a project: their ids, what is shown to workers, and the features for a model."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from labelonce._messages import clip, printable, shorten, show
from labelonce._types import Ids
from labelonce.files import locate, naming, read_table, strict_about_bombs
from labelonce.formats import Fields
from labelonce.runs import read_features, read_texts, tasks_of
from labelonce.service._settings import MOST_LETTERS, Settings, Source

_TYPES = {"bmp": "bmp", "gif": "gif", "jpeg": "jpeg", "jpg": "jpeg", "png": "png", "webp": "webp"}
IMAGE_TYPES = {f".{suffix}": f"image/{kind}" for suffix, kind in _TYPES.items()}
_SMALL = 96  # pixels
_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "WEBP")


class Tasks:
    """All tasks, in the order of their file.

    `ids` are integers or strings, as in the file, and `names` the same as strings: what the service and the database
    call them. `texts` and `images`, which are paths, are what is shown of them.
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
            if bad := [name for name in self.names if len(name) > MOST_LETTERS or "\0" in name]:
                raise ValueError(f"must have ids of at most {MOST_LETTERS} characters, no NUL; got {show(bad[0])}.")
        self.place = {name: place for place, name in enumerate(self.names)}
        self.images = None if files is None else [_inside(folder, name, path) for name in files]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def digest(self) -> str:
        """A hash that changes whenever a task is added, removed or moved."""
        return hashlib.sha256("\0".join(self.names).encode()).hexdigest()

    def shown(self, name: str) -> dict[str, Any]:
        """Return what a worker sees of a task."""
        text = None if self.texts is None else self.texts[self.place[name]]
        return {"task": name, "text": text, "has_image": self.images is not None}


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
    """Raise an error if a table is not a table of tasks, or if no fit could learn from it, before anybody labels."""
    Tasks(path.parent, replace(settings, tasks=path.name))
    shown = tuple(name for name in (settings.text, settings.image) if name)
    if settings.learn_from == "features":
        read_features(path, task=settings.task, ignore=shown)
    elif settings.learn_from == "text":
        read_texts(path, settings.text, fields=Fields(settings.task))


class Thumbnails(NamedTuple):
    """Images as rows of numbers, all of one small size, for a quick model; and which of them cannot be read.

    The row of an image that cannot be read is the mean of the others.
    """

    X: Any
    unreadable: list[int]


def thumbnails(paths: list[Path], *, most: int = 16) -> Thumbnails:
    """Return the images, brought to one small size."""
    size: tuple[int, int] | None = None
    rows: dict[int, Any] = {}
    for place, path in enumerate(paths):
        with suppress(ValueError), opened_image(path) as image:
            size = size or (min(most, image.width), min(most, image.height))
            rows[place] = np.asarray(image.convert("RGB").resize(size), dtype=np.float32).reshape(-1)
    if not rows:
        raise ValueError(f"the images must be files that can be read; got none of {len(paths)}.")
    mean = np.mean(list(rows.values()), axis=0, dtype=np.float64).astype(np.float32)
    found = np.stack([rows.get(place, mean) for place in range(len(paths))]) / 255
    if (found.reshape(len(found), -1, 3).std(axis=2) == 0).all():  # grey
        found = found[:, ::3]
    return Thumbnails(found, [place for place in range(len(paths)) if place not in rows])


@contextmanager
def opened_image(path: Path) -> Iterator[Any]:
    """Open an image for people and models; the error says why it cannot be used."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise ImportError("images need Pillow; install it with: pip install 'labelonce[images]'.") from error
    if path.is_symlink():
        raise ValueError("it is a link, and links are not followed")
    if not path.is_file():
        raise ValueError("there is no such file" if not path.exists() else "it is no file")
    try:
        with strict_about_bombs(), Image.open(path, formats=_FORMATS) as image:
            image.load()
            yield image
    except UnidentifiedImageError as error:
        raise ValueError(f"it is no image ({', '.join(_FORMATS)})") from error
    except Exception as error:  # a broken file may fail in any way
        raise ValueError(f"it cannot be read: {clip(printable(str(error)), 100)}") from error


def small_copy(path: Path) -> bytes:
    """Return an image of the size of a thumbnail as PNG; nothing of one that cannot be read."""
    sink = BytesIO()
    with suppress(ValueError), opened_image(path) as image:
        image.thumbnail((_SMALL, _SMALL))
        image.convert("RGBA").save(sink, "PNG")
    return sink.getvalue()


def why_unusable(path: Path) -> str | None:
    """Return why a file is no image that can be used, None where it is one."""
    try:
        with opened_image(path):
            return None
    except ValueError as error:
        return str(error)


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
    plain = Path(os.path.normpath(folder.resolve() / name))
    if path != plain or not path.is_relative_to(folder.resolve()) or path.suffix.lower() not in IMAGE_TYPES:
        kinds = ", ".join(IMAGE_TYPES)
        raise ValueError(f"{file} must name images ({kinds}) below {folder}, and no links; got {show(name)}.")
    return path


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))
