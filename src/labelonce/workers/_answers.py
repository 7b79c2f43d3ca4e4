"""Answers that are not classes: how often every worker gives them, shrunk as far as the evidence asks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labelonce._kernels import normalised
from labelonce._rules import RULES
from labelonce._types import Floats
from labelonce.workers._population import most_likely, shrinkage, strength


class Shares(NamedTuple):
    """The shares of answers by worker and true class, (n_workers, n_classes, n_answers), and how sure they are.

    `size` is the number of answers that a row is worth, seen and believed; `strength` of the believed ones.
    """

    mean: Floats
    size: Floats
    strength: float

    def variance(self) -> Floats:
        """Return the variance of every share."""
        return np.asarray(self.mean * (1 - self.mean) / (self.size + 1))


def other_shares(counts: Floats) -> Shares:
    """Return the shares of class answers, all together, and of each other answer, from their counts in this order.

    A worker's share in tasks of one class is shrunk towards its share in all tasks, and that towards the share of all
    workers: how much it tells that a task was skipped is learned, and so is that it tells nothing.

    >>> counts = np.array([[[50.0, 50.0], [50.0, 50.0]], [[90.0, 10.0], [90.0, 10.0]]])
    >>> other_shares(counts).mean[:, :, 1].round(2)
    array([[0.5, 0.5],
           [0.1, 0.1]])
    """
    everybody = normalised(counts.sum(axis=(0, 1)))
    own = shrunk_rows(counts.sum(axis=1), everybody)
    return shrunk_rows(counts, own.mean[:, None, :])


def scale_shares(counts: Floats, leaning: Floats) -> Shares:
    """Return the shares of the answers on a scale, shrunk towards those of all workers for the same class."""
    everybody = counts.sum(axis=0)
    believed = normalised(leaning.T * normalised(everybody.sum(axis=0)))  # one answer, as the scale leans
    return shrunk_rows(counts, normalised(everybody + believed))


def shrunk_rows(counts: Floats, mean: Floats) -> Shares:
    """Return shares of counts along the last axis, shrunk towards `mean` by a strength of marginal likelihood."""
    means = np.broadcast_to(mean, counts.shape)
    found = _strength(counts.reshape(-1, counts.shape[-1]), means.reshape(-1, counts.shape[-1]))
    size = counts.sum(axis=-1, keepdims=True) + found
    return Shares(np.asarray((counts + found * means) / size), size, found)


def leaning_moments(shares: Floats, size: Floats, leaning: Floats, prior: Floats) -> tuple[Floats, Floats]:
    """Return mean and variance of how far each worker's answers lean to the true class."""
    mean, square = (np.einsum("wks,sk->wk", shares, leaning**power) for power in (1, 2))
    variance = np.maximum(square - mean**2, 0.0) / (size[:, :, 0] + 1)
    return np.asarray(mean @ prior), np.asarray(variance @ prior**2)


def _strength(counts: Floats, means: Floats) -> float:
    """Return how many answers the means are worth, of Dirichlet shares around them that were drawn from."""
    rows = np.flatnonzero(counts.sum(axis=1))
    rows = rows[:: max(1, -(-len(rows) // RULES.population_rows))]
    counts, means = counts[rows], means[rows]
    possible = means > 0
    log_density = shrinkage(means[possible], counts[possible], counts.sum(axis=1))
    return float(strength(most_likely(log_density, np.array([0.2]))[0]))
