"""An online list of experts, and one of workers who are not worth asking."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelonce._types import Codes, Floats, Mask
from labelonce.routing._state import State
from labelonce.routing._strategies._strategy import Strategy
from labelonce.workers._intervals import beta_interval


@dataclass
class ExpertList(Strategy):
    """Ask experts and workers who may yet turn out to be experts, until the risk of a task is below `risk`.

    An expert is right with probability `skill` or more. Who is surely worse, by the 90 % interval, is declined.

    References
    ----------
    P. Welinder and P. Perona, "Online Crowdsourcing: Rating Annotators and Obtaining Cost-effective Labels", CVPR
    Workshops 2010.

    Examples
    --------
    >>> from labelonce import routing
    >>> router = routing.Router(["a", "b"], ["yes", "no"], strategy=routing.ExpertList(), may_decline=True)
    >>> router.next("ann") in {"a", "b"}
    True
    """

    skill: float = 0.6
    risk: float = 0.02

    def refitted(self, state: State) -> None:
        """Find who is surely worse than an expert."""
        n_workers = len(state.confusion)
        mean = np.einsum("wkk->w", state.confusion) / state.n_classes
        n = 2.0 + np.bincount(state.rows(state.n_fitted)[1], minlength=n_workers)[:n_workers]
        variance = np.maximum(mean * (1 - mean), 1e-4) / (n + 1)
        _, self._upper = beta_interval(mean, np.minimum(variance, 0.99 * mean * (1 - mean) + 1e-12), 0.9)

    def accepts(self, state: State, worker: int) -> bool:
        """Return whether the worker may be an expert."""
        return worker >= len(self._upper) or bool(self._upper[worker] >= self.skill)

    def scores(self, state: State, worker: int, tasks: Codes) -> Floats:
        """Return the risk of each task."""
        return np.asarray(state.belief.risk[tasks])

    def settled(self, state: State, tasks: Codes) -> Mask:
        """Return where the risk is below the threshold."""
        return np.asarray(state.belief.risk[tasks] <= self.risk)
