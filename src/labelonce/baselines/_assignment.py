"""Who labelled what: the graph of tasks and workers for message passing and eigenvectors; and weighted votes."""

import warnings
from typing import Any

import numpy as np

from labelonce._kernels import floored_log
from labelonce._types import Codes, Floats
from labelonce.aggregation import check_pair
from labelonce.data import Annotations

MAX_SPREAD = 0.5  # standard deviation over mean of the labels per worker or task; 1/3 at 9 random labels


class AssignmentWarning(UserWarning):
    """Who labelled what breaks an assumption of the method: uneven, or in groups that share no task."""


def warn_if_disconnected(annotations: Annotations, groups: Codes, name: str) -> None:
    """Warn that workers of groups without a common task cannot be compared with each other."""
    sizes = np.bincount(groups[np.unique(annotations.worker)])
    sizes = np.sort(sizes[sizes > 0])[::-1]
    if len(sizes) > 1:
        warnings.warn(
            f"{name} compares workers through common tasks; these {sizes.sum():,} workers fall into {len(sizes):,} "
            f"groups that share no task, the largest of {sizes[0]:,}. Each group is solved separately, small ones "
            "badly. Let some workers label tasks of two groups, or use DawidSkene or OneCoin, whose smoothing "
            "covers them.",
            AssignmentWarning,
            stacklevel=4,
        )


def warn_if_irregular(annotations: Annotations, name: str) -> None:
    """Warn where the number of labels per worker or per task varies too much for message passing."""
    for side, codes in (("worker", annotations.worker), ("task", annotations.task)):
        counts = np.bincount(codes)
        counts = counts[counts > 0]
        spread = counts.std() / counts.mean()
        if spread > MAX_SPREAD:
            warnings.warn(
                f"{name} assumes that every {side} has about as many labels; here they vary from {counts.min():,} to "
                f"{counts.max():,} around {counts.mean():.3g} (deviation over mean {spread:.2f}, at most {MAX_SPREAD} "
                "wanted), and the busiest decide the result. Prefer OneCoin or BeliefPropagation, or compare with "
                "them.",
                AssignmentWarning,
                stacklevel=4,
            )


def vote_weight(skill: Floats, n_classes: int) -> Floats:
    """Return by how much one label raises the log-odds of its class, for a worker who is right with this chance.

    >>> vote_weight(np.array([0.5, 0.8]), 2).round(3)
    array([0.   , 1.386])
    """
    return floored_log(skill) - floored_log((1 - skill) / max(n_classes - 1, 1))


def check_beta(smoothing: Any) -> tuple[float, float]:
    """Return the parameters (right, wrong) of a Beta prior on skills, both above 0."""
    right, wrong = check_pair(smoothing)
    if min(right, wrong) == 0:
        raise ValueError(f"smoothing of a Beta prior must be above 0; got {smoothing!r}. Use OneCoin for none.")
    return right, wrong
