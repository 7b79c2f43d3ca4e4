"""Calibration of a model that was trained on chosen tasks, by tasks that were labelled at random."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from labelonce._kernels import Beliefs, floored_log
from labelonce._types import Codes, Floats
from labelonce.learning import MBEM
from labelonce.routing._state import State

_RANGE = (-1.2, 1.6)  # of the exponent's logarithm: between 0.3 and 5
_PRIOR = 0.5  # standard deviation of the exponent's logarithm


def sharpened(predictions: Floats, exponent: float) -> Floats:
    """Return predictions to the power of the exponent, normalised; above 1 it sharpens.

    >>> sharpened(np.array([[0.6, 0.4]]), 2.0).round(2)
    array([[0.69, 0.31]])
    """
    logs = exponent * floored_log(np.asarray(predictions, dtype=np.float64))
    return np.asarray(np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)))


def exponent_of(model: Any, state: State, sample: Codes) -> float:
    """Return the exponent with which the model's predictions explain the labels of the sample best.

    The predictions are by models that did not see the task. Few labels say little: the exponent's logarithm is
    normally distributed around 0 before they are looked at. 1 where there is no model, or none of `MBEM`.
    """
    if not isinstance(model, MBEM) or not len(sample):
        return 1.0
    log_predictions = floored_log(Beliefs.of(model.predictions_)[sample].to_dense())
    said = labels_evidence(state, sample)

    def loss(log_exponent: float) -> float:
        logs = np.exp(log_exponent) * log_predictions
        logs -= np.logaddexp.reduce(logs, axis=1, keepdims=True)
        prior = (log_exponent / _PRIOR) ** 2 / 2
        return float(prior - np.logaddexp.reduce(logs + said, axis=1).sum())

    return float(np.exp(minimize_scalar(loss, bounds=_RANGE, method="bounded").x))


def labels_evidence(state: State, tasks: Codes) -> Floats:
    """Return the log-likelihood of all labels of each of the tasks, by true class."""
    evidence = np.zeros((state.n_tasks, state.n_classes))
    for task, worker, label in zip(*(one.tolist() for one in state.rows(state.n_fitted)), strict=True):
        evidence[task] += state.log_chances(worker, label)
    return evidence[tasks]
