"""Learners of all questions at once: their base, and a classifier per question for models without heads."""

from abc import ABC
from typing import Any, ClassVar, Self

import numpy as np

from labelonce._sklearn import check_is_fitted, clone, count_rows, select_rows
from labelonce._types import Codes, Floats
from labelonce.learning import Learner, as_learner


class Heads(Learner, ABC):
    """Base of the learners of questions: `fit` takes P(yes) and weights, both (n_tasks, n_questions)."""

    fits_questions: ClassVar[bool] = True

    def predict(self, X: Any) -> Codes:
        """Return 1 where P(yes | features) is above one half, shape (n_tasks, n_questions)."""
        return (self.predict_proba(X) > 0.5).astype(np.int32)


class PerQuestion(Heads):
    """Any classifier, fitted once for every question to probability targets.

    Parameters
    ----------
    estimator : classifier
        As the learner of `MBEM`: one that takes probability targets, or `sample_weight`.

    Attributes
    ----------
    models_ : list
        One for each question; a number where all its targets are the same.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> y = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    >>> PerQuestion(DecisionTreeClassifier(random_state=0)).fit(X, y).predict_proba(X)[:, 0]
    array([0., 0., 1., 1.])
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to targets (n_tasks, n_questions); `sample_weight` has the same shape."""
        targets = np.asarray(y, dtype=np.float64)
        weight = np.ones_like(targets) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        self.classes_ = np.arange(targets.shape[1])
        self.models_: list[Any] = [self._head(X, targets[:, q], weight[:, q]) for q in range(targets.shape[1])]
        return self

    def _head(self, X: Any, target: Floats, weight: Floats) -> Any:
        rows = np.flatnonzero(weight > 0)
        share = float((weight @ target + 0.5) / (weight.sum() + 1.0))
        if not len(rows) or target[rows].max() - target[rows].min() < 1e-9:
            return share
        both = np.stack([1 - target[rows], target[rows]], axis=1)
        return as_learner(clone(self.estimator)).fit(select_rows(X, rows), both, weight[rows])

    def is_cheap(self, X: Any, n_classes: int) -> bool:
        """Return whether fits of all questions take well below a second or so."""
        return bool(as_learner(self.estimator).is_cheap(X, 2 * n_classes))

    def predict_proba(self, X: Any) -> Floats:
        """Return P(yes | features), shape (n_tasks, n_questions)."""
        check_is_fitted(self, "models_")
        n = count_rows(X)
        columns = [np.full(n, one) if isinstance(one, float) else one.predict_proba(X)[:, 1] for one in self.models_]
        return np.stack(columns, axis=1)
