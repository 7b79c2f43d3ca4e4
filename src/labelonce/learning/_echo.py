"""The echo: labels that come back in the predictions that judge them, where every round is out-of-fold.

No model saw the labels of the tasks that it predicts, but from the second round on its targets come from models that
did. Rounds without any label of a task hear nothing of it: how much less often these agree with labels is the echo.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np

from labelonce._kernels import Beliefs
from labelonce._rules import RULES
from labelonce._types import Codes, Floats, Mask
from labelonce.learning._choice import folds_of
from labelonce.learning._cross_fit import told
from labelonce.learning._problem import Problem
from labelonce.learning._rounds import Fitting, Round, rounds


def first_round(problem: Problem, how: Fitting, done: list[Round]) -> Round:
    """Return the first round out-of-fold, in which there is no echo yet."""
    return done[0] if done else next(rounds(problem, replace(how, whole=())))


def echoes(problem: Problem, how: Fitting, last: Round, first: Beliefs) -> bool:
    """Return whether predictions of the last round surely agree too often with the labels that they are to judge.

    They are compared with those of whole rounds on the other folds, one fold after the other until one knows; and
    before with the predictions of the first round, since where these agree as often there is nothing to ask.
    """
    fold, shown = how.fold, last.predictions.argmax()
    if fold is None or not last.parts or not is_sure(compared(problem, fold >= 0, shown, first.argmax())):
        return False
    found: list[Floats] = []
    for number in range(int(fold.max()) + 1):
        held = fold == number
        found.append(compared(problem, held, shown[problem.rows_of(held)], unheard(problem, how, last, held).argmax()))
        so_far = np.concatenate(found, axis=1)
        if is_sure(so_far) or share(so_far) <= RULES.echoed[0]:
            break
    return is_sure(so_far)


def unheard(problem: Problem, how: Fitting, last: Round, held: Mask) -> Beliefs:
    """Return what as many rounds, out-of-fold too, on the other tasks alone say of the rows of tasks held out."""
    assert how.fold is not None
    rest = problem.part(~held)
    fold = folds_of(rest, max(int(how.fold.max()), 2), how.seed)
    inner = rounds(rest, replace(how, fold=fold, whole=()))
    return told(problem, held, next(islice(inner, last.number - 1, None)))


def compared(problem: Problem, held: Mask, shown: Codes, other: Codes) -> Floats:
    """Return, by task held out with labels, how many more of these one pick agrees with than another, and of how many.

    `shown` and `other` are classes of the rows held out.
    """
    rows = problem.rows_of(held)
    labels, task = problem.labels.select(rows), problem.task[rows]
    if labels.is_square:
        more = (shown[labels.task] == labels.label) * 1.0 - (other[labels.task] == labels.label)
        of = np.ones(len(more))
    else:
        leaning = labels.leaning[labels.label]
        every = np.arange(len(leaning))
        more, of = leaning[every, shown[labels.task]] - leaning[every, other[labels.task]], leaning.sum(axis=1)
    both = np.stack([np.bincount(task[labels.task], one, problem.n_tasks) for one in (more, of)])
    return np.asarray(both[:, both[1] > 0])


def share(found: Floats) -> float:
    """Return of how many of the labels more one agrees than the other."""
    return float(found[0].sum() / max(found[1].sum(), 1e-12))


def is_sure(found: Floats) -> bool:
    """Return whether that is too many, less standard errors between tasks.

    >>> is_sure(np.array([[1.0, 1, 0, 0] * 9, [1.0] * 36])), is_sure(np.array([[1.0, 0, 0, 0], [1.0] * 4]))
    (True, False)
    """
    most, errors = RULES.echoed
    error = np.sqrt(((found[0] - share(found) * found[1]) ** 2).sum()) / max(found[1].sum(), 1e-12)
    return bool(share(found) - errors * error > most)
