"""Where a crowd's mistakes go: shares of the labels of each true class, and of the labels outside its pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelonce._kernels import Mistakes, Tallies
from labelonce._rules import RULES
from labelonce._types import Codes, Floats
from labelonce.workers._population import most_likely, shrinkage, strength

LEAK = RULES.leak_prior[0] / sum(RULES.leak_prior)
_STEPS = 30  # of splitting wrong labels between pairs and leak
_LEAST_LEAK = 1e-6


@dataclass(frozen=True, eq=False)
class Shares:
    """P(given | true, wrong): `share` of each pair, `other_share` of each other label by true class, and the leak."""

    share: Floats
    other_share: Floats
    leak: float
    strength: float


def learn_shares(pairs: Mistakes, tallies: Tallies, *, crowd: bool, leak: Any, near: float | None = None) -> Shares:
    """Return the shares of wrong labels, those of pairs shrunk towards equal ones as far as the evidence asks.

    A wrong label is one of its true class's pairs with probability 1 - leak, else any label; which of the two it was is
    split in steps of EM. With `crowd` False all pairs of a true class have equal shares; `leak` is a number or "auto";
    `near` is a start for the strength of the equal shares, such as that of the last EM step.
    """
    n_others = max(pairs.n_classes - 1, 1)
    number: Floats = np.bincount(pairs.true, minlength=pairs.n_classes)[pairs.true].astype(np.float64)
    own = even = 1 / np.maximum(number, 1)
    size = _evidence_size(pairs, tallies.mistakes, number, near) if crowd and len(pairs) else float("inf")
    found = LEAK if leak == "auto" else float(leak)
    if not len(pairs):
        found = 1.0
    outside = float(tallies.others[~pairs.empty].sum()) + tallies.unknown
    total = float(tallies.mistakes.sum()) + outside
    for _ in range(_STEPS if len(pairs) else 0):
        before = found
        inside = tallies.mistakes * _part(own, found, n_others)
        if crowd and np.isfinite(size):
            per_class = np.bincount(pairs.true, inside, pairs.n_classes)[pairs.true]
            own = (inside + size * even) / (per_class + size)
        if leak == "auto":
            leaked = outside + float(tallies.mistakes.sum() - inside.sum())
            found = max(_LEAST_LEAK, (leaked + RULES.leak_prior[0]) / (total + sum(RULES.leak_prior)))
        if abs(found - before) < 1e-9:
            break
    other = np.where(pairs.empty, 1.0, found) / n_others
    return Shares((1 - found) * own + found / n_others, other, found, size)


def _part(own: Floats, leak: float, n_others: int) -> Floats:
    """Return the share of a pair's wrong labels that the pair itself accounts for."""
    return np.asarray((1 - leak) * own / np.maximum((1 - leak) * own + leak / n_others, 1e-300))


def _evidence_size(pairs: Mistakes, amounts: Floats, number: Floats, near: float | None) -> float:
    """Return how many wrong labels of a true class its equal shares are worth, by marginal likelihood."""
    several = number > 1
    amounts, number, true = amounts[several], number[several], pairs.true[several]
    totals: Floats = np.bincount(true, amounts, pairs.n_classes).astype(np.float64)
    totals = totals[totals > 0]
    if not len(totals):
        return float("inf")
    log_density = shrinkage(1 / number, amounts, totals)
    start = 0.2 if near is None or not np.isfinite(near) else 1 / (1 + near)
    return float(strength(most_likely(log_density, np.array([start]))[0]))


def commonest_mistakes(
    true: Codes, given: Codes, amount: Floats | None, n_classes: int, *, most: int = RULES.own_mistakes
) -> Mistakes:
    """Return the pairs that are the commonest mistakes of each true class.

    >>> commonest_mistakes(np.array([0, 0, 0, 1]), np.array([1, 1, 2, 1]), None, 3, most=1).given
    array([1], dtype=int32)
    """
    wrong = true != given
    key = true[wrong].astype(np.int64) * n_classes + given[wrong]
    pair, place = np.unique(key, return_inverse=True)
    total = np.bincount(place, None if amount is None else amount[wrong], len(pair))
    kept = np.flatnonzero(total > 0)
    order = kept[np.lexsort((pair[kept], -total[kept], pair[kept] // n_classes))]
    row = pair[order] // n_classes
    rank = np.arange(len(order)) - np.searchsorted(row, row)
    chosen = pair[order[rank < most]]
    return Mistakes.of(chosen // n_classes, chosen % n_classes, n_classes)
