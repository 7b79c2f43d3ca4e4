"""A folder of images: which belongs to which task, all of one small size, and what the files held."""

from __future__ import annotations

import hashlib
import io
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow.compute as pc

from labelonce._messages import argument, show
from labelonce._types import TABLES, Ids
from labelonce.data import Annotations, _ids
from labelonce.files._open import File, naming
from labelonce.files._table_reader import read_table
from labelonce.runs._inputs import Rows, joined_texts, one_text_per_task, tasks_of
from labelonce.runs._labels import find_files
from labelonce.runs._record import InputFile, Named

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")
SMALL = 5_000  # images: below it small batches, see docs/neural.md
_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")  # Pillow hands others, such as EPS, to other programs
_COLUMN = "image"
_SIZES = (16, 256)


@dataclass(frozen=True)
class Images:
    """The images of tasks: `rows.X` is uint8 (n_tasks, size, size, 3), and where each of them came from.

    `named` says how files are named: by the task with their suffix ("name") or without ("stem"), or by a column of the
    labels ("column").
    """

    rows: Rows
    paths: list[Path]
    named: Named
    fingerprint: InputFile


def check_extras() -> None:
    """Raise an error that says what to install where Pillow or torch is missing."""
    for module, name in (("PIL", "Pillow"), ("torch", "PyTorch"), ("safetensors", "safetensors")):
        if find_spec(module) is None:
            raise ValueError(
                f"{argument('images')} needs {name}; install it with: pip install 'labelonce[images,neural]'."
            )


def network_for(n_images: int) -> Any:
    """Return the network for so many images: `image_learner`, for few of them small, with small batches."""
    from labelonce.neural import fast_net, image_learner

    if n_images >= SMALL:
        return image_learner()
    few: dict[str, Any] = {"epochs": 16, "epochs_by_round": (8,), "batch_size": 64, "min_steps": 320, "lr": 0.5}
    return image_learner(module_fn=partial(fast_net, widths=(16, 32, 32)), n_models=1, cutout=0, pad=2, **few)


def read_images(
    folder: Path, size: int, labels: Path | Sequence[File], annotations: Annotations, *, task: str
) -> Images:
    """Return the images of all labelled tasks, and as unlabelled tasks the other ones in the folder.

    A column `image` of the labels names the files; without it a file is named by its task, with or without suffix.
    """
    check_size(size)
    labelled = annotations.tasks[np.unique(annotations.task)]
    named = [rows for file in find_files(labels) if (rows := _named_files(file, task)) is not None]
    if named:
        column = joined_texts(named)
        return _load(folder, [folder / name for name in column.X], column.tasks, size, "column")
    by_name = {path.name: path for path in _listed(folder)}
    wanted = [str(one) for one in labelled.tolist()]
    if all(name in by_name for name in wanted):
        rest = sorted(set(by_name) - set(wanted))
        names = [*wanted, *(name for name in rest if _is_image(by_name[name]))]
        return _load(folder, [by_name[name] for name in names], _as_tasks(names, labelled, folder), size, "name")
    by_stem = _by_stem(path for path in by_name.values() if _is_image(path))
    lost = [name for name in wanted if name not in by_stem]
    if lost:
        raise ValueError(
            f"{folder} must hold an image for every labelled task; got none for {show(lost[0])} ({len(lost)} of "
            f"{len(wanted)} tasks in total). Name files by their task ids, as in {lost[0]}.png, or name them in a "
            f"column {_COLUMN!r} of the labels."
        )
    names = [*wanted, *sorted(set(by_stem) - set(wanted))]
    return _load(folder, [by_stem[name] for name in names], _as_tasks(names, labelled, folder), size, "stem")


def read_new_images(folder: Path, size: int, named: Named) -> Rows:
    """Return all images in a folder, by their names or, where the run's tasks have no suffix, by their stems."""
    found = [path for path in _listed(folder) if _is_image(path)]
    if not found:
        raise ValueError(f"{folder} must hold images ({', '.join(SUFFIXES)}); got none.")
    chosen = _by_stem(found) if named == "stem" else {path.name: path for path in found}
    names = sorted(chosen)
    return _load(folder, [chosen[name] for name in names], np.array(names, dtype=object), size, named).rows


