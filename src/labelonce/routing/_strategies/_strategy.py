"""The interface of the strategies: what a label is worth, which tasks are settled, and who may label."""

from abc import ABC, abstractmethod
from dataclasses import asdict
from typing import Any

import numpy as np

from labelonce._types import Codes, Floats, Mask
from labelonce.aggregation import STRATEGIES, plugins
from labelonce.routing._belief import ANYBODY
from labelonce.routing._state import State


class Strategy(ABC):
    """A rule that says how much one more label is worth. Subclasses are dataclasses of numbers.

    What a strategy keeps follows from the answers that the last fit knew, and is computed in `refitted`; all else is in
    the state.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from labelonce import routing
    >>> @dataclass
    ... class Last(routing.Strategy):
    ...     def scores(self, state, worker, tasks):
    ...         return 1.0 + tasks
    >>> routing.Router(["a", "b", "c"], ["yes", "no"], strategy=Last()).next("ann")
    'c'
    """

    decline_below = 0.0
    """Share of what the average worker would bring below which a worker is declined, where that is allowed."""
    takes_questions = False
    """Whether tasks may have several questions."""

    @abstractmethod
    def scores(self, state: State, worker: int, tasks: Codes) -> Floats:
        """Return what a label of each of the tasks by this worker is worth, at least 0; the largest goes first."""

    def refitted(self, state: State) -> None:
        """Take note of a refit, of the start of the router, and of an answer that was taken back."""

    def shortlist(self, state: State, tasks: Codes, n: int) -> Codes:
        """Return about `n` of many tasks that are worth looking at, whoever the worker is; ties go at random."""
        tasks = state.rng.permutation(tasks)
        return best_of(tasks, (self.scores(state, ANYBODY, tasks) / state.prices[tasks])[None], n)

    def settled(self, state: State, tasks: Codes) -> Mask:
        """Return which of the tasks need no more labels."""
        return np.zeros(len(tasks), dtype=bool)

    def worker_values(self, state: State, workers: Codes, tasks: Codes) -> Floats:
        """Return the value of the best task for each worker, (n_workers,); 1 if no worker is ever declined."""
        if self.decline_below == 0 or len(tasks) == 0:
            return np.full(len(workers), float(self.decline_below == 0))
        return np.asarray((state.information(workers, tasks) / state.prices[tasks]).max(axis=1))

    def accepts(self, state: State, worker: int) -> bool:
        """Return whether the worker may label, where declining is allowed."""
        return True

    def tests(self, state: State, worker: int) -> bool:
        """Return whether the worker should answer a gold question now."""
        return False

    def to_dict(self) -> dict[str, Any]:
        """Return the name and the options, for a file."""
        own = (name for name, point in plugins(STRATEGIES).items() if point.attr == type(self).__name__)
        return {"name": next(own, type(self).__name__), "options": asdict(self)}  # type: ignore[call-overload]  # a dataclass


def best_of(tasks: Codes, lists: Floats, n: int) -> Codes:
    """Return at most `n` tasks, equally many of the best of each list of scores (n_lists, n_tasks)."""
    each = max(1, n // len(lists))
    best = [np.argpartition(scores, len(scores) - each)[-each:] for scores in lists]
    return tasks[np.unique(np.concatenate(best))]
