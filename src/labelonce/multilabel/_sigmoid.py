"""Logistic regressions on probability targets, one head per question, fitted together."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from scipy.special import expit, logit
from sklearn.pipeline import Pipeline, make_pipeline

from labelonce._kernels import blas_threads
from labelonce._rules import RULES
from labelonce._sklearn import check_is_fitted, validate_data
from labelonce._types import Floats
from labelonce._validate import check_int, check_positive
from labelonce.learning import TextFeatures, n_values, searched
from labelonce.multilabel._per_question import Heads

_CHECKS = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}


@dataclass(kw_only=True, eq=False, repr=False)
class SigmoidRegression(Heads):
    """A logistic regression for every question, on probability targets and a weight for each answer.

    Minimises C times the weighted sum of cross-entropies plus half the squared norm of the slopes, for all questions at
    once by L-BFGS; every question's solution is its own, that of `SoftmaxRegression`.

    Parameters
    ----------
    C : float
        Inverse strength of the penalty, above 0.
    max_iter, tol : int, float
        L-BFGS stops after `max_iter` iterations, or when no entry of the gradient per unit of weight is above `tol`.
    warm_start : bool
        Start from the coefficients of the last fit; the rounds of `MultiLabelMBEM` then start from those before.

    Attributes
    ----------
    coef_ : (n_questions, n_features)
    intercept_ : (n_questions,)

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> soft = np.array([[0.0, 1.0], [0.2, 1.0], [0.8, 0.0], [1.0, 0.0]])
    >>> SigmoidRegression(C=10.0).fit(X, soft).predict_proba(X).round(2)
    array([[0.05, 0.99],
           [0.18, 0.91],
           [0.82, 0.09],
           [0.95, 0.01]])
    """

    C: float = 1.0
    max_iter: int = 200
    tol: float = 1e-4
    warm_start: bool = False

    coef_: Floats = field(init=False)
    intercept_: Floats = field(init=False)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to targets (n_tasks, n_questions) in [0, 1]; `sample_weight` has the same shape."""
        check_positive(self.C, "C")
        check_int(self.max_iter, "max_iter", 1)
        X = validate_data(self, X, **_CHECKS)
        targets = np.asarray(y, dtype=np.float64)
        weight = np.ones_like(targets) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if targets.ndim != 2 or targets.shape[0] != X.shape[0] or weight.shape != targets.shape:
            raise ValueError(
                f"targets and weights must have shape (n_tasks, n_questions) for {X.shape[0]} tasks; got "
                f"{targets.shape} and {weight.shape}."
            )
        first = self._start(X.shape[1], targets, weight)
        # Every head is scaled to one unit of weight, so that the search treats rare questions like others.
        total = np.maximum(weight.sum(axis=0), 1e-12)
        arguments = (X, targets, weight / total, 1.0 / (self.C * total))
        options = {"maxiter": self.max_iter, "gtol": self.tol, "ftol": 1e-12, "maxls": 50}
        found = searched(_loss, first, arguments, X.shape[0] * X.shape[1] * targets.shape[1], options)
        coefficients = found.x.reshape(first.shape)
        self.coef_, self.intercept_ = coefficients[:-1].T, coefficients[-1]
        self.classes_, self.n_iter_ = np.arange(targets.shape[1]), int(found.nit)
        return self

    def _start(self, n_features: int, targets: Floats, weight: Floats) -> Floats:
        """Return the last coefficients over the last intercepts, or zeros over the log-odds of the shares of yes."""
        share = ((weight * targets).sum(axis=0) + 0.5) / (weight.sum(axis=0) + 1.0)
        first = np.zeros((n_features + 1, targets.shape[1]))
        first[-1] = logit(share)
        if self.warm_start and getattr(self, "coef_", np.zeros(0)).shape == (targets.shape[1], n_features):
            first[:-1], first[-1] = self.coef_.T, self.intercept_
        return first

    def mean_of(self, models: Sequence[Any]) -> Self:
        """Return the model with the mean coefficients."""
        mean: Self = copy(models[-1])
        mean.coef_ = np.mean([model.coef_ for model in models], axis=0)
        mean.intercept_ = np.mean([model.intercept_ for model in models], axis=0)
        return mean

    def is_cheap(self, X: Any, n_classes: int) -> bool:
        """Return whether a fit takes well below a second or so; `n_classes` is the number of heads."""
        return n_values(X) * n_classes <= RULES.cheap

    def predict_proba(self, X: Any) -> Floats:
        """Return P(yes | features), shape (n_tasks, n_questions)."""
        check_is_fitted(self, "coef_")
        X = validate_data(self, X, reset=False, **_CHECKS)
        with blas_threads(X.shape[0] * self.coef_.size):
            scores = np.asarray(X @ self.coef_.T.astype(X.dtype), dtype=np.float64) + self.intercept_
        return np.asarray(expit(scores))


def text_heads(C: Any = RULES.text_penalties) -> list[Pipeline]:
    """Return `TextFeatures` before `SigmoidRegression`, one pipeline for each penalty C, for `MultiLabelMBEM`.

    What `labelonce train --text` uses for questions; see `learning.text_model`.

    Examples
    --------
    >>> texts = ["a good film", "good acting", "a bad film", "bad acting"] * 5
    >>> features, heads = text_heads(C=10.0)[0]
    >>> X = features.fit_transform(texts)
    >>> heads.fit(X, [[1, 1], [1, 0], [0, 1], [0, 0]] * 5).predict(features.transform(["a good film"]))
    array([[1, 1]], dtype=int32)
    """
    features = TextFeatures()
    return [make_pipeline(features, SigmoidRegression(C=value, warm_start=True)) for value in np.atleast_1d(C).tolist()]


def _loss(flat: Floats, X: Any, targets: Floats, weight: Floats, penalty: Floats) -> tuple[float, Floats]:
    coefficients = flat.reshape(-1, targets.shape[1])
    slopes = coefficients[:-1]
    scores = np.asarray(X @ slopes.astype(X.dtype, copy=False), dtype=np.float64) + coefficients[-1]
    loss = float((weight * (np.logaddexp(0, scores) - targets * scores)).sum())
    error = weight * (expit(scores) - targets)
    gradient = np.empty_like(coefficients)
    gradient[:-1] = X.T @ error.astype(X.dtype, copy=False)
    gradient[:-1] += penalty * slopes
    gradient[-1] = error.sum(axis=0)
    return loss + 0.5 * float((penalty * slopes**2).sum()), gradient.ravel()
