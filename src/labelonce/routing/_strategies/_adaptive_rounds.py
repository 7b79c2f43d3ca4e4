"""Adaptive rounds: every open task gets one more label, then those that are decided are closed."""

from dataclasses import dataclass

import numpy as np

from labelonce._types import Codes, Floats, Mask
from labelonce.routing._state import State
from labelonce.routing._strategies._strategy import Strategy


@dataclass
class AdaptiveRounds(Strategy):
    """All open tasks get one label per round; a task whose log-odds pass `threshold` is closed.

    The published scheme chooses the threshold of each round by the difficulty of the crowd, for two classes; here
    it is fixed, for any number of classes, between the two most probable ones.

    References
    ----------
    A. Khetan and S. Oh, "Achieving Budget-optimality with Adaptive Schemes in Crowdsourcing", NeurIPS 2016.

    Examples
    --------
    >>> from labelonce import routing
    >>> router = routing.Router(["a", "b"], ["yes", "no"], strategy=routing.AdaptiveRounds(threshold=2.0))
    >>> for worker in (1, 2):
    ...     router.add("a", worker, "yes")
    >>> router.settled.tolist()
    ['a']
    """

    threshold: float = 3.0

    def scores(self, state: State, worker: int, tasks: Codes) -> Floats:
        """Return 1 / (1 + labels)."""
        return 1 / (1.0 + state.n_labels[tasks])

    def settled(self, state: State, tasks: Codes) -> Mask:
        """Return the labelled tasks whose two most probable classes have log-odds beyond the threshold."""
        logs = np.log(np.partition(state.belief.posterior(tasks), -2, axis=1)[:, -2:])
        return np.asarray((logs[:, 1] - logs[:, 0] > self.threshold) & (state.n_labels[tasks] > 0))
