"""A small crowd with features, for sound files that are then spoilt."""

from typing import Any

import numpy as np

import labelonce as lo


def crowd(n: int = 60) -> tuple[Any, Any]:
    """Return features and annotations of `n` tasks."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n)
    X = rng.normal(size=(n, 4)) + 2 * np.eye(4)[y]
    confusion = lo.simulate.hammer_spammer(6, 3, 0.8, rng)
    return X, lo.simulate.annotate(y, confusion, lo.simulate.assign(n, 6, 1, rng), rng)
