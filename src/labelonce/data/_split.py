"""Annotations held out from a fit, to score it without gold."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelonce.data._annotations import Annotations


def hold_out(annotations: Annotations, share: float, rng: np.random.Generator) -> tuple[Annotations, Annotations]:
    """Return two parts of the annotations with the same tables: those to fit, and a share held out."""
    n_held = int(np.clip(round(share * len(annotations)), 1, len(annotations) - 1))
    held = rng.permutation(len(annotations)) < n_held
    return _part(annotations, ~held), _part(annotations, held)


def _part(annotations: Annotations, kept: Any) -> Annotations:
    rows = (annotations.task[kept], annotations.worker[kept], annotations.label[kept])
    return Annotations(*rows, annotations.tasks, annotations.workers, annotations.classes)
