"""Impact sampling: the label that is expected to change the classifier most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelonce._types import Codes, Floats
from labelonce.routing._state import State
from labelonce.routing._strategies._strategy import Strategy, best_of


@dataclass
class ImpactSampling(Strategy):
    """The label that is expected to move the classifier most: by how far the belief moves, times its leverage.

    The published rule retrains the classifier for every possible answer. This is the first-order version: the
    expected total variation between what is believed after and before the answer, times the task's ridge leverage,
    by which a linear model's predictions follow a target. Without numeric features all leverages are equal.

    References
    ----------
    C. Lin, Mausam and D. Weld, "To Re(label), or Not To Re(label)", HCOMP 2014, and "Re-active Learning: Active
    Learning with Relabeling", AAAI 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from labelonce import routing
    >>> X = np.array([[0.0], [0.1], [9.0]])
    >>> router = routing.Router(["a", "b", "c"], ["yes", "no"], X=X, strategy=routing.ImpactSampling())
    >>> router.next("ann")
    'c'
    """

    ridge: float = 1.0

    def refitted(self, state: State) -> None:
        """Compute the leverages once: the features do not change."""
        if hasattr(self, "_leverage"):
            return
        self._leverage = np.ones(state.n_tasks)
        if isinstance(state.X, np.ndarray) and state.X.ndim == 2 and state.X.dtype.kind in "fiu":
            X = np.asarray(state.X, dtype=np.float64)
            X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
            inverse = np.linalg.inv(X.T @ X + self.ridge * np.eye(X.shape[1]))
            self._leverage = 1 / len(X) + np.einsum("ij,jk,ik->i", X, inverse, X, optimize=True)

    def scores(self, state: State, worker: int, tasks: Codes) -> Floats:
        """Return the expected change."""
        belief, confusion = state.belief.posterior(tasks), state.confusion_of(worker)
        said = belief @ confusion
        moved = np.zeros(len(tasks))
        for label in range(state.n_classes):
            moved += np.abs(belief * confusion[:, label] - belief * said[:, label, None]).sum(axis=1) / 2
        return np.asarray(moved * self._leverage[tasks])

    def shortlist(self, state: State, tasks: Codes, n: int) -> Codes:
        """Return the tasks of the largest doubt times leverage: cheaper than the expected change."""
        tasks = state.rng.permutation(tasks)
        scores = state.belief.entropy(tasks) * self._leverage[tasks] / state.prices[tasks]
        return best_of(tasks, scores[None], n)
