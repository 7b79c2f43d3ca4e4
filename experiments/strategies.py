"""Strategies of the related work, for the comparison in routing.py: each is one small class for `routing.Router`."""

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc
from scipy.stats import t as student

from labelonce._kernels import floored_log
from labelonce._types import Codes, Floats, Mask
from labelonce.routing import Strategy
from labelonce.routing._state import State
from labelonce.routing._strategies._strategy import best_of
from labelonce.workers._intervals import beta_interval


@dataclass
class ModelUncertainty(Strategy):
    """The task whose prediction by the model has the largest entropy, whatever its labels say.

    It asks for the same hard tasks again and again: give the router `max_labels`.

    """

    def scores(self, state: State, worker: int, tasks: Codes) -> Floats:
        """Return the entropy of the predictions."""
        chances = state.predictions[tasks]
        return np.asarray(-(chances * floored_log(chances)).sum(axis=1))


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

    """

    def scores(self, state: State, worker: int, tasks: Codes) -> Floats:
        """Return the geometric mean of both doubts."""
        winner = state.votes()[tasks].max(axis=1)
        votes_doubt = betainc(winner + 1.0, state.n_labels[tasks] - winner + 1.0, 0.5)
        model_doubt = 1 - state.predictions[tasks].max(axis=1)
        return np.asarray(np.sqrt(votes_doubt * model_doubt))


@dataclass
class IntervalEstimation(Strategy):
    """Ask about the task the model is least sure of, and decline workers who are surely not among the best.

    A worker's reward is its agreement with the majority, with one success and one failure beforehand; declined is who
    has an upper end of the confidence interval below `threshold` times the largest.

    References
    ----------
    P. Donmez, J. Carbonell and J. Schneider, "Efficiently Learning the Accuracy of Labeling Sources for Selective
    Sampling", KDD 2009.

    """

    threshold: float = 0.8
    level: float = 0.9

    def refitted(self, state: State) -> None:
        """Count every worker's agreements with the majority."""
        task, worker, label = state.answers.rows(fitted=True)
        majority = state.votes(fitted=True)[task].argmax(axis=1)
        n_workers = max(len(state.crowd.confusion), int(worker.max(initial=-1)) + 1)
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


@dataclass
class RiskThreshold(Strategy):
    """The task whose label is most probably wrong, as model and labels tell together; closed below `risk`.

    References
    ----------
    S. Branson, G. Van Horn and P. Perona, "Lean Crowdsourcing: Combining Humans and Machines in an Online System",
    CVPR 2017.

    """

    risk: float = 0.02

    def scores(self, state: State, worker: int, tasks: Codes) -> Floats:
        """Return the risk of each task."""
        return np.asarray(state.belief.risk[tasks])

    def settled(self, state: State, tasks: Codes) -> Mask:
        """Return where the risk is below the threshold."""
        return np.asarray(state.belief.risk[tasks] <= self.risk)


@dataclass
class ExpertList(RiskThreshold):
    """Ask experts and workers who may yet turn out to be experts, until the risk of a task is below `risk`.

    An expert is right with probability `skill` or more. Who is surely worse, by the 90 % interval, is declined.

    References
    ----------
    P. Welinder and P. Perona, "Online Crowdsourcing: Rating Annotators and Obtaining Cost-effective Labels", CVPR
    Workshops 2010.

    """

    skill: float = 0.6

    def refitted(self, state: State) -> None:
        """Find who is surely worse than an expert."""
        n_workers = len(state.crowd.confusion)
        mean = np.einsum("wqkk->w", state.crowd.confusion) / state.n_classes
        n = 2.0 + np.bincount(state.answers.rows(fitted=True).worker, minlength=n_workers)[:n_workers]
        variance = np.maximum(mean * (1 - mean), 1e-4) / (n + 1)
        _, self._upper = beta_interval(mean, np.minimum(variance, 0.99 * mean * (1 - mean) + 1e-12), 0.9)

    def accepts(self, state: State, worker: int) -> bool:
        """Return whether the worker may be an expert."""
        return worker >= len(self._upper) or bool(self._upper[worker] >= self.skill)


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
        belief, confusion = state.belief.posterior(tasks), state.crowd.of(worker)[0]
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
