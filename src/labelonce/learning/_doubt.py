"""Statistical doubt: when the numbers say that a fit should not be believed, in sentences."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from labelonce._messages import is_offered, show
from labelonce._rules import RULES
from labelonce._types import Codes, Estimate, Floats
from labelonce.aggregation import DoubtWarning
from labelonce.learning._narrowing import Narrowing
from labelonce.learning._verdict import Verdict, label_entropy

NOTHING_HELD_OUT = (
    "no model was held out, so the confidence is that of the rounds themselves, which is too high: every label helped "
    "to train the model that judges it. Fit with folds of 2 or more and one process, or measure it with gold."
)
TOO_WEAK = "the features are too weak to judge anybody: the given labels are kept. "


def doubts_about_features(
    score: float, by_shares: float, gain: float, narrowing: Narrowing | None = None
) -> Iterator[str]:
    """Yield the sentence for features that predict held-out labels no better than by how often each is given."""
    if score <= by_shares or gain < RULES.least_gain:
        yield (
            f"{TOO_WEAK}The log-likelihood of held-out labels is {score:.3f}, and {by_shares:.3f} by how often each "
            f"label is given, which may be chance. {_better_features()}"
            + ("" if narrowing is None else f" How right the labels are is open: {narrowing}.")
        )


def doubts_about_labels(n_tasks: int, kept: int, accuracy: Estimate, narrowing: Narrowing | None) -> Iterator[str]:
    """Yield sentences for given labels that are kept because nothing can be told, and for a wide range."""
    if kept > RULES.kept_share * n_tasks:
        yield (
            f"for {kept:,} of {n_tasks:,} tasks the model prefers another class than the one given, and the labels "
            "cannot tell which of them is right: the given ones are kept. Label some tasks again, or check some."
        )
    if accuracy.high - accuracy.low > RULES.wide_range:
        yield (
            f"the labels cannot tell how right they are: {accuracy.low:.0%} to {accuracy.high:.0%} of the labels shown "
            f"may be right. {narrowing}."
        )


def doubts_about_contradictions(contradicted: float, taken: float) -> Iterator[str]:
    """Yield the sentence for single labels that are taken to be right nearly everywhere the model contradicts."""
    if taken:
        yield (
            f"out-of-fold models contradict {contradicted:.0%} of the labels shown, while only {taken:.0%} of them are "
            "taken to be wrong: if people make the same mistakes on the same tasks, more are. Label some tasks again, "
            "or check some."
        )


def doubts_about_fit(verdict: Verdict, labels: Any, scores: Sequence[float]) -> list[str]:
    """Return the gravest doubt of these three, by the log-likelihoods of held-out labels after each round, if any."""
    by_shares, narrowing = label_entropy(labels), verdict.narrowing()
    score = scores[-1] if scores else by_shares + verdict.gain / len(labels)
    return (
        list(doubts_about_features(score, by_shares, verdict.gain, narrowing))
        or list(doubts_about_labels(labels.n_tasks, verdict.kept, verdict.accuracy(), narrowing))
        or list(doubts_about_contradictions(verdict.contradicted, verdict.taken))
    )


def doubts_about_people(verdict: Verdict, copiers: Sequence[Codes], workers: Any) -> Iterator[str]:
    """Yield sentences for people who err together, where the model is unsure or surest, and for those who copy."""
    if verdict.common > RULES.common_causes:
        yield (
            "labels of one task disagree more often where the model is unsure: people err together on hard tasks, so "
            "that more labels are wrong than confidence and skills say. Only checked labels tell how many: give some "
            "as gold."
        )
    if verdict.surely > 0:
        yield (
            f"where out-of-fold models are surest, they contradict labels {100 * verdict.surely:.0f} percentage points "
            "more often than these are estimated to be wrong: people make the same mistakes, or the features do not "
            "determine the class. Only checked labels tell: give some as gold."
        )
    for group in copiers:
        named = ", ".join(show(workers[one]) for one in group[:5]) + (", ..." if len(group) > 5 else "")
        yield (
            f"workers {named} nearly always give the same labels, far more often than their agreement with others "
            "explains: they copy, or make the same mistakes. What they say of a task counts once, and confidence may "
            "still be too high. Ask them, or leave them out."
        )


def doubts_about_assignment(shift: Floats | None) -> Iterator[str]:
    """Yield the sentence for workers whose tasks are not those of others."""
    n_chosen = 0 if shift is None else int((shift > 0).sum())
    if shift is not None and n_chosen:
        yield (
            f"{n_chosen:,} of {len(shift):,} workers have tasks of other classes than the rest: judged by a model that "
            "learned such tasks from their own labels, their skills are less sure, and the intervals wider. Assign "
            "tasks at random, or give some of theirs to others, too."
        )


def doubts_about_drift(labels: Any, predicted: Codes) -> Iterator[str]:
    """Yield the sentence for a model whose classes are far from those that were given."""
    n_classes = labels.n_classes
    if n_classes < 2:
        return
    shares = np.bincount(predicted, minlength=n_classes) / len(predicted)
    said = np.bincount(labels.label, minlength=labels.n_answers) / len(labels)
    given = said if labels.is_square else said @ labels.leaning
    given = given / max(given.sum(), 1e-300)
    drift = float(np.abs(shares - given).sum() / 2)
    if drift > RULES.most_drift:
        most = int(np.argmax(shares - given))
        yield (
            f"the model predicts class {show(labels.classes[most])} for {shares[most]:.1%} of the tasks while "
            f"{given[most]:.1%} of the labels say so (drift {drift:.2f}, above {RULES.most_drift}). The rounds may "
            f"have collapsed; try fewer rounds{', or give the class balance by prior=...' if is_offered('X') else '.'}"
        )


def warn(sentences: list[str], name: str) -> None:
    """Warn of every sentence."""
    for sentence in sentences:
        warnings.warn(f"{name}: {sentence}", DoubtWarning, stacklevel=5)


def _better_features() -> str:
    """Return what to do where features say nothing; those of a file, unlike arrays, are matched by their task ids."""
    if not is_offered("X"):
        return "Use better features, or label some tasks again."
    return (
        "Are the rows of X in the order of the tasks (give tasks=...)? If they are, use better features, or label some "
        "tasks again."
    )
