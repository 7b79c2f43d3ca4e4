"""The dashboard's figures on all answers: agreement, classes, seconds, why tasks were skipped, and comments."""

from collections import Counter
from math import isfinite
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse
from scipy.stats import beta

from labelonce._types import Floats
from labelonce.data import Annotations, agreement
from labelonce.multilabel import MultiLabelAnnotations
from labelonce.report import FEWEST, clear_change
from labelonce.service._boxes import ticked
from labelonce.service._project import Project
from labelonce.service._store import AnswerRow, Comment, Store, labels

_NEWEST = 50  # skips and comments
_PERIODS = 8
_OF_REMARK = dict.fromkeys(("kind", "task", "worker", "text"), pa.string())
_OF_REMARK |= {"flagged": pa.bool_(), "at": pa.timestamp("ms", "UTC")}


def figures(project: Project, rows: list[AnswerRow], comments: list[Comment], belief: Floats | None) -> dict[str, Any]:
    """Return the figures of a project's answers; figures that need the `belief` of a fit are left out without one."""
    rows = [row for row in rows if row.task in project.tasks.place]
    skips, classes = [row for row in rows if row.label is None], set(project.settings.classes)
    boxes = project.settings.multilabel
    given = [row for row in labels(rows) if (set(ticked(row.label or "[]")) if boxes else {row.label}) <= classes]
    shared = _agreement(project, given)
    agree = {row["label"]: row for row in (shared.pop("classes") if shared else [])}
    names = ("agreement", "agreement_low", "agreement_high")
    return {
        "agreement": shared,
        "classes": [
            row | {name: agree.get(row["label"], {}).get(name) for name in names}
            for row in _classes(project, given, belief)
        ],
        "seconds": _seconds(rows),
        "reasons": Counter(row.reason or "" for row in skips).most_common(20),
        "remarks": remarks(skips, comments)[:_NEWEST],
        **({"periods": [], "changed": {}} if belief is None else _over_time(project, given, belief)),
    }


def remarks(skips: list[AnswerRow], comments: list[Comment]) -> list[dict[str, Any]]:
    """Return skips and comments, the newest first."""
    found = [("skip", one.task, one.worker, one.reason, False, one.given_at) for one in skips]
    found += [("comment", one.task, one.worker, one.text, one.flagged, one.given_at) for one in comments]
    return [dict(zip(_OF_REMARK, one, strict=True)) for one in sorted(found, key=lambda one: -one[-1])]


def remarks_table(skips: list[AnswerRow], comments: list[Comment]) -> pa.Table:
    found = [one | {"at": round(1000 * one["at"])} for one in remarks(skips, comments)]
    return pa.Table.from_pylist(found, pa.schema(_OF_REMARK))


def of_task(store: Store, task: str, *, boxes: bool) -> dict[str, Any]:
    rows = store.of_task(task)
    said = [
        {"worker": row.worker, "label": ", ".join(ticked(row.label)) if boxes else row.label, "seconds": row.seconds}
        for row in rows
        if row.label is not None
    ]
    comments = [one for one in store.comments() if one.task == task]
    return {"answers": said, "remarks": remarks([row for row in rows if row.label is None], comments)}


def _agreement(project: Project, rows: list[AnswerRow]) -> dict[str, Any] | None:
    """Return the agreement of the workers, None if no two have labelled the same task."""
    per_task = Counter(row.task for row in rows)
    shared = [row for row in rows if per_task[row.task] > 1]
    if not shared:
        return None
    tasks, workers = [row.task for row in shared], [row.worker for row in shared]
    names = list(project.settings.classes)
    if project.settings.multilabel:
        boxes = [ticked(row.label or "[]") for row in shared]
        found = agreement(MultiLabelAnnotations.from_ticked(tasks, workers, boxes, questions=names)).to_dict()
    else:
        given = [row.label for row in shared]
        found = agreement(Annotations.from_arrays(tasks, workers, given, classes=names)).to_dict()
    classes = [] if project.settings.multilabel else found["classes"]
    return {"tasks": found["n_tasks"], "percent": found["percent"], "alpha": found["alpha"], "classes": classes}


