"""What is known at one moment: the answers so far, the beliefs about tasks, and the workers."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from labelonce._kernels import floored_log, one_coin_confusion
from labelonce._types import Codes, Floats, Ids
from labelonce.routing._belief import Belief

ANYBODY = -1  # the code of a worker of whom nothing is known
_FIRST_SKILL = 0.5  # how far from guessing to perfect a worker is, before any fit


class State:
    """What a strategy looks at. Tasks, workers and classes are codes: positions in the tables of the router.

    Attributes
    ----------
    belief : Belief
        About the true label of every task, of all answers so far.
    predictions : (n_tasks, n_classes)
        Of the model alone, at the last refit; uniform where there is no model.
    confusion : (n_workers, n_classes, n_classes)
        Of the known workers, at the last refit.
    population : (n_classes, n_classes)
        The mean confusion: what is assumed of a worker of whom nothing is known.
    n_labels : (n_tasks,)
    n_given : Counter
        How many answers each worker has given.
    votes : (n_tasks, n_classes)
        How often each class was given.
    X : features or None
    prices : (n_tasks,)
        The price of a label of each task, as a multiple of the worker's.
    gold : (n_tasks,)
        The known true class, -1 where it is not known.
    rng : numpy.random.Generator
    """

    def __init__(self, n_classes: int, X: Any, prices: Floats, gold: Codes, seed: int) -> None:
        n_tasks = len(gold)
        self.n_tasks, self.n_classes, self.X, self.prices, self.gold = n_tasks, n_classes, X, prices, gold
        uniform = np.full((n_tasks, n_classes), 1 / n_classes)
        self.belief = Belief(known_rows(uniform, gold))
        self.predictions: Floats = uniform.astype(np.float32)
        self.n_labels: Codes = np.zeros(n_tasks, dtype=np.int32)
        self.votes: Codes = np.zeros((n_tasks, n_classes), dtype=np.int32)
        self.task, self.worker, self.label = array("i"), array("i"), array("i")
        self.n_given: Counter[int] = Counter()  # answers by worker
        self.n_fitted = 0  # answers that the last refit knew
        self.n_removed = 0  # answers that were taken back
        self.rng = np.random.default_rng(seed)
        skill = 1 / n_classes + _FIRST_SKILL * (1 - 1 / n_classes)
        self.know_workers(np.zeros((0, n_classes, n_classes)), one_coin_confusion(np.array([skill]), n_classes)[0])

    def know_workers(self, confusion: Floats, population: Floats) -> None:
        """Replace what is known of the workers."""
        self.confusion, self.population = confusion, population
        self._log_confusion, self._log_population = floored_log(confusion), floored_log(population)

    def confusion_of(self, worker: int) -> Floats:
        """Return the confusion of a worker, the population's if nothing is known of it."""
        return self.confusion[worker] if 0 <= worker < len(self.confusion) else self.population

    def log_chances(self, worker: int, label: int) -> Floats:
        """Return the log-chance that the worker gives this label, for every true class."""
        known = 0 <= worker < len(self.confusion)
        return np.asarray((self._log_confusion[worker] if known else self._log_population)[:, label])

    def add(self, task: int, worker: int, label: int) -> None:
        """Take an answer."""
        self.task.append(task)
        self.worker.append(worker)
        self.label.append(label)
        self.n_given[worker] += 1
        self.n_labels[task] += 1
        self.votes[task, label] += 1
        if self.gold[task] < 0:
            self.belief.update(task, self.log_chances(worker, label))

    def rows(self, n: int | None = None) -> tuple[Codes, Codes, Codes]:
        """Return the tasks, workers and labels of the first `n` answers, of all by default."""
        task, worker, label = (np.array(one[:n], dtype=np.int32) for one in (self.task, self.worker, self.label))
        return task, worker, label


def known_rows(posterior: Floats, gold: Codes) -> Floats:
    """Return a posterior whose rows with gold are sure of it."""
    known = np.flatnonzero(gold >= 0)
    result = np.array(posterior, dtype=np.float64)
    result[known] = np.eye(result.shape[1])[gold[known]]
    return result


def check_costs(costs: Any, ids: Sequence[Any] | Ids, name: str) -> Floats:
    """Return one price per task; prices must be above 0."""
    if costs is None:
        return np.ones(len(ids))
    if hasattr(costs, "get"):
        costs = [costs.get(one, 1.0) for one in (ids.tolist() if isinstance(ids, np.ndarray) else ids)]
    array_ = np.asarray(costs, dtype=np.float64)
    if array_.shape != (len(ids),):
        raise ValueError(f"{name} must have one entry per task, {len(ids)}; got shape {array_.shape}.")
    bad = ~(np.isfinite(array_) & (array_ > 0))
    if bad.any():
        place = int(np.argmax(bad))
        raise ValueError(f"{name} must be above 0; got {array_[place]} at task {place} ({int(bad.sum())} in total).")
    return array_
