"""Confusion matrices of simple workers."""

from __future__ import annotations

import numpy as np

from labelonce._types import Floats


def one_coin_confusion(skill: Floats, n_classes: int) -> Floats:
    """Return the matrices of workers who are right with probability `skill`, else each other class is as likely.

    `skill` has shape (n_workers,), or (n_workers, n_classes) where it depends on the true class. With one class
    nobody can be wrong.

    >>> one_coin_confusion(np.array([0.8]), 3)
    array([[[0.8, 0.1, 0.1],
            [0.1, 0.8, 0.1],
            [0.1, 0.1, 0.8]]])
    """
    if n_classes == 1:
        return np.ones((len(skill), 1, 1))
    right = skill.reshape(len(skill), -1, 1)
    return np.where(np.eye(n_classes, dtype=bool), right, (1 - right) / (n_classes - 1))
