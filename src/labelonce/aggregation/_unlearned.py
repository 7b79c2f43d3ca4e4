"""What labels say of their tasks where nothing tells workers apart: no task has two labels, and none is known."""

from typing import Any

import numpy as np

from labelonce._kernels import Beliefs, Factors, first_beliefs
from labelonce._rules import RULES
from labelonce._types import Floats
from labelonce.aggregation._base import Fit, has_no_room
from labelonce.data import Annotations


def tells_nothing(annotations: Annotations, gold: Any) -> bool:
    """Return whether nothing tells workers apart; of other answers and many classes, the method's own way is taken."""
    several = np.bincount(annotations.task).max() > 1
    return gold is None and not several and (annotations.is_square or not has_no_room(annotations))


def unlearned(annotations: Annotations, prior: Floats) -> Fit:
    """Return a fit in which everybody is as right as labels are taken to be, and every label stays.

    How often that is, the mean of the prior `RULES.skill_prior`, is an assumption: EM would make workers up, and
    often one class of all tasks. A label that is wrong is of any other class, and a task without labels of the classes
    of the `prior`.
    """
    n_classes = annotations.n_classes
    right = RULES.skill_prior[0] / sum(RULES.skill_prior) if n_classes > 1 else 1.0
    if has_no_room(annotations):
        return _of_many_classes(annotations, prior, right)
    leaning = annotations.leaning
    by_class = right * np.eye(n_classes) + (1 - right) * (1 - np.eye(n_classes)) / max(n_classes - 1, 1)
    by_answer = leaning @ by_class + (1 - leaning.sum(axis=1, keepdims=True)) * prior
    posterior = np.repeat(prior[None], annotations.n_tasks, axis=0)
    posterior[annotations.task] = by_answer[annotations.label]
    share = np.bincount(annotations.label, minlength=annotations.n_answers) / len(annotations)
    mass = share @ by_answer
    confusion = np.where(mass[:, None] > 0, (share[:, None] * by_answer).T / np.maximum(mass, 1e-300)[:, None], share)
    every = np.broadcast_to(confusion, (annotations.n_workers, *confusion.shape)).copy()
    return Fit(posterior, every, mass, np.array([]), converged=True, n_iter=0)


def _of_many_classes(annotations: Annotations, prior: Floats, right: float) -> Fit:
    """Return the same with a slot for the label of each task, and one number per worker."""
    given = first_beliefs(annotations, None, few=True)
    labelled = np.bincount(annotations.task, minlength=annotations.n_tasks) > 0
    probability, rest = np.where(labelled[:, None], right * given.probability, given.probability), given.rest
    rest = np.where(labelled, 1 - right, 0.0 if rest is None else rest)
    workers = Factors.one_coin(np.full(annotations.n_workers, right), annotations.n_classes)
    posterior = Beliefs(probability, annotations.n_classes, given.classes, rest)
    return Fit(posterior, workers, prior, np.array([]), converged=True, n_iter=0)
