"""Credible intervals from moments."""

from __future__ import annotations

import numpy as np
from scipy.special import betaincinv

from labelonce._kernels import one_coin_confusion
from labelonce._types import Floats

_MANY = 100_000


def beta_interval(mean: Floats, variance: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the ends of intervals of Beta distributions with these moments.

    Equal tails, except that the interval reaches 0 or 1 where the density is highest there, so that a
    worker who was never wrong may be perfect.

    >>> low, high = beta_interval(np.array([0.5, 0.9]), np.array([0.01, 0.0]), 0.9)
    >>> low.round(2), high.round(2)
    (array([0.34, 0.9 ]), array([0.66, 0.9 ]))
    """
    if mean.size > _MANY:  # most entries of large matrices are without labels, and alike
        pairs, place = np.unique(mean + 1j * variance, return_inverse=True)
        low, high = (end[place].reshape(mean.shape) for end in _ends(pairs.real, pairs.imag, level))
        return low, high
    return _ends(mean, variance, level)


def _ends(mean: Floats, variance: Floats, level: float) -> tuple[Floats, Floats]:
    certain = variance <= 1e-15
    inner = np.clip(mean, 1e-9, 1 - 1e-9)
    size = np.maximum(inner * (1 - inner) / np.where(certain, 1.0, variance) - 1, 1e-3)
    a, b = inner * size, (1 - inner) * size
    to_one, to_zero = (b < 1 + 1e-6) & (a > b), (a < 1 + 1e-6) & (b > a)
    tail = (1 - level) / 2
    low = betaincinv(a, b, np.where(to_one, 2 * tail, np.where(to_zero, 0.0, tail)))
    high = betaincinv(a, b, np.where(to_zero, 1 - 2 * tail, np.where(to_one, 1.0, 1 - tail)))
    return np.where(certain, mean, low), np.where(certain, mean, high)


def one_coin_interval(low: Floats, high: Floats, n_classes: int) -> tuple[Floats, Floats]:
    """Return the intervals of the entries of `one_coin_confusion`, given those of being right."""
    right = np.eye(n_classes, dtype=bool)
    ends = one_coin_confusion(low, n_classes), one_coin_confusion(high, n_classes)
    return np.where(right, *ends), np.where(right, *reversed(ends))
