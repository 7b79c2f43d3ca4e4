"""The rounds: fit the model, re-estimate the workers, recompute every task's posterior, fit again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from labelonce._kernels import (
    Engine,
    SharedEngine,
    entropy,
    floored_log,
    log_sums,
    make_engine,
    mean_total_variation,
    total,
    vote_fractions,
)
from labelonce._sklearn import clone
from labelonce._types import Codes, Floats
from labelonce.data import Annotations
from labelonce.learning._average import average_models
from labelonce.learning._calibration import calibrate, label_shares, pull_in_round, sample_tasks
from labelonce.learning._learner import Learner
from labelonce.learning._predict import cross_fit, fit_to_rows, out_of_fold
from labelonce.workers import WorkerModel

N_FOLDS = 5
_REFINEMENTS = 10  # E and M steps on the workers within a round at most
_SETTLED = 1e-3  # change of the workers in such a step, mean total variation: near the fixed point


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
    engine: str = "auto"
    device: str | None = None
    n_folds: int = N_FOLDS
    of_folds: bool = False  # the model of a round is the average of those of its folds, and none is fitted to all tasks
    fits_last: bool = False  # but for the last round's
    candidates: bool = False  # posteriors on a few classes of each task, where there are many
    first_confusion: Floats | None = None  # of the workers, where something is known of them before the first round

    @property
    def last_round_differs(self) -> bool:
        """Whether the model of the last round is fitted with more care than those before it."""
        return self.learner.last_round_differs or (self.of_folds and self.fits_last)

    def for_round(self, number: int, last: int) -> Recipe:
        """Return the recipe of a round, of which `last` is meant to be the last."""
        return replace(self, of_folds=False) if self.fits_last and number >= last else self


@dataclass(frozen=True)
class Round:
    """What one round found: the model, and the workers and posteriors as its predictions see them.

    `targets` and `target_weight` are what the model was fitted to. With many classes predictions, posteriors and
    targets are `Candidates` and the confusion is `Factors`; otherwise all are arrays.
    """

    number: int
    model: Learner
    predictions: Any
    confusion: Any
    prior: Floats
    posterior: Any
    weight: Floats
    workers: WorkerModel
    log_likelihood: float
    targets: Any
    target_weight: Floats


def run_rounds(
    X: Any,
    annotations: Annotations,
    recipe: Recipe,
    *,
    gold: Codes | None,
    seed: int,
    last: int,
    after: Round | None = None,
    trial: bool = False,
) -> Iterator[Round]:
    """Yield rounds without end, from the first targets or `after` a round that was reached before.

    `last` is the number of the round that is meant to be the last: some learners take more care then.
    A `trial` is after the predictions alone: models that they do not need are not fitted.
    """
    engine = make_engine(annotations, "float64", recipe.engine, recipe.device)
    if recipe.learner.shared:
        engine = SharedEngine(engine)
    sample = sample_tasks(annotations, engine)
    number = 0 if after is None else after.number
    start = answered(annotations, gold)
    if after is not None:
        posterior, weight = after.posterior, after.weight
    else:
        posterior, weight = first_targets(engine, recipe, gold, start)
    while True:
        number += 1
        rng = np.random.default_rng([seed, number])
        learner = learner_of_round(recipe.learner, number, last, rng)
        how = recipe.for_round(number, last)
        model, predictions = fit_and_predict(learner, X, posterior, weight, how, rng, keep=not trial)
        fitted = Fitted(model, predictions, posterior, weight)
        this = judge_round(engine, recipe, fitted, gold, number=number, start=start, sample=sample)
        posterior, weight = this.posterior, this.weight
        yield this


def unseen_predictions(X: Any, recipe: Recipe, last: Round, seed: int) -> Floats:
    """Return predictions for every task by models like that of the last round, fitted without the task."""
    if recipe.predictions == "out_of_fold":
        seen: Floats = last.predictions
        return seen
    rng = np.random.default_rng([seed, last.number, 1])
    learner = learner_of_round(recipe.learner, last.number, last.number, rng)
    n_folds = min(recipe.learner.n_folds, recipe.n_folds)
    return out_of_fold(learner, X, last.targets, last.target_weight, n_folds=n_folds, rng=rng)


def fit_and_predict(
    learner: Learner,
    X: Any,
    targets: Floats,
    weight: Floats,
    recipe: Recipe,
    rng: np.random.Generator,
    *,
    keep: bool = True,
) -> tuple[Learner, Floats]:
    """Return the model and what the workers are judged by; one that is neither needed nor to `keep` is not fitted."""
    if recipe.predictions == "in_sample":
        model = fit_model(learner, X, targets, weight)
        return model, model.predict_proba(X)
    if recipe.of_folds:
        models, predictions = cross_fit(learner, X, targets, weight, n_folds=recipe.n_folds, rng=rng)
        return average_models(models or [fit_model(learner, X, targets, weight)]), predictions
    model = fit_model(learner, X, targets, weight) if keep else learner
    return model, out_of_fold(learner, X, targets, weight, n_folds=recipe.n_folds, rng=rng)


class Fitted(NamedTuple):
    """The model of a round, what it says of the tasks, and what it was fitted to."""

    model: Learner
    predictions: Floats
    targets: Floats
    weight: Floats


def judge_round(
    engine: Engine,
    recipe: Recipe,
    fitted: Fitted,
    gold: Codes | None,
    *,
    number: int,
    start: Floats,
    sample: tuple[Any, Engine],
) -> Round:
    """Return the workers, posteriors and weights predictions give; `start` is 1 where there is an answer or gold."""
    model, predictions, targets, target_weight = fitted
    workers, log_prior, prior = estimate_workers(engine, recipe, predictions, gold, number=number, sample=sample)
    posterior, log_likelihood = engine.e_step(floored_log(workers.confusion_), log_prior, gold)
    weight = task_weight(recipe, posterior, start, first=number == 1, engine=engine)
    found = (workers.confusion_, prior, posterior, weight, workers, log_likelihood)
    return Round(number, model, predictions, *found, targets, target_weight)


def first_targets(engine: Engine, recipe: Recipe, gold: Codes | None, start: Floats) -> tuple[Floats, Floats]:
    """Return what the first model is fitted to, and its weight: the votes, or the mean of these and what workers say.

    Workers of whom something is known tell which votes to believe. The votes stay, because a mistake about the workers
    would confirm itself: a class whose workers are believed too little would not be learned again.
    """
    votes, counted = vote_targets(engine, gold)
    if recipe.first_confusion is None:
        return votes, counted
    n_classes = recipe.first_confusion.shape[1]
    log_prior = np.full(n_classes, -np.log(n_classes))
    said = engine.e_step(floored_log(recipe.first_confusion), log_prior, gold).posterior
    told = (start > 0) * task_weight(recipe, said, start, first=True, engine=engine)
    weight = counted + told
    share = np.divide(told, weight, out=np.zeros_like(weight), where=weight > 0)[:, None]
    return (1 - share) * votes + share * said, weight / 2


def vote_targets(engine: Engine, gold: Codes | None) -> tuple[Floats, Floats]:
    """Return the vote fractions and weight 1 where there are any; tasks without votes wait with weight 0."""
    votes = engine.vote_counts()
    weight: Floats = np.asarray(votes.any(axis=1), dtype=np.float64)
    if gold is not None:
        weight[gold >= 0] = 1.0
    return vote_fractions(votes, gold), weight


def answered(annotations: Annotations, gold: Codes | None) -> Floats:
    """Return 1 for tasks with an answer, a vote or not, or gold, else 0.

    After the first round tasks that were only skipped count too: without them, what is left would not be a fair sample
    of the classes.
    """
    number = np.bincount(annotations.task, minlength=annotations.n_tasks)
    return np.asarray((number > 0) if gold is None else (number > 0) | (gold >= 0), dtype=np.float64)


def learner_of_round(learner: Learner, number: int, last: int, rng: np.random.Generator) -> Learner:
    """Return a copy of the learner for a round: what it leaves to chance is drawn from the round's generator."""
    chosen = learner.for_round(number, last)
    open_to_chance = {
        name: int(rng.integers(2**31))
        for name, value in sorted(chosen.get_params().items())
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    }
    seeded: Learner = chosen.set_params(**open_to_chance)
    return seeded


