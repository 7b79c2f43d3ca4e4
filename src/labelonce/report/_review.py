"""The tasks most worth another look."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelonce._rules import RULES
from labelonce._types import Codes, Floats
from labelonce.data import _rows
from labelonce.report._facts import Facts
from labelonce.report._media import data_uri, of_task, short_text

MOST = 15
_LABELS_SHOWN = 6


def least_sure(facts: Facts) -> Codes:
    """Return the labelled tasks whose label is least probable, first the least sure, those below 0.8."""
    right = facts.posterior[np.arange(len(facts.label)), facts.label]
    return _ranked(np.where(facts.labelled & (right < RULES.review_keep), 1 - right, -1.0))


def overruled(facts: Facts) -> Codes:
    """Return the labelled tasks whose label is not among those given most often, first the most probable."""
    rows = np.arange(len(facts.label))
    against = facts.labelled & (facts.votes[rows, facts.label] < facts.votes.max(axis=1))
    return _ranked(np.where(against, facts.posterior[rows, facts.label], -1.0))


def _ranked(score: Floats) -> Codes:
    order = np.argsort(-score, kind="stable")
    return order[score[order] > 0].astype(np.int32)


def review_rows(facts: Facts, tasks: Codes, texts: Any, images: Any) -> list[dict[str, Any]]:
    """Return what the report shows of some tasks."""
    ann = facts.annotations
    start = _rows.first_rows(ann.task, ann.n_tasks)
    rows = []
    for task in tasks.tolist():
        posterior = facts.posterior[task]
        second = _second(posterior, int(facts.label[task]))
        image = None if images is None else of_task(images, task, ann.tasks, "images")
        text = None if texts is None else of_task(texts, task, ann.tasks, "texts")
        given = range(int(start[task]), int(start[task + 1]))
        shown = given[:_LABELS_SHOWN]
        rows.append(
            {
                "task": str(ann.tasks[task]),
                "text": None if text is None else short_text(text),
                "image": None if image is None else data_uri(image, ann.tasks[task]),
                "label": str(ann.classes[facts.label[task]]),
                "confidence": float(posterior[facts.label[task]]),
                "second": None if second is None else str(ann.classes[second]),
                "second_confidence": 0.0 if second is None else float(posterior[second]),
                "undecided": facts.is_undecided(task),
                "model": _model_view(facts, task),
                "given": [(str(ann.workers[ann.worker[row]]), str(ann.classes[ann.label[row]])) for row in shown],
                "more": len(given) - len(shown),
            }
        )
    return rows


def _second(posterior: Floats, label: int) -> int | None:
    """Return the most probable class besides the label."""
    others = [k for k in np.argsort(-posterior, kind="stable").tolist() if k != label]
    return others[0] if others else None


def _model_view(facts: Facts, task: int) -> tuple[str, float] | None:
    if facts.predictions is None:
        return None
    pick = int(facts.predictions[task].argmax())
    return str(facts.annotations.classes[pick]), float(facts.predictions[task, pick])
