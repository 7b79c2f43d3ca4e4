"""Choosing without gold: the likelihood of annotations that the fit did not see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from labelonce._annotations import Annotations
from labelonce._types import Codes, Floats
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
    given = confusion[annotations.worker, :, annotations.label]
    return np.asarray(np.log(np.maximum(np.einsum("ak,ak->a", predictions[annotations.task], given), 1e-300)))


def hold_out(annotations: Annotations, share: float, rng: np.random.Generator) -> tuple[Annotations, Annotations]:
    """Return two parts of the annotations with the same tables: those to fit, and a share held out."""
    n_held = int(np.clip(round(share * len(annotations)), 1, len(annotations) - 1))
    held = rng.permutation(len(annotations)) < n_held
    return _part(annotations, ~held), _part(annotations, held)


def _part(annotations: Annotations, kept: Any) -> Annotations:
    rows = (annotations.task[kept], annotations.worker[kept], annotations.label[kept])
    return Annotations(*rows, annotations.tasks, annotations.workers, annotations.classes)


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

    All tries run three rounds; the best few run on. Small sets are split more than once.
    """
    n_splits = int(np.clip(round(_ENOUGH / (share * len(annotations))), 1, 3))
    parts = [hold_out(annotations, share, np.random.default_rng([seed, split])) for split in range(n_splits)]
    runs = [[_scores(one, part, gold, seed) for part in parts] for one in tries]
    scores = np.full((len(tries), max_rounds), np.nan)
    running = np.arange(len(tries))
    for place in range(max_rounds):
        for number in running.tolist():
            scores[number, place] = np.mean([next(run) for run in runs[number]])
        if place == _HEATS - 1:
            running = running[np.argsort(-scores[running, place], kind="stable")[:_FINALISTS]]
    eligible = scores if free else np.where(np.arange(max_rounds) == max_rounds - 1, scores, np.nan)
    best, rounds = (int(i) for i in np.unravel_index(np.nanargmax(eligible), eligible.shape))
    return Choice(best, rounds + 1, scores[best].tolist(), _table(tries, scores))


def _scores(one: Try, part: tuple[Annotations, Annotations], gold: Codes | None, seed: int) -> Iterator[float]:
    """Yield the held-out score after each round, without end."""
    _, X, recipe = one
    seen, held = part
    for this in run_rounds(X, seen, recipe, gold=gold, seed=seed):
        yield annotation_log_likelihood(held, this.model.predict_proba(X), this.confusion)


def _table(tries: list[Try], scores: Floats) -> list[dict[str, Any]]:
    return [
        {"learner": recipe.learner, "predictions": recipe.predictions, "posterior": recipe.posterior}
        | {"held_out_scores": row.tolist()}
        for (_, _, recipe), row in zip(tries, scores, strict=True)
    ]
