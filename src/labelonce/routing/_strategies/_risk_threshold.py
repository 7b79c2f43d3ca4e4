"""Lean crowdsourcing: label a task until the risk of its label is small enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelonce._types import Codes, Floats, Mask
from labelonce.routing._state import State
from labelonce.routing._strategies._strategy import Strategy


@dataclass
class RiskThreshold(Strategy):
    """The task whose label is most probably wrong, as model and labels tell together; closed below `risk`.

    References
    ----------
    S. Branson, G. Van Horn and P. Perona, "Lean Crowdsourcing: Combining Humans and Machines in an Online System",
    CVPR 2017.

    Examples
    --------
    >>> from labelonce import routing
    >>> router = routing.Router(["a", "b"], ["yes", "no"], strategy=routing.RiskThreshold(risk=0.2))
    >>> for worker in (1, 2):
    ...     router.add("a", worker, "yes")
    >>> router.settled.tolist(), router.next(3)
    (['a'], 'b')
    """

    risk: float = 0.02

    def scores(self, state: State, worker: int, tasks: Codes) -> Floats:
        """Return the risk of each task."""
        return np.asarray(state.belief.risk[tasks])

    def settled(self, state: State, tasks: Codes) -> Mask:
        """Return where the risk is below the threshold."""
        return np.asarray(state.belief.risk[tasks] <= self.risk)
