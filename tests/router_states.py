"""States of a router in which beliefs and workers are known."""

import numpy as np

from labelonce._types import Codes, Floats
from labelonce.routing import Belief
from labelonce.routing._belief import Crowd
from labelonce.routing._state import State


def state_of(posterior: Floats, confusion: Floats) -> State:
    """A state in which these beliefs and workers are known, and two workers more."""
    state = State(range(len(posterior)), range(posterior.shape[1]))
    state.belief, state.predictions = Belief(posterior), posterior.astype(np.float32)
    state.crowd = Crowd(confusion, confusion.mean(axis=0))
    for worker in range(len(confusion) + 2):
        state.worker_code(worker)
    return state


def everything(state: State) -> Codes:
    return np.arange(state.n_tasks, dtype=np.int32)