def check_size(size: int) -> None:
    """Raise an error for a size that no network here takes."""
    low, high = _SIZES
    if not low <= size <= high:
        raise ValueError(f"{argument('image_size')} must be between {low} and {high} pixels; got {size}.")


def _named_files(file: File, task: str) -> Rows | None:
    """Return the files that a column of the labels names, one row per task; None where there is no such column."""
    if file.format not in TABLES:
        return None
    with naming(file):
        table = read_table(file, [task, _COLUMN])
        if _COLUMN not in table.column_names or task not in table.column_names:
            return None
        names = table.column(_COLUMN)
        if not _ids.is_text(names.type) or names.null_count or pc.any(pc.equal(names, "")).as_py():
            raise ValueError(f"column {_COLUMN!r} must name a file in every row; got {names.type}.")
        rows = one_text_per_task(tasks_of(table, task, file, repeated=True), names.to_pylist(), _COLUMN)
        for name in rows.X:
            _check_inside(name)
        return rows


def _check_inside(name: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"column {_COLUMN!r} must name files inside the folder; got {show(name)}.")


def _listed(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise ValueError(f"{folder} must be a folder of images; got {'a file' if folder.exists() else 'nothing'}.")
    return [path for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")]


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES


def _by_stem(paths: Iterable[Path]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in sorted(paths):
        if found.setdefault(path.stem, path) != path:
            raise ValueError(
                f"{path.parent} must hold one image per task; got {show(found[path.stem].name)} and "
                f"{show(path.name)}. Remove one of them."
            )
    return found


def _as_tasks(names: list[str], labelled: Ids, folder: Path) -> Ids:
    """Return names as task ids of the kind that the labels have."""
    if labelled.dtype == object:
        return np.array(names, dtype=object)
    for name in names:
        if not name.isdecimal() or str(int(name)) != name:
            raise ValueError(
                f"{folder} must hold images named by numbers, as the tasks are; got {show(name)}. Move it elsewhere."
            )
    return np.array([int(name) for name in names])


def _load(folder: Path, paths: list[Path], tasks: Ids, size: int, named: Named) -> Images:
    """Read the files, once each, in the order given."""
    X = np.empty((len(paths), size, size, 3), dtype=np.uint8)
    digest, n_bytes = hashlib.sha256(), 0
    with strict_about_bombs(), ThreadPoolExecutor() as pool:
        for row, (found, length, X[row]) in enumerate(pool.map(partial(_read_one, size=size), paths)):
            digest.update(f"{tasks[row]}\0".encode() + found)
            n_bytes += length
    return Images(Rows(tasks, X, None), paths, named, InputFile(str(folder), digest.hexdigest(), n_bytes, len(paths)))


@contextmanager
def strict_about_bombs() -> Iterator[None]:
    """Make Pillow's warning of huge images an error, and its other warnings none of ours."""
    from PIL import Image

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        yield


def _read_one(path: Path, *, size: int) -> tuple[bytes, int, Any]:
    """Return a file's SHA-256, its length and its image."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} must be an image that can be read; got: {error.strerror}.") from error
    return hashlib.sha256(content).digest(), len(content), _squared(content, path, size)


def _squared(content: bytes, path: Path, size: int) -> Any:
    """Return an image in RGB, upright, on white where it is transparent, stretched to a square."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(content), formats=_FORMATS) as opened:
            opened.draft("RGB", (2 * size, 2 * size))
            image = ImageOps.exif_transpose(opened)
            return np.asarray(_in_colours(image).resize((size, size), Image.Resampling.BILINEAR, reducing_gap=3.0))
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ValueError(
            f"{path} must have at most {Image.MAX_IMAGE_PIXELS:,} pixels, Pillow's limit against files that unpack to "
            "fill the memory; got more. Make it smaller first."
        ) from error
    except Exception as error:  # a broken file may fail in any way
        got = f" {show(content[:12])} at its start" if isinstance(error, UnidentifiedImageError) else f": {error}"
        raise ValueError(f"{path} must be an image that can be read ({', '.join(_FORMATS)}); got{got}") from error


def _in_colours(image: Any) -> Any:
    from PIL import Image

    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    if image.mode in ("I", "F"):
        raise ValueError(f"its colours are of mode {image.mode}; convert it to 8 or 16 bits.")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    return image.convert("RGB")
