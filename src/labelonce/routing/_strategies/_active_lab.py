"""ActiveLab: how good the consensus of a task is, as votes and model tell together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelonce._types import Codes, Floats
from labelonce.routing._state import State
from labelonce.routing._strategies._strategy import Strategy, fitted_votes

_LEAST = 1e-6


@dataclass
class ActiveLab(Strategy):
    """The task whose consensus is of the lowest quality, with some doubt for what is not yet labelled.

    Model and labels are averaged with weights: a worker's by how much more it agrees with other workers than the most
    frequent class would, the model's likewise. One more label of average weight, of which nothing is known, pulls
    the quality towards 1 / n_classes: that puts new tasks and tasks with labels on one scale. Workers are not chosen.
    The published package also rescales the model's predictions by a temperature; here they are taken as they are.

    References
    ----------
    H. W. Goh and J. Mueller, "ActiveLab: Active Learning with Re-Labeling by Multiple Annotators", 2023
    (arXiv:2301.11856); the weights are those of H. W. Goh, U. Tkachenko and J. Mueller, "CROWDLAB: Supervised Learning
    to Infer Consensus Labels and Quality Scores for Data with Multiple Annotators", 2022 (arXiv:2210.06812).

    Examples
    --------
    >>> from labelonce import routing
    >>> router = routing.Router(["a", "b"], ["yes", "no"], strategy=routing.ActiveLab())
    >>> router.add("a", "ann", "yes")
    >>> router.next("bob")
    'b'
    """

    def refitted(self, state: State) -> None:
        """Weigh the workers and the model by their agreement where a task has several labels."""
        task, worker, label = state.rows(state.n_fitted)
        votes = fitted_votes(state)
        n = votes.sum(axis=1)
        several = n[task] > 1
        self._model_weight = self._usual_weight = 1.0
        self._likelihood = float(np.diag(state.population).mean())
        n_workers = int(worker.max(initial=-1)) + 1
        self._worker_weight = np.ones(n_workers)
        if several.any():
            self._weigh(state, votes, (task[several], worker[several], label[several]), n_workers)
        self._sum = np.zeros((state.n_tasks, state.n_classes))
        self._weight = np.zeros(state.n_tasks)
        given, other = self._opinion(state)
        weight = self._worker_weight[worker]
        np.add.at(self._sum, task, (weight * other)[:, None])
        np.add.at(self._sum, (task, label), weight * (given - other))
        np.add.at(self._weight, task, weight)

    def _weigh(self, state: State, votes: Codes, rows: tuple[Codes, Codes, Codes], n_workers: int) -> None:
        task, worker, label = rows
        n, consensus, judged = votes.sum(axis=1), votes.argmax(axis=1), np.unique(task)
        most_frequent = np.bincount(consensus[judged]).argmax()
        chance_error = max(float((consensus[judged] != most_frequent).mean()), _LEAST)
        self._likelihood = float(np.clip((label == consensus[task]).mean(), 1 / state.n_classes, 1 - _LEAST))
        agreement = (votes[task, label] - 1) / (n[task] - 1)
        times = np.bincount(worker, minlength=n_workers)
        total = np.bincount(worker, agreement, n_workers)
        mean = np.divide(total, times, out=np.full(n_workers, float(agreement.mean())), where=times > 0)
        self._worker_weight = np.maximum(1 - (1 - mean) / chance_error, _LEAST)
        self._usual_weight = float(self._worker_weight.mean())
        error = float((state.predictions[judged].argmax(axis=1) != consensus[judged]).mean())
        self._model_weight = max(1 - error / chance_error, _LEAST) * float(np.sqrt(n[n > 0].mean()))

    def _opinion(self, state: State) -> tuple[float, float]:
        """Return the chance that a label gives to its own class, and to each other class."""
        return self._likelihood, (1 - self._likelihood) / max(state.n_classes - 1, 1)

    def added(self, state: State, task: int, worker: int, label: int) -> None:
        """Add the opinion of one label."""
        weight = self._worker_weight[worker] if worker < len(self._worker_weight) else self._usual_weight
        given, other = self._opinion(state)
        self._sum[task] += weight * other
        self._sum[task, label] += weight * (given - other)
        self._weight[task] += weight

    def scores(self, state: State, worker: int, tasks: Codes) -> Floats:
        """Return 1 - the quality of the consensus."""
        weight = self._model_weight + self._weight[tasks]
        both = self._model_weight * state.predictions[tasks] + self._sum[tasks]
        quality = both.max(axis=1) + self._usual_weight / state.n_classes
        return np.asarray(1 - quality / (weight + self._usual_weight))
