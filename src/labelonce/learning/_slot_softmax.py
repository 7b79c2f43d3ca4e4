"""Softmax regression on slots: blocks of tasks, and samples of them that grow."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.optimize import minimize

from labelonce._kernels import Beliefs, blas_threads
from labelonce._rules import RULES
from labelonce._types import Floats

Loss = Callable[..., tuple[float, Floats]]
_BLOCK = 1 << 20  # scores that are held at a time


def slot_loss(flat: Floats, X: Any, targets: Beliefs, weight: Floats, penalty: float) -> tuple[float, Floats]:
    """Return the loss per unit of weight and its gradient; weights sum to 1."""
    coefficients = flat.reshape(-1, targets.n_classes)
    slopes, intercept = coefficients[:-1].astype(X.dtype), coefficients[-1].astype(X.dtype)
    gradient, loss = np.zeros_like(coefficients), 0.0
    for rows in blocks(len(targets), max(1, _BLOCK // targets.n_classes)):
        some, x, part = targets[rows], X[rows], weight[rows]
        scores = np.asarray(x @ slopes)
        scores += intercept
        scores -= scores.max(axis=1, keepdims=True)
        there = some.codes >= 0
        place = np.maximum(some.codes, 0)
        each = some.each_other
        more = np.where(there, some.probability - each[:, None], 0.0)
        fit = (np.take_along_axis(scores, place, axis=1) * more).sum(axis=1)
        if each.any():
            fit += each * scores.sum(axis=1)
        np.exp(scores, out=scores)
        norm = scores.sum(axis=1)
        loss += float(part @ (np.log(norm) - fit))
        scores /= norm[:, None]
        if each.any():
            scores -= each[:, None].astype(scores.dtype)
        flat_scores, first = scores.reshape(-1), np.arange(len(place)) * targets.n_classes
        for column, amount in zip(place.T, more.T, strict=True):
            flat_scores[first + column] -= amount.astype(scores.dtype, copy=False)
        scores *= part[:, None].astype(scores.dtype)
        gradient[:-1] += x.T @ scores
        gradient[-1] += scores.sum(axis=0)
    slopes_ = coefficients[:-1]
    gradient[:-1] += penalty * slopes_
    return loss + 0.5 * penalty * float(np.vdot(slopes_, slopes_)), gradient.ravel()


def fit_slots(
    X: Any, targets: Beliefs, weight: Floats, penalty: float, start: Floats, *, max_iter: int, tol: float, warm: bool
) -> tuple[Floats, int]:
    """Return the coefficients over the intercepts, (n_features + 1, n_classes), and the iterations of L-BFGS.

    Few tasks: to `tol`. Many: on samples that grow, each from the coefficients of the last, until the gradient is
    small compared with that of the start; `warm`: the start is good, so on all tasks at once.
    """
    n_iter, many = 0, len(targets) * targets.n_classes > 100 * RULES.slot_sample
    stages: Any = ((1.0, max_iter),)
    if many:
        stages = RULES.slot_stages_warm if warm else RULES.slot_stages
    order = np.random.default_rng(0).permutation(len(targets)) if len(stages) > 1 else None
    point = start
    for share, most in stages:
        if order is None or share == 1.0:
            some: Any = (X, targets, weight / weight.sum())
        else:
            rows = np.sort(order[: int(share * len(targets))])
            some = (X[rows], targets[rows], weight[rows] / weight[rows].sum())
        options = {"maxiter": min(most, max_iter), "gtol": tol, "ftol": 1e-5 if many else 1e-9, "maxls": 20}
        found = searched(slot_loss, point, (*some, penalty), X.shape[0] * start.size, options)
        point, n_iter = found.x.reshape(start.shape), n_iter + int(found.nit)
    return point, n_iter


def searched(loss: Loss, start: Floats, arguments: tuple[Any, ...], size: int, options: dict[str, Any]) -> Any:
    """Return where L-BFGS ends, with the threads that a pass over the features is worth: of `size` multiplications."""
    with blas_threads(size):
        return minimize(loss, start.ravel(), args=arguments, jac=True, method="L-BFGS-B", options=options)


def blocks(n: int, step: int) -> Iterator[slice]:
    """Return N rows as slices of a length."""
    return (slice(start, start + step) for start in range(0, n, step))
