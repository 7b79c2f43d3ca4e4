"""Chances of being right on a grid: a population of any shape, learned from the likelihoods of the workers' labels."""

from __future__ import annotations

import numpy as np
from scipy.special import betaln

from labelonce._types import Floats

N_GRID, N_KINDS = 20, 4
_STEPS = 5  # of EM for the population, in every step of the rounds
_PSEUDO = 2.0  # rows, evenly spread over the grid, that are believed before any is seen


def chance_grid(n: int = N_GRID) -> Floats:
    """Return chances in (0, 1) that are equally hard to tell from their neighbours.

    >>> chance_grid(4).round(2)
    array([0.04, 0.31, 0.69, 0.96])
    """
    return np.asarray(np.sin((np.arange(n) + 0.5) * np.pi / (2 * n)) ** 2)


class ChanceGrid:
    """The chances of all workers and rows: the population, and what is believed of each.

    A worker is of one of a few kinds, and each kind has its distribution of the rows' chances over the grid, of any
    shape: experts of some classes who guess at others are two peaks, which no Beta distribution is. Both are learned by
    EM from the likelihoods of the labels (J. Kiefer and J. Wolfowitz, "Consistency of the Maximum Likelihood Estimator
    in the Presence of Infinitely Many Incidental Parameters", Annals of Mathematical Statistics, 1956).
    """

    def __init__(self, n_workers: int, n_rows: int) -> None:
        self.grid = chance_grid()
        n_kinds = N_KINDS if n_rows > 1 else 1
        self.shares = np.full(n_kinds, 1 / n_kinds)
        centre = chance_grid(n_kinds)[:, None]
        log_density = (2 * centre - 1) * np.log(self.grid) + (2 * (1 - centre) - 1) * np.log1p(-self.grid)
        self.kinds = np.exp(log_density - betaln(2 * centre, 2 * (1 - centre)))
        if n_kinds == 1:
            self.kinds[:] = 1.0
        self.kinds /= self.kinds.sum(axis=1, keepdims=True)
        self.belief = np.tile(self.shares @ self.kinds, (n_workers, n_rows, 1))

    def learn(self, log_likelihood: Floats) -> None:
        """Learn from the log-likelihoods of labels by worker, row and chance; starts where it ended before."""
        n_workers, n_rows, n_grid = log_likelihood.shape
        likelihood = np.exp(log_likelihood - log_likelihood.max(axis=2, keepdims=True)).reshape(-1, n_grid)
        seen = (np.ptp(log_likelihood, axis=2) > 0).reshape(-1, 1)
        for _ in range(_STEPS):
            by_kind = np.maximum(likelihood @ self.kinds.T, 1e-300)  # (n_workers * n_rows, n_kinds)
            log_kind = np.log(by_kind).reshape(n_workers, n_rows, -1).sum(axis=1) + np.log(self.shares)
            kind = np.exp(log_kind - log_kind.max(axis=1, keepdims=True))
            kind /= kind.sum(axis=1, keepdims=True)
            weight = np.repeat(kind, n_rows, axis=0) / by_kind
            belief = likelihood * (weight @ self.kinds)
            self.belief = (belief / belief.sum(axis=1, keepdims=True)).reshape(log_likelihood.shape)
            mass = ((weight * seen).T @ likelihood) * self.kinds
            self.kinds = mass + _PSEUDO / mass.shape[1]
            self.kinds /= self.kinds.sum(axis=1, keepdims=True)
            self.shares = (kind.sum(axis=0) + 1) / (len(kind) + len(self.shares))

    def chance(self) -> Floats:
        """Return the mean chance of being right, (n_workers, n_rows)."""
        return np.asarray(self.belief @ self.grid)

    def moments(self) -> tuple[Floats, Floats]:
        """Return mean and variance of the chances, (n_workers, n_rows), which are anywhere between the grid's."""
        mean = self.chance()
        between = np.gradient(self.grid) ** 2 / 12
        return mean, np.maximum(self.belief @ (self.grid**2 + between) - mean**2, 0.0)

    def overall_moments(self, prior: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance of every worker's chance of being right; `prior` is the share of each row."""
        mean, variance = self.moments()
        return np.asarray(mean @ prior), np.asarray(variance @ prior**2)

    @property
    def population_(self) -> tuple[float, float]:
        """The Beta distribution with the mean and the variance of the workers' overall chances."""
        overall = self.kinds @ self.grid
        mean = float(self.shares @ overall)
        spread = self.kinds @ self.grid**2 - overall**2 if len(self.kinds) == 1 else 0.0
        variance = float(self.shares @ ((overall - mean) ** 2 + spread))
        size = max(mean * (1 - mean) / max(variance, 1e-9) - 1, 1e-3)
        return mean * size, (1 - mean) * size
