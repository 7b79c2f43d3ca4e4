"""Votes with weights: what several simple models end in."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelonce._kernels import floored_log
from labelonce._types import Floats
from labelonce._validate import check_number


def vote_weight(skill: Floats, n_classes: int) -> Floats:
    """Return by how much one label raises the log-odds of its class, for a worker who is right with this chance.

    >>> vote_weight(np.array([0.5, 0.8]), 2).round(3)
    array([0.   , 1.386])
    """
    return floored_log(skill) - floored_log((1 - skill) / max(n_classes - 1, 1))


def check_beta(smoothing: Any) -> tuple[float, float]:
    """Return the parameters (right, wrong) of a Beta prior on skills, both above 0."""
    if np.shape(smoothing) != (2,):
        raise ValueError(f"smoothing must be a pair of pseudo-counts (right, wrong); got {smoothing!r}.")
    right, wrong = (check_number(count, "smoothing", 0.0) for count in smoothing)
    if min(right, wrong) == 0:
        raise ValueError(f"smoothing of a Beta prior must be above 0; got {smoothing!r}. Use OneCoin for none.")
    return right, wrong
