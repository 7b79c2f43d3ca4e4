"""Choosing without gold: which recipe is right most often on tasks that its fit did not see."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from labelonce._types import Codes, Floats, Mask
from labelonce._validate import check_distribution
from labelonce.data import Annotations
from labelonce.data._split import hold_out_tasks
from labelonce.learning._contenders import Contender
from labelonce.learning._rounds import Round
from labelonce.learning._trials import Part, Trials, log_likelihoods

_ENOUGH = 1200  # held-out tasks that settle a choice
HEATS = 3  # rounds that all contenders get
_FINALISTS = 2


def annotation_log_likelihood(annotations: Annotations, predictions: Any, confusion: Any) -> float:
    """Return the mean log-likelihood of annotations under a model and its workers; higher is better.

    The mean over annotations of log sum_k predictions[task, k] * confusion[worker, k, label]: how well the
    model's view of a task, seen through the worker's confusion, predicts the label that the worker gave. With
    annotations that the fit did not see it ranks fits as unseen gold would, and needs no gold.

    Parameters
    ----------
    annotations : Annotations
        Best held out: see `MBEM.score_annotations`.
    predictions : (n_tasks, n_classes)
        P(class | features) of every task.
    confusion : (n_workers, n_classes, n_answers)
        P(given | true) as [worker, true, given].

    Examples
    --------
    >>> import numpy as np, labelonce as lo
    >>> from labelonce.learning import annotation_log_likelihood
    >>> ann = lo.Annotations.from_arrays([0, 1], [0, 0], [0, 1])
    >>> sure = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> good = np.array([[[0.9, 0.1], [0.1, 0.9]]])
    >>> round(annotation_log_likelihood(ann, sure, good), 3)
    -0.198
    >>> round(annotation_log_likelihood(ann, 1 - sure, good), 3)
    -1.715
    """
    shape = (annotations.n_tasks, annotations.n_classes)
    probabilities = check_distribution(predictions, "predictions", shape)
    matrices = check_distribution(confusion, "confusion", (annotations.n_workers, shape[1], annotations.n_answers))
    return float(log_likelihoods(annotations, probabilities, matrices).mean())


@dataclass(frozen=True)
class Choice:
    """Which contender won, its last round and the rounds to average; its scores, and a table of all contenders.

    `done` are the rounds of a frugal choice out of fold: they were fitted to all tasks and need no other run.
    """

    number: int
    rounds: int
    averaged: tuple[int, ...] = ()
    scores: list[float] = field(default_factory=list)
    table: list[dict[str, Any]] = field(default_factory=list)
    done: list[Round] = field(default_factory=list)


def choose_recipe(
    contenders: list[Contender],
    annotations: Annotations,
    gold: Codes | None,
    *,
    max_rounds: int,
    free: bool,
    share: float,
    seed: int,
    frugal: bool = False,
) -> Choice:
    """Return the contender that is right most often on held-out tasks, and if `free` its rounds to average.

    Averaged are the rounds that are as right as the best, see `near_best`. Whole tasks are held out: a model that has
    memorised the other labels of a task predicts one more label of it well, and new tasks badly. Small sets are split
    more than once. All contenders run three rounds; the best two run on. If `frugal`, one split, one round of all, and
    the best runs on; out of fold see `choose_in_folds`.
    """
    if frugal and contenders[0].recipe.of_folds:
        return choose_in_folds(contenders, annotations, gold, max_rounds=max_rounds, free=free, seed=seed)
    heats, n_finalists = (1, 1) if frugal else (HEATS, _FINALISTS)
    parts = held_out_parts(annotations, share, seed, most=1 if frugal else 3)
    trials = Trials(contenders, parts, gold, max_rounds=max_rounds, seed=seed)
    running = list(range(len(contenders)))
    for place in range(max_rounds):
        for number in running:
            trials.run_round(number)
        if place == heats - 1:
            running = finalists(trials, n_finalists)
    return choice_so_far(contenders, trials, trials.done() & (free | (np.arange(max_rounds) == max_rounds - 1)))


def held_out_parts(annotations: Annotations, share: float, seed: int, *, most: int = 3) -> list[Part]:
    """Return the splits into tasks to fit to and tasks held out: as many as small sets need, at most so many."""
    n_tasks = share * len(np.unique(annotations.task))
    n_splits = int(np.clip(round(_ENOUGH / max(n_tasks, 1.0)), 1, most))
    return hold_out_tasks(annotations, share, n_splits, np.random.default_rng([seed, 0]))


def finalists(trials: Trials, most: int = _FINALISTS) -> list[int]:
    """Return the numbers of the contenders that are right most often so far."""
    best = np.nanmax(trials.accuracy(), axis=1)
    return sorted(np.argsort(-best, kind="stable")[:most].tolist())


def choice_so_far(contenders: list[Contender], trials: Trials, eligible: Mask) -> Choice:
    """Return the choice among the eligible rounds of the contenders."""
    near = near_best(trials.right(), eligible)
    number = int(np.where(near, trials.accuracy(), -np.inf).max(axis=1).argmax())
    averaged = tuple((1 + np.flatnonzero(near[number])).tolist())
    found = (trials.scores[number].tolist(), _table(contenders, trials, near))
    return Choice(number, averaged[-1], averaged, *found)


def choose_in_folds(
    contenders: list[Contender],
    annotations: Annotations,
    gold: Codes | None,
    *,
    max_rounds: int,
    free: bool,
    seed: int,
) -> Choice:
    """Return the contender whose first round is right most often on tasks it did not see, and its rounds.

    No task is held out: each is judged by models that were fitted without it. They are the rounds' own, so that
    nothing is fitted twice, and their average over all rounds is the model. To pick the best rounds by the same labels
    loses more than the worse rounds do to the average. Where the number of rounds is given, the last is left to be
    done, with a model fitted to all tasks.
    """
    parts = [(annotations, annotations)]
    trials = Trials(contenders, parts, gold, max_rounds=max_rounds, seed=seed, keep_rounds=True)
    for number in range(len(contenders)):
        trials.run_round(number)
    best = int(trials.accuracy()[:, 0].argmax())
    n_rounds = max_rounds if free else max_rounds - 1
    for _ in range(n_rounds - 1):
        trials.run_round(best)
    near = near_best(trials.right(), trials.done())
    found: dict[str, Any] = {"scores": trials.scores[best].tolist(), "table": _table(contenders, trials, near)}
    every = tuple(range(1, max_rounds + 1)) if free else ()
    return Choice(best, max_rounds, every, **found, done=trials.rounds[best][:n_rounds])


def near_best(values: Floats, eligible: Mask) -> Mask:
    """Return which of the eligible are within one standard error of the best mean.

    The standard error is that of the difference, task by task: what all find hard does not count.

    Parameters
    ----------
    values : (n_contenders, n_rounds, n_held)
    eligible : (n_contenders, n_rounds)

    Examples
    --------
    >>> values = -np.array([[[1.0, 1, 1, 1]], [[2, 1, 1, 1]], [[3, 1, 0, 1]]])
    >>> near_best(values, np.ones((3, 1), dtype=bool)).ravel()  # the second is only worse, the third at times better
    array([ True, False,  True])
    """
    means = np.where(eligible, values.mean(axis=2), -np.inf)
    behind = values[np.unravel_index(means.argmax(), means.shape)] - values
    return np.asarray(eligible & (behind.mean(axis=2) <= behind.std(axis=2) / np.sqrt(behind.shape[2])))


def _table(contenders: list[Contender], trials: Trials, near: Mask) -> list[dict[str, Any]]:
    rows = zip(contenders, trials.scores, trials.accuracy(), near, strict=True)
    return [
        {name: getattr(contender.recipe, name) for name in ("learner", "predictions", "posterior")}
        | {"held_out_scores": scores.tolist(), "held_out_accuracy": accuracy.tolist(), "near_best": mark.tolist()}
        for contender, scores, accuracy, mark in rows
    ]
