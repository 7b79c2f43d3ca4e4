"""How good multi-label answers are when the truth is known, with intervals over tasks.

`y_true` is (n_tasks, n_questions) of 0 and 1, with -1 or NaN where the truth is unknown: these are left out.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from labelonce._types import Floats, Mask
from labelonce._validate import RandomState, check_choice, check_int, check_number, check_rng

Metric = Callable[[Any, Any], float]


def f1_score(y_true: Any, y_pred: Any, *, average: str | None = "micro") -> Any:
    """Return F1, 2 TP / (2 TP + FP + FN), over all pairs ("micro"), the mean over questions ("macro"), or each (None).

    A question without a true or a predicted yes has F1 0, as in scikit-learn.

    Examples
    --------
    >>> y_true, y_pred = [[1, 0], [1, 1], [0, -1]], [[1, 1], [0, 1], [0, 0]]
    >>> round(f1_score(y_true, y_pred), 4), f1_score(y_true, y_pred, average=None).round(4)
    (0.6667, array([0.6667, 0.6667]))
    """
    check_choice(str(average), "average", ("micro", "macro", "None"))
    true, known, given = _labels(y_true, y_pred)
    hit = (true & given & known).sum(axis=0)
    either = (true & known).sum(axis=0) + (given & known).sum(axis=0)
    if average == "micro":
        return float(2 * hit.sum() / max(either.sum(), 1))
    each = 2 * hit / np.maximum(either, 1)
    return each if average is None else float(each[known.any(axis=0)].mean())


def average_precision(y_true: Any, probability: Any) -> Floats:
    """Return the average precision of every question, NaN where it has no true yes; ties as in scikit-learn.

    Examples
    --------
    >>> average_precision([[1, 0], [0, 0], [1, 0]], [[0.9, 0.5], [0.8, 0.5], [0.7, 0.5]]).round(4)
    array([0.8333,    nan])
    """
    true, known, score = _truth(y_true, probability, "probability")
    n_lost = int(np.isnan(score[known]).sum())
    if n_lost:
        raise ValueError(f"probability must be a number where the truth is known; got NaN ({n_lost} in total).")
    return np.array([_precision(true[k, q], score[k, q]) for q, k in enumerate(known.T)])


def mean_average_precision(y_true: Any, probability: Any) -> float:
    """Return the mean of `average_precision` over the questions with a true yes (mAP)."""
    found = average_precision(y_true, probability)
    if np.isnan(found).all():
        raise ValueError(f"y_true must hold a yes to a question at least; got none in {len(found)} questions.")
    return float(np.nanmean(found))


def hamming_loss(y_true: Any, y_pred: Any) -> float:
    """Return the share of answers that are wrong.

    Examples
    --------
    >>> hamming_loss([[1, 0], [1, -1]], [[1, 1], [1, 1]])
    0.3333333333333333
    """
    true, known, given = _labels(y_true, y_pred)
    return float((true != given)[known].mean())


def exact_match(y_true: Any, y_pred: Any) -> float:
    """Return the share of tasks whose known answers are all right; tasks without one are left out.

    Examples
    --------
    >>> exact_match([[1, 0], [1, -1]], [[1, 1], [1, 1]])
    0.5
    """
    true, known, given = _labels(y_true, y_pred)
    right = ((true == given) | ~known).all(axis=1)
    return float(right[known.any(axis=1)].mean())


def bootstrap_interval(
    metric: Metric, y_true: Any, y_pred: Any, *, level: float = 0.9, n_draws: int = 1000, random_state: RandomState = 0
) -> tuple[float, float, float]:
    """Return a metric and the ends of its interval by drawing tasks with replacement.

    Parameters
    ----------
    metric : callable
        `metric(y_true, y_pred)`, such as `f1_score` or `mean_average_precision`.
    y_true, y_pred : (n_tasks, n_questions) arrays
    level : float
    n_draws : int
        Draws where the metric is undefined, as without a true yes, are left out.
    random_state : int, numpy.random.Generator or None

    Examples
    --------
    >>> y_true = [[1, 0]] * 50 + [[0, 1]] * 50
    >>> y_pred = [[1, 0]] * 80 + [[0, 1]] * 20
    >>> [round(one, 2) for one in bootstrap_interval(hamming_loss, y_true, y_pred)]
    [0.3, 0.23, 0.38]
    """
    check_int(n_draws, "n_draws", 1)
    check_number(level, "level", 0.0, 1.0)
    true, given = np.asarray(y_true), np.asarray(y_pred)
    rng = check_rng(random_state)
    draws = []
    for _ in range(n_draws):
        tasks = rng.integers(len(true), size=len(true))
        try:
            draws.append(metric(true[tasks], given[tasks]))
        except ValueError:
            continue
    low, high = np.nanquantile(draws, [(1 - level) / 2, (1 + level) / 2]) if draws else (np.nan, np.nan)
    return float(metric(true, given)), float(low), float(high)


def _precision(true: Mask, score: Floats) -> float:
    """Return the average precision of one question: ties count together, at their last place."""
    if not true.any():
        return float("nan")
    order = np.argsort(-score, kind="stable")
    hits = np.cumsum(true[order])
    last = np.append(score[order][1:] != score[order][:-1], True)
    precision, recall = hits[last] / (np.flatnonzero(last) + 1), hits[last] / hits[-1]
    return float(np.diff(np.append(0.0, recall)) @ precision)


def _labels(y_true: Any, y_pred: Any) -> tuple[Mask, Mask, Mask]:
    true, known, given = _truth(y_true, y_pred, "y_pred")
    odd = given[known & ~np.isin(given, (0, 1))]
    if len(odd):
        raise ValueError(f"y_pred must be 0 or 1 where the truth is known; got {odd[0]} ({len(odd)} in total).")
    return true, known, given == 1


def _truth(y_true: Any, given: Any, name: str) -> tuple[Mask, Mask, Floats]:
    truth, values = np.asarray(y_true, dtype=np.float64), np.asarray(given, dtype=np.float64)
    if truth.ndim != 2 or truth.shape != values.shape:
        raise ValueError(
            f"y_true and {name} must both have shape (n_tasks, n_questions); got {truth.shape} and {values.shape}."
        )
    known = np.isin(truth, (0, 1))
    odd = truth[~known & (truth != -1) & ~np.isnan(truth)]
    if len(odd):
        raise ValueError(f"y_true must be 0 or 1, or -1 where unknown; got {odd[0]} ({len(odd)} in total).")
    if not known.any():
        raise ValueError(f"y_true must be known for one pair at least; got none of {truth.size}.")
    return truth == 1, known, values
