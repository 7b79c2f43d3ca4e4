"""The tasks among which the next one is chosen: all that are open, or a shortlist where they are many."""

from __future__ import annotations

import numpy as np

from labelonce._types import Codes, Floats, Mask
from labelonce.routing._state import State
from labelonce.routing._strategies._strategy import Strategy

_NUMBERS = 40_960  # tasks times classes that are scored to answer one worker: well under a millisecond
_FEWEST = 512


class Pool:
    """Tasks that are scored anew for everybody who asks, and which of them are free.

    With few open tasks the pool is all of them, and the choice is exact. With many it is the
    strategy's shortlist, drawn anew after a quarter of it was handed out.

    Attributes
    ----------
    tasks : (n,)
        In random order, so that ties are broken at random.
    free : (n,)
        Neither out with a worker nor closed.
    """

    def __init__(self, tasks: Codes, free: Mask, n_tasks: int, *, is_all: bool, taken: int = 0) -> None:
        self.tasks, self.free, self.is_all, self.taken = tasks, free, is_all, taken
        self._place: Codes = np.full(n_tasks, -1, dtype=np.int32)
        self._place[tasks] = np.arange(len(tasks), dtype=np.int32)
        self._answered: dict[int, list[int]] = {}
        self._worn_out = False

    @classmethod
    def draw(cls, state: State, strategy: Strategy, open_tasks: Codes, leased: Codes) -> Pool:
        """Return the pool of the open tasks."""
        size = max(_FEWEST, _NUMBERS // state.n_classes)
        is_all = len(open_tasks) <= size
        tasks = state.rng.permutation(open_tasks if is_all else strategy.shortlist(state, open_tasks, size))
        return cls(tasks, ~np.isin(tasks, leased), state.n_tasks, is_all=is_all)

    @property
    def used_up(self) -> bool:
        """Whether so much was handed out that tasks outside may be better."""
        return not self.is_all and self.taken >= len(self.tasks) // 4

    @property
    def half_used(self) -> bool:
        """Whether it is time to draw the next one beside."""
        return self._worn_out or (not self.is_all and self.taken >= len(self.tasks) // 8)

    def wear_out(self) -> None:
        """Take it that the next one is due: what is open, and what is worth most, has changed."""
        self._worn_out = True

    def scores(self, state: State, strategy: Strategy, worker: int, answered: Codes) -> Floats:
        """Return the scores of all tasks for a worker, -inf where it cannot have the task."""
        found = np.array(strategy.scores(state, worker, self.tasks), dtype=np.float64)
        found /= state.prices[self.tasks]
        found[~self.free] = -np.inf
        if worker not in self._answered:
            self._answered[worker] = [int(place) for place in self._place[answered] if place >= 0]
        found[self._answered[worker]] = -np.inf
        return found

    def take(self, place: int) -> int:
        """Hand out the task at a place."""
        self.free[place] = False
        self.taken += 1
        return int(self.tasks[place])

    def answered(self, task: int, worker: int) -> None:
        """Do not offer a task to this worker again."""
        if worker in self._answered and self._place[task] >= 0:
            self._answered[worker].append(int(self._place[task]))

    def forget(self, worker: int) -> None:
        """Look again at what a worker has answered when it asks."""
        self._answered.pop(worker, None)

    def set_free(self, task: int, *, free: bool) -> None:
        """Offer a task, or offer it no longer."""
        if self._place[task] >= 0:
            self.free[self._place[task]] = free
        elif free:
            self._place[task] = len(self.tasks)
            self.tasks, self.free = np.append(self.tasks, np.int32(task)), np.append(self.free, True)
            self._answered.clear()  # some may have answered it
