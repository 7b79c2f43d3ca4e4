"""Information: how much this worker's answer is expected to reveal about the true label of a task."""

from dataclasses import dataclass

import numpy as np

from labelonce._types import Codes, Floats, Mask
from labelonce.routing._belief import ANYBODY
from labelonce.routing._state import State
from labelonce.routing._strategies._strategy import Strategy, best_of

_LOOKED_AT = 16  # times as many tasks as are wanted for a shortlist
_TIE = 1e-9  # of risk, below which it is left to chance which task is looked at


@dataclass
class Information(Strategy):
    """The task whose true label gains most information from this worker's answer, per unit of money.

    It is the mutual information I(y; z) between the true label y, as it is believed now, and the worker's answer z,
    which has the chances of the worker's confusion matrix: a specialist is asked about the classes it knows, and nobody
    about what is known. Declined, where that is allowed, is a worker who would bring less than `decline_below` of what
    the average worker would, each on its best task and per unit of money. A task is settled when its risk is not above
    `risk` and it has `labels` labels: a model alone settles nothing.

    The first `trial` labels of a worker go to random tasks with the fewest labels: what a worker is worth shows on
    typical tasks, and not on those that are in doubt.

    Examples
    --------
    >>> from labelonce import routing
    >>> router = routing.Router(["a", "b"], ["yes", "no"])
    >>> router.add("a", "ann", "yes")
    >>> router.next("bob")
    'b'
    """

    takes_questions = True

    decline_below: float = 0.5
    risk: float = 0.0
    trial: int = 5
    labels: int = 1

    def scores(self, state: State, worker: int, tasks: Codes) -> Floats:
        """Return the expected information of the answer; for a new worker, 1 / (1 + labels)."""
        if worker != ANYBODY and len(state.answers.of(worker)) < self.trial:
            return 1 / (1.0 + state.n_labels[tasks])
        return state.information(worker, tasks)

    def shortlist(self, state: State, tasks: Codes, n: int) -> Codes:
        """Return the best tasks for anybody, those of the largest doubt, and those in doubt about a class.

        Of very many tasks only the riskiest and, for specialists in rare classes, some at random are looked at.
        """
        half = n * _LOOKED_AT // 2
        if len(tasks) > 2 * half:
            risk = state.belief.risk[tasks] + _TIE * state.rng.random(len(tasks))
            looked_at = np.zeros(len(tasks), dtype=bool)
            looked_at[np.argpartition(risk, len(tasks) - half)[-half:]] = True
            looked_at[state.rng.integers(len(tasks), size=half)] = True
            tasks = tasks[looked_at]
        tasks = state.rng.permutation(tasks)
        posterior = state.belief.posterior(tasks).reshape(len(tasks), -1)  # of all classes of all questions
        doubts = (posterior * (1 - posterior)).T
        lists = np.stack([state.information(ANYBODY, tasks), state.belief.entropy(tasks), *doubts])
        return best_of(tasks, lists / state.prices[tasks], n)

    def settled(self, state: State, tasks: Codes) -> Mask:
        """Return the tasks with enough labels whose risk is at most the threshold."""
        return np.asarray((state.belief.risk[tasks] <= self.risk) & (state.n_labels[tasks] >= self.labels))
