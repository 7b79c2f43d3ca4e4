"""From probabilities to labels without gold: at one half, or where F1 is expected to be highest."""

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


def as_often(predicted: Floats, labels: Codes, question: Codes, n_questions: int) -> Floats:
    """Return the thresholds at which predictions say yes as often as labels do, which are calibrated, unlike they.

    >>> as_often(np.array([0.1, 0.2, 0.3, 0.5]), np.array([0, 0, 0, 1]), np.zeros(4, dtype=int), 1).round(2)
    array([0.4])
    """
    found = np.full(n_questions, 0.5)
    for number in np.unique(question):
        ascending, n_yes = np.sort(predicted[question == number]), int(labels[question == number].sum())
        if n_yes:
            found[number] = np.append(0.0, ascending)[-n_yes - 1 :][:2].mean()
    return found


def no_more_than(most: Floats, line: Floats, probability: Floats, question: Codes) -> Floats:
    """Return the thresholds raised until at most that many of the pairs of each question are above.

    >>> no_more_than(np.array([1.0]), np.array([0.1]), np.array([0.2, 0.3, 0.9]), np.zeros(3, dtype=int))
    array([0.3])
    """
    found = line.copy()
    for number in np.unique(question):
        descending, number_yes = -np.sort(-probability[question == number]), round(float(most[number]))
        if number_yes < len(descending):
            found[number] = max(line[number], descending[number_yes])
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
