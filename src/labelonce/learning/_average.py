"""The average of models that are as good as each other."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from labelonce._sklearn import check_is_fitted, clone
from labelonce._types import Floats
from labelonce.learning._learner import Learner
from labelonce.learning._softmax import SoftmaxRegression


class AveragedModels(Learner):
    """Models whose probabilities are averaged.

    Parameters
    ----------
    models : sequence of learners
        `fit` fits copies of them all.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[-1.0], [1.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> AveragedModels([SoftmaxRegression(C=0.1), SoftmaxRegression(C=10.0)]).fit(X, y).predict_proba(X[:1]).round(2)
    array([[0.71, 0.29]])
    """

    def __init__(self, models: Sequence[Any]) -> None:
        self.models = models

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit every model to labels or to probability targets."""
        self.models_ = [clone(model).fit(X, y, sample_weight) for model in self.models]
        self.classes_ = self.models_[0].classes_
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return P(class | features), shape (n_tasks, n_classes)."""
        check_is_fitted(self, "classes_")
        return np.asarray(sum(model.predict_proba(X) for model in self.models_) / len(self.models_))


def average_models(models: Sequence[Learner]) -> Learner:
    """Return one model for several fitted ones.

    Softmax regressions become one, with the means of their coefficients: the geometric mean of their probabilities.
    """
    if len(models) == 1:
        return models[0]
    if not all(type(model) is SoftmaxRegression for model in models):
        together = AveragedModels([clone(model) for model in models])
        together.models_, together.classes_ = list(models), models[0].classes_
        return together
    mean = copy.copy(models[-1])
    intercepts = np.stack([model.intercept_ for model in models])
    n_finite = np.isfinite(intercepts).sum(axis=0)
    sums = np.where(np.isfinite(intercepts), intercepts, 0.0).sum(axis=0)
    mean.coef_ = np.mean([model.coef_ for model in models], axis=0)
    mean.intercept_ = np.where(n_finite > 0, sums / np.maximum(n_finite, 1), -np.inf)
    return mean
