"""The fit of check boxes: its answers, and what is shown about it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import beta

from labelonce._types import Floats
from labelonce.multilabel import MultiLabelAnnotations
from labelonce.report import LEVEL, SPAMMER_GAIN
from labelonce.service._boxes import rows_of, ticked
from labelonce.service._outlook import outlook
from labelonce.service._project import Project

_FEW_TASKS = 10
_STRICT = 0.1  # how much more, or less, than is true of the boxes a worker ticks, to be told


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
