"""How many of the labels found are right: measured where gold is known, else estimated with its doubt."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from labelonce import metrics
from labelonce._kernels import floored_log
from labelonce._types import Codes, Floats, Mask
from labelonce.report._facts import LEAN, Facts
from labelonce.report._workers import LEVEL
from labelonce.workers import beta_interval

_OTHER_LEAN = 4 * LEAN
_UNSURE_ERRORS = 0.15  # relative doubt about the share of errors, for what the model of workers leaves out
_MOST_TASKS = 20_000  # enough for a tenth of a per cent


@dataclass(frozen=True)
class Accuracy:
    """The share of right labels and its range.

    `kind` is "gold" (measured on `n_gold` tasks), "labels" (estimated, every task by workers estimated without it),
    "held_out" (the fit's own estimate, by out-of-fold models) or "promise" (the word of a fit that held
    nothing out, without a range).
    """

    kind: str
    value: float
    low: float
    high: float
    n_gold: int = 0
    seen_by_fit: bool = False


def measured_accuracy(facts: Facts, gold: Codes) -> Accuracy:
    """Return the share of gold tasks whose label is right, with a credible interval under a uniform prior."""
    known = gold >= 0
    seen_by_fit = bool((facts.posterior[known, gold[known]] == 1).all())
    return on_gold(metrics.accuracy(gold, facts.label), int(known.sum()), seen_by_fit=seen_by_fit)


def on_gold(value: float, n_gold: int, *, seen_by_fit: bool) -> Accuracy:
    """Return a share of `n_gold` known labels with a credible interval under a uniform prior."""
    mean = (value * n_gold + 1) / (n_gold + 2)
    low, high = beta_interval(np.array(mean), np.array(mean * (1 - mean) / (n_gold + 3)), LEVEL)
    return Accuracy("gold", value, min(float(low), value), max(float(high), value), n_gold, seen_by_fit)


def estimated_accuracy(facts: Facts) -> Accuracy | None:
    """Return the estimated share of right labels; None where the data does not determine it."""
    if not facts.comparable:
        return None
    if facts.annotations.n_classes == 1:
        return Accuracy("labels", 1.0, 1.0, 1.0)
    if not facts.uses_features:
        return _from_labels(facts)
    if facts.estimate is not None:
        return Accuracy("held_out", **vars(facts.estimate))
    return Accuracy("promise", facts.promised, facts.promised, facts.promised)


def _from_labels(facts: Facts) -> Accuracy:
    """Return the mean probability of the labels, every task judged by workers who were estimated without it.

    A posterior that helped to estimate the workers is too confident. The interval holds the chance that is
    left, half of that correction, what a different lean on the workers' overall skill would change, and some
    doubt about the model of workers itself.
    """
    mask = np.zeros(facts.annotations.n_tasks, dtype=bool)
    mask[np.random.default_rng(0).permutation(np.flatnonzero(facts.labelled))[:_MOST_TASKS]] = True
    rows, label = np.arange(int(mask.sum())), facts.label[mask]
    right, leaning = (judged_without(facts, mask, lean)[rows, label] for lean in (LEAN, _OTHER_LEAN))
    value = float(right.mean())
    chance = float((right * (1 - right)).mean()) / int(facts.labelled.sum())
    doubts = ((facts.promised - value) / 2, value - float(leaning.mean()), _UNSURE_ERRORS * (1 - value))
    variance = chance + sum(doubt**2 for doubt in doubts)
    low, high = beta_interval(np.array(value), np.array(variance), LEVEL)
    return Accuracy("labels", value, float(low), float(high))


def judged_without(facts: Facts, mask: Mask, lean: float) -> Floats:
    """Return the posterior of the masked tasks, each by workers estimated from all other tasks.

    A worker's matrix is its counts plus `lean` labels of its one-coin matrix, and that leans on the crowd's mean;
    the counts leave out what the task itself gave them. The part of the posterior that is not from the workers (prior
    or prediction) stays.
    """
    part = facts.annotations.select(mask)
    belief = facts.belief[mask]
    chance = facts.counts.column_without(part.worker, part.label, belief[part.task], lean)
    change = floored_log(chance) - floored_log(facts.belief_confusion[part.worker, :, part.label])
    at, shape = (part.task, np.arange(len(part))), (part.n_tasks, len(part))
    log_joint = floored_log(belief) + sparse.csr_array((np.ones(len(part)), at), shape=shape) @ change
    return np.asarray(np.exp(log_joint - np.logaddexp.reduce(log_joint, axis=1, keepdims=True)))
