"""The average of models that are as good as each other."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from labelonce._sklearn import check_is_fitted, clone
from labelonce._types import Floats
from labelonce.learning._learner import Learner


class AveragedModels(Learner):
    """Models whose probabilities are averaged.

    Parameters
    ----------
    models : sequence of learners
        `fit` fits copies of them all.

    Examples
    --------
    >>> import numpy as np
    >>> from labelonce import SoftmaxRegression
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
    """Return one model for several fitted ones: the mean of those whose mean is a model, or all of them together."""
    if len(models) == 1:
        return models[0]
    if all(type(model) is type(models[0]) for model in models):
        mean = models[0].mean_of(models)
        if mean is not None:
            return mean
    together = AveragedModels([clone(model) for model in models])
    together.models_, together.classes_ = list(models), models[0].classes_
    return together
