"""A folder of images: which belongs to which task, all of one small size, and what the files held."""

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow.compute as pc

from labelonce._messages import argument, show
from labelonce._types import TABLES, Ids
from labelonce.data import Annotations, _ids
from labelonce.files import (
    File,
    by_stem,
    content_of,
    files_in,
    is_picture,
    naming,
    picture,
    pictures_in,
    read_table,
    strict_about_bombs,
)
from labelonce.runs._inputs import Rows, joined_texts, one_text_per_task, tasks_of
from labelonce.runs._labels import find_files
from labelonce.runs._record import InputFile, Named, Options

SMALL = 5_000  # images: below it small batches, see docs/neural.md
_COLUMN = "image"
_SIZES = (16, 256)
_STEPS = 320, 960  # fewest and most of a network for few images; between them one per image, about 64 epochs


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


def check_extras(options: Options) -> None:
    """Raise an error that says what to install where Pillow or torch is missing."""
    network = (("torch", "PyTorch"), ("safetensors", "safetensors")) if options.effort != "quick" else ()
    for module, name in (("PIL", "Pillow"), *network):
        if find_spec(module) is None:
            raise ValueError(
                f"{argument('images')} needs {name}; install it with: pip install 'labelonce[images,neural]'."
            )


def flattened(rows: Rows) -> Rows:
    """Return images as numbers, for a quick model."""
    return replace(rows, X=rows.X.reshape(len(rows.X), -1).astype(np.float32) / 255)


def network_for(n_images: int, *, longer: bool = False) -> Any:
    """Return the network for N images: `image_learner`; with few images a small one with small batches, soft targets.

    `longer`: it is trained twice as long.
    """
    from labelonce.neural import TorchLearner, fast_net, image_learner

    if n_images >= SMALL:
        usual = image_learner()
        return usual.set_params(epochs=2 * usual.epochs) if longer else usual
    times, (least, most) = 2 if longer else 1, _STEPS
    steps = times * min(max(n_images, least), most)
    few: dict[str, Any] = {"epochs": 16 * times, "epochs_by_round": (8 * times,), "min_steps": steps}
    few |= {"batch_size": 64, "pad": 2, "label_smoothing": 0.2, "strong": 0.5, "ema": 0.99}
    rate: dict[str, Any] = {"lr": 0.5, "momentum": 0.85, "weight_decay": 1.3e-3, "warmup": 0.23}
    return TorchLearner(partial(fast_net, widths=(16, 32, 32)), **few, **rate)


def read_images(
    folder: Path, size: int | None, labels: Path | Sequence[File], annotations: Annotations, *, task: str
) -> Images:
    """Return the images of all labelled tasks, and as unlabelled tasks the other ones in the folder.

    With the size None their paths are `rows.X`, for an embedding.
    A column `image` of the labels names the files; without it a file is named by its task, with or without suffix.
    """
    if size is not None:
        check_size(size)
    labelled = annotations.tasks[np.unique(annotations.task)]
    named = [rows for file in find_files(labels) if (rows := _named_files(file, task)) is not None]
    if named:
        column = joined_texts(named)
        return _load(folder, [folder / name for name in column.X], column.tasks, size, "column")
    by_name = {path.name: path for path in files_in(folder)}
    wanted = [str(one) for one in labelled.tolist()]
    if all(name in by_name for name in wanted):
        rest = sorted(set(by_name) - set(wanted))
        names = [*wanted, *(name for name in rest if is_picture(by_name[name]))]
        return _load(folder, [by_name[name] for name in names], _as_tasks(names, labelled, folder), size, "name")
    stems = by_stem(path for path in by_name.values() if is_picture(path))
    lost = [name for name in wanted if name not in stems]
    if lost:
        raise ValueError(
            f"{folder} must hold an image for every labelled task; got none for {show(lost[0])} ({len(lost)} of "
            f"{len(wanted)} tasks in total). Name files by their task ids, as in {lost[0]}.png, or name them in a "
            f"column {_COLUMN!r} of the labels."
        )
    names = [*wanted, *sorted(set(stems) - set(wanted))]
    return _load(folder, [stems[name] for name in names], _as_tasks(names, labelled, folder), size, "stem")


def read_new_images(folder: Path, size: int | None, named: Named) -> Rows:
    """Return all images in a folder, by their names or, where the run's tasks have no suffix, by their stems."""
    chosen = pictures_in(folder, suffix=named != "stem")
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


def _load(folder: Path, paths: list[Path], tasks: Ids, size: int | None, named: Named) -> Images:
    """Read the files, once each, in the order given."""
    X: Any = list(map(str, paths)) if size is None else np.empty((len(paths), size, size, 3), dtype=np.uint8)
    digest, n_bytes = hashlib.sha256(), 0
    with strict_about_bombs(), ThreadPoolExecutor() as pool:
        for row, (found, length, image) in enumerate(pool.map(partial(_read_one, size=size), paths)):
            digest.update(f"{tasks[row]}\0".encode() + found)
            n_bytes += length
            if image is not None:
                X[row] = image
    return Images(Rows(tasks, X, None), paths, named, InputFile(str(folder), digest.hexdigest(), n_bytes, len(paths)))


def _read_one(path: Path, *, size: int | None) -> tuple[bytes, int, Any]:
    """Return a file's SHA-256, its length and its image, if a size is given."""
    content = content_of(path)
    image = None if size is None else np.asarray(picture(content, path, size=(size, size)))
    return hashlib.sha256(content).digest(), len(content), image
