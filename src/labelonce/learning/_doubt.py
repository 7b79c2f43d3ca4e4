"""Warnings of statistical doubt: when the numbers say that the fit should not be trusted."""

from __future__ import annotations

import warnings

import numpy as np

from labelonce._messages import is_offered, show
from labelonce._types import Floats
from labelonce.data import Annotations
from labelonce.data._answers import disagreement
from labelonce.learning._rounds import Round

FAR_LESS = 0.4  # disagreement with labels that were seen, below that with unseen ones by this share: worth a warning
MUCH_DISAGREEMENT = 0.2  # share of the labels; where most are right, to know them by heart does little harm
MAX_GAP = 0.25  # between the confidence of the rounds and that of models that did not see the task
MAX_OTHER_PICKS = 0.25  # share of tasks for which those models pick another class
MIN_ADVANTAGE = 0.02  # of the model's agreement with the crowd over chance
MAX_DRIFT = 0.3  # of the predicted classes from the voted ones, total variation
NOTHING_HELD_OUT = (
    "MBEM: no model was held out, so the confidence is that of the rounds themselves, which is too high: every label "
    'helped to train the model that judges it. Fit with confidence="held_out" and one process, or measure it with gold.'
)


class DoubtWarning(UserWarning):
    """The numbers say that a fit should not be trusted."""


def warn_of_doubt(
    annotations: Annotations, last: Round, held_out_score: float = float("nan"), unseen: Floats | None = None
) -> None:
    """Warn where the model agrees with the crowd hardly more than chance, or its classes drifted.

    A model with many features agrees with the labels it was trained on even if they are noise; held-out labels, where
    there are any, it then predicts no better than by how often each is given.
    """
    n_classes = annotations.n_classes
    if n_classes < 2:
        return
    picks = last.predictions.argmax(axis=1)
    picked = np.bincount(picks, minlength=n_classes) / len(picks)
    said = np.bincount(annotations.label, minlength=annotations.n_answers) / len(annotations)
    by_shares = float(said @ np.log(np.maximum(said, 1e-300)))
    given = said if annotations.is_square else said @ annotations.leaning
    given = given / max(given.sum(), 1e-300)
    if held_out_score <= by_shares:
        _warn(
            f"the log-likelihood of held-out labels is {held_out_score:.3f}, and {by_shares:.3f} by how often each "
            f"label is given: the features say nothing about them. {_better_features()}"
        )
    seen_left = disagreement(annotations, picks)
    agreed, chance = 1 - seen_left, float(picked @ given)
    if agreed < chance + MIN_ADVANTAGE:
        _warn(
            f"the model agrees with {agreed:.1%} of the labels where chance gives {chance:.1%}: it has learned next "
            f"to nothing, so the workers are judged by noise. {_better_features()}"
        )
    if unseen is not None:
        left = disagreement(annotations, unseen.argmax(axis=1))
        chance_gap = 2 * np.sqrt(left * (1 - left) / len(annotations))
        if left > MUCH_DISAGREEMENT and seen_left < (1 - FAR_LESS) * left - chance_gap:
            _warn(
                f"the model disagrees with {seen_left:.1%} of the labels that it was trained on, and models that did "
                f"not see them with {left:.1%}: it has memorised labels, and these judged the workers. The confidence "
                'is by the models that did not; for better labels try predictions="out_of_fold" or a simpler model.'
            )
    drift = float(np.abs(picked - given).sum() / 2)
    if drift > MAX_DRIFT:
        most = int(np.argmax(picked - given))
        _warn(
            f"the model picks class {show(annotations.classes[most])} for {picked[most]:.1%} of the tasks while "
            f"{given[most]:.1%} of the labels say so (drift {drift:.2f}, above {MAX_DRIFT}). The rounds may have "
            'collapsed; try fewer rounds or prior="uniform".'
        )


def warn_of_gap(own: float, shown: float, last: Round, unseen: Floats) -> None:
    """Warn where the rounds are far surer of their labels than models that did not see the task, and pick others."""
    other = float((last.predictions.argmax(axis=1) != unseen.argmax(axis=1)).mean())
    if own - shown > MAX_GAP and other > MAX_OTHER_PICKS:
        _warn(
            f"the rounds are {own:.1%} sure of their labels, and models that did not see the task {shown:.1%}, which "
            f"pick another class for {other:.1%} of the tasks: the model has memorised what it was trained on. The "
            "confidence is by the models that did not; for better labels use a simpler model, better features, or "
            "label more tasks."
        )


def warn_if_flattened(exponent: float, unseen: Floats, annotations: Annotations) -> None:
    """Warn where predictions of models that did not see the task are surer than the labels bear out."""
    if exponent < 1:
        sure = float(unseen.max(axis=1)[annotations.task].mean())
        agreed = 1 - disagreement(annotations, unseen.argmax(axis=1))
        _warn(
            f"the models are {sure:.1%} sure of their picks, {agreed:.1%} of the labels agree, and with sure picks "
            "hardly more than with others: the rounds have confirmed themselves. The confidence is lowered towards "
            "what the labels bear out; for better labels use fewer rounds, better features, or label some tasks again."
        )


def _better_features() -> str:
    """Return what to do where features say nothing; those of a file, unlike arrays, are matched by their task ids."""
    if not is_offered("X"):
        return "Use better features, or label some tasks again."
    return (
        "Are the rows of X in the order of the tasks (give tasks=...)? If they are, use better features, or label some "
        "tasks again."
    )


def _warn(sentence: str) -> None:
    warnings.warn(f"MBEM: {sentence}", DoubtWarning, stacklevel=5)
