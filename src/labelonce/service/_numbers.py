"""The features of a project's texts or images: embeddings of a pretrained model, or small images."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from labelonce import embed
from labelonce.files import atomic_write
from labelonce.io import write
from labelonce.service._project import Project
from labelonce.service._tasks import Thumbnails, thumbnails, why_unusable

Progress = Callable[[str, int, int], None]


class Numbers(NamedTuple):
    """The file with one row per task, and the tasks whose images cannot be read: nothing is learned from these."""

    path: Path
    unreadable: list[str]


def encode_tasks(project: Project, progress: Progress | None = None) -> None:
    """Embed the tasks that are not embedded yet, so that no fit has to wait for it."""
    if project.settings.embed and project.settings.learn_from == "images":
        numbers(project, progress)
    elif project.settings.embed and project.tasks.texts is not None:
        embed.texts(project.tasks.texts, model=project.settings.embed, progress=progress)


def numbers(project: Project, progress: Progress | None = None) -> Numbers:
    """Return the images of all tasks as numbers, which are made once for a list of tasks."""
    tasks, model = project.tasks, project.settings.embed
    kind = f"embedded-{hashlib.sha256(model.encode()).hexdigest()[:8]}" if model else "pixels"
    path = project.fits / f"{kind}-{tasks.digest[:16]}.parquet"
    unreadable = path.with_suffix(".json")
    if not path.exists():
        images = tasks.images or []
        X, bad = _embedded(images, model, progress) if model else thumbnails(images)
        columns = {f"{'number' if model else 'pixel'} {place}": X[:, place] for place in range(X.shape[1])}
        project.fits.mkdir(parents=True, exist_ok=True)
        atomic_write(unreadable, json.dumps([tasks.names[place] for place in bad]).encode())
        write(pa.table({"task": pa.array(tasks.ids)} | columns), path)
    return Numbers(path, json.loads(unreadable.read_bytes()))


def _embedded(paths: list[Path], model: str, progress: Progress | None) -> Thumbnails:
    """Return the numbers of the images; the row of one that cannot be read is the mean of the others."""
    bad = [place for place, path in enumerate(paths) if why_unusable(path) is not None]
    good = np.setdiff1d(np.arange(len(paths)), bad)
    if not len(good):
        raise ValueError(f"the images must be files that can be read; got none of {len(paths)}.")
    found = embed.images([paths[place] for place in good], model=model, progress=progress).X
    X: Any = np.tile(found.mean(axis=0), (len(paths), 1))
    X[good] = found
    return Thumbnails(X, bad)