def fit_model(learner: Learner, X: Any, targets: Any, weight: Floats) -> Learner:
    """Return a fresh learner fitted to the tasks that have a weight."""
    return fit_to_rows(learner, X, targets, weight, np.flatnonzero(weight > 0))


def estimate_workers(
    engine: Engine,
    recipe: Recipe,
    predictions: Floats,
    gold: Codes | None,
    *,
    number: int,
    sample: tuple[Any, Engine] | None = None,
) -> tuple[WorkerModel, Floats, Floats]:
    """Return the fitted workers, the log prior of every task's true label, and the class prior.

    The first round counts picks: a model trained on raw labels predicts labels rather than the truth, and
    counting its probabilities would make every worker look random. Later rounds let go of the labels' shares.
    """
    first = number == 1
    picks = with_gold(np.eye(predictions.shape[1])[predictions.argmax(axis=1)], gold)
    soft = recipe.counts == "soft" and not first
    counts = engine.m_step(with_gold(predictions, gold) if soft else picks)
    workers = clone(recipe.worker_model).fit_counts(counts, engine.leaning)
    prior = class_prior(recipe.prior, picks, engine, workers.confusion_)
    if recipe.posterior == "prior" or first:
        return workers, floored_log(prior), prior
    log_prior = np.maximum(predictions, 1e-6, out=picks)  # large arrays fresh from the system cost more than the sums
    np.log(log_prior, out=log_prior)
    tasks, sample_engine = (slice(None), engine) if sample is None else sample
    log_predictions = log_prior[tasks].copy()
    known = not isinstance(recipe.prior, str)
    pull = pull_in_round(number, known=known)
    shares = prior if known else label_shares(counts, engine.leaning)
    found = calibrate(log_predictions, sample_engine, workers.confusion_, shares, pull)
    found.apply(log_prior)
    if recipe.counts == "refined":
        workers = refine(workers, engine, log_prior, gold)
        found.undo(log_prior)
        calibrate(log_predictions, sample_engine, workers.confusion_, shares, pull, found).apply(log_prior)
    log_prior -= log_sums(log_prior)[:, None]
    return workers, log_prior, prior


