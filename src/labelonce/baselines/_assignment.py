"""Who labelled what: the graph of tasks and workers, and what message passing and eigenvectors need of it."""

from __future__ import annotations

import warnings

import numpy as np

from labelonce._types import Codes
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
