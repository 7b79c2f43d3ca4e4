"""Tasks that are labelled whatever the strategy wants: a fair sample of all, on which a model can be calibrated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from labelonce._types import Codes
from labelonce.routing._state import State

_LOOKED_AT = 1000  # tasks without a label, before none of them is handed out


class RandomTasks:
    """A random order of the tasks, of which the first without a label is handed out now and then.

    The front of the order, up to the first task without a label, is a random sample of all tasks, whoever chose the
    tasks behind it.

    Attributes
    ----------
    share : float
        How often one of them is handed out instead of what the strategy wants.
    order : (n,)
    """

    def __init__(self, order: Codes, share: float) -> None:
        self.order, self.share = order, share
        self._front = 0  # all before it had a label

    @classmethod
    def draw(cls, state: State, share: float) -> RandomTasks:
        """Return the tasks without gold in random order, none where none is ever handed out."""
        tasks = np.flatnonzero(state.gold < 0) if share > 0 else np.zeros(0)
        return cls(state.rng.permutation(tasks).astype(np.int32), share)

    def wanted(self, state: State) -> bool:
        """Return whether it is the turn of a random task; drawn anew at every call."""
        return self.share > 0 and bool(state.rng.random() < self.share)

    def first(self, state: State, is_free: Callable[[int], bool], able: Codes | None) -> int | None:
        """Return the first task without a label that is free and, where given, among those a worker can label."""
        self._front += len(self.sample(state, self._front))
        rest = self.order[self._front :]
        if able is not None:
            rest = rest[np.isin(rest, able)]
        for start in range(0, len(rest), _LOOKED_AT):
            part = rest[start : start + _LOOKED_AT]
            unlabelled = part[state.n_labels[part] == 0].tolist()
            found = next((task for task in unlabelled if is_free(task)), None)
            if found is not None or len(unlabelled) == _LOOKED_AT:
                return found
        return None

    def sample(self, state: State, start: int = 0) -> Codes:
        """Return the tasks of the order from `start` to the first that has no label."""
        rest = self.order[start:]
        if not len(rest):
            return rest
        missing = state.n_labels[rest] == 0
        return rest[: int(missing.argmax())] if missing.any() else rest

    def forget(self) -> None:
        """Look again from the start: a task may have lost its label."""
        self._front = 0
