"""The tasks most worth another look."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelonce._types import Codes, Floats
from labelonce.data import _rows
from labelonce.report._facts import Facts
from labelonce.report._media import data_uri, of_task, short_text

MOST = 15
_LABELS_SHOWN = 6
UNSURE = 0.8


def least_sure(facts: Facts) -> Codes:
    """Return the labelled tasks whose label is least probable, first the least sure, those below `UNSURE`."""
    top = facts.posterior.max(axis=1)
    return _ranked(np.where(facts.labelled & (top < UNSURE), 1 - top, -1.0))


def disagreements(facts: Facts) -> Codes:
    """Return the labelled tasks where the model, or else the posterior, contradicts the crowd the most."""
    view = facts.posterior if facts.predictions is None else facts.predictions
    return _ranked(np.where(facts.labelled, contradiction(view, facts.votes), -1.0))


def contradiction(view: Floats, votes: Floats) -> Floats:
    """Return how much more probable the view's class is than the crowd's, times the crowd's share of votes.

    0 or less where they agree; where the crowd is tied, the class that the view likes best stands for it.

    >>> contradiction(np.array([[0.9, 0.1], [0.9, 0.1]]), np.array([[0.0, 1.0], [0.5, 0.5]]))
    array([0.8, 0. ])
    """
    top = votes.max(axis=1)
    crowd = np.where(votes == top[:, None], view, -1.0).max(axis=1)
    return np.asarray((view.max(axis=1) - crowd) * top)


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
        second = int(np.argsort(-posterior, kind="stable")[1]) if len(posterior) > 1 else None
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
                "model": _model_view(facts, task),
                "given": [(str(ann.workers[ann.worker[row]]), str(ann.classes[ann.label[row]])) for row in shown],
                "more": len(given) - len(shown),
            }
        )
    return rows


def _model_view(facts: Facts, task: int) -> tuple[str, float] | None:
    if facts.predictions is None:
        return None
    pick = int(facts.predictions[task].argmax())
    return str(facts.annotations.classes[pick]), float(facts.predictions[task, pick])
