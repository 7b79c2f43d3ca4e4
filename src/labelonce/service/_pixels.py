"""Small copies of a project's images as numbers: what a quick model learns from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from labelonce.files._atomic import atomic_write
from labelonce.io import write
from labelonce.service._project import Project
from labelonce.service._tasks import thumbnails


class Pixels(NamedTuple):
    """The file with one row per task, and the tasks whose images cannot be read: nothing is learned from these."""

    path: Path
    unreadable: list[str]


def pixels(project: Project) -> Pixels:
    """Return the pixels of all tasks, which are made once for a list of tasks."""
    tasks = project.tasks
    path = project.fits / f"pixels-{tasks.digest[:16]}.parquet"
    unreadable = path.with_suffix(".json")
    if not path.exists():
        X, bad = thumbnails(tasks.images or [])
        columns = {f"pixel {place}": X[:, place] for place in range(X.shape[1])}
        project.fits.mkdir(parents=True, exist_ok=True)
        atomic_write(unreadable, json.dumps([tasks.names[place] for place in bad]).encode())
        write(pa.table({"task": pa.array(tasks.ids)} | columns), path)
    return Pixels(path, json.loads(unreadable.read_bytes()))
