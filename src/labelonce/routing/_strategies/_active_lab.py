"""ActiveLab: how good the consensus of a task is, as votes and model tell together."""

from dataclasses import dataclass

import numpy as np

from labelonce._types import Codes, Floats
from labelonce.routing._state import State
from labelonce.routing._strategies._strategy import Strategy

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
        self._likelihood = float(np.diag(state.crowd.population[0]).mean())
        self._model_weight = self._usual_weight = 1.0
        rows = state.answers.rows(fitted=True)
        votes = state.votes(fitted=True)
        n = votes.sum(axis=1)
        several = n[rows.task] > 1
        self._worker_weight = np.ones(int(rows.worker.max(initial=-1)) + 1)
        if not several.any():
            return
        task, worker, label = (one[several] for one in rows)
        consensus, judged = votes.argmax(axis=1), np.unique(task)
        most_frequent = np.bincount(consensus[judged]).argmax()
        chance_error = max(float((consensus[judged] != most_frequent).mean()), _LEAST)
        self._likelihood = float(np.clip((label == consensus[task]).mean(), 1 / state.n_classes, 1 - _LEAST))
        agreement = (votes[task, label] - 1) / (n[task] - 1)
        times, total = (np.bincount(worker, one, len(self._worker_weight)) for one in (None, agreement))
        mean = np.where(times > 0, total / np.maximum(times, 1), agreement.mean())
        self._worker_weight = np.maximum(1 - (1 - mean) / chance_error, _LEAST)
        self._usual_weight = float(self._worker_weight.mean())
        error = float((state.predictions[judged].argmax(axis=1) != consensus[judged]).mean())
        self._model_weight = max(1 - error / chance_error, _LEAST) * float(np.sqrt(n[n > 0].mean()))

    def scores(self, state: State, worker: int, tasks: Codes) -> Floats:
        """Return 1 - the quality of the consensus."""
        task, given_by, label = state.answers.rows()
        known = np.append(self._worker_weight, self._usual_weight)
        weight = known[np.minimum(given_by, len(known) - 1)]
        other = (1 - self._likelihood) / max(state.n_classes - 1, 1)  # the chance that a label gives to another class
        total = np.bincount(task, weight, state.n_tasks)[tasks]
        cell = task * np.int64(state.n_classes) + label
        own = np.bincount(cell, weight, state.n_tasks * state.n_classes).reshape(-1, state.n_classes)[tasks]
        both = self._model_weight * state.predictions[tasks] + other * total[:, None] + (self._likelihood - other) * own
        quality = both.max(axis=1) + self._usual_weight / state.n_classes
        return np.asarray(1 - quality / (self._model_weight + total + self._usual_weight))
