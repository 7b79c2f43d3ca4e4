"""The interface of the strategies: what a label is worth, which tasks are settled, and who may label."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict
from typing import Any

import numpy as np

from labelonce._types import Codes, Floats, Mask
from labelonce.routing._mutual_information import best_information
from labelonce.routing._state import ANYBODY, State


class Strategy(ABC):
    """A rule that says how much one more label is worth. Subclasses are dataclasses of numbers.

    What a strategy computes from the answers is computed in `refitted` from the answers that the fit knew, and kept up
    to date by `added`, so that a router that was saved can compute it again.

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

    @abstractmethod
    def scores(self, state: State, worker: int, tasks: Codes) -> Floats:
        """Return what a label of each of the tasks by this worker is worth, at least 0; the largest goes first."""

    def refitted(self, state: State) -> None:
        """Take note of a refit, and of the start of the router."""

    def added(self, state: State, task: int, worker: int, label: int) -> None:
        """Take note of an answer, which the state already has."""

    def shortlist(self, state: State, tasks: Codes, n: int) -> Codes:
        """Return about `n` of many tasks that are worth looking at, whoever the worker is; ties go at random."""
        tasks = state.rng.permutation(tasks)
        return best_of(tasks, (self.scores(state, ANYBODY, tasks) / state.prices[tasks])[None], n)

    def settled(self, state: State, tasks: Codes) -> Mask:
        """Return which of the tasks need no more labels."""
        return np.zeros(len(tasks), dtype=bool)

    def worker_values(self, state: State, workers: Codes, tasks: Codes) -> Floats:
        """Return what each worker would bring with its best task, (n_workers,); 1 where nobody is declined for it."""
        return best_information(state, workers, tasks) if self.decline_below > 0 else np.ones(len(workers))

    def accepts(self, state: State, worker: int) -> bool:
        """Return whether the worker may label, where declining is allowed."""
        return True

    def tests(self, state: State, worker: int) -> bool:
        """Return whether the worker should answer a gold question now."""
        return False

    def to_dict(self) -> dict[str, Any]:
        """Return the name and the options, for a file."""
        return {"name": type(self).__name__, "options": asdict(self)}  # type: ignore[call-overload]  # a dataclass


def best_of(tasks: Codes, lists: Floats, n: int) -> Codes:
    """Return at most `n` tasks, equally many of the best of each list of scores (n_lists, n_tasks)."""
    each = max(1, n // len(lists))
    best = [np.argpartition(scores, len(scores) - each)[-each:] for scores in lists]
    return tasks[np.unique(np.concatenate(best))]


def fitted_votes(state: State) -> Codes:
    """Return how often each class was given to each task, (n_tasks, n_classes), in the answers of the last refit."""
    task, _, label = state.rows(state.n_fitted)
    votes = np.zeros((state.n_tasks, state.n_classes), dtype=np.int32)
    np.add.at(votes, (task, label), 1)
    return votes
