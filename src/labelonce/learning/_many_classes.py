"""Many classes: the rule by which posteriors are kept on candidates, and what the options left open stand for then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from labelonce._kernels import Factors
from labelonce._memory import is_large
from labelonce._sklearn import clone
from labelonce._validate import check_rng
from labelonce.data import Annotations
from labelonce.learning._candidate_predictions import predict_candidates
from labelonce.learning._candidate_rounds import vote_candidates
from labelonce.learning._features import DEFAULT_C, GivenLearner, given_learners
from labelonce.learning._fits import FRUGAL_FOLDS, FitLog, counting
from labelonce.learning._grouped_softmax import GroupedSoftmax
from labelonce.learning._predict import fit_to_rows, take_rows
from labelonce.learning._rounds import N_FOLDS, Recipe
from labelonce.learning._schedule import Schedule, Settled
from labelonce.learning._softmax import SoftmaxRegression
from labelonce.workers import ClassWise, Full, Grouped, Known, OneCoin, WorkerModel
from labelonce.workers._groups import labels_tell_groups

if TYPE_CHECKING:
    from labelonce.learning._mbem import MBEM

FEW_CLASSES = 50
_LABELS_PER_CLASS = 200  # in all, from which groups can be found
_LABELS_PER_ROW = 10  # of a worker's matrix, mean over workers and classes, that are enough to estimate it
_ROUNDS = 4
_HEAD = 200  # classes from which the default learner predicts the group first
_ENOUGH_TASKS = 50_000  # to choose a learner by


def uses_candidates(worker_model: WorkerModel | None, annotations: Annotations) -> bool:
    """Return whether posteriors live on candidates: with more than 50 classes, if the workers are factors.

    `Grouped` workers and `Known` factors are; with fewer classes only `Grouped` ones whose groups are to be found,
    which counts alone do not tell. So are `OneCoin` and `ClassWise` where dense arrays would be too large (`is_large`);
    `Full`, `Counted` and `Known` matrices never are. The default is what the data can bear: a matrix per worker
    (`Full`) where there are labels enough for its rows, or too few of a class to tell whom it is taken for, that is
    fewer than two hundred, and tasks with several labels do not tell either; else groups that are found.
    """
    n_classes = annotations.n_classes
    if not annotations.is_square:
        return False
    if n_classes <= FEW_CLASSES:
        return isinstance(worker_model, Grouped) and worker_model.finds_groups
    large = is_large(annotations.n_tasks, annotations.n_workers, n_classes)
    if isinstance(worker_model, Known):
        return isinstance(worker_model.confusion, Factors)
    if worker_model is None:
        too_few = len(annotations) < _LABELS_PER_ROW * annotations.n_workers * n_classes
        tell = len(annotations) >= _LABELS_PER_CLASS * n_classes or labels_tell_groups(annotations)
        return large or (too_few and tell)
    if isinstance(worker_model, OneCoin) or type(worker_model) is ClassWise:
        return large
    return isinstance(worker_model, Grouped)


def candidate_workers(worker_model: WorkerModel | None) -> Grouped | Known:
    """Return the worker model that a given one is on candidates.

    >>> from labelonce import workers
    >>> candidate_workers(workers.ClassWise())
    Grouped(errors='uniform', rows='class')
    """
    if worker_model is None:
        return Grouped("auto")
    if isinstance(worker_model, OneCoin):
        return Grouped(rows="worker", errors="uniform")
    if isinstance(worker_model, ClassWise) and not isinstance(worker_model, Full):
        return Grouped(rows="class", errors="uniform")
    found: Grouped | Known = clone(worker_model)
    return found


def settle_candidates(options: MBEM, X: Any, annotations: Annotations) -> Settled:
    """Return the schedule of a fit on candidates: of several learners the one that predicts held-out labels best.

    Nothing else is tried out, since every fit is expensive.
    """
    workers, log = candidate_workers(options.worker_model), FitLog()
    givens = _learners(options.learner, workers, annotations)
    features = [given.features.fit(X, annotations).transform(X) for given in givens]
    seed = int(check_rng(options.random_state).integers(2**31))
    with counting(log):
        scores = _held_out_scores([given.learner for given in givens], features, annotations, seed)
    best = int(np.argmax(scores))
    given, transformed = givens[best], features[best]
    learner = given.learner
    how = learner.auto.get("predictions", "auto") if options.predictions == "auto" else options.predictions
    if how == "auto":
        how = "in_sample" if isinstance(learner, SoftmaxRegression | GroupedSoftmax) else "out_of_fold"
    rounds = learner.auto.get("rounds", _ROUNDS) if options.rounds == "auto" else options.rounds
    n_folds = N_FOLDS if learner.is_cheap(transformed, annotations.n_classes) else FRUGAL_FOLDS
    where: dict[str, Any] = {"engine": options.engine, "device": options.device, "n_folds": n_folds}
    kind = "joint" if options.posterior == "auto" else options.posterior
    recipe = Recipe(
        learner, workers, how, options.counts, kind, options.weighting, options.prior, **where, candidates=True
    )
    rows = enumerate(zip(givens, scores, strict=True)) if len(givens) > 1 else ()
    used = {"predictions": how, "posterior": kind}
    table = [
        {"learner": one.learner} | used | {"held_out_scores": [score], "near_best": [number == best]}
        for number, (one, score) in rows
    ]
    schedule = Schedule(given.whole, recipe, seed, rounds, False, [])
    return Settled(schedule, given.features, transformed, [], table, log.number)


def _learners(learner: Any, workers: Grouped | Known, annotations: Annotations) -> list[GivenLearner]:
    """Return what `learner` stands for; by default softmax regressions, of groups first where there are groups."""
    if learner is None and annotations.n_classes >= _HEAD and isinstance(workers, Grouped) and not workers.needs_picks:
        groups = workers.prepare(annotations).groups_
        if groups is not None:
            learner = [GroupedSoftmax(groups, C=C, tol=1e-4, warm_start=True) for C in DEFAULT_C]
    return given_learners(learner)


def _held_out_scores(learners: list[Any], features: list[Any], annotations: Annotations, seed: int) -> list[float]:
    """Return the mean log-probability of labels that learners were not fitted to, of a draw of tasks."""
    if len(learners) == 1:
        return [0.0]
    targets, weight = vote_candidates(annotations, None)
    tasks = np.random.default_rng([seed, 0]).permutation(np.flatnonzero(weight))[:_ENOUGH_TASKS]
    held, seen = np.sort(tasks[: len(tasks) // 5]), np.sort(tasks[len(tasks) // 5 :])
    scores = []
    for learner, X in zip(learners, features, strict=True):
        model = fit_to_rows(learner, X, targets, weight, seen)
        found = predict_candidates(model, take_rows(X, held), targets.classes[held], 1)
        there = targets.classes[held] >= 0
        said = np.log(np.maximum(found.probability[:, : there.shape[1]], 1e-10))
        scores.append(float((targets.probability[held] * np.where(there, said, 0.0)).sum(axis=1).mean()))
    return scores
