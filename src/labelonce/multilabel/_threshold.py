"""From probabilities to labels without gold: at one half, or where F1 is expected to be highest."""

from __future__ import annotations

import numpy as np

from labelonce._types import Codes, Floats

THRESHOLDS = ("half", "expected_f1")


def thresholds(kind: str, probability: Floats, question: Codes, n_questions: int) -> Floats:
    """Return the probability above which each question is answered yes; `probability` and `question` are of pairs."""
    found = np.full(n_questions, 0.5)
    if kind == "half":
        return found
    order = np.lexsort((probability, question))
    ends = np.cumsum(np.bincount(question, minlength=n_questions))
    for number, (start, end) in enumerate(zip(np.append(0, ends[:-1]), ends, strict=True)):
        if end > start:
            found[number] = best_for_f1(probability[order[start:end]])
    return found


def best_for_f1(ascending: Floats) -> float:
    """Return the threshold with the highest expected F1, of probabilities in ascending order that are calibrated.

    With the k most probable taken, F1 is expected to be near 2 sum(p taken) / (k + sum of all p).

    >>> round(best_for_f1(np.array([0.1, 0.2, 0.4, 0.45, 0.9])), 6)
    0.3
    """
    top = ascending[::-1]
    taken = np.cumsum(top)
    if taken[-1] < 1e-9:  # nothing is a yes, however the line is drawn
        return 0.5
    value = 2 * taken / (np.arange(1, len(top) + 1) + taken[-1] + 1e-12)
    best = int(value.argmax())
    below = top[best + 1] if best + 1 < len(top) else 0.0
    return float(min(top[best] - 1e-12, (top[best] + below) / 2))
