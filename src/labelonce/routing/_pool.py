"""The tasks among which the next one is chosen: all that are open, or a shortlist where they are many."""

from typing import Self

import numpy as np

from labelonce._types import Codes, Floats, Mask
from labelonce.routing._state import State
from labelonce.routing._strategies._strategy import Strategy

_NUMBERS = 40_960  # tasks times classes that are scored to answer one worker: well under a millisecond
_FEWEST = 512


class Pool:
    """The tasks that are scored for every worker who asks, and which of them are free.

    With few open tasks the pool is all of them, and the choice is exact. With many it is the strategy's shortlist,
    drawn again after a quarter of it was handed out.

    Attributes
    ----------
    tasks : (n,)
        In random order, so that ties are broken at random.
    free : (n,)
        Neither out with a worker nor closed.
    """

    def __init__(self, tasks: Codes, n_tasks: int, *, is_all: bool, taken: int = 0) -> None:
        self.tasks, self.is_all, self.taken = tasks, is_all, taken
        self.free: Mask = np.ones(len(tasks), dtype=bool)
        self._place: Codes = np.full(n_tasks, -1, dtype=np.int32)
        self._place[tasks] = np.arange(len(tasks), dtype=np.int32)
        self.is_old = False  # whether the next one is due: what is open, and what is worth most, has changed

    @classmethod
    def draw(cls, state: State, strategy: Strategy, open_tasks: Codes) -> Self:
        """Return the pool of the open tasks."""
        size = max(_FEWEST, _NUMBERS // (state.n_classes * state.n_questions))
        is_all = len(open_tasks) <= size
        tasks = state.rng.permutation(open_tasks if is_all else strategy.shortlist(state, open_tasks, size))
        return cls(tasks, state.n_tasks, is_all=is_all)

    @property
    def used_up(self) -> bool:
        """Whether the pool has lost enough tasks that those outside it may be better."""
        return not self.is_all and self.taken >= len(self.tasks) // 4

    @property
    def half_used(self) -> bool:
        """Whether it is time to draw the next one, while this one is in use."""
        return self.is_old or (not self.is_all and self.taken >= len(self.tasks) // 8)

    def scores(self, state: State, strategy: Strategy, worker: int) -> Floats:
        """Return the scores of all tasks for a worker, -inf where it cannot have the task."""
        found = np.array(strategy.scores(state, worker, self.tasks), dtype=np.float64)
        found /= state.prices[self.tasks]
        found[~self.free] = -np.inf
        places = self._place[state.had(worker)]
        found[places[places >= 0]] = -np.inf
        return found

    def take(self, place: int) -> int:
        """Hand out the task at a place."""
        self.free[place] = False
        self.taken += 1
        return int(self.tasks[place])

    def set_free(self, task: int, *, free: bool) -> None:
        """Offer a task, or offer it no longer."""
        if self._place[task] >= 0:
            self.free[self._place[task]] = free
        elif free:
            self._place[task] = len(self.tasks)
            self.tasks, self.free = np.append(self.tasks, np.int32(task)), np.append(self.free, True)
