"""What an answer tells about the true label of a task."""

from __future__ import annotations

import numpy as np

from labelonce._kernels import floored_log
from labelonce._types import Codes, Floats
from labelonce.routing._state import State


def mutual_information(posterior: Floats, confusion: Floats) -> Floats:
    """Return I(true label; answer) of every task, in nats; `confusion` may be that of several workers.

    >>> perfect, guess = np.eye(2), np.full((2, 2), 0.5)
    >>> mutual_information(np.array([[0.5, 0.5], [1.0, 0.0]]), np.stack([perfect, guess])).round(3) + 0.0
    array([[0.693, 0.   ],
           [0.   , 0.   ]])
    """
    answers = posterior @ confusion
    of_answers = -(answers * floored_log(answers)).sum(axis=-1)
    of_mistakes = -(confusion * floored_log(confusion)).sum(axis=-1)
    return np.asarray(np.maximum(of_answers - np.inner(of_mistakes, posterior), 0.0))


def best_information(state: State, workers: Codes, tasks: Codes) -> Floats:
    """Return, for every worker, I(true label; its answer) per unit of price, of the task where that is largest."""
    if len(tasks) == 0:
        return np.zeros(len(workers))
    confusion = np.stack([state.confusion_of(int(worker)) for worker in workers])
    found = mutual_information(state.belief.posterior(tasks), confusion) / state.prices[tasks]
    return np.asarray(found.max(axis=1))
