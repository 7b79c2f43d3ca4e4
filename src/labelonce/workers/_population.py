"""The population of workers: its parameters by marginal likelihood, and the doubt about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import digamma, expit, gammaln, logit

from labelonce._kernels import blas_threads
from labelonce._rules import RULES
from labelonce._types import Floats

LogDensity = Callable[[Floats], tuple[float, Floats]]  # with its derivatives

_SAMPLE = (400, 10)  # workers, and rows of each, of many
_N_POINTS = 32
_FARTHEST = 12.0  # logits: a strength of 160,000 labels


def strength(spread: Floats | float) -> Floats:
    """Return how many labels the mean of Beta or Dirichlet chances is worth, for their spread in (0, 1).

    The spread is the variance of the chances as a share of the largest possible: 0 if all are alike, 1 if each
    is sure.

    >>> float(strength(0.2))
    4.0
    """
    return np.asarray(1 / np.asarray(spread) - 1)


def sample_workers(labels: Floats) -> Any:
    """Return codes of workers, evenly spread, with about 2,000 rows that have labels.

    `labels` is their number by worker and row, (n_workers, n_rows).
    """
    rows = np.count_nonzero(labels, axis=1)
    return np.flatnonzero(rows)[:: max(1, -(-int(rows.sum()) // RULES.population_rows))]


def sample_rows(right: Floats, wrong: Floats) -> tuple[Floats, Floats]:
    """Return right and wrong labels of some workers, evenly spread, and some rows of each: enough for a population."""
    number = np.count_nonzero(right + wrong, axis=1)
    if number.sum() <= RULES.population_rows:
        return right[number > 0], wrong[number > 0]
    some = np.flatnonzero(number)[:: max(1, np.count_nonzero(number) // _SAMPLE[0])]
    step = max(1, -(-right.shape[1] // max(_SAMPLE[1], RULES.population_rows // len(some))))
    offset = (np.arange(right.shape[1]) - np.arange(len(some))[:, None]) % step == 0
    return np.where(offset, right[some], 0.0), np.where(offset, wrong[some], 0.0)


def has_moved(share: Floats, model: Any) -> bool:
    """Return whether shares of right labels are other ones than those that a model learned its population from."""
    before = vars(model).get("_learned_from")
    if before is None or before.shape != share.shape:
        return True
    return not model._population_stays and float(np.abs(share - before).mean()) >= RULES.population_moved


def log_spread_prior(spreads: Floats) -> tuple[float, Floats]:
    """Return the log-density of spreads by Beta(1, 3), up to a constant, and its derivatives.

    Half of it means four labels or more. A uniform one would hold that few workers, all right, are all perfect.
    """
    return 2 * float(np.log1p(-spreads).sum()), -2 / (1 - spreads)


def shrinkage(
    means: Floats | float, seen: Floats, totals: Floats, times: Floats | float = 1.0, times_total: Floats | float = 1.0
) -> LogDensity:
    """Return the log-density of the spread of Dirichlet chances around their means, given counts.

    `seen` are the counts of entries, `means` their mean chances, and `totals` the counts of whole distributions;
    `times` says how often each is there.
    """

    def log_density(point: Floats) -> tuple[float, Floats]:
        size = float(strength(point[0]))
        log_prior, slope = log_spread_prior(point)
        before = size * means
        value = (times * (gammaln(before + seen) - gammaln(before))).sum()
        value -= (times_total * (gammaln(size + totals) - gammaln(size))).sum()
        by_size = (times * means * (digamma(before + seen) - digamma(before))).sum()
        by_size -= (times_total * (digamma(size + totals) - digamma(size))).sum()
        return float(value) + log_prior, -by_size / point**2 + slope

    return log_density


def most_likely(log_density: LogDensity, start: Floats) -> Floats:
    """Return the population's parameters, each in (0, 1), at the mode of their logits."""
    bounds = [(-_FARTHEST, _FARTHEST)] * len(start)
    options = {"ftol": 1e-8, "maxiter": 50}
    with blas_threads():
        found = minimize(_loss(log_density), logit(start), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.asarray(expit(found.x))


def likely_points(log_density: LogDensity, mode: Floats) -> Iterator[tuple[float, Floats]]:
    """Yield weights and points that stand for the posterior of the population's parameters.

    The points are drawn around the mode as the curvature there says, always from the same seed, and weighted
    by how likely they are: importance sampling.
    """
    place = logit(mode)

    def loss(logits: Floats) -> float:
        return _loss(log_density)(logits)[0]

    values, vectors = np.linalg.eigh(_curvature(loss, place))
    deviations = np.sqrt(1.3 / np.maximum(values, 0.2))  # a bit wider than the normal approximation
    half = np.random.default_rng(0).standard_normal((_N_POINTS // 2, len(mode)))
    normal = np.concatenate([half, -half])
    logits = np.clip(place + normal @ (vectors * deviations) @ vectors.T, -2 * _FARTHEST, 2 * _FARTHEST)
    log_weights = (normal**2).sum(axis=1) / 2 - np.array([loss(point) for point in logits])
    weights = np.exp(log_weights - log_weights.max())
    kept = weights > 1e-3 * weights.sum()
    yield from zip((weights[kept] / weights[kept].sum()).tolist(), expit(logits[kept]), strict=True)


def average_moments(
    moments_at: Callable[[Floats], tuple[Floats, Floats]], points: Iterator[tuple[float, Floats]]
) -> tuple[Floats, Floats]:
    """Return mean and variance of a mixture, from the mean and the mean square at each weighted point."""
    mean, square = np.zeros(()), np.zeros(())
    for weight, point in points:
        mean_at, square_at = moments_at(point)
        mean, square = mean + weight * mean_at, square + weight * square_at
    return mean, np.maximum(square - mean**2, 0.0)


def _loss(log_density: LogDensity) -> LogDensity:
    """Return the negative log-density of the logits of the parameters, with its derivatives."""

    def loss(logits: Floats) -> tuple[float, Floats]:
        point = expit(logits)
        value, gradient = log_density(point)
        log_jacobian = -float(np.sum(np.logaddexp(0, logits) + np.logaddexp(0, -logits)))
        return -log_jacobian - value, -(1 - 2 * point) - gradient * point * (1 - point)

    return loss


def _curvature(loss: Callable[[Floats], float], place: Floats) -> Floats:
    """Return the second derivatives of `loss`, by differences."""
    size = 0.2
    steps = size * np.eye(len(place))
    here, forth, back = loss(place), [loss(place + step) for step in steps], [loss(place - step) for step in steps]
    result = np.diag((np.add(forth, back) - 2 * here) / size**2)
    for i, j in zip(*np.triu_indices(len(place), 1), strict=True):
        both = loss(place + steps[i] + steps[j])
        result[i, j] = result[j, i] = (both - forth[i] - forth[j] + here) / size**2
    return result
