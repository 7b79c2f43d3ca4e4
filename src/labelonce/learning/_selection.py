"""Choosing without gold: the likelihood of annotations that the fit did not see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from labelonce._annotations import Annotations
from labelonce._held_out import hold_out, label_probabilities
from labelonce._types import Codes, Floats, Mask
from labelonce._validate import check_distribution
from labelonce.learning._rounds import Recipe, run_rounds

Try = tuple[Any, Any, Recipe]  # transformers, features, recipe

_ENOUGH = 1200  # held-out annotations that settle a choice
_HEATS = 3  # rounds that all tries get: the second, with the prior as yet, is under-confident and tells little
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
    """Which try won and with how many rounds; the score of every try after every round."""

    number: int
    rounds: int
    scores: list[float] = field(default_factory=list)
    table: list[dict[str, Any]] = field(default_factory=list)


def choose(
    tries: list[Try],
    annotations: Annotations,
    gold: Codes | None,
    *,
    max_rounds: int,
    free: bool,
    share: float,
    seed: int,
) -> Choice:
    """Return the try, and if `free` the number of rounds, that predicts held-out annotations best.

    The likelihood decides among the fits that `trusted` leaves. All tries run three rounds; the best few run on.
    Small sets are split more than once.
    """
    n_splits = int(np.clip(round(_ENOUGH / (share * len(annotations))), 1, 3))
    parts = [hold_out(annotations, share, np.random.default_rng([seed, split])) for split in range(n_splits)]
    runs = [[_held_out(one, part, gold, seed, max_rounds) for part in parts] for one in tries]
    scores = np.full((len(tries), max_rounds), np.nan)
    hits = np.zeros((len(tries), max_rounds, sum(len(held) for _, held in parts)), dtype=bool)
    running = np.arange(len(tries))
    for place in range(max_rounds):
        for number in running.tolist():
            found = [next(run) for run in runs[number]]
            scores[number, place] = np.mean([score for score, _ in found])
            hits[number, place] = np.concatenate([hit for _, hit in found])
        if place == _HEATS - 1:
            running = running[np.argsort(-scores[running, place], kind="stable")[:_FINALISTS]]
    open_to_choice = np.isfinite(scores) & (free | (np.arange(max_rounds) == max_rounds - 1))
    left = trusted(hits, open_to_choice)
    best, rounds = (int(i) for i in np.unravel_index(np.where(left, scores, -np.inf).argmax(), scores.shape))
    return Choice(
        best, rounds + 1, scores[best].tolist(), _table(tries, scores, hits, trusted(hits, np.isfinite(scores)))
    )


def trusted(hits: Mask, candidates: Mask) -> Mask:
    """Return which candidates agree with the held-out labels no less than the best, but for chance.

    The likelihood of labels also rewards a model that is timid or has learned the workers' habits, and can rise
    while the picks get worse. So a fit is out that loses to the one which agrees most: where the two differ in d
    labels, by more than the standard error of a fair coin, sqrt(d). Labels of spammers are such coins, so the
    guard acts where labels are good.

    Parameters
    ----------
    hits : (n_tries, n_rounds, n_held)
        Whether the model picked the label that was held out.
    candidates : (n_tries, n_rounds)

    Examples
    --------
    >>> hits = np.array([[[1, 1, 1, 1, 1, 0]], [[1, 1, 1, 0, 0, 1]], [[1, 1, 1, 0, 0, 0]]], dtype=bool)
    >>> trusted(hits, np.ones((3, 1), dtype=bool)).ravel()  # the second loses by 1 of 3, the third by 2 of 2
    array([ True,  True, False])
    """
    agreement = np.where(candidates, hits.sum(axis=2), -1)
    behind = hits[np.unravel_index(agreement.argmax(), agreement.shape)].astype(np.int8) - hits
    return np.asarray(candidates & (behind.sum(axis=2) <= np.sqrt((behind != 0).sum(axis=2))))


def _held_out(
    one: Try, part: tuple[Annotations, Annotations], gold: Codes | None, seed: int, last: int
) -> Iterator[tuple[float, Mask]]:
    """Yield the held-out likelihood, and which held-out labels the model picks, after each round without end."""
    _, X, recipe = one
    seen, held = part
    for this in run_rounds(X, seen, recipe, gold=gold, seed=seed, last=last):
        predictions = this.model.predict_proba(X)
        hits = predictions.argmax(axis=1)[held.task] == held.label
        yield annotation_log_likelihood(held, predictions, this.confusion), hits


def _table(tries: list[Try], scores: Floats, hits: Mask, left: Mask) -> list[dict[str, Any]]:
    agreement = np.where(np.isfinite(scores), hits.mean(axis=2), np.nan)
    return [
        {"learner": recipe.learner, "predictions": recipe.predictions, "posterior": recipe.posterior}
        | {"held_out_scores": row.tolist(), "held_out_agreement": share.tolist(), "trusted": mark.tolist()}
        for (_, _, recipe), row, share, mark in zip(tries, scores, agreement, left, strict=True)
    ]
