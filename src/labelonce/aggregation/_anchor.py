"""Whether anything says which class is which, where answers need not be classes."""

import warnings

import numpy as np

from labelonce._kernels import Confusion
from labelonce._messages import shorten, show
from labelonce._types import Codes, Floats
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
