"""Where the files lie, and how they are read."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from labelonce._types import Duplicates
from labelonce.data._annotations import Annotations
from labelonce.datasets._catalogue import CATALOGUE, SHIPPED

ENVIRONMENT_VARIABLE = "LABELONCE_DATA"


def find_root(name: str, root: str | os.PathLike[str] | None) -> Path:
    """Return the folder that a set is read from: the argument, else the package or LABELONCE_DATA."""
    if root is None and CATALOGUE[name].shipped:
        return SHIPPED
    found = root or os.environ.get(ENVIRONMENT_VARIABLE)
    if not found:
        raise FileNotFoundError(_missing(name, f"{ENVIRONMENT_VARIABLE} and root are not set"))
    return Path(found).resolve()


def _missing(name: str, what: str, images: tuple[str, ...] = ()) -> str:
    entry = CATALOGUE[name]
    return (
        f"data set {name!r} is read from the files {', '.join(entry.files + images)} of a data folder, but {what}. "
        f"Prepare them from {entry.origin} as docs/datasets.md says, and set {ENVIRONMENT_VARIABLE} (or root=) to the "
        f"folder that holds {entry.files[0].split('/')[0]}/."
    )


@dataclass(frozen=True)
class Source:
    """The files of one data set under `root`, and what to do with repeated labels."""

    name: str
    root: Path
    duplicates: Duplicates

    def path(self, file: str) -> Path:
        """Return the path of an existing file, given below the data folder."""
        path = self.root / file
        images = CATALOGUE[self.name].images
        for part in (self.root, path.parent, path):
            if not part.exists():
                raise FileNotFoundError(_missing(self.name, f"{part} does not exist", images if file in images else ()))
        return path

    def table(self, file: str) -> pa.Table:
        """Return a Parquet file."""
        return pq.read_table(self.path(file))

    def annotations(self, raw: pa.Table, *, worker: str = "worker", label: str = "label") -> Annotations:
        """Return the labels in a table, all classes declared by code."""
        classes = np.arange(len(CATALOGUE[self.name].classes))
        found = Annotations.from_frame(raw, worker=worker, label=label, classes=classes, duplicates=self.duplicates)
        return found.align(np.sort(found.tasks))  # tasks are numbers of rows

    def array(self, file: str, key: str) -> npt.NDArray[Any]:
        """Return one array of an npz file; the others stay unread."""
        with np.load(self.path(file), allow_pickle=False) as arrays:
            return np.asarray(arrays[key])

    def images(self, file: str, size: int) -> npt.NDArray[np.uint8]:
        """Return the square images of an npz file of WebP tiles, shape (n_images, size, size, 3)."""
        pillow = _import_pillow()
        webp, offsets = self.array(file, "webp"), self.array(file, "offsets")
        tiles = []
        for start, stop in pairwise(offsets):
            with pillow.open(io.BytesIO(webp[start:stop].tobytes())) as picture:
                tiles.append(_cut(np.asarray(picture.convert("RGB")), size))
        return np.concatenate(tiles)


def _cut(tile: npt.NDArray[np.uint8], size: int) -> npt.NDArray[np.uint8]:
    """Return the images of one tile, row by row."""
    height, width = tile.shape[0] // size, tile.shape[1] // size
    return tile.reshape(height, size, width, size, 3).swapaxes(1, 2).reshape(-1, size, size, 3)


def _import_pillow() -> ModuleType:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("reading images needs Pillow; install it with: pip install 'labelonce[images]'.") from error
    return Image
