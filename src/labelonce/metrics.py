"""How good a posterior, the labels, a confusion or a ranking of workers is, when the truth is known.

`y_true` holds class codes, -1 where the true label is unknown: these tasks are left out.
"""

from typing import Any, Literal

import numpy as np

from labelonce._kernels import Beliefs
from labelonce._types import Codes, Floats
from labelonce._validate import check_choice, check_codes, check_distribution, check_int

__all__ = ["accuracy", "calibration_error", "confusion_error", "log_loss", "rank_correlation"]

_ANY_CODE = 2**31 - 1  # bare labels do not say how many classes there are
_TIE = 1e-9  # relative: below the differences that the engines agree on


def accuracy(y_true: Any, prediction: Any) -> float:
    """Return the share of tasks whose predicted class is the true one.

    Parameters
    ----------
    y_true : int array of shape (n_tasks,)
        Class codes, -1 where unknown.
    prediction : array of shape (n_tasks, n_classes) or (n_tasks,), or Beliefs
        A posterior, or class codes. In a posterior, classes within a relative 1e-9 of the top are tied,
        and a true class among t tied ones counts 1/t: the mean over all ways to break the ties.

    Examples
    --------
    >>> accuracy([0, 1, 1, -1], [[0.9, 0.1], [0.5, 0.5], [0.2, 0.8], [0.6, 0.4]])
    0.8333333333333334
    >>> accuracy([0, 1, 1], [0, 0, 1])
    0.6666666666666666
    """
    if np.ndim(getattr(prediction, "probability", prediction)) != 1:
        true, beliefs = _known(y_true, prediction, "prediction")
        return float(beliefs.share_right(true, _TIE).mean())
    given = check_codes(prediction, "prediction", _ANY_CODE)
    true = _check_y_true(y_true, len(given), _ANY_CODE)
    return float((given == true)[true >= 0].mean())


def log_loss(y_true: Any, posterior: Any) -> float:
    """Return the mean negative log probability of the true class, in nats.

    A probability below the machine epsilon of the posterior's dtype counts as that epsilon, as in
    scikit-learn, so a task costs at most 36.0 in float64 and 15.9 in float32.

    The arguments are as in `accuracy`, a posterior alone.

    Examples
    --------
    >>> round(log_loss([0, 1, -1], [[0.5, 0.5], [0.2, 0.8], [1.0, 0.0]]), 4)
    0.4581
    """
    true, beliefs = _known(y_true, posterior, "posterior")
    kind = np.asarray(beliefs.probability).dtype
    smallest = np.finfo(kind if kind.kind == "f" else np.float64).eps
    return -float(np.log(np.maximum(beliefs.at(np.arange(len(true)), true), smallest)).mean())


def calibration_error(y_true: Any, posterior: Any, n_bins: int = 15) -> float:
    """Return the expected calibration error of the top class, in [0, 1].

    Tasks fall by the probability of their top class into `n_bins` bins of equal width,
    (0, 1/n_bins], ..., (1 - 1/n_bins, 1]. The result is the mean over tasks of the distance between
    their bin's mean probability and its accuracy (ties shared as in `accuracy`). It is biased upward
    when bins hold few tasks.

    The other arguments are as in `accuracy`, a posterior alone.

    Examples
    --------
    >>> round(calibration_error([0, 0, 1], [[0.9, 0.1], [0.9, 0.1], [0.9, 0.1]]), 4)
    0.2333
    """
    check_int(n_bins, "n_bins", 1)
    true, beliefs = _known(y_true, posterior, "posterior")
    top = beliefs.max()
    bin_of_task = np.searchsorted(np.arange(1, n_bins) / n_bins, top)
    gap = np.bincount(bin_of_task, weights=top - beliefs.share_right(true, _TIE))
    return float(np.abs(gap).sum() / len(true))


