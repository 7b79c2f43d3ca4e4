"""What to expect of the labels of every class, from calibrated probabilities alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labelonce._types import Codes, Floats

RARE = 0.1  # share of the tasks below which a class gets a threshold of its own


@dataclass(frozen=True)
class ClassFigures:
    """What to expect of a class.

    Attributes
    ----------
    share : float
        Share of the tasks that are of the class.
    precision, recall : float
        Share of the labels of this class that are right, and share of the tasks of this class that have its label.
    average_precision : float
        Of all tasks in the order of their probability of the class; guesses have the share of the class.
    threshold, f1 : float or None
        Of a rare class: taking all tasks with a probability above the threshold gives the highest expected F1.
    """

    share: float
    precision: float
    recall: float
    average_precision: float
    threshold: float | None
    f1: float | None


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
        share = float(chance.mean())
        rare = share < RARE
        found.append(
            ClassFigures(
                share=share,
                precision=float(own.mean()) if len(own) else 0.0,
                recall=float(own.sum()) / total,
                average_precision=expected_average_precision(chance),
                threshold=best / 2 if rare else None,
                f1=best if rare else None,
            )
        )
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
