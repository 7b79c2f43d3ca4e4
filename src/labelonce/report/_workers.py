"""The table of workers: skill with its credible interval, and flags that the interval supports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelonce._types import Floats, Mask
from labelonce.report._facts import Facts
from labelonce.workers import ClassWise, OneCoin
from labelonce.workers._intervals import beta_interval

LEVEL = 0.9
SPAMMER_GAIN = 0.25  # of the way from guessing to perfect
WIDE = 0.4  # an interval that tells too little
BLIND = 0.5  # of the worker's own skill
FLAGS = ("adversary", "spammer", "class-blind", "too few labels")

_OWN_SKILL_WORTH = 2.0  # labels: what a worker's skill says of one of its classes
_MOST_CELLS = 100_000  # workers x classes whose population is integrated class by class


@dataclass(frozen=True)
class WorkerTable:
    """One row per worker, in the order of the annotations' workers.

    `chance` is the skill of one who gives the same mix of labels without looking; `flags` has a column for each
    of `FLAGS`; `blind` marks the classes that a class-blind worker does not see.
    """

    skill: Floats
    low: Floats
    high: Floats
    chance: Floats
    labels: Any
    flags: Mask
    blind: Mask


def worker_table(facts: Facts) -> WorkerTable:
    """Return skills, intervals and flags of all workers."""
    counts = facts.counts.counts
    low, high = _skill_interval(facts)
    low, high = np.minimum(low, facts.skill), np.maximum(high, facts.skill)
    given = counts.sum(axis=1)
    share = (given + facts.prior) / (given.sum(axis=1, keepdims=True) + 1)
    chance = share @ facts.prior
    flags = np.zeros((len(low), len(FLAGS)), dtype=bool)
    blind = np.zeros(given.shape, dtype=bool)
    labels = facts.labels_per_worker
    if facts.annotations.n_classes > 1:
        seen = labels > 0
        adversary = seen & (high < chance)
        spammer = seen & ~adversary & (high < chance + SPAMMER_GAIN * (1 - chance))
        blind = _blind_classes(facts.skill, low, counts) & (seen & ~adversary & ~spammer)[:, None]
        too_few = ~seen | (high - low > WIDE)
        flags = np.column_stack([adversary, spammer, blind.any(axis=1), too_few])
    return WorkerTable(facts.skill, low, high, chance, labels, flags, blind)


def _skill_interval(facts: Facts) -> tuple[Floats, Floats]:
    """Return the interval of every skill: the fit's own, or that of a population fitted to its posterior."""
    counts = facts.counts.counts
    if counts.shape[0] * counts.shape[1] > _MOST_CELLS:
        return OneCoin().fit_counts(_right_or_wrong(counts)).skill_interval(level=LEVEL)
    model = facts.worker_model or ClassWise().fit_counts(counts)
    return model.skill_interval(facts.prior, level=LEVEL)


def _right_or_wrong(counts: Floats) -> Floats:
    """Return counts of two classes, with the same labels right and wrong."""
    right = np.einsum("wkk->w", counts)
    wrong = np.maximum(counts.sum(axis=(1, 2)) - right, 0)
    return np.stack([np.stack([right, wrong], axis=1), np.zeros((len(right), 2))], axis=1)


def _blind_classes(skill: Floats, skill_low: Floats, counts: Floats) -> Mask:
    """Return the classes on which a worker is at best half as good as it is, at least, overall."""
    right: Floats = np.einsum("wkk->wk", counts)
    size = counts.sum(axis=2) + _OWN_SKILL_WORTH
    mean = (right + _OWN_SKILL_WORTH * skill[:, None]) / size
    _, high = beta_interval(mean, mean * (1 - mean) / (size + 1), LEVEL)
    return np.asarray(high < BLIND * skill_low[:, None])