def _classes(project: Project, rows: list[AnswerRow], belief: Floats | None) -> list[dict[str, Any]]:
    """Return how often each class was given, how often correctly, and which classes were given instead."""
    names = project.settings.classes
    given, places = _given(project, rows), [project.tasks.place[row.task] for row in rows]
    counts = given.sum(axis=0).astype(int)
    found: list[dict[str, Any]] = [{"label": name, "given": n} for name, n in zip(names, counts.tolist(), strict=True)]
    if belief is None or not rows:
        return found
    true = belief[:, 1].reshape(-1, len(names)) if project.settings.multilabel else belief
    by_task = sparse.csr_array((np.ones(len(rows)), (np.arange(len(rows)), places)), shape=(len(rows), len(true)))
    joint = np.asarray((given.T @ by_task) @ true)  # [given, true]
    right, of_class = np.diag(joint), np.asarray(by_task.sum(axis=0) @ true).ravel()
    for place, one in enumerate(found):
        one["precision"] = float(right[place] / counts[place]) if counts[place] else None
        one["recall"] = float(right[place] / of_class[place]) if of_class[place] > 0.5 else None
        others = np.where(np.arange(len(names)) == place, 0, joint[:, place])
        if not project.settings.multilabel and others.max() >= 0.5:
            one["instead"] = [names[int(others.argmax())], float(others.max() / of_class[place])]
    return found


def _over_time(project: Project, rows: list[AnswerRow], belief: Floats) -> dict[str, Any]:
    """Return the accuracy in `periods` of equally many labels, and the halves of workers who clearly `changed`."""
    rows = sorted(rows, key=lambda row: row.given_at)
    right = _chance_of_right(project, rows, belief)
    periods = []
    for part in np.array_split(np.arange(len(rows)), max(1, min(_PERIODS, len(rows) // FEWEST))):
        if len(part) >= FEWEST:
            wrong, n = float(1 - right[part].mean()), len(part)
            low, high = beta.ppf([0.05, 0.95], (1 - wrong) * n + 0.5, wrong * n + 0.5).tolist()
            seconds = [one for place in part if (one := rows[place].seconds) is not None and isfinite(one)]
            period = {"from": rows[part[0]].given_at, "to": rows[part[-1]].given_at, "labels": n, "right": 1 - wrong}
            periods.append(period | {"low": low, "high": high, "seconds": median(seconds) if seconds else None})
    workers = np.array([row.worker for row in rows], dtype=object)
    mine = {str(one): right[workers == one] for one in set(workers.tolist())}
    return {"periods": periods, "changed": {one: halves for one, of in mine.items() if (halves := clear_change(of))}}


def _chance_of_right(project: Project, rows: list[AnswerRow], belief: Floats) -> Floats:
    """Return how probably every label is right; of check boxes the expected share of right ones."""
    given, places = _given(project, rows), [project.tasks.place[row.task] for row in rows]
    if not project.settings.multilabel:
        return np.asarray(belief[places, given.indices])
    yes, ticked_boxes = belief[:, 1].reshape(-1, given.shape[1])[places], given.toarray()
    return np.asarray((ticked_boxes * yes + (1 - ticked_boxes) * (1 - yes)).mean(axis=1))


def _given(project: Project, rows: list[AnswerRow]) -> Any:
    """Return the classes of every label, sparse [label, class]."""
    code = {name: place for place, name in enumerate(project.settings.classes)}
    said = [ticked(row.label or "[]") if project.settings.multilabel else [row.label or ""] for row in rows]
    columns = [code[name] for names in said for name in names]
    ends = np.cumsum([0, *map(len, said)])
    return sparse.csr_array((np.ones(len(columns)), columns, ends), shape=(len(rows), len(code)))


def _seconds(rows: list[AnswerRow]) -> dict[str, float]:
    """Return the median seconds per label of each worker."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if row.seconds is not None and isfinite(row.seconds):
            found.setdefault(row.worker, []).append(row.seconds)
    return {worker: median(seconds) for worker, seconds in found.items()}