def confusion_error(
    confusion_true: Any,
    confusion: Any,
    *,
    norm: Literal["total_variation", "max"] = "total_variation",
    weight: Any = None,
) -> float:
    """Return the distance between two confusion arrays of shape (n_workers, n_classes, n_answers).

    Parameters
    ----------
    norm : {"total_variation", "max"}
        The mean over workers and rows of half the L1 distance, or the largest absolute difference of
        an entry. Both are in [0, 1].
    weight : array of shape (n_workers,) or (n_workers, n_classes), optional
        Weights of the mean, such as the annotations of each worker, or of each worker and true class;
        with "max", rows of weight 0 are left out. Default: equal.

    Examples
    --------
    >>> confusion_error([[[1.0, 0.0], [0.5, 0.5]]], [[[0.75, 0.25], [0.5, 0.5]]])
    0.125
    """
    check_choice(norm, "norm", ("total_variation", "max"))
    shape = np.shape(confusion_true)
    if len(shape) != 3 or shape[1] > shape[2] or 0 in shape:
        raise ValueError(
            "confusion_true must have shape (n_workers, n_classes, n_answers), with at least as many answers as "
            f"classes; got {shape}."
        )
    expected = check_distribution(confusion_true, "confusion_true", shape)
    difference = np.abs(expected - check_distribution(confusion, "confusion", shape))
    row_weight = _check_weight(weight, shape[:2])
    if norm == "max":
        return float(difference[row_weight > 0].max())
    return float(np.average(difference.sum(axis=2) / 2, weights=row_weight))


def rank_correlation(skill_true: Any, skill: Any) -> float:
    """Return Spearman's rank correlation of two arrays of shape (n_workers,), in [-1, 1].

    Equal values share the mean of their ranks. A constant array has no ranking and is an error.

    Examples
    --------
    >>> round(rank_correlation([0.9, 0.5, 0.7], [0.8, 0.4, 0.4]), 4)
    0.866
    """
    first, second = _ranks(skill_true, "skill_true"), _ranks(skill, "skill")
    if len(first) != len(second):
        raise ValueError(f"skill must have one entry per worker, {len(first)} as skill_true; got {len(second)}.")
    return float(np.corrcoef(first, second)[0, 1])


def _known(y_true: Any, posterior: Any, name: str) -> tuple[Codes, Beliefs]:
    """Return the true classes that are known, and the beliefs about their tasks."""
    shape = np.shape(getattr(posterior, "probability", posterior))
    if len(shape) != 2:
        raise ValueError(f"{name} must have shape (n_tasks, n_classes); got {shape}.")
    if not hasattr(posterior, "probability"):
        check_distribution(posterior, name, shape)
    beliefs = Beliefs.of(posterior)
    true = _check_y_true(y_true, *beliefs.shape)
    return true[true >= 0], beliefs[np.flatnonzero(true >= 0)]


def _check_y_true(y_true: Any, n_tasks: int, n_classes: int) -> Codes:
    array = np.asarray(y_true)
    if array.shape != (n_tasks,):
        raise ValueError(f"y_true must have one entry per task, shape ({n_tasks},); got shape {array.shape}.")
    unknown = array == -1
    if unknown.all():
        raise ValueError(f"y_true must be known for at least one task; got -1 for all {n_tasks}.")
    known = array.copy()
    known[unknown] = 0
    codes = check_codes(known, "y_true where not -1", n_classes)
    return np.where(unknown, np.int32(-1), codes)


def _check_weight(weight: Any, shape: tuple[int, ...]) -> Floats:
    if weight is None:
        return np.ones(shape)
    array = np.asarray(weight, dtype=np.float64)
    if array.shape not in (shape, shape[:1]):
        raise ValueError(f"weight must have shape {shape[:1]} or {shape}; got {array.shape}.")
    bad = ~np.isfinite(array) | (array < 0)
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(f"weight must be finite and at least 0; got {array[place]} at {place} ({bad.sum()} in total).")
    if not array.any():
        raise ValueError(f"weight must be positive for a row at least; got 0 for all {array.size}.")
    return np.broadcast_to(array.reshape(shape[0], -1), shape)


def _ranks(values: Any, name: str) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or len(array) < 2:
        raise ValueError(f"{name} must have one entry per worker, for two at least; got shape {array.shape}.")
    if not np.isfinite(array).all():
        first = int(np.argmin(np.isfinite(array)))
        raise ValueError(f"{name} must be finite; got {array[first]} at worker {first}. Leave this worker out.")
    _, place, counts = np.unique(array, return_inverse=True, return_counts=True)
    if len(counts) == 1:
        raise ValueError(f"{name} must differ between workers to be ranked; got {array[0]} for all {len(array)}.")
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place])
