"""How many items people must check until a panel's labels, or the shares of its classes, are good enough."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from labelonce._types import Codes, Estimate, Floats, Mask
from labelonce.judges._rates import spread_of


def checks_for_width(posterior: Floats, gold: Codes, width: float, level: float) -> int:
    """Return how many more random items to check until the shares of all classes are known to plus or minus `width`.

    `posterior` is by models that did not see a task's gold. With 10 gold items or more they say how far it is off, by
    the estimate of `class_shares`; otherwise it is taken at its word.
    """
    z, n_tasks = float(norm.ppf((1 + level) / 2)), len(gold)
    checked = int((gold >= 0).sum())
    gap, proxy = spread_of(posterior, gold)
    number = np.arange(max(checked, 1), n_tasks + 1)[:, None]
    variance = gap / number + proxy / n_tasks
    enough = np.flatnonzero((z * np.sqrt(variance) <= width).all(axis=1))
    return (int(number[enough[0], 0]) if len(enough) else n_tasks) - checked


def checks_for_risk(confidence: Floats, known: Mask, accuracy: Estimate, risk: float, right: float) -> Estimate:
    """Return how many labels of people to buy, least sure items first, until a share `risk` of all labels is wrong.

    A label of a person is right with probability `right`. The range is that of the panel's accuracy.
    """
    wrong = np.sort(1 - confidence[~known])[::-1]
    says = max(1 - accuracy.value, 1e-9)
    scales = (1.0, (1 - accuracy.high) / says, (1 - accuracy.low) / says)
    value, low, high = (_until(np.minimum(wrong * scale, 1.0), len(confidence), risk, 1 - right) for scale in scales)
    return Estimate(value, low, high)


def _until(wrong: Floats, n_tasks: int, risk: float, person: float) -> float:
    """Return how many of the items, the most likely wrong first, a person must label; all, if that is not enough."""
    saved = np.append(0.0, np.cumsum(np.maximum(wrong - person, 0.0)))
    enough = np.flatnonzero(float(wrong.sum()) - saved <= risk * n_tasks)
    return float(enough[0] if len(enough) else len(wrong))
