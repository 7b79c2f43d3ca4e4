"""The theory of the paper: how noisy the training targets are, and when one label per task is best.

The paper is Khetan, Lipton and Anandkumar, "Learning From Noisy Singly-labeled Data", ICLR 2018. Its bounds are
qualitative: with 100 workers Theorem 4.1 asks for 4.8 million annotations before it says anything, so compare settings
with these numbers and do not plan a purchase by them.
"""

from itertools import combinations_with_replacement
from math import comb, sqrt
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import binom

from labelonce._types import Floats
from labelonce._validate import check_choice, check_distribution, check_int, check_number

__all__ = ["Threshold", "alpha", "best_redundancy", "beta", "label_once_threshold"]

Bound = Literal["theorem", "hard", "variance"]

_MAX_TERMS = 2**22  # of the sum of `beta`: a second, and some hundred MB with few classes


class Threshold(NamedTuple):
    """The skill from which one label per task is best, and the redundancy that is best just below."""

    skill: float
    rival: int


def alpha(confusion: Any) -> float:
    """Return the mean over workers of the largest chance, over true classes, of a wrong label.

    This is alpha of the appendix (equation 14), which bounds the noise of round 1, trained on vote fractions. It does
    not depend on the redundancy. The paper defines it for two classes; for more, "the other class" is read as "any
    other class", and Theorem 4.1 does not apply.

    Parameters
    ----------
    confusion : array of shape (n_workers, n_classes, n_classes)
        confusion[worker, true, given]; every annotation's worker is drawn uniformly.

    Examples
    --------
    >>> alpha([[[0.875, 0.125], [0.25, 0.75]], [[1.0, 0.0], [0.0, 1.0]]])
    0.125
    """
    right = np.diagonal(_check_confusion(confusion), axis1=1, axis2=2)
    return float(np.mean(1 - right.min(axis=1)))


def beta(confusion: Any, redundancy: int) -> float:
    """Return the expected weight of the wrong classes in a task's posterior, summed exactly.

    This is beta of the appendix (equation 12), which bounds the noise of round 2: for every set of workers the
    largest, over true classes y, of sum_Z (1 - posterior(y | Z)) P(Z | y), then the mean over sets of `redundancy`
    workers drawn uniformly with replacement. The prior is uniform, the confusion known. More than two classes are read
    as in `alpha`.

    Parameters
    ----------
    confusion : array of shape (n_workers, n_classes, n_classes)
        confusion[worker, true, given], from which the labels come.
    redundancy : int of at least 1
        Labels per task. Alike workers are counted once; with w unlike workers the sum has
        C(w + redundancy - 1, redundancy) * n_classes**redundancy terms, and more than 2**22 are refused.

    Examples
    --------
    >>> [round(beta([[[0.8, 0.2], [0.2, 0.8]]], redundancy), 4) for redundancy in (1, 3)]
    [0.32, 0.1694]
    """
    check_int(redundancy, "redundancy", 1)
    unlike, counts = np.unique(_check_confusion(confusion), axis=0, return_counts=True)
    n_sets, n_labels = comb(len(unlike) + redundancy - 1, redundancy), unlike.shape[-1] ** redundancy
    if n_sets * n_labels > _MAX_TERMS:
        raise ValueError(
            f"the exact sum must have at most {_MAX_TERMS} terms; got {n_sets * n_labels}: {n_sets} sets of workers "
            f"times {n_labels} of labels. Give fewer unlike workers, such as a sample, or fewer labels per task."
        )
    sets = np.array(list(combinations_with_replacement(range(len(unlike)), redundancy)))
    return float(_set_chances(sets, counts / counts.sum()) @ _wrong_weights(sets, unlike))


