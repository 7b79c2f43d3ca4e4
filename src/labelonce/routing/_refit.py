"""A refit: all beliefs and workers anew, from all answers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from labelonce._kernels import Beliefs, floored_log
from labelonce._sklearn import clone
from labelonce._types import Floats, Ids
from labelonce.aggregation import Aggregator, DawidSkene, RedundancyWarning
from labelonce.baselines import AssignmentWarning
from labelonce.data import Annotations, _ids
from labelonce.learning import MBEM, DoubtWarning, default_workers
from labelonce.learning._scoring import AnnotationsScorer
from labelonce.routing._state import State, known_rows

Estimator = Aggregator | AnnotationsScorer


def estimator_of(learner: Any, X: Any) -> Estimator:
    """Return what a refit fits: what is given, MBEM around a classifier, or a default with features or without."""
    if isinstance(learner, AnnotationsScorer) and X is None:
        raise ValueError(f"{type(learner).__name__} must have features; got X=None. Give the router X.")
    if isinstance(learner, Estimator):
        return learner
    if X is None:
        if learner is not None:
            raise ValueError(f"learner must have features; got {learner!r} and X=None. Give the router X.")
        return DawidSkene()
    return MBEM(learner)


def refit(state: State, estimator: Estimator, tables: tuple[Ids, list[Any], Ids], temperature: float) -> Any:
    """Fit all answers, replace the beliefs, the predictions and the workers, and return the fitted estimator."""
    tasks, workers, classes = tables
    annotations = Annotations(*state.rows(), tasks, _ids.table_of(workers, "workers"), classes)
    known = np.flatnonzero(state.gold >= 0)
    gold = dict(zip(tasks[known].tolist(), classes[state.gold[known]].tolist(), strict=True)) or None
    with warnings.catch_warnings():
        # The labels that these ask for are what the router is about to buy.
        for category in (RedundancyWarning, AssignmentWarning, DoubtWarning):
            warnings.simplefilter("ignore", category)
        rows = (annotations,) if state.X is None else (state.X, annotations)
        model: Any = clone(estimator).fit(*rows, gold=gold, **_known_before(state, estimator, annotations))
    posterior = Beliefs.of(model.posterior_).to_dense()
    state.belief.replace(softened(known_rows(posterior, state.gold), temperature, state))
    state.predictions = Beliefs.of(getattr(model, "predictions_", posterior)).to_dense().astype(np.float32)
    labelled = np.unique(annotations.worker)
    state.know_workers(np.asarray(model.confusion_), np.asarray(model.confusion_[labelled].mean(axis=0)))
    state.n_fitted = len(state.task)
    return model


def _known_before(state: State, estimator: Estimator, annotations: Annotations) -> dict[str, Any]:
    """Return what a fit may start from: the workers of the last one; nothing where it takes nothing.

    The rounds of `MBEM` start from vote fractions otherwise, in which those who guess are the majority where they are
    sent to the same tasks; the few rounds of a refit are not enough to find out.
    """
    if not isinstance(estimator, MBEM) or not state.n_fitted:
        return {}
    workers = default_workers(annotations) if estimator.worker_model is None else estimator.worker_model
    if workers.uses_slots(annotations):
        return {}
    return {"confusion": np.stack([state.confusion_of(worker) for worker in range(annotations.n_workers)])}


def softened(posterior: Floats, temperature: float, state: State) -> Floats:
    """Return log-posteriors divided by the temperature: a posterior is too sure of tasks that it chose itself."""
    logs = floored_log(posterior)
    logs[state.gold < 0] /= temperature
    return logs
