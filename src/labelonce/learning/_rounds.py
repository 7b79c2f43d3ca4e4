"""The rounds: fit the model, re-estimate the workers, recompute every task's posterior, fit again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from labelonce._annotations import Annotations
from labelonce._kernels import ScipyEngine, floored_log, vote_fractions
from labelonce._sklearn import clone
from labelonce._types import Codes, Floats
from labelonce.learning._predict import fit_to_rows, out_of_fold
from labelonce.learning._protocol import Learner
from labelonce.workers import WorkerModel

N_FOLDS = 5
MEMORISED = 0.25  # share of the disagreement of models that did not see the task
_TEMPERATURES = np.exp(np.linspace(-1.0, 1.6, 14))  # exponents tried on a model's predictions
_REFINEMENTS = 10  # E and M steps on the workers within a round: near the fixed point


@dataclass(frozen=True)
class Recipe:
    """How a round is done; the options of `MBEM` with everything chosen."""

    learner: Learner
    worker_model: WorkerModel
    predictions: str = "in_sample"
    counts: str = "refined"
    posterior: str = "joint"
    weighting: str = "information"
    prior: Any = "uniform"


@dataclass(frozen=True)
class Round:
    """What one round found: the model, and the workers and posteriors as its predictions see them."""

    number: int
    model: Learner
    predictions: Floats
    confusion: Floats
    prior: Floats
    posterior: Floats
    weight: Floats
    workers: WorkerModel
    log_likelihood: float


def run_rounds(
    X: Any,
    annotations: Annotations,
    recipe: Recipe,
    *,
    gold: Codes | None,
    seed: int,
    after: Round | None = None,
) -> Iterator[Round]:
    """Yield rounds without end, from the vote fractions or `after` a round that was reached before."""
    engine = ScipyEngine(annotations, "float64")
    number = 0 if after is None else after.number
    posterior, start = vote_targets(engine, gold)
    weight = start
    if after is not None:
        posterior, weight = after.posterior, after.weight
    while True:
        number += 1
        model = fit_model(recipe.learner, X, posterior, weight)
        predictions = predict_tasks(model, recipe, X, posterior, weight, np.random.default_rng([seed, number]))
        workers, log_prior, prior = estimate_workers(engine, recipe, predictions, gold, first=number == 1)
        log_confusion = floored_log(workers.confusion_)
        posterior, log_likelihood = engine.e_step(log_confusion, log_prior, gold)
        weight = task_weight(recipe, posterior, start, first=number == 1)
        yield Round(number, model, predictions, workers.confusion_, prior, posterior, weight, workers, log_likelihood)


def vote_targets(engine: ScipyEngine, gold: Codes | None) -> tuple[Floats, Floats]:
    """Return the vote fractions and weight 1 where there are any; tasks without labels wait with weight 0."""
    votes = engine.vote_counts()
    weight: Floats = np.asarray(votes.any(axis=1), dtype=np.float64)
    if gold is not None:
        weight[gold >= 0] = 1.0
    return vote_fractions(votes, gold), weight


def fit_model(learner: Learner, X: Any, targets: Floats, weight: Floats) -> Learner:
    """Return a fresh learner fitted to the tasks that have a weight."""
    return fit_to_rows(learner, X, targets, weight, np.flatnonzero(weight > 0))


def predict_tasks(
    model: Learner, recipe: Recipe, X: Any, targets: Floats, weight: Floats, rng: np.random.Generator
) -> Floats:
    """Return P(class) of every task: by the model itself, or by models that did not see the task."""
    if recipe.predictions == "in_sample":
        return model.predict_proba(X)
    return out_of_fold(recipe.learner, X, targets, weight, n_folds=N_FOLDS, rng=rng)


def memorises(learner: Learner, X: Any, annotations: Annotations, gold: Codes | None, seed: int) -> bool:
    """Return whether a learner reproduces labels that it should disagree with.

    Only disagreement tells workers apart. A model that has memorised the labels agrees with everybody, so that
    all workers look alike; then they must be judged by models that did not see the task.
    """
    posterior, weight = vote_targets(ScipyEngine(annotations, "float64"), gold)
    own = fit_model(learner, X, posterior, weight).predict_proba(X)
    fresh = out_of_fold(learner, X, posterior, weight, n_folds=N_FOLDS, rng=np.random.default_rng([seed, 0]))
    own_left, fresh_left = (
        float((predictions.argmax(axis=1)[annotations.task] != annotations.label).mean())
        for predictions in (own, fresh)
    )
    return own_left < (1 - MEMORISED) * fresh_left


def estimate_workers(
    engine: ScipyEngine, recipe: Recipe, predictions: Floats, gold: Codes | None, *, first: bool
) -> tuple[WorkerModel, Floats, Floats]:
    """Return the fitted workers, the log prior of every task's true label, and the class prior.

    The first round counts picks: a model trained on raw labels predicts labels rather than the truth, and
    counting its probabilities would make every worker look random.
    """
    picks = with_gold(np.eye(predictions.shape[1])[predictions.argmax(axis=1)], gold)
    soft = recipe.counts == "soft" and not first
    counts = engine.m_step(with_gold(predictions, gold) if soft else picks)
    workers = clone(recipe.worker_model).fit_counts(counts)
    prior = class_prior(recipe.prior, picks, engine, workers.confusion_)
    if recipe.posterior == "prior" or first:
        return workers, floored_log(prior), prior
    log_prior = calibrated(predictions, engine, workers.confusion_)
    if recipe.counts == "refined":
        for _ in range(_REFINEMENTS):
            log_confusion = floored_log(workers.confusion_)
            workers = workers.fit_counts(engine.m_step(engine.e_step(log_confusion, log_prior, gold).posterior))
        log_prior = calibrated(predictions, engine, workers.confusion_)
    return workers, log_prior, prior


def class_prior(prior: Any, picks: Floats, engine: ScipyEngine, confusion: Floats) -> Floats:
    """Return P(true label): given, uniform, the share of the model's picks, or the one that explains the labels."""
    n_classes = picks.shape[1]
    if not isinstance(prior, str):
        return np.asarray(prior, dtype=np.float64)
    if prior == "uniform":
        return np.full(n_classes, 1 / n_classes)
    if prior == "picks":
        return np.asarray(picks.mean(axis=0))
    learned = np.full(n_classes, 1 / n_classes)
    log_confusion = floored_log(confusion)
    for _ in range(20):
        mass = engine.e_step(log_confusion, np.log(learned)).posterior.sum(axis=0) + 1.0
        learned = mass / mass.sum()
    return learned


