"""Choosing without gold: the likelihood of annotations that the fit did not see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from labelonce._kernels import label_probabilities
from labelonce._types import Codes, Floats, Mask
from labelonce._validate import check_distribution
from labelonce.data import Annotations
from labelonce.data._split import hold_out
from labelonce.learning._candidates import Candidate
from labelonce.learning._rounds import run_rounds

_ENOUGH = 1200  # held-out annotations that settle a choice
_HEATS = 3  # rounds that all candidates get: the second, with the prior as yet, is under-confident and tells little
_FINALISTS = 4


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
    confusion : (n_workers, n_classes, n_classes)
        P(given | true) as [worker, true, given].

    Examples
    --------
    >>> import numpy as np, labelonce as lo
    >>> ann = lo.Annotations.from_arrays([0, 1], [0, 0], [0, 1])
    >>> sure = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> good = np.array([[[0.9, 0.1], [0.1, 0.9]]])
    >>> round(lo.annotation_log_likelihood(ann, sure, good), 3)
    -0.198
    >>> round(lo.annotation_log_likelihood(ann, 1 - sure, good), 3)
    -1.715
    """
    shape = (annotations.n_tasks, annotations.n_classes)
    probabilities = check_distribution(predictions, "predictions", shape)
    matrices = check_distribution(confusion, "confusion", (annotations.n_workers, shape[1], shape[1]))
    return float(_log_likelihoods(annotations, probabilities, matrices).mean())


def _log_likelihoods(annotations: Annotations, predictions: Floats, confusion: Floats) -> Floats:
    """Return the log-likelihood of every annotation."""
    return np.asarray(np.log(np.maximum(label_probabilities(annotations, predictions, confusion), 1e-300)))


@dataclass(frozen=True)
class Choice:
    """Which candidate won and with how many rounds; its score after every round, and a table of all candidates."""

    number: int
    rounds: int
    scores: list[float] = field(default_factory=list)
    table: list[dict[str, Any]] = field(default_factory=list)


def choose_recipe(
    candidates: list[Candidate],
    annotations: Annotations,
    gold: Codes | None,
    *,
    max_rounds: int,
    free: bool,
    share: float,
    seed: int,
) -> Choice:
    """Return the first candidate that predicts held-out annotations as well as any, and if `free` its number of rounds.

    As well as any: see `near_best`; its rounds are those of its best likelihood. The likelihood also rewards a model
    that has learned the workers' habits, so it leans to weak penalties; candidates come with the simplest first.
    All of them run three rounds; the best few run on. Small sets are split more than once.
    """
    n_splits = int(np.clip(round(_ENOUGH / (share * len(annotations))), 1, 3))
    parts = [hold_out(annotations, share, np.random.default_rng([seed, split])) for split in range(n_splits)]
    runs = [[_held_out(one, part, gold, seed, max_rounds) for part in parts] for one in candidates]
    likelihoods = np.full((len(candidates), max_rounds, sum(len(held) for _, held in parts)), np.nan, dtype=np.float32)
    scores = np.full((len(candidates), max_rounds), np.nan)
    running = np.arange(len(candidates))
    for place in range(max_rounds):
        for number in running.tolist():
            found = np.concatenate([next(run) for run in runs[number]])
            likelihoods[number, place], scores[number, place] = found, found.mean()
        if place == _HEATS - 1:
            running = running[np.argsort(-scores[running, place], kind="stable")[:_FINALISTS]]
    near = near_best(likelihoods, np.isfinite(scores) & (free | (np.arange(max_rounds) == max_rounds - 1)))
    number = int(near.any(axis=1).argmax())
    rounds = 1 + int(np.where(near[number], scores[number], -np.inf).argmax())
    return Choice(number, rounds, scores[number].tolist(), _table(candidates, scores, near))


def near_best(log_likelihoods: Floats, eligible: Mask) -> Mask:
    """Return which of the eligible are within one standard error of the best mean log-likelihood.

    The standard error is that of the difference, annotation by annotation: what all find hard does not count.

    Parameters
    ----------
    log_likelihoods : (n_candidates, n_rounds, n_held)
    eligible : (n_candidates, n_rounds)

    Examples
    --------
    >>> scores = -np.array([[[1.0, 1, 1, 1]], [[2, 1, 1, 1]], [[3, 1, 0, 1]]])
    >>> near_best(scores, np.ones((3, 1), dtype=bool)).ravel()  # the second is only worse, the third at times better
    array([ True, False,  True])
    """
    means = np.where(eligible, log_likelihoods.mean(axis=2), -np.inf)
    behind = log_likelihoods[np.unravel_index(means.argmax(), means.shape)] - log_likelihoods
    return np.asarray(eligible & (behind.mean(axis=2) <= behind.std(axis=2) / np.sqrt(behind.shape[2])))


def _held_out(
    candidate: Candidate, part: tuple[Annotations, Annotations], gold: Codes | None, seed: int, last: int
) -> Iterator[Floats]:
    """Yield the log-likelihood of every held-out annotation after each round, without end."""
    seen, held = part
    for this in run_rounds(candidate.X, seen, candidate.recipe, gold=gold, seed=seed, last=last):
        yield _log_likelihoods(held, this.model.predict_proba(candidate.X), this.confusion)


def _table(candidates: list[Candidate], scores: Floats, near: Mask) -> list[dict[str, Any]]:
    return [
        {name: getattr(candidate.recipe, name) for name in ("learner", "predictions", "posterior")}
        | {"held_out_scores": row.tolist(), "near_best": mark.tolist()}
        for candidate, row, mark in zip(candidates, scores, near, strict=True)
    ]
