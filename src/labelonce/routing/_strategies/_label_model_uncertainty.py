"""Label and model uncertainty: the votes and the model have to agree that a task is easy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc

from labelonce._types import Codes, Floats
from labelonce.routing._state import State
from labelonce.routing._strategies._strategy import Strategy


@dataclass
class LabelModelUncertainty(Strategy):
    """The geometric mean of two doubts: that of the votes about their winner, and that of the model.

    The doubt of the votes is the chance that the winner has less than half of all possible votes, after a uniform
    prior; that of the model is the chance that its pick is wrong. Workers count alike.

    References
    ----------
    V. Sheng, F. Provost and P. Ipeirotis, "Get Another Label? Improving Data Quality and Data Mining Using Multiple,
    Noisy Labelers", KDD 2008. P. Ipeirotis, F. Provost, V. Sheng and J. Wang, "Repeated Labeling Using Multiple Noisy
    Labelers", Data Mining and Knowledge Discovery 28, 2014.

    Examples
    --------
    Two workers agree about a and disagree about b:

    >>> from labelonce import routing
    >>> router = routing.Router(["a", "b"], ["yes", "no"], strategy=routing.LabelModelUncertainty())
    >>> for task, worker, label in [("a", 1, "yes"), ("a", 2, "yes"), ("b", 1, "yes"), ("b", 2, "no")]:
    ...     router.add(task, worker, label)
    >>> router.next(3)
    'b'
    """

    def scores(self, state: State, worker: int, tasks: Codes) -> Floats:
        """Return the geometric mean of both doubts."""
        winner = state.votes[tasks].max(axis=1)
        votes_doubt = betainc(winner + 1.0, state.n_labels[tasks] - winner + 1.0, 0.5)
        model_doubt = 1 - state.predictions[tasks].max(axis=1)
        return np.asarray(np.sqrt(votes_doubt * model_doubt))
