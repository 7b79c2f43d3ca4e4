"""Annotations held out from a fit, to score it without gold."""

from __future__ import annotations

import numpy as np

from labelonce.data._annotations import Annotations


def hold_out(annotations: Annotations, share: float, rng: np.random.Generator) -> tuple[Annotations, Annotations]:
    """Return two parts of the annotations with the same tables: those to fit, and a share held out."""
    n_held = int(np.clip(round(share * len(annotations)), 1, len(annotations) - 1))
    held = rng.permutation(len(annotations)) < n_held
    return annotations.part(~held), annotations.part(held)


def hold_out_tasks(
    annotations: Annotations, share: float, n_splits: int, rng: np.random.Generator
) -> list[tuple[Annotations, Annotations]]:
    """Return pairs of parts as `hold_out` does, with all labels of a task in one part; no task is held out twice."""
    labelled = rng.permutation(np.unique(annotations.task))
    n_held = int(np.clip(round(share * len(labelled)), 1, len(labelled) - 1))
    pairs = []
    for split in range(max(1, min(n_splits, len(labelled) // n_held))):
        held = np.isin(annotations.task, labelled[split * n_held : (split + 1) * n_held])
        pairs.append((annotations.part(~held), annotations.part(held)))
    return pairs