def best_redundancy(error_rate: float, *, max_redundancy: int = 50, bound: Bound = "theorem") -> int:
    """Return the labels per task with the smallest bound on the excess risk, the least number of several.

    Identical symmetric workers, two classes, a fixed number of annotations, tasks that cost nothing, known confusion:
    then a bound depends on the redundancy r only by a factor. By "hard" and by "variance" one label is best for every
    error rate below a half: that "theorem" asks for more is due to a loose bound.

    Parameters
    ----------
    error_rate : float in [0, 0.5)
        Chance of a worker to be wrong.
    max_redundancy : int of at least 1
        The largest redundancy tried.
    bound : {"theorem", "hard", "variance"}
        "theorem": sqrt(r) / (1 - 2 beta_r), Theorem 4.1. "hard": the same argument for majority labels as targets,
        sqrt(r) / (1 - 2 majority_error). "variance": sqrt(r / (1 - 2 beta_r)), where the noise of a task shrinks with
        its weight, the posterior margin, whose mean square is 1 - 2 beta_r.

    Examples
    --------
    >>> [best_redundancy(error_rate) for error_rate in (0.1, 0.2, 0.3, 0.4)]
    [1, 3, 7, 32]
    >>> best_redundancy(0.4, bound="variance")
    1
    """
    check_choice(bound, "bound", ("theorem", "hard", "variance"))
    if check_number(error_rate, "error_rate", 0) >= 0.5:
        raise ValueError(f"error_rate must be in [0, 0.5); got {error_rate!r}.")
    candidates = range(1, check_int(max_redundancy, "max_redundancy", 1) + 1)
    return min(candidates, key=lambda redundancy: _bound_factor(error_rate, redundancy, bound))


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
    return max(Threshold(_crossing_skill(rival), rival) for rival in rivals)


def _check_confusion(confusion: Any) -> Floats:
    shape = np.shape(confusion)
    if len(shape) != 3 or shape[1] != shape[2] or 0 in shape:
        raise ValueError(f"confusion must have shape (n_workers, n_classes, n_classes); got {shape}.")
    return check_distribution(confusion, "confusion", shape)


def _set_chances(sets: npt.NDArray[np.intp], share: Floats) -> Floats:
    """Return the chance of drawing each row's workers, in any order; equal workers must be neighbours."""
    chance: Floats = share[sets].prod(axis=1)
    run = np.ones(len(sets))
    for column in range(1, sets.shape[1]):
        run = np.where(sets[:, column] == sets[:, column - 1], run + 1, 1)
        chance = chance * (column + 1) / run  # builds redundancy! / product of (repeats of a worker)!
    return chance


def _wrong_weights(sets: npt.NDArray[np.intp], confusion: Floats) -> Floats:
    """Return, for every row of workers, max_y sum_Z (1 - posterior(y | Z)) P(Z | y)."""
    chance: Floats = np.ones((len(sets), 1, confusion.shape[-1]))  # [set, labels, true]
    for worker in sets.T:  # one more label of each: labels becomes labels times given
        product = chance[:, :, None, :] * confusion[worker].swapaxes(1, 2)[:, None]
        chance = product.reshape(len(sets), -1, chance.shape[-1])
    total = chance.sum(axis=2, keepdims=True)
    weights: Floats = (chance * (1 - chance / np.where(total > 0, total, 1))).sum(axis=1).max(axis=1)
    return weights


def _bound_factor(error_rate: float, redundancy: int, bound: Bound = "theorem") -> float:
    """Return the factor by which a bound on the excess risk depends on the redundancy."""
    if bound == "hard":
        return sqrt(redundancy) / (1 - 2 * _majority_error(error_rate, redundancy))
    information = 1 - 2 * _beta_symmetric(error_rate, redundancy)
    return sqrt(redundancy / information) if bound == "variance" else sqrt(redundancy) / information


def _crossing_skill(redundancy: int) -> float:
    """Return the skill at which Theorem 4.1 rates `redundancy` labels per task and one label the same."""

    def gain(error_rate: float) -> float:
        return _bound_factor(error_rate, 1) / _bound_factor(error_rate, redundancy) - 1

    # sqrt(1/r) - 1 < 0 for perfect workers; near a half, 1 - 2 beta_r grows like r, which outdoes sqrt(r).
    return 1 - float(brentq(gain, 0.0, 0.5 - 0.05 / sqrt(redundancy), xtol=1e-12))


def _beta_symmetric(error_rate: float, redundancy: int) -> float:
    """Return `beta` of workers who are wrong with the same chance for both of two classes."""
    if error_rate == 0:
        return 0.0  # 0 * inf would be nan
    n_wrong = np.arange(redundancy + 1)
    log_odds = (2 * n_wrong - redundancy) * np.log((1 - error_rate) / error_rate)  # of the wrong class
    return float(binom.pmf(n_wrong, redundancy, error_rate) @ expit(log_odds))


def _majority_error(error_rate: float, redundancy: int) -> float:
    """Return the chance that the majority of a task's labels is wrong, a tie counting half."""
    n_wrong = np.arange(redundancy + 1)
    return float(binom.pmf(n_wrong, redundancy, error_rate) @ ((np.sign(2 * n_wrong - redundancy) + 1) / 2))
