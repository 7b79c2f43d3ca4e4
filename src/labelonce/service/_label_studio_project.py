"""A project folder made of a project in Label Studio."""

import tempfile
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from labelonce.io import write
from labelonce.service._label_studio import read_config
from labelonce.service._label_studio_api import LabelStudio
from labelonce.service._project import Project

_TEXTS = ("Text", "HyperText", "Paragraphs")


def project_from(folder: Path, api: LabelStudio, **settings: Any) -> Project:
    """Make a project folder with the tasks of a Label Studio project, under its own task ids.

    What the labelling interface shows as text or image is what a model learns from, unless the tasks hold numbers, or
    lists of numbers: those are features then.
    """
    control = read_config(api.config())
    tasks = api.tasks()
    if not tasks:
        raise ValueError(f"project {api.project} of {api.url} must have tasks; got none.")
    rows: dict[str, list[Any]] = {"task": [task["id"] for task in tasks]}
    fields = dict(control.shown)
    text = next((fields[kind] for kind in _TEXTS if kind in fields), "")
    image = fields.get("Image", "")
    rows |= _numbers([task["data"] for task in tasks], {text, image})
    if text:
        rows[text] = [str(task["data"].get(text, "")) for task in tasks]
    with tempfile.TemporaryDirectory() as temporary:
        if image:
            rows[image] = [_download(api, task, image, Path(temporary)) for task in tasks]
        write(pa.table(rows), Path(temporary) / "tasks.parquet")
        columns = {"task": "task", "text": text, "image": image}
        return Project.make(folder, Path(temporary) / "tasks.parquet", control.classes, **columns | settings)


def _numbers(data: list[dict[str, Any]], shown: set[str]) -> dict[str, list[Any]]:
    """Return the columns of numbers that every task has, lists of them one column each."""
    found: dict[str, list[Any]] = {}
    for name, first in data[0].items():
        if name in shown or name == "task":
            continue
        values: list[Any] = [one.get(name) for one in data]
        if isinstance(first, list) and all(isinstance(one, list) and len(one) == len(first) for one in values):
            columns = {f"{name} {place}": [one[place] for one in values] for place in range(len(first))}
        else:
            columns = {name: values}
        found |= {key: column for key, column in columns.items() if all(_is_number(one) for one in column)}
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _download(api: LabelStudio, task: dict[str, Any], field: str, folder: Path) -> str:
    """Fetch the image of a task and return its name."""
    source = str(task["data"][field])
    name = f"images/{task['id']}{PurePosixPath(urlsplit(source).path).suffix.lower()}"
    (folder / "images").mkdir(exist_ok=True)
    (folder / name).write_bytes(api.content(source))
    return name
