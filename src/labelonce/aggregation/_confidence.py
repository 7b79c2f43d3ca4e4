"""How right the labels of an aggregator are: workers share mistakes, and its posterior believes that they do not."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import beta

from labelonce._kernels import Beliefs
from labelonce._rules import RULES
from labelonce._types import Codes, Estimate, Floats, Ids
from labelonce.workers import beta_interval

_GRID = (np.arange(9) + 0.5) / 9
_FOLDS = 3
_FEW = 10  # gold tasks from which they are left out in turn


@dataclass(frozen=True)
class Confidence:
    """The probability of every label, and the share of all that are right."""

    values: Floats
    accuracy: Estimate
    too_sure: float  # by how much the posterior is surer than gold that was left out; 0 if that may be chance


def confidence_of(
    posterior: Any, picks: Codes, per_task: Codes, gold: Codes | None, refit: Callable[[Codes], Any]
) -> Confidence:
    """Return the confidence in labels averaged over how far the errors of a task's workers go together.

    Errors that correlate by e make n labels worth n / (1 + (n - 1) e), by which the log-odds are divided. `refit`
    gives the posterior without some of the gold, which then says how far the confidence is to be moved.
    """
    by_share = by_correlation(Beliefs.of(posterior).at(np.arange(len(picks)), picks), per_task)
    values, spread = by_share.mean(axis=0), float(by_share.mean(axis=1).var()) + RULES.least_doubt**2
    known = np.zeros(0, dtype=np.int64) if gold is None else np.flatnonzero(gold >= 0)
    too_sure = 0.0
    if gold is not None and len(known) >= _FEW and per_task.sum() <= RULES.refitted_labels:
        values, too_sure = _by_gold(values, picks, per_task, known, gold, refit)
    values[known] = 1.0
    value = float(values.mean())
    spread = 1 / (1 / spread + len(known) / (value * (1 - value) + 1e-3))
    low, high = beta_interval(np.array([value]), np.array([spread]), 0.9)
    estimate = Estimate(value, min(float(low[0]), value), max(float(high[0]), value))
    return Confidence(values, estimate, too_sure)


def by_correlation(chance: Floats, per_task: Codes) -> Floats:
    """Return the probabilities of labels, one row for each of some correlations of the errors, all as likely."""
    raw = np.clip(chance, 1e-9, 1 - 1e-9)
    return np.array([_tempered(raw, per_task, e) for e in beta.ppf(_GRID, *RULES.correlated_errors)])


def _tempered(chance: Floats, per_task: Codes, e: float) -> Floats:
    """Return probabilities whose log-odds count for fewer labels; below one half, the other classes share the rest."""
    odds = logit(chance)
    return np.asarray(expit(np.minimum(odds, odds / (1 + np.maximum(per_task - 1, 0) * e))))


def _by_gold(
    values: Floats, picks: Codes, per_task: Codes, known: Ids, gold: Codes, refit: Callable[[Codes], Any]
) -> tuple[Floats, float]:
    """Return the confidence as gold says that was left out in turn, 1 where gold is known; and what was too sure."""
    fold = np.random.default_rng(0).permutation(len(known)) % _FOLDS
    odds, right, says = np.zeros((3, len(known)))
    middle = beta.mean(*RULES.correlated_errors)
    for part in range(_FOLDS):
        out = known[fold == part]
        without = gold.copy()
        without[out] = -1
        unseen = Beliefs.of(refit(without))
        label = unseen.argmax()[out]
        chance = np.clip(unseen.at(np.arange(len(unseen)), unseen.argmax())[out], 1e-9, 1 - 1e-9)
        says[fold == part] = chance
        odds[fold == part] = logit(np.clip(_tempered(chance, per_task[out], middle), 1e-4, 1 - 1e-4))
        right[fold == part] = np.where(label == gold[out], 1.0, -1.0)
    deviation = np.array(RULES.gold_calibration)

    def loss(at: Floats) -> float:
        unlikely = np.logaddexp(0, -right * (at[0] + at[1] * odds)).sum()
        return float(unlikely + 0.5 * (((at - [0.0, 1.0]) / deviation) ** 2).sum())

    moved, stretch = minimize(loss, np.array([0.0, 1.0])).x
    found = expit(moved + max(stretch, 0.0) * logit(np.clip(values, 1e-4, 1 - 1e-4)))
    found[known] = (picks[known] == gold[known]).astype(float)
    share = float((right > 0).mean())
    gap = float(says.mean()) - share
    return np.asarray(found), gap if gap > 2 * np.sqrt(share * (1 - share) / len(known)) else 0.0
