"""What the next labels are expected to bring: the router's own choices, played through with imagined answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelonce._kernels import floored_log
from labelonce._types import Floats
from labelonce.routing._mutual_information import mutual_information

STEP = 100  # labels
_STEPS = 10
_DRAWS = 8
_AT_ONCE = 20  # tasks that are chosen before the beliefs are updated
_MOST_TASKS = 4_000  # that are looked at, those with the largest risk


def outlook(posterior: Floats, confusion: Floats, *, seed: int = 0) -> list[dict[str, Any]]:
    """Return the expected share of right labels after 0, 100, 200, ... more labels of the average worker.

    True labels are drawn from what is believed, answers from the average worker's confusion matrix, and the tasks are
    those about which an answer tells most. It is as right as the beliefs are.

    Examples
    --------
    >>> posterior = np.full((200, 2), 0.5)
    >>> first, second, *_ = outlook(posterior, np.array([[0.9, 0.1], [0.1, 0.9]]))
    >>> first, second["labels"], round(second["accuracy"], 2)
    ({'labels': 0, 'accuracy': 0.5}, 100, 0.7)
    """
    rng = np.random.default_rng(seed)
    risk = 1 - posterior.max(axis=1)
    looked_at = np.argsort(-risk, kind="stable")[:_MOST_TASKS]
    elsewhere = float(posterior.max(axis=1).sum() - posterior[looked_at].max(axis=1).sum())
    played = np.mean([_played(posterior[looked_at], confusion, rng) for _ in range(_DRAWS)], axis=0)
    shares = (played + elsewhere) / len(posterior)
    return [{"labels": STEP * step, "accuracy": float(share)} for step, share in enumerate(shares)]


def outlook_of_boxes(posterior: Floats, confusion: Floats, *, seed: int = 0) -> list[dict[str, Any]]:
    """Return the expected share of right boxes after 0, 100, 200, ... more labels of the average worker.

    `posterior` is P(yes) of every box, (n_tasks, n_classes), and `confusion` [class, true, ticked] the average worker.
    Tasks are chosen and answers drawn as in `outlook`; a label answers all boxes of a task.

    Examples
    --------
    >>> first, second, *_ = outlook_of_boxes(np.full((200, 3), 0.5), np.tile([[0.9, 0.1], [0.1, 0.9]], (3, 1, 1)))
    >>> first, second["labels"], round(second["accuracy"], 2)
    ({'labels': 0, 'accuracy': 0.5}, 100, 0.7)
    """
    rng = np.random.default_rng(seed)
    right = np.maximum(posterior, 1 - posterior).sum(axis=1)
    looked_at = np.argsort(right, kind="stable")[:_MOST_TASKS]
    elsewhere = float(right.sum() - right[looked_at].sum())
    played = np.mean([_played_boxes(posterior[looked_at], confusion, rng) for _ in range(_DRAWS)], axis=0)
    shares = (played + elsewhere) / posterior.size
    return [{"labels": STEP * step, "accuracy": float(share)} for step, share in enumerate(shares)]


def _played_boxes(posterior: Floats, confusion: Floats, rng: np.random.Generator) -> Floats:
    """Return the expected number of right boxes after every hundred imagined labels."""
    logs, log_confusion, found = floored_log(np.stack([1 - posterior, posterior], axis=2)), floored_log(confusion), []
    truth = (rng.random(posterior.shape) < posterior).astype(np.intp)
    boxes, at_once = np.arange(posterior.shape[1]), min(_AT_ONCE, len(posterior))
    for _ in range(_STEPS):
        found.append(np.exp(logs).max(axis=2).sum())
        for start in range(0, STEP, at_once):
            told = np.sum([mutual_information(np.exp(logs[:, box]), confusion[box]) for box in boxes], axis=0)
            chosen = np.argpartition(told, len(told) - at_once)[-at_once:][: STEP - start]
            chance = confusion[boxes, truth[chosen], 1]
            ticked = (rng.random(chance.shape) < chance).astype(np.intp)
            logs[chosen] += log_confusion[boxes, :, ticked]
            logs[chosen] -= np.logaddexp.reduce(logs[chosen], axis=2, keepdims=True)
    found.append(np.exp(logs).max(axis=2).sum())
    return np.array(found)


def _played(posterior: Floats, confusion: Floats, rng: np.random.Generator) -> Floats:
    """Return the expected number of right labels after every hundred imagined answers."""
    logs, log_confusion, found = floored_log(posterior), floored_log(confusion), []
    truth = (posterior.cumsum(axis=1) > rng.random((len(posterior), 1))).argmax(axis=1)
    at_once = min(_AT_ONCE, len(posterior))
    for _ in range(_STEPS):
        believed = np.exp(logs)
        found.append(believed.max(axis=1).sum())
        for start in range(0, STEP, at_once):
            told = mutual_information(np.exp(logs), confusion)
            chosen = np.argpartition(told, len(told) - at_once)[-at_once:][: STEP - start]
            draws = rng.random((len(chosen), 1))
            answers = (confusion[truth[chosen]].cumsum(axis=1) > draws).argmax(axis=1)
            logs[chosen] += log_confusion[:, answers].T
            logs[chosen] -= np.logaddexp.reduce(logs[chosen], axis=1, keepdims=True)
    found.append(np.exp(logs).max(axis=1).sum())
    return np.array(found)
