"""Confidence on candidates: `calibrated` of `_confidence.py` where there are many classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelonce._kernels import Candidates, CandidateSums, candidate_classes, normalise
from labelonce._sklearn import clone
from labelonce._types import Codes, Floats
from labelonce.data import Annotations
from labelonce.learning._candidate_calibration import LEAST
from labelonce.learning._candidate_predictions import candidates_out_of_fold
from labelonce.learning._candidate_rounds import TOP
from labelonce.learning._confidence import FOLDS, USUAL_TRUST, Confidence, best_trust, flattest, overlaps
from labelonce.learning._rounds import Recipe, Round, learner_of_round
from labelonce.workers._grouped import moved


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
    annotations: Annotations, predictions: Candidates, worker_model: Any, gold: Codes | None, seed: int
) -> Confidence:
    """Return the confidence that predictions by models that did not see the task, and the labels, give together.

    As `calibrated` does, on candidates: workers are counted against the picks on the other tasks.
    """
    flattened = flattest(annotations, predictions.top_class(), lambda one: sureness(predictions, one))
    workers = clone(worker_model).prepare(annotations, predictions.top_class())
    more = predictions.classes if gold is None else np.concatenate([gold[:, None], predictions.classes], axis=1)
    own = moved(predictions, candidate_classes(annotations, workers.pattern[0], more))
    log_prior = flattened * np.log(np.concatenate([own.probability, own.rest[:, None]], axis=1) + LEAST)
    log_prior[:, :-1][own.classes < 0] = -np.inf
    said = _labels_evidence(annotations, own, workers, np.random.default_rng([seed, 7]))
    trust = USUAL_TRUST
    if overlaps(annotations):
        workers.fit_tallies(CandidateSums(annotations, own.classes, *workers.pattern).m_step(_picks(own)))
        trust = best_trust(lambda one: _label_by_label(annotations, own, workers, log_prior, said, one))
    joint = log_prior + trust * said
    normalise(joint)
    posterior = Candidates(own.classes, joint[:, :-1], joint[:, -1], own.n_classes)
    return Confidence(posterior.with_gold(gold), trust, flattened)  # type: ignore[arg-type]  # as an array is


def sureness(predictions: Candidates, exponent: float) -> Floats:
    """Return the largest probability of every task when all are raised to a power."""
    inside = np.where(predictions.classes >= 0, np.maximum(predictions.probability, LEAST) ** exponent, 0.0)
    n_others = predictions.n_classes - (predictions.classes >= 0).sum(axis=1)
    total = inside.sum(axis=1) + n_others * np.maximum(predictions.each_other, 1e-12) ** exponent
    return np.asarray(inside.max(axis=1) / total)


def _labels_evidence(annotations: Annotations, own: Candidates, workers: Any, rng: np.random.Generator) -> Floats:
    """Return the log P(labels | true) of every task's candidates, its workers counted on other tasks."""
    fold = rng.permutation(annotations.n_tasks) % FOLDS
    certain = _picks(own)
    said = np.zeros((len(own), own.classes.shape[1] + 1))
    sums = CandidateSums(annotations, own.classes, *workers.pattern)
    for number in np.unique(fold):
        left_out = fold == number
        fitted = clone(workers).prepare(annotations, own.top_class())
        fitted.fit_tallies(sums.m_step(certain, (~left_out).astype(np.float64)))
        said[left_out] = sums.messages(fitted.factors_)[left_out]
    return said


def _picks(own: Candidates) -> Candidates:
    """Return the most probable candidates as if they were certain."""
    picks = np.zeros_like(own.probability)
    picks[np.arange(len(picks)), own.probability.argmax(axis=1)] = 1.0
    return Candidates(own.classes, picks, np.zeros(len(picks)), own.n_classes)


def _label_by_label(
    annotations: Annotations, own: Candidates, workers: Any, log_prior: Floats, said: Floats, trust: float
) -> Floats:
    """Return the log-likelihood of each label of tasks with several, by the other labels of its task."""
    several = np.flatnonzero(np.bincount(annotations.task, minlength=annotations.n_tasks) > 1)
    task = np.random.default_rng(0).permutation(several)[:20_000]
    one_of = np.isin(np.arange(annotations.n_tasks), task)
    rows = np.flatnonzero(one_of[annotations.task])
    return _left_one_out(annotations, rows, own, workers, log_prior, said, trust)


def _left_one_out(
    annotations: Annotations,
    rows: Any,
    own: Candidates,
    workers: Any,
    log_prior: Floats,
    said: Floats,
    trust: float,
) -> Floats:
    task = annotations.task[rows]
    alone = Annotations(
        np.arange(len(rows), dtype=np.int32),
        annotations.worker[rows],
        annotations.label[rows],
        np.arange(len(rows)),
        annotations.workers,
        annotations.classes,
    )
    sums = CandidateSums(alone, own.classes[task], *workers.pattern)
    message = sums.messages(workers.factors_)
    joint = log_prior[task] + trust * (said[task] - message)
    normalise(joint)
    return np.asarray(np.log(np.maximum((joint * np.exp(message)).sum(axis=1), 1e-300)))
