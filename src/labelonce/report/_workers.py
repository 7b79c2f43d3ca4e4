"""The table of workers: skill with its credible interval, and flags that the interval supports."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelonce._types import Floats, Mask
from labelonce.report._facts import Facts
from labelonce.workers import beta_interval

LEVEL = 0.9
SPAMMER_GAIN = 0.25  # of the way from guessing to perfect
WIDE = 0.4  # an interval that tells too little
BLIND = 0.5  # of the worker's own skill
SAME = 0.95  # share of one class in the labels of a worker who always gives it
MANY = 40  # labels: an interval that is wide with that number is not for want of labels
FLAGS = ("adversary", "spammer", "one label", "class-blind", "too few labels", "hard to judge")

_OWN_SKILL_WORTH = 2.0  # labels: what a worker's skill says of one of its classes


@dataclass(frozen=True)
class WorkerTable:
    """One row per worker, in the order of the annotations' workers.

    `chance` is the skill of one who gives the same mix of labels without looking; `wrong` is how many of its labels a
    worker probably got wrong; `flags` has a column for each of `FLAGS`; `blind` marks the classes that a class-blind
    worker does not see.
    """

    skill: Floats
    low: Floats
    high: Floats
    chance: Floats
    labels: Any
    wrong: Floats
    flags: Mask
    blind: Mask

    def names(self, worker: int) -> list[str]:
        return [name for name, on in zip(FLAGS, self.flags[worker], strict=True) if on]

    @property
    def no_better_than_guessing(self) -> Mask:
        """True for the workers flagged as adversary, spammer or one label."""
        return np.asarray(self.flags[:, :3].any(axis=1))


def worker_table(facts: Facts) -> WorkerTable:
    """Return skills, intervals and flags of all workers.

    The more workers are looked at, the more of their intervals lie below guessing by chance alone: an adversary is one
    whose interval does so at a level that allows for all of them (Bonferroni's correction).
    """
    ann = facts.annotations
    low, high = facts.skill_interval(LEVEL)
    low, high = np.minimum(low, facts.skill), np.maximum(high, facts.skill)
    by_prior = np.bincount(ann.worker, facts.prior[ann.label], ann.n_workers) + facts.prior @ facts.prior
    chance = by_prior / (facts.labels_per_worker + 1)
    flags = np.zeros((len(low), len(FLAGS)), dtype=bool)
    blind = np.zeros((len(low), 1 if facts.large else ann.n_classes), dtype=bool)
    labels = facts.labels_per_worker
    if facts.annotations.n_classes > 1:
        seen = labels > 0
        _, surely = facts.skill_interval(1 - (1 - LEVEL) / max(1, int(seen.sum())))
        adversary = seen & (np.maximum(surely, facts.skill) < chance)
        same = seen & ~adversary & _always_same(facts)
        spammer = seen & ~adversary & ~same & (high < chance + SPAMMER_GAIN * (1 - chance))
        if not facts.large:  # otherwise nobody has labels enough of a class
            blind = _blind_classes(facts.skill, low, facts.counts.counts)
            blind &= (seen & ~adversary & ~same & ~spammer)[:, None]
        wide = ~seen | (high - low > WIDE)
        few, many = wide & (labels < MANY), wide & (labels >= MANY)
        flags = np.column_stack([adversary, spammer, same, blind.any(axis=1), few, many])
    return WorkerTable(facts.skill, low, high, chance, labels, labels * (1 - facts.skill), flags, blind)


def _always_same(facts: Facts) -> Mask:
    """Return the workers who give nearly always one class, which the class balance makes improbable."""
    ann = facts.annotations
    place, number = np.unique(ann.worker.astype(np.int64) * ann.n_answers + ann.label, return_counts=True)
    worker, label = np.divmod(place, ann.n_answers)
    share = np.minimum(facts.prior, 1.0)[label] if ann.is_square else np.ones(len(label))
    often = number >= SAME * facts.labels_per_worker[worker]
    improbable = number * np.log(np.maximum(share, 1e-12)) < np.log(1e-3)
    return np.bincount(worker, often & improbable, ann.n_workers) > 0


def _blind_classes(skill: Floats, skill_low: Floats, counts: Floats) -> Mask:
    """Return the classes on which a worker is at most half as good as overall, by the ends of the intervals."""
    right: Floats = np.einsum("wkk->wk", counts)
    size = counts.sum(axis=2) + _OWN_SKILL_WORTH
    mean = (right + _OWN_SKILL_WORTH * skill[:, None]) / size
    _, high = beta_interval(mean, mean * (1 - mean) / (size + 1), LEVEL)
    return np.asarray(high < BLIND * skill_low[:, None])
