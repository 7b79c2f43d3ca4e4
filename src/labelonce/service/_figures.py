"""What the dashboard shows of all answers: agreement, classes, seconds, why tasks were skipped, and comments."""

from __future__ import annotations

from collections import Counter
from math import isfinite
from statistics import median
from typing import Any

import pyarrow as pa

from labelonce.data import Annotations, agreement
from labelonce.multilabel import MultiLabelAnnotations
from labelonce.service._boxes import ticked
from labelonce.service._project import Project
from labelonce.service._store import Comment, Store, Stored, labels

_NEWEST = 50  # skips and comments


def figures(project: Project, rows: list[Stored], comments: list[Comment]) -> dict[str, Any]:
    """Return the figures of a project's answers."""
    rows = [row for row in rows if row.task in project.tasks.place]
    skips = [row for row in rows if row.label is None]
    return {
        "agreement": _agreement(project, labels(rows)),
        "given": _given(project, labels(rows)),
        "seconds": _seconds(rows),
        "reasons": Counter(row.reason or "" for row in skips).most_common(20),
        "remarks": remarks(skips, comments)[:_NEWEST],
    }


def remarks(skips: list[Stored], comments: list[Comment]) -> list[dict[str, Any]]:
    """Return skips and comments, the newest first."""
    found = [
        {
            "kind": "skip",
            "task": one.task,
            "worker": one.worker,
            "text": one.reason,
            "flagged": False,
            "at": one.given_at,
        }
        for one in skips
    ]
    found += [
        {
            "kind": "comment",
            "task": one.task,
            "worker": one.worker,
            "text": one.text,
            "flagged": one.flagged,
            "at": one.given_at,
        }
        for one in comments
    ]
    return sorted(found, key=lambda one: -one["at"])


def remarks_table(skips: list[Stored], comments: list[Comment]) -> pa.Table:
    """Return skips and comments as a table."""
    kinds = {
        "kind": pa.string(),
        "task": pa.string(),
        "worker": pa.string(),
        "text": pa.string(),
        "flagged": pa.bool_(),
    }
    found = remarks(skips, comments)
    columns = {name: pa.array([one[name] for one in found], kind) for name, kind in kinds.items()}
    return pa.table(columns | {"at": pa.array([round(1000 * one["at"]) for one in found], pa.timestamp("ms", "UTC"))})


def of_task(store: Store, task: str, *, boxes: bool) -> dict[str, Any]:
    """Return what everybody said of a task."""
    rows = store.of_task(task)
    said = [
        {"worker": row.worker, "label": ", ".join(ticked(row.label)) if boxes else row.label, "seconds": row.seconds}
        for row in rows
        if row.label is not None
    ]
    comments = [one for one in store.comments() if one.task == task]
    return {"answers": said, "remarks": remarks([row for row in rows if row.label is None], comments)}


def _agreement(project: Project, rows: list[Stored]) -> dict[str, Any] | None:
    """Return how far people agree, None where no two have labelled the same task."""
    per_task = Counter(row.task for row in rows)
    shared = [row for row in rows if per_task[row.task] > 1]
    if not shared:
        return None
    tasks, workers = [row.task for row in shared], [row.worker for row in shared]
    names = list(project.settings.classes)
    known: Any
    if project.settings.multilabel:
        known = MultiLabelAnnotations.from_ticked(
            tasks, workers, [ticked(row.label or "[]") for row in shared], questions=names
        )
    else:
        known = Annotations.from_arrays(tasks, workers, [row.label for row in shared], classes=names)
    found = agreement(known).to_dict()
    classes = [] if project.settings.multilabel else found["classes"]
    return {"tasks": found["n_tasks"], "percent": found["percent"], "alpha": found["alpha"], "classes": classes}


def _given(project: Project, rows: list[Stored]) -> dict[str, int]:
    """Return how often each class was given."""
    if project.settings.multilabel:
        count = Counter(one for row in rows for one in ticked(row.label or "[]"))
    else:
        count = Counter(row.label or "" for row in rows)
    return {one: count[one] for one in project.settings.classes}


def _seconds(rows: list[Stored]) -> dict[str, float]:
    """Return the seconds that half of each worker's labels took at most."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if row.seconds is not None and isfinite(row.seconds):
            found.setdefault(row.worker, []).append(row.seconds)
    return {worker: median(seconds) for worker, seconds in found.items()}
