"""What labels say of their tasks where nothing tells workers apart: no task has two labels, and none is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelonce._rules import RULES
from labelonce._types import Floats
from labelonce.aggregation._base import Fit, has_no_room
from labelonce.data import Annotations


def tells_nothing(annotations: Annotations, gold: Any) -> bool:
    """Return whether nothing tells workers apart; of too many classes for arrays, the method's own way is taken."""
    several = np.bincount(annotations.task).max() > 1
    return gold is None and not several and not has_no_room(annotations)


def unlearned(annotations: Annotations, prior: Floats) -> Fit:
    """Return a fit in which everybody is as right as labels are taken to be, and every label stays.

    How often that is, the mean of the prior `RULES.skill_prior`, is an assumption: EM would make workers up, and
    often one class of all tasks. A label that is wrong is of another class as often as `prior` says.
    """
    n_classes, leaning = annotations.n_classes, annotations.leaning
    right = RULES.skill_prior[0] / sum(RULES.skill_prior) if n_classes > 1 else 1.0
    others = np.where(np.eye(n_classes, dtype=bool), 0.0, np.maximum(prior, 1e-12))
    by_class = right * np.eye(n_classes)
    if n_classes > 1:
        by_class += (1 - right) * others / others.sum(axis=1, keepdims=True)
    by_answer = leaning @ by_class + (1 - leaning.sum(axis=1, keepdims=True)) * prior
    posterior = np.repeat(prior[None], annotations.n_tasks, axis=0)
    posterior[annotations.task] = by_answer[annotations.label]
    share = np.bincount(annotations.label, minlength=annotations.n_answers) / len(annotations)
    mass = share @ by_answer
    confusion = np.where(mass[:, None] > 0, (share[:, None] * by_answer).T / np.maximum(mass, 1e-300)[:, None], share)
    every = np.broadcast_to(confusion, (annotations.n_workers, *confusion.shape)).copy()
    return Fit(posterior, every, mass, np.array([]), converged=True, n_iter=0)