def refine(workers: WorkerModel, engine: Engine, log_prior: Floats, gold: Codes | None) -> WorkerModel:
    """Return the workers counted against the posterior that they give themselves, near the fixed point."""
    for _ in range(_REFINEMENTS):
        before = workers.confusion_
        counts = engine.sweep(floored_log(before), log_prior, gold).confusion_counts
        workers.fit_counts(counts, engine.leaning)
        if mean_total_variation(workers.confusion_, before) < _SETTLED:
            break
    return workers


def class_prior(prior: Any, picks: Floats, engine: Engine, confusion: Floats) -> Floats:
    """Return P(true label): given, uniform, the share of the model's picks, or the one that explains the labels."""
    n_classes = picks.shape[1]
    if not isinstance(prior, str):
        return np.asarray(prior, dtype=np.float64)
    if prior == "uniform":
        return np.full(n_classes, 1 / n_classes)
    if prior == "picks":
        mass = total(engine, picks.sum(axis=0))
        return np.asarray(mass / mass.sum())
    learned = np.full(n_classes, 1 / n_classes)
    log_confusion = floored_log(confusion)
    for _ in range(20):
        mass = total(engine, engine.e_step(log_confusion, np.log(learned)).posterior.sum(axis=0)) + 1.0
        learned = mass / mass.sum()
    return learned


def task_weight(
    recipe: Recipe, posterior: Floats, start: Floats, *, first: bool, engine: Engine | None = None
) -> Floats:
    """Return how much each task counts in the next fit; `start` is 1 where it has a label or gold.

    By information, 1 - H(posterior) / log K: with cross-entropy a uniform posterior is not neutral, it pulls
    predictions to uniform. Scaled to the total of `start`, so that a learner's penalty means the same in every
    round. Where no posterior says anything, the labels are all there is.
    """
    if recipe.weighting == "information":
        weight = information(posterior)
        wanted, found = total(engine, [start.sum(), weight.sum()])
        return np.asarray(weight * (wanted / found)) if found > 1e-9 else start
    return np.ones(len(posterior)) if recipe.posterior == "joint" and not first else start


def information(posterior: Floats) -> Floats:
    """Return 1 - H(posterior) / log K of every task, in [0, 1].

    >>> information(np.array([[1.0, 0.0], [0.5, 0.5]])).round(6)
    array([1., 0.])
    """
    n_classes = posterior.shape[1]
    if n_classes == 1:
        return np.ones(len(posterior))
    return np.asarray(np.clip(1 - entropy(posterior) / np.log(n_classes), 0.0, 1.0))


def with_gold(probabilities: Floats, gold: Codes | None) -> Floats:
    """Return the probabilities with known true labels one-hot."""
    if gold is None:
        return probabilities
    known = np.flatnonzero(gold >= 0)
    fixed = probabilities.copy()
    fixed[known] = np.eye(probabilities.shape[1])[gold[known]]
    return fixed
