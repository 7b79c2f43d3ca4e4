"""The task that the model is least sure of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelonce._kernels import floored_log
from labelonce._types import Codes, Floats
from labelonce.routing._state import State
from labelonce.routing._strategies._strategy import Strategy


@dataclass
class ModelUncertainty(Strategy):
    """The task whose prediction by the model has the largest entropy, whatever its labels say.

    It asks for the same hard tasks again and again: give the router `max_labels`.

    Examples
    --------
    >>> from labelonce import routing
    >>> router = routing.Router(["a", "b"], ["yes", "no"], strategy=routing.ModelUncertainty())
    >>> router.next("ann") in {"a", "b"}
    True
    """

    def scores(self, state: State, worker: int, tasks: Codes) -> Floats:
        """Return the entropy of the predictions."""
        chances = state.predictions[tasks]
        return np.asarray(-(chances * floored_log(chances)).sum(axis=1))
