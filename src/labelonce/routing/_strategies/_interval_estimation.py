"""Interval estimation: ask the workers who may be among the best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from labelonce._types import Codes, Floats
from labelonce.routing._state import State
from labelonce.routing._strategies._strategy import Strategy, fitted_votes


@dataclass
class IntervalEstimation(Strategy):
    """Ask about the task the model is least sure of, and decline workers who are surely not among the best.

    A worker's reward is its agreement with the majority, with one success and one failure beforehand; declined is who
    has an upper end of the confidence interval below `threshold` times the largest.

    References
    ----------
    P. Donmez, J. Carbonell and J. Schneider, "Efficiently Learning the Accuracy of Labeling Sources for Selective
    Sampling", KDD 2009.

    Examples
    --------
    >>> from labelonce import routing
    >>> router = routing.Router(range(3), ["yes", "no"], strategy=routing.IntervalEstimation(), may_decline=True)
    >>> router.next("ann") in {0, 1, 2}
    True
    """

    threshold: float = 0.8
    level: float = 0.9

    def refitted(self, state: State) -> None:
        """Count every worker's agreements with the majority."""
        task, worker, label = state.rows(state.n_fitted)
        majority = fitted_votes(state)[task].argmax(axis=1)
        n_workers = max(len(state.confusion), int(worker.max(initial=-1)) + 1)
        n = 2.0 + np.bincount(worker, minlength=n_workers)
        mean = (1 + np.bincount(worker[label == majority], minlength=n_workers)) / n
        deviation = np.sqrt(mean * (1 - mean) * n / (n - 1))
        self._upper = mean + student.ppf((1 + self.level) / 2, n - 1) * deviation / np.sqrt(n)
        self._upper_of_new = 0.5 + student.ppf((1 + self.level) / 2, 1) * np.sqrt(0.5) / np.sqrt(2)

    def scores(self, state: State, worker: int, tasks: Codes) -> Floats:
        """Return the chance that the model's pick is wrong."""
        return np.asarray(1 - state.predictions[tasks].max(axis=1))

    def accepts(self, state: State, worker: int) -> bool:
        """Return whether the worker may be among the best."""
        own = self._upper[worker] if worker < len(self._upper) else self._upper_of_new
        return bool(own >= self.threshold * max(self._upper.max(initial=0.0), 1e-12))
