"""Confidence on candidates: `calibrated` of `_confidence.py` where there are many classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from labelonce._kernels import Candidates, CandidateSums, candidate_classes, normalise
from labelonce._sklearn import clone
from labelonce._types import Codes, Floats
from labelonce.data import Annotations
from labelonce.learning._candidate_calibration import LEAST
from labelonce.learning._candidate_judge import CandidateJudge
from labelonce.learning._candidate_predictions import candidates_out_of_fold
from labelonce.learning._candidate_rounds import TOP
from labelonce.learning._confidence import Confidence, flattest, reconciled, rows_with_company, trust_by
from labelonce.learning._rounds import Recipe, Round, learner_of_round
from labelonce.workers._grouped import moved

_USUAL_TRUST = 0.75  # where hardly any task has two labels; more than with few classes: their group is nearly certain


def unseen_candidates(X: Any, recipe: Recipe, last: Round, seed: int) -> Candidates:
    """Return predictions on the last round's candidates by models like its own, fitted without the task."""
    if recipe.predictions == "out_of_fold":
        seen: Candidates = last.predictions
        return seen
    rng = np.random.default_rng([seed, last.number, 1])
    learner = learner_of_round(recipe.learner, last.number, last.number, rng)
    n_folds = min(recipe.learner.n_folds, recipe.n_folds)
    own = last.predictions.classes
    return candidates_out_of_fold(learner, X, last.targets, last.target_weight, own, TOP, n_folds=n_folds, rng=rng)


def calibrated_candidates(
    annotations: Annotations, predictions: Candidates, recipe: Recipe, last: Round, gold: Codes | None
) -> Confidence:
    """Return the confidence that predictions by models that did not see the task, and the labels, give together.

    With few classes such predictions are taken as they are. With many they are far too unsure: a few tasks of each
    class leave them flat, and they pick a class outside the label's group where labels are never wrong. So they are
    judged as in a round: one exponent inside the groups and one between them, found together with the workers, each
    label judged by the other labels of its worker. Groups that are to be found are found anew, by these predictions.
    The likelihoods of the labels are raised to the power `trust`, as in `calibrated`.
    """
    labels = last.posterior.top_class()
    judge = _judge(annotations, predictions, recipe, labels, gold)
    log_prior, said = judge.opinion(max(2, last.number))
    trust = trust_by(
        annotations,
        gold,
        lambda: _by_gold(judge, said, gold),
        lambda: _by_labels(judge, log_prior),
        usual=_USUAL_TRUST,
    )
    joint = log_prior + trust * said
    normalise(joint)
    posterior = reconciled_candidates(judge.sums.as_candidates(joint).with_gold(gold), labels)
    flattened = flattest(annotations, predictions.top_class(), lambda one: sureness(predictions, one))
    return Confidence(posterior, trust, flattened)  # type: ignore[arg-type]  # as an array is


def reconciled_candidates(posterior: Candidates, labels: Codes) -> Candidates:
    """Return what `reconciled` does of an array, on candidates; the labels must be among them.

    >>> sure = Candidates(np.array([[3, 1]]), np.array([[0.2, 0.6]]), np.array([0.2]), 5)
    >>> reconciled_candidates(sure, np.array([3])).probability
    array([[0.4, 0.4]])
    """
    place = (posterior.classes == labels[:, None]).argmax(axis=1)
    found = reconciled(posterior.probability, place.astype(np.int32))
    return Candidates(posterior.classes, found, posterior.rest, posterior.n_classes)


def sureness(predictions: Candidates, exponent: float) -> Floats:
    """Return the largest probability of every task when all are raised to a power."""
    inside = np.where(predictions.classes >= 0, np.maximum(predictions.probability, LEAST) ** exponent, 0.0)
    n_others = predictions.n_classes - (predictions.classes >= 0).sum(axis=1)
    total = inside.sum(axis=1) + n_others * np.maximum(predictions.each_other, 1e-12) ** exponent
    return np.asarray(inside.max(axis=1) / total)


def _judge(
    annotations: Annotations, predictions: Candidates, recipe: Recipe, labels: Codes, gold: Codes | None
) -> CandidateJudge:
    """Return the judge of the predictions, with the labels of the rounds among the candidates."""
    workers: Any = clone(recipe.worker_model).prepare(annotations, predictions.top_class())
    known = [] if gold is None else [gold[:, None]]
    own = candidate_classes(annotations, workers.pattern[0], known[0] if known else None)
    more = np.concatenate([*known, labels[:, None], predictions.classes], axis=1)
    wide = moved(predictions, candidate_classes(annotations, workers.pattern[0], more))
    refined = replace(recipe, counts="refined")
    return CandidateJudge.of(annotations, refined, gold, workers, wide, own)


def _by_gold(judge: CandidateJudge, said: Floats, gold: Any) -> Callable[[float], Floats]:
    """Return the log-probabilities of the known true labels by prediction and labels, as a function of the trust."""
    known = np.flatnonzero(gold >= 0)
    own = judge.predictions[known].classes == gold[known, None]
    log_prior = judge.log_prior(known)

    def of(trust: float) -> Floats:
        joint = log_prior + trust * said[known]
        normalise(joint)
        return np.asarray(np.log(np.maximum(joint[:, :-1][own], 1e-300)))

    return of


def _by_labels(judge: CandidateJudge, log_prior: Floats) -> Callable[[float], Floats]:
    """Return the log-likelihoods of labels by the other labels of their task, as a function of the trust."""
    annotations = judge.annotations
    rows = rows_with_company(annotations)
    task, ids = annotations.task[rows], np.arange(len(rows), dtype=np.int32)
    alone = Annotations(
        ids, annotations.worker[rows], annotations.label[rows], ids, annotations.workers, annotations.classes
    )
    sums = CandidateSums(alone, judge.predictions.classes[task], *judge.workers.pattern)
    said = sums.messages(judge.workers.factors_)
    tasks, place = np.unique(task, return_inverse=True)
    by_task = sparse.csr_array((np.ones(len(rows)), (place, ids)), shape=(len(tasks), len(rows)))
    others = (by_task @ said)[place] - said
    start, likely = log_prior[task], np.exp(said)

    def of(trust: float) -> Floats:
        joint = start + trust * others
        normalise(joint)
        return np.asarray(np.log(np.maximum((joint * likely).sum(axis=1), 1e-300)))

    return of
