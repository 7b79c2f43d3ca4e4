"""Many classes: the rule by which posteriors are kept on candidates, and what the options left open stand for then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from labelonce._kernels import Factors
from labelonce._sklearn import clone
from labelonce._validate import check_rng
from labelonce.data import Annotations
from labelonce.learning._features import GivenLearner, given_learners
from labelonce.learning._fits import FRUGAL_FOLDS
from labelonce.learning._grouped_softmax import GroupedSoftmax
from labelonce.learning._plan import Plan, Settled
from labelonce.learning._rounds import N_FOLDS, Recipe
from labelonce.learning._softmax import SoftmaxRegression
from labelonce.workers import ClassWise, Full, Grouped, Known, OneCoin, WorkerModel

if TYPE_CHECKING:
    from labelonce.learning._mbem import MBEM

FEW_CLASSES = 50
_DENSE = 10**8  # probabilities of all tasks, and entries of all matrices, that dense arrays may have
_ROUNDS = 4
_HEAD = 200  # classes from which the default learner predicts the group first


def uses_candidates(worker_model: WorkerModel | None, annotations: Annotations) -> bool:
    """Return whether posteriors live on candidates: with more than 50 classes, if the workers are factors.

    `Grouped` workers and `Known` factors are. So is the default, unless workers gave so many labels that a matrix each
    can be learned: as many as it has entries. `OneCoin` and `ClassWise` are where dense arrays would be too large, with
    more than 10^8 probabilities or entries of matrices; `Full`, `Counted` and `Known` matrices never are.
    """
    n_classes = annotations.n_classes
    if n_classes <= FEW_CLASSES or not annotations.is_square:
        return False
    large = max(annotations.n_tasks * n_classes, annotations.n_workers * n_classes**2) > _DENSE
    if worker_model is None:
        typical = float(np.median(np.bincount(annotations.worker, minlength=annotations.n_workers)))
        return large or typical < n_classes**2
    if isinstance(worker_model, Known):
        return isinstance(worker_model.confusion, Factors)
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
        return Grouped()
    if isinstance(worker_model, OneCoin):
        return Grouped(rows="worker", errors="uniform")
    if isinstance(worker_model, ClassWise) and not isinstance(worker_model, Full):
        return Grouped(rows="class", errors="uniform")
    found: Grouped | Known = clone(worker_model)
    return found


def settle_candidates(options: MBEM, X: Any, annotations: Annotations) -> Settled:
    """Return the plan of a fit on candidates: nothing is tried out, since every fit is expensive."""
    workers = candidate_workers(options.worker_model)
    given = _one_learner(options.learner, workers, annotations)
    learner = given.learner
    transformed = given.features.fit(X, annotations).transform(X)
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
    seed = int(check_rng(options.random_state).integers(2**31))
    return Settled(Plan(given.whole, recipe, seed, rounds, False, []), given.features, transformed, None, [], 0)


def _one_learner(learner: Any, workers: Grouped | Known, annotations: Annotations) -> GivenLearner:
    if learner is None:
        learner = SoftmaxRegression(C=0.1, tol=1e-4)
        if annotations.n_classes >= _HEAD and isinstance(workers, Grouped) and not workers.needs_picks:
            groups = workers.prepare(annotations).groups_
            learner = learner if groups is None else GroupedSoftmax(groups, C=0.1, tol=1e-4, warm_start=True)
    given = given_learners(learner)
    if len(given) > 1:
        raise ValueError(
            f"one learner must be given where there are more than {FEW_CLASSES} classes; got {len(given)} to choose "
            f"from, and {annotations.n_classes:,} classes."
        )
    return given[0]
