"""Whether anything tells which class is which, or one worker from another."""

import warnings
from typing import Any

import numpy as np

from labelonce._kernels import Beliefs, Confusion, Factors, first_beliefs
from labelonce._messages import shorten, show
from labelonce._rules import RULES
from labelonce._types import Codes, Floats
from labelonce.aggregation._base import Fit, has_no_room
from labelonce.data import Annotations, OtherAnswersWarning

_EQUAL = 1e-9  # steps of the scale


def warn_if_no_anchor(annotations: Annotations, gold: Codes | None, name: str) -> None:
    """Warn where no answer given leans to one class more than to another, and no gold says what they mean."""
    if annotations.is_square:
        return
    given = np.unique(annotations.label)
    leaning = annotations.leaning[given]
    if np.ptp(leaning, axis=1).any() or annotations.n_classes == 1 or (gold is not None and (gold >= 0).any()):
        return
    warnings.warn(
        f"{name} must have answers that lean to a class, or gold; got only {shorten(annotations.answers[given])} for "
        f"the classes {shorten(annotations.classes)}, so nothing tells the classes apart; tasks keep the prior.",
        OtherAnswersWarning,
        stacklevel=4,
    )


def warn_if_out_of_order(annotations: Annotations, confusion: Confusion, prior: Floats, name: str) -> None:
    """Warn where the classes that were found do not follow one another along the scale that was declared."""
    if not annotations.is_scale or annotations.n_classes == 1:
        return
    weight = np.bincount(annotations.worker, minlength=annotations.n_workers)
    places = np.einsum("w,wks,s->k", weight, confusion.dense(), np.arange(annotations.n_answers)) / weight.sum()
    found = np.flatnonzero(prior * annotations.n_tasks >= 1)  # a class without a task has no place of its own
    fall = found[1:][np.diff(places[found]) < -_EQUAL]
    if len(fall):
        one, other = (show(annotations.classes[k]) for k in (found[np.searchsorted(found, fall[0]) - 1], fall[0]))
        warnings.warn(
            f"{name} must find answers further along the scale {shorten(annotations.answers)} for class {other} than "
            f"for class {one}; got the opposite, so which class is which is not known. Check the order of the answers "
            "and of the classes, or give some gold.",
            OtherAnswersWarning,
            stacklevel=4,
        )


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
