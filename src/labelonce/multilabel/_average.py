"""The average of heads that held-out answers cannot tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit, logit

from labelonce._sklearn import BaseEstimator, check_is_fitted, clone
from labelonce._types import Floats
from labelonce.multilabel._sigmoid import SigmoidRegression

_CERTAIN = 1e-6


class AveragedHeads(BaseEstimator):
    """Models of all questions whose log-odds are averaged.

    Parameters
    ----------
    models : sequence of learners
        `fit` fits copies of them all.

    Examples
    --------
    >>> X, y = np.array([[-1.0], [1.0]]), np.array([[0.0], [1.0]])
    >>> AveragedHeads([SigmoidRegression(C=0.1), SigmoidRegression(C=10.0)]).fit(X, y).predict_proba(X[:1]).round(2)
    array([[0.25]])
    """

    fits_questions: ClassVar[bool] = True

    def __init__(self, models: Sequence[Any]) -> None:
        self.models = models

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit every model to targets (n_tasks, n_questions); `sample_weight` has the same shape."""
        self.models_ = [clone(model).fit(X, y, sample_weight) for model in self.models]
        return self

    def for_one_question(self) -> list[Any]:
        """Return the models for one question, from which `MBEM` chooses."""
        return [model.for_one_question() for model in self.models]

    def predict_proba(self, X: Any) -> Floats:
        """Return P(yes | features), shape (n_tasks, n_questions)."""
        check_is_fitted(self, "models_")
        return mean_probability([model.predict_proba(X) for model in self.models_])


def average_heads(models: Sequence[Any]) -> Any:
    """Return one model for several fitted ones; regressions become one with the means of their coefficients."""
    if len(models) == 1:
        return models[0]
    if not all(type(model) is SigmoidRegression for model in models):
        together = AveragedHeads([clone(model) for model in models])
        together.models_ = list(models)
        return together
    mean = clone(models[0])
    mean.coef_ = np.mean([model.coef_ for model in models], axis=0)
    mean.intercept_ = np.mean([model.intercept_ for model in models], axis=0)
    mean.n_features_in_, mean.n_iter_ = models[0].n_features_in_, max(model.n_iter_ for model in models)
    return mean


def mean_probability(probabilities: Sequence[Floats]) -> Floats:
    """Return the probabilities whose log-odds are the mean of those given; what all agree on for sure stays sure."""
    if len(probabilities) == 1:
        return probabilities[0]
    together = np.stack(probabilities)
    mean = expit(logit(np.clip(together, _CERTAIN, 1 - _CERTAIN)).mean(axis=0))
    sure = np.isin(together, (0.0, 1.0)).all(axis=0) & (together == together[0]).all(axis=0)
    return np.asarray(np.where(sure, together[0], mean))
