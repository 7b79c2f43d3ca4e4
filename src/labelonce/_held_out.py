"""Annotations kept from a fit, and how well the fit predicts them: a score that needs no gold."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelonce._annotations import Annotations
from labelonce._types import Floats


def hold_out(annotations: Annotations, share: float, rng: np.random.Generator) -> tuple[Annotations, Annotations]:
    """Return two parts of the annotations with the same tables: those to fit, and a share held out."""
    n_held = int(np.clip(round(share * len(annotations)), 1, len(annotations) - 1))
    held = rng.permutation(len(annotations)) < n_held
    return _part(annotations, ~held), _part(annotations, held)


def _part(annotations: Annotations, kept: Any) -> Annotations:
    rows = (annotations.task[kept], annotations.worker[kept], annotations.label[kept])
    return Annotations(*rows, annotations.tasks, annotations.workers, annotations.classes)


def label_probabilities(annotations: Annotations, posterior: Floats, confusion: Floats) -> Floats:
    """Return the probability of every annotation: its task's posterior seen through its worker's confusion."""
    given = confusion[annotations.worker, :, annotations.label]
    return np.asarray(np.einsum("ak,ak->a", posterior[annotations.task], given))