def calibrated(predictions: Floats, engine: ScipyEngine, confusion: Floats) -> Floats:
    """Return log P(class) of every task, sharpened or flattened until it explains the annotations best."""
    log_predictions = np.log(np.maximum(predictions, 1e-6))
    log_confusion = floored_log(confusion)
    tried = [log_normalised(exponent * log_predictions) for exponent in _TEMPERATURES]
    scores = [engine.e_step(log_confusion, log_prior).log_likelihood for log_prior in tried]
    return tried[int(np.argmax(scores))]


def log_normalised(scores: Floats) -> Floats:
    """Return log-probabilities proportional to exp(scores) in each row."""
    return np.asarray(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))


def task_weight(recipe: Recipe, posterior: Floats, start: Floats, *, first: bool) -> Floats:
    """Return how much each task counts in the next fit; `start` is 1 where it has a label or gold.

    By information, 1 - H(posterior) / log K: with cross-entropy a uniform posterior is not neutral, it pulls
    predictions to uniform. Scaled to the total of `start`, so that a learner's penalty means the same in every
    round. Where no posterior says anything, the labels are all there is.
    """
    if recipe.weighting == "information":
        weight = information(posterior)
        total = weight.sum()
        return np.asarray(weight * (start.sum() / total)) if total > 1e-9 else start
    return np.ones(len(posterior)) if recipe.posterior == "joint" and not first else start


def information(posterior: Floats) -> Floats:
    """Return 1 - H(posterior) / log K of every task, in [0, 1].

    >>> information(np.array([[1.0, 0.0], [0.5, 0.5]])).round(6)
    array([1., 0.])
    """
    n_classes = posterior.shape[1]
    if n_classes == 1:
        return np.ones(len(posterior))
    entropy = -(posterior * np.log(np.maximum(posterior, 1e-300))).sum(axis=1)
    return np.asarray(np.clip(1 - entropy / np.log(n_classes), 0.0, 1.0))


def with_gold(probabilities: Floats, gold: Codes | None) -> Floats:
    """Return the probabilities with known true labels one-hot."""
    if gold is None:
        return probabilities
    known = np.flatnonzero(gold >= 0)
    fixed = probabilities.copy()
    fixed[known] = np.eye(probabilities.shape[1])[gold[known]]
    return fixed
