"""The evidence of a task's other questions for one of them: a classifier on the other answers."""

import numpy as np
from scipy.special import expit

from labelonce._rules import RULES
from labelonce._types import Floats, Ids
from labelonce.multilabel._pairs import PairLabels

_STEPS = 8


class Context:
    """Log-odds of every row from the votes on the other questions about its task.

    With up to 100 questions each has a logistic regression on the votes of all others; with more, as where each task
    has a few candidates of many, all share one on the number of candidates and on how many of the others were ticked.
    Votes, not posteriors: what is fitted may not confirm itself.
    """

    def __init__(self, labels: PairLabels, votes: Floats, n_tasks: int, n_questions: int) -> None:
        if 1 < n_questions <= RULES.context_questions:
            self._groups = _all_questions(labels, votes, n_tasks, n_questions)
        else:
            self._groups = [(np.arange(len(votes)), _candidates(labels, votes))]
        self._coefficients: list[Floats] = [np.zeros(features.shape[1]) for _, features in self._groups]

    def log_odds(self, posterior: Floats, offset: Floats) -> Floats:
        """Return `offset` plus the evidence of the other questions, fitted to a posterior."""
        found = offset.copy()
        for number, (pairs, features) in enumerate(self._groups):
            start = self._coefficients[number]
            self._coefficients[number] = _logistic(features, posterior[pairs], offset[pairs], start)
            found[pairs] += features @ self._coefficients[number]
        return found


def _logistic(features: Floats, target: Floats, offset: Floats, start: Floats) -> Floats:
    """Return ridge coefficients by Newton's method; the last column is the constant and not penalised."""
    penalty = np.full(features.shape[1], RULES.context_penalty)
    penalty[-1] = 1e-3
    found = start
    for _ in range(_STEPS):
        chance = expit(features @ found + offset)
        slope = features.T @ (chance - target) + penalty * found
        weight = np.maximum(chance * (1 - chance), 1e-6)
        curve = (features * weight[:, None]).T @ features + np.diag(penalty)
        step = np.linalg.solve(curve, slope)
        found = found - step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-12))
        if np.abs(step).max() < 1e-4:
            break
    return found


def _all_questions(labels: PairLabels, votes: Floats, n_tasks: int, n_questions: int) -> list[tuple[Ids, Floats]]:
    wide = np.zeros((n_tasks, n_questions))
    total = np.bincount(labels.row_question, votes, minlength=n_questions)
    asked = np.maximum(np.bincount(labels.row_question, minlength=n_questions), 1)
    wide[labels.row_task, labels.row_question] = votes - (total / asked)[labels.row_question]  # 0: not asked
    groups: list[tuple[Ids, Floats]] = []
    for question in range(n_questions):
        pairs = np.flatnonzero(labels.row_question == question)
        if len(pairs):
            others = np.delete(wide[labels.row_task[pairs]], question, axis=1)
            groups.append((pairs, np.column_stack([others, np.ones(len(pairs))])))
    return groups


def _candidates(labels: PairLabels, votes: Floats) -> Floats:
    task = np.unique(labels.row_task, return_inverse=True)[1]
    number = np.log(np.bincount(task))[task]
    others = np.bincount(task, votes)[task] - votes
    order = np.lexsort((votes, task))
    last = np.cumsum(np.bincount(task)) - 1
    top, alone = votes[order][last], np.bincount(task) < 2
    second = np.where(alone, 0.0, votes[order][np.maximum(last - 1, 0)])
    is_top = np.zeros(len(votes), dtype=bool)
    is_top[order[last]] = True
    best = np.where(is_top, second[task], top[task])
    columns = np.column_stack([number, number**2, others, best, best**2, np.sqrt(others)])
    spread = np.maximum(columns.std(axis=0), 1e-9)
    return np.column_stack([(columns - columns.mean(axis=0)) / spread, np.ones(len(votes))])
