"""States of a router in which beliefs and workers are known."""

import numpy as np

from labelonce._types import Codes, Floats
from labelonce.routing._state import State


def state_of(posterior: Floats, confusion: Floats) -> State:
    """A state in which these beliefs and workers are known."""
    n_tasks, n_classes = posterior.shape
    state = State(n_classes, None, np.ones(n_tasks), np.full(n_tasks, -1, dtype=np.int32), 0)
    state.belief.replace(np.log(posterior))
    state.predictions = posterior.astype(np.float32)
    state.know_workers(confusion, confusion.mean(axis=0))
    return state


def everything(state: State) -> Codes:
    return np.arange(state.n_tasks, dtype=np.int32)
