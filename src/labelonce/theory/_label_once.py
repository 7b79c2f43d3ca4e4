"""When one label per task is best, by the bound of Theorem 4.1 and by two sharper arguments.

Identical symmetric workers, binary labels, a fixed number of annotations, tasks that cost nothing, known confusion
(epsilon = 0). Then the bound depends on the redundancy r only by a factor.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Literal

from scipy.optimize import brentq

from labelonce._validate import check_choice, check_int
from labelonce.theory._symmetric import beta_symmetric, majority_error

Bound = Literal["theorem", "hard", "variance"]


@dataclass(frozen=True)
class Threshold:
    """The skill from which one label per task is best, and the redundancy that is best just below.

    Examples
    --------
    >>> label_once_threshold().rival
    3
    """

    skill: float
    rival: int


def bound_factor(error_rate: float, redundancy: int, bound: Bound = "theorem") -> float:
    """Return the factor by which a bound on the excess risk depends on the redundancy; smaller is better.

    Parameters
    ----------
    error_rate : float in [0, 0.5)
        Chance of a worker to be wrong.
    redundancy : int of at least 1
        Labels per task, r.
    bound : {"theorem", "hard", "variance"}
        "theorem": sqrt(r) / (1 - 2 beta_r), Theorem 4.1. "hard": the same argument for majority labels as
        targets, sqrt(r) / (1 - 2 majority_error). "variance": sqrt(r / (1 - 2 beta_r)), where the noise of
        a task shrinks with its weight, the posterior margin, whose mean square is 1 - 2 beta_r.

    Examples
    --------
    >>> [round(bound_factor(0.3, redundancy), 2) for redundancy in (1, 3, 7, 9)]
    [6.25, 4.67, 4.27, 4.29]
    >>> [round(bound_factor(0.3, redundancy, "variance"), 2) for redundancy in (1, 3, 7, 9)]
    [2.5, 2.84, 3.36, 3.59]
    """
    check_choice(bound, "bound", ("theorem", "hard", "variance"))
    if bound == "hard":
        return sqrt(redundancy) / (1 - 2 * majority_error(error_rate, redundancy))
    information = 1 - 2 * beta_symmetric(error_rate, redundancy)
    return sqrt(redundancy / information) if bound == "variance" else sqrt(redundancy) / information


def best_redundancy(error_rate: float, *, max_redundancy: int = 50, bound: Bound = "theorem") -> int:
    """Return the redundancy with the smallest `bound_factor`, the least one of several.

    By "hard" and by "variance" it is 1 for every error rate below a half: that "theorem" asks for more is
    due to a loose bound. What a task costs, and how many there are, is not considered.

    Parameters
    ----------
    error_rate, bound
        As in `bound_factor`.
    max_redundancy : int of at least 1
        The largest redundancy tried.

    Examples
    --------
    >>> [best_redundancy(error_rate) for error_rate in (0.1, 0.2, 0.3, 0.4)]
    [1, 3, 7, 32]
    >>> best_redundancy(0.4, bound="variance")
    1
    """
    candidates = range(1, check_int(max_redundancy, "max_redundancy", 1) + 1)
    return min(candidates, key=lambda redundancy: bound_factor(error_rate, redundancy, bound))


def crossing_skill(redundancy: int) -> float:
    """Return the skill at which Theorem 4.1 rates `redundancy` labels per task and one label the same.

    Better workers should label once, worse ones should not.

    Parameters
    ----------
    redundancy : int of at least 2
        Labels per task.

    Examples
    --------
    >>> [round(crossing_skill(redundancy), 4) for redundancy in (2, 3, 4)]
    [0.8218, 0.8233, 0.8099]
    """
    check_int(redundancy, "redundancy", 2)

    def gain(error_rate: float) -> float:
        return bound_factor(error_rate, 1) / bound_factor(error_rate, redundancy) - 1

    # sqrt(1/r) - 1 < 0 for perfect workers; near a half, 1 - 2 beta_r grows like r, which outdoes sqrt(r).
    return 1 - float(brentq(gain, 0.0, 0.5 - 0.05 / sqrt(redundancy), xtol=1e-12))


def label_once_threshold(max_redundancy: int = 50) -> Threshold:
    """Return the skill from which one label per task minimises the bound of Theorem 4.1, and its rival.

    The paper says 0.825. It is a property of that bound rather than of labels: see `best_redundancy`.

    Parameters
    ----------
    max_redundancy : int of at least 2
        The largest redundancy that one label is compared with.

    Examples
    --------
    >>> threshold = label_once_threshold()
    >>> round(threshold.skill, 4), threshold.rival
    (0.8233, 3)
    """
    rivals = range(2, check_int(max_redundancy, "max_redundancy", 2) + 1)
    skill, rival = max((crossing_skill(rival), rival) for rival in rivals)
    return Threshold(skill, rival)
