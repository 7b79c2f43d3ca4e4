"""Information: what this worker's answer would tell about the true label of a task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelonce._kernels import floored_log
from labelonce._types import Codes, Floats, Mask
from labelonce.routing._state import ANYBODY, State
from labelonce.routing._strategies._strategy import Strategy, best_of

_LOOKED_AT = 16  # times as many tasks as are wanted for a shortlist


@dataclass
class Information(Strategy):
    """The task about whose true label this worker's answer tells most, per unit of money.

    It is the mutual information I(y; z) between the true label y, as it is believed now, and the worker's answer z,
    which has the chances of the worker's confusion matrix: a specialist is asked about the classes it knows, and nobody
    about what is known. Declined, where that is allowed, is a worker who would bring less than `decline_below` of what
    the average worker would, each on its best task and per unit of money. A task is settled when its risk is not above
    `risk`.

    The first `trial` labels of a worker go to random tasks with the fewest labels: what a worker is worth shows on
    typical tasks, of which the model is sure, and not on those that are in doubt.

    Examples
    --------
    >>> from labelonce import routing
    >>> router = routing.Router(["a", "b"], ["yes", "no"])
    >>> router.add("a", "ann", "yes")
    >>> router.next("bob")
    'b'
    """

    decline_below: float = 0.5
    risk: float = 0.0
    trial: int = 5

    def scores(self, state: State, worker: int, tasks: Codes) -> Floats:
        """Return the mutual information; for a new worker, 1 / (1 + labels)."""
        if worker != ANYBODY and state.n_given[worker] < self.trial:
            return 1 / (1.0 + state.n_labels[tasks])
        return mutual_information(state.belief.posterior(tasks), state.confusion_of(worker))

    def shortlist(self, state: State, tasks: Codes, n: int) -> Codes:
        """Return the best tasks for anybody, those of the largest entropy, and those in doubt about each class.

        Of very many tasks only the riskiest and, for specialists in rare classes, some at random are looked at.
        """
        looked_at = n * _LOOKED_AT
        if len(tasks) > looked_at:
            risky = np.argpartition(state.belief.risk[tasks], len(tasks) - looked_at // 2)[-looked_at // 2 :]
            tasks = tasks[np.union1d(risky, np.arange(looked_at // 2))]  # the order is random
        posterior = state.belief.posterior(tasks)
        anybody = mutual_information(posterior, state.confusion_of(ANYBODY))
        doubts = (posterior * (1 - posterior)).T
        lists = np.concatenate([anybody[None], state.belief.entropy(tasks)[None], doubts])
        return best_of(tasks, lists / state.prices[tasks], n)

    def settled(self, state: State, tasks: Codes) -> Mask:
        """Return where the risk is below the threshold."""
        return np.asarray(state.belief.risk[tasks] <= self.risk)

    def worker_values(self, state: State, workers: Codes, tasks: Codes) -> Floats:
        """Return the information of each worker's best task."""
        if len(tasks) == 0:
            return np.zeros(len(workers))
        known = np.where(workers < len(state.confusion), workers, -1)
        confusion = np.concatenate([state.confusion, state.population[None]])[known]
        found = mutual_information(state.belief.posterior(tasks), confusion) / state.prices[tasks]
        return np.asarray(found.max(axis=1))


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
