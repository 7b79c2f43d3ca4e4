"""Check boxes: sent as a list of classes, stored as one word; their fit, and what is shown about it."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import beta

from labelonce._types import Floats, Ids
from labelonce.multilabel import MultiLabelAnnotations
from labelonce.report import LEVEL, SPAMMER_GAIN
from labelonce.service._outlook import outlook
from labelonce.service._project import Project

NO, YES = ANSWERS = ("no", "yes")
_FEW_TASKS = 10
_STRICT = 0.1  # how much more, or less, than is true of the boxes a worker ticks, to be told


def stored(ticked: Iterable[str], classes: Sequence[str]) -> str:
    """Return the stored form of the ticked classes: JSON, in the order of the classes, so that equal ones are equal.

    >>> stored(["sea", "dog"], ["dog", "cat", "sea"])
    '["dog", "sea"]'
    """
    chosen = set(ticked)
    known = [one for one in classes if one in chosen]
    return json.dumps([*known, *sorted(chosen.difference(classes))], ensure_ascii=False)


def ticked(label: str) -> list[str]:
    """Return the ticked classes of what is stored.

    >>> ticked('["dog", "sea"]'), ticked("[]")
    (['dog', 'sea'], [])
    """
    found: list[str] = json.loads(label)
    return found


def answers_of(labels: Sequence[str], classes: Sequence[str]) -> Ids:
    """Return what stored labels say about every class, (n_labels, n_classes): the questions of a `Router`.

    >>> answers_of(['["sea"]', "[]"], ["dog", "sea"]).tolist()
    [['no', 'yes'], ['no', 'no']]
    """
    chosen = [set(ticked(label)) for label in labels]
    found = [YES if one in said else NO for said in chosen for one in classes]
    return np.array(found, dtype=object).reshape(-1, len(classes))


def rows_of(chances: Floats) -> Floats:
    """Return P(no), P(yes) of every box, a row each, from P(yes) by task and class."""
    return np.stack([1 - chances, chances], axis=2).reshape(-1, 2)


def boxes_in(table: pa.Table, project: Project) -> MultiLabelAnnotations:
    """Return the answers of a fit as annotations with all tasks and classes."""
    boxes = [ticked(label) for label in table["label"].to_pylist()]
    classes = list(project.settings.classes)
    annotations = MultiLabelAnnotations.from_ticked(table["task"], table["worker"], boxes, questions=classes)
    return annotations.align(project.tasks.ids)


def posterior_of(model: Any) -> Floats:
    """Return P(yes) of every box, (n_tasks, n_classes); for tasks that nobody saw, the share of yes."""
    found = np.asarray(model.posterior_, dtype=np.float64)
    shares = np.nanmean(found, axis=0, keepdims=True)
    return np.where(np.isnan(found), shares, found)


def about_boxes(model: Any, annotations: MultiLabelAnnotations) -> dict[str, Any]:
    """Return what is shown about a fit: the share of right boxes, workers, and what more labels would bring."""
    posterior = posterior_of(model)
    return {
        "labels": len(annotations) // annotations.n_questions,
        "accuracy": _accuracy(model, posterior),
        "doubts": list(getattr(model, "doubts_", [])),
        "workers": _workers(model, annotations, posterior.mean(axis=0)),
        "worker_ids": [str(one) for one in annotations.workers.tolist()],
        "outlook": outlook(rows_of(posterior), model.confusion_.mean(axis=0)),
    }


def _accuracy(model: Any, posterior: Floats) -> dict[str, float]:
    """Return the estimated share of right boxes with its range: that of the fit, where it held something out."""
    verdict = getattr(model, "verdict_", None)
    if verdict is not None and verdict.held_out:
        found = verdict.accuracy()
        return {"accuracy": found.value, "low": found.low, "high": found.high}
    wrong = np.minimum(posterior, 1 - posterior)
    mean, spread = 1 - wrong.mean(), 1.645 * np.sqrt((wrong * (1 - wrong)).sum()) / wrong.size
    return {"accuracy": mean, "low": max(0.0, mean - spread), "high": min(1.0, mean + spread)}


def _workers(model: Any, annotations: MultiLabelAnnotations, share: Floats) -> dict[str, Any]:
    """Return every worker's chance that a box is right, with an interval that counts a task once, and flags."""
    confusion = model.confusion_
    skill = (share * confusion[:, :, 1, 1] + (1 - share) * confusion[:, :, 0, 0]).mean(axis=1)
    informed = (confusion[:, :, 1, 1] + confusion[:, :, 0, 0] - 1).mean(axis=1)
    tasks = np.bincount(annotations.worker, minlength=annotations.n_workers) // annotations.n_questions
    tails = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    low, high = (beta.ppf(tail, skill * tasks + 0.5, (1 - skill) * tasks + 0.5) for tail in tails)
    table = model.workers_to_frame().to_pydict()
    strictness = dict(zip(table["worker"], table["strictness"], strict=True))
    found = {}
    for code, worker in enumerate(annotations.workers.tolist()):
        flags = [
            *(["spammer"] if informed[code] < SPAMMER_GAIN and tasks[code] >= _FEW_TASKS else []),
            *(["ticks too little"] if strictness[worker] > _STRICT else []),
            *(["ticks too much"] if strictness[worker] < -_STRICT else []),
            *(["too few labels"] if tasks[code] < _FEW_TASKS else []),
        ]
        interval = {"low": float(min(low[code], skill[code])), "high": float(max(high[code], skill[code]))}
        found[str(worker)] = {"skill": float(skill[code]), "flags": flags} | interval
    return found
