"""What the next labels are expected to bring: the router's choices, simulated with drawn answers."""

from typing import Any

import numpy as np

from labelonce._types import Floats
from labelonce.routing import Belief

STEP = 100  # labels
_STEPS = 10
_DRAWS = 8
_AT_ONCE = 20  # tasks that are chosen before the beliefs are updated
_MOST_TASKS = 4_000  # that are looked at, those with the largest risk


def outlook(posterior: Floats, confusion: Floats, *, seed: int = 0) -> list[dict[str, Any]]:
    """Return the expected share of right labels after 0, 100, 200, ... more labels of the average worker.

    True labels are drawn from the beliefs, answers from the average worker's confusion matrix, and the tasks are
    those where an answer brings most information. It is as right as the beliefs are. With check boxes `posterior` has a
    row for every box, the share is that of the right boxes, and `confusion` is [box, true, ticked]: a label answers
    all.

    Examples
    --------
    >>> posterior = np.full((200, 2), 0.5)
    >>> first, second, *_ = outlook(posterior, np.array([[0.9, 0.1], [0.1, 0.9]]))
    >>> first, second["labels"], round(second["accuracy"], 2)
    ({'labels': 0, 'accuracy': 0.5}, 100, 0.7)
    """
    n_classes = posterior.shape[1]
    confusion = confusion.reshape(-1, n_classes, n_classes)
    rows = posterior.reshape(-1, len(confusion), n_classes)  # [task, question, class]
    right = rows.max(axis=2).sum(axis=1)
    looked_at = np.argsort(right, kind="stable")[:_MOST_TASKS]
    rng = np.random.default_rng(seed)
    played = np.mean([_played(rows[looked_at], confusion, rng) for _ in range(_DRAWS)], axis=0)
    shares = (played + float(right.sum() - right[looked_at].sum())) / len(posterior)
    return [{"labels": STEP * step, "accuracy": float(share)} for step, share in enumerate(shares)]


def _played(rows: Floats, confusion: Floats, rng: np.random.Generator) -> Floats:
    """Return the expected number of right labels after every hundred simulated answers."""
    n_tasks, n_questions, n_classes = rows.shape
    belief, found = Belief(rows.reshape(-1, n_classes), n_questions), []
    truth = (rows.cumsum(axis=2) > rng.random((n_tasks, n_questions, 1))).argmax(axis=2)
    questions, at_once = np.arange(n_questions), min(_AT_ONCE, n_tasks)
    for _ in range(_STEPS):
        found.append(belief.shape[0] * (1 - belief.mean_risk))
        for start in range(0, STEP, at_once):
            told = belief.information(slice(None), confusion)
            for task in np.argpartition(told, n_tasks - at_once)[-at_once:][: STEP - start].tolist():
                chances = confusion[questions, truth[task]].cumsum(axis=1)
                answers = (chances > rng.random((n_questions, 1))).argmax(axis=1)
                belief.update(task, confusion[questions, :, answers])
    return np.array([*found, belief.shape[0] * (1 - belief.mean_risk)])
