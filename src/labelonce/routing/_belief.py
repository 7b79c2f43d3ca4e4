"""The beliefs about tasks and workers, in the router's one layout: P(class) of every row.

A row is what has one unknown class: a task, or with several questions a (task, question), such as a check box, whose
classes are no and yes. The rows of a task lie next to each other. Nothing else in this folder knows the layout; the
router and its strategies ask for what is here:

- `Belief.update`: an answer changes the rows of its task (`after_answer` of the kernels), without a refit;
- `Belief.information`: what a worker's answer is expected to tell about a task;
- a new `Belief` and a new `Crowd` replace everything at once after a refit.

To hold a few slots of many classes instead of all of them, these two classes change and nothing else: `Belief` keeps
slots, and `Crowd` asks a worker model for P(label | true class) instead of looking it up in matrices.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from labelonce._kernels import after_answer
from labelonce._types import Codes, Floats

ANYBODY = -1  # the code of a worker of whom nothing is known
_IMPOSSIBLE = 1e-10  # the least chance of an answer, so that none rules a class out for good

Tasks = Codes | slice


class Belief:
    """The posterior of every task's true label, updated exactly by one more answer.

    Parameters
    ----------
    posterior : (n_rows, n_classes)
        What is believed at first; rows sum to 1.
    n_questions : int
        How many rows a task has.

    Attributes
    ----------
    risk : (n_tasks,)
        The chance that the most probable label of the task is wrong; with several questions, of the least sure one.

    Examples
    --------
    A worker who is right nine times in ten says that task 1 is of class 0:

    >>> import numpy as np
    >>> belief = Belief(np.full((2, 2), 0.5))
    >>> belief.update(1, np.array([0.9, 0.1]))
    >>> belief.posterior().round(2)
    array([[0.5, 0.5],
           [0.9, 0.1]])
    >>> round(belief.mean_risk, 2)
    0.3
    """

    def __init__(self, posterior: Any, n_questions: int = 1) -> None:
        rows = np.array(posterior, dtype=np.float64)
        self._rows = rows.reshape(-1, n_questions, rows.shape[1])  # [task, question, class]
        self._row_risk: Floats = 1 - self._rows.max(axis=2)
        self.risk: Floats = self._row_risk.max(axis=1)
        self._total_risk = float(self._row_risk.sum())

    def update(self, task: int, chances: Floats) -> None:
        """Update the beliefs by an answer, given its probability by true class for every question."""
        rows = after_answer(self._rows[task], chances)
        risk, before = 1 - np.maximum.reduce(rows, axis=1), self._row_risk[task]
        self._total_risk += float(np.add.reduce(risk - before))
        self._rows[task], self._row_risk[task], self.risk[task] = rows, risk, np.maximum.reduce(risk)

    def posterior(self, tasks: Tasks = slice(None)) -> Floats:
        """Return P(true class) of the rows of some tasks, (n_rows, n_classes)."""
        return np.array(self._of(tasks)).reshape(-1, self._rows.shape[2])

    def entropy(self, tasks: Tasks = slice(None)) -> Floats:
        """Return the entropy of the true label of some tasks, in nats."""
        return np.asarray(_entropy(self._of(tasks)).sum(axis=1))

    def information(self, tasks: Tasks, confusion: Floats) -> Floats:
        """Return I(true label; answer) of some tasks, in nats, (n_tasks,).

        `confusion` is a worker's P(given | true), [question, true, given]; of several workers (n_workers, n_tasks).

        >>> perfect, guess = np.eye(2)[None], np.full((1, 2, 2), 0.5)
        >>> found = Belief([[0.5, 0.5], [1.0, 0.0]]).information(slice(None), np.stack([perfect, guess]))
        >>> found.round(3) + 0.0
        array([[0.693, 0.   ],
               [0.   , 0.   ]])
        """
        rows = self._of(tasks).swapaxes(0, 1)
        found = _entropy(rows @ confusion)  # [worker, question, task]
        found -= (rows @ _entropy(confusion)[..., None])[..., 0]
        return np.asarray(np.maximum(found, 0.0).sum(axis=-2))

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and classes there are."""
        n_tasks, n_questions, n_classes = self._rows.shape
        return n_tasks * n_questions, n_classes

    @property
    def mean_risk(self) -> float:
        """Chance that the most probable class of the average row is wrong."""
        return self._total_risk / self._row_risk.size

    def _of(self, tasks: Tasks) -> Floats:
        return self._rows[tasks] if isinstance(tasks, slice) else self._rows.take(tasks, axis=0)


class Crowd:
    """What is known about the workers: the confusion of every known one, and of the average one.

    Parameters
    ----------
    confusion : (n_workers, n_classes, n_classes)
        With several questions [worker, question, true, given].
    population : (n_classes, n_classes)
        What is assumed of a worker of whom nothing is known; with several questions [question, true, given].
    """

    def __init__(self, confusion: Floats, population: Floats) -> None:
        n_classes = population.shape[-1]
        self.population: Floats = np.reshape(population, (-1, n_classes, n_classes))
        self.confusion: Floats = np.reshape(confusion, (len(confusion), *self.population.shape))
        self._questions = np.arange(len(self.population))

    def of(self, worker: int) -> Floats:
        """Return a worker's P(given | true), [question, true, given]; the population's if nothing is known of it."""
        return self.confusion[worker] if 0 <= worker < len(self.confusion) else self.population

    def chances(self, worker: int, labels: Sequence[int] | Codes) -> Floats:
        """Return the chance that the worker gives these labels, one per question, by question and true class."""
        return np.asarray(np.maximum(self.of(worker)[self._questions, :, labels], _IMPOSSIBLE))


def possible(posterior: Floats) -> Floats:
    """Return a posterior without zeros, so that later answers can raise every class."""
    rows = np.maximum(posterior, _IMPOSSIBLE)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _entropy(chances: Floats) -> Floats:
    """Return the entropy of distributions along the last axis."""
    logs = np.maximum(chances, _IMPOSSIBLE)
    np.log(logs, out=logs)
    logs *= chances
    return np.asarray(logs @ np.full(logs.shape[-1], -1.0))  # a sum over a short axis is slow
