"""What to expect of the labels of every class, and how well probabilities are calibrated."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelonce._types import Codes, Floats
from labelonce.report._facts import Facts

RARE = 0.1  # share of the tasks below which a class gets a threshold of its own
_BINS = 10  # of probabilities, each compared with how often it is right
_MOST_LABELS = 50_000
_MOST_ENTRIES = 5_000_000  # of the workers' matrices, one for every label looked at


@dataclass(frozen=True)
class ClassFigures:
    """What to expect of a class."""

    share: float  # Share of the tasks that are of the class
    precision: float  # Share of the labels of this class that are right
    recall: float  # Share of the tasks of this class that have its label
    # Of all tasks in the order of their probability of the class; guesses have the share of the class
    average_precision: float
    threshold: float | None  # Of a rare class: taking all tasks above this probability gives the highest expected F1
    f1: float | None  # Of a rare class: that highest expected F1


def class_figures(posterior: Floats, labels: Codes) -> list[ClassFigures]:
    """Return the figures of every class; `posterior` is (n_tasks, n_classes) and calibrated.

    Whether a task is of a class is drawn from its probability. The threshold of the best F1 is half of that F1: Lipton,
    Elkan and Naryanaswamy, "Optimal Thresholding of Classifiers to Maximize F1 Measure", ECML 2014.

    >>> one = class_figures(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([0, 0], dtype=np.int32))[0]
    >>> one.share, one.precision, one.recall
    (0.75, 0.75, 1.0)
    """
    found = []
    for k, chance in enumerate(posterior.T):
        own, total = chance[labels == k], max(float(chance.sum()), 1e-300)
        descending = np.cumsum(-np.sort(-chance))
        best = float((2 * descending / (np.arange(1, len(chance) + 1) + total)).max())
        share, precision = float(chance.mean()), float(own.mean()) if len(own) else 0.0
        threshold, f1 = (best / 2, best) if share < RARE else (None, None)
        recall, average = float(own.sum()) / total, expected_average_precision(chance)
        found.append(ClassFigures(share, precision, recall, average, threshold, f1))
    return found


def expected_average_precision(chance: Floats) -> float:
    """Return the average precision to expect of tasks ranked by their calibrated chance of a class.

    It tells of a rare class what the share of right labels does not: guesses have the share of the class.

    >>> round(expected_average_precision(np.array([1.0, 1.0, 0.0, 0.0])), 6)
    1.0
    >>> round(expected_average_precision(np.full(400, 0.02)), 3)
    0.02
    """
    descending = -np.sort(-chance)
    precision = np.cumsum(descending) / np.arange(1, len(chance) + 1)
    return float(descending @ precision / max(descending.sum(), 1e-300))


@dataclass(frozen=True)
class Calibration:
    """Ten bins by predicted probability: the mean prediction, the observed share and the number of each.

    `error` is the mean distance over all cases, the expected calibration error.
    """

    against_gold: bool
    n: int
    error: float
    bins: list[dict[str, Any]]


def gold_calibration(facts: Facts, gold: Codes) -> Calibration:
    """Return how often the label of a gold task is right, by its probability."""
    known = np.flatnonzero(gold >= 0)
    promised = facts.posterior[known, facts.label[known]]
    return _calibration(promised, facts.label[known] == gold[known], against_gold=True)


def label_calibration(facts: Facts) -> Calibration | None:
    """Return how often workers give the label that a fit without this label expects; None if that is not known.

    Where the posterior comes from held-out models it cannot: dividing by a label's factor would not leave it out. Any
    other posterior is a product with a factor for every label, so that dividing by one factor leaves it out; the
    worker's matrix, too, is estimated without the label.
    """
    if not facts.comparable or facts.estimate is not None or facts.annotations.n_classes == 1:
        return None
    ann = facts.annotations
    n = min(_MOST_LABELS, max(1, _MOST_ENTRIES // ann.n_classes**2))
    rows = np.random.default_rng(0).permutation(len(ann))[:n]
    task, worker, label = ann.task[rows], ann.worker[rows], ann.label[rows]
    belief = without_label(facts.belief[task], facts.belief_confusion[worker], label)
    expected = np.einsum("ak,aks->as", belief, facts.counts.confusion_without(worker, label, facts.belief[task]))
    pick = expected.argmax(axis=1)
    return _calibration(expected[np.arange(len(rows)), pick], pick == label, against_gold=False)


def without_label(posterior: Floats, confusion: Floats, label: Codes) -> Floats:
    """Return the posterior of each annotation's task as it would be without this annotation.

    All arguments have one row per annotation: the posterior of its task, its worker's matrix, and its label.
    """
    without = posterior / np.maximum(confusion[np.arange(len(label)), :, label], 1e-10)
    return np.asarray(without / without.sum(axis=1, keepdims=True))


def _calibration(promised: Floats, came: Any, *, against_gold: bool) -> Calibration:
    place, weights = np.minimum((promised * _BINS).astype(int), _BINS - 1), (None, promised, came.astype(float))
    n, total, hits = (np.bincount(place, weights=weight, minlength=_BINS) for weight in weights)
    bins = [
        {"n": int(n[i]), "promised": total[i] / n[i], "came": hits[i] / n[i], "low": i / _BINS, "high": (i + 1) / _BINS}
        for i in np.flatnonzero(n)
    ]
    return Calibration(against_gold, len(promised), float(np.abs(total - hits).sum() / len(promised)), bins)
