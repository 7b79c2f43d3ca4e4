"""Logistic regressions on probability targets, one head per question, fitted together."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.pipeline import Pipeline, make_pipeline

from labelonce._kernels import blas_threads
from labelonce._sklearn import BaseEstimator, check_is_fitted, validate_data
from labelonce._types import Floats
from labelonce._validate import check_int, check_number
from labelonce.learning._softmax import SoftmaxRegression
from labelonce.learning._text import TEXT_C, TextFeatures

_CHECKS = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}


class SigmoidRegression(BaseEstimator):
    """A logistic regression for every question, on probability targets and a weight for each answer.

    Minimises C times the weighted sum of cross-entropies plus half the squared norm of the slopes, for all questions at
    once by L-BFGS; every question's solution is its own, that of `SoftmaxRegression`.

    Parameters
    ----------
    C : float
        Inverse strength of the penalty, above 0.
    max_iter, tol : int, float
        L-BFGS stops after `max_iter` iterations, or when no entry of the gradient per unit of weight is above `tol`.

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

    fits_questions: ClassVar[bool] = True

    def __init__(self, *, C: float = 1.0, max_iter: int = 200, tol: float = 1e-4) -> None:
        self.C = C
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, start: SigmoidRegression | None = None) -> Self:
        """Fit to targets (n_tasks, n_questions) in [0, 1]; `sample_weight` has the same shape.

        `start` is a fitted model to begin the search from.
        """
        if check_number(self.C, "C", 0.0) == 0:
            raise ValueError(f"C must be above 0; got {self.C!r}.")
        check_int(self.max_iter, "max_iter", 1)
        X = validate_data(self, X, **_CHECKS)
        targets = np.asarray(y, dtype=np.float64)
        weight = np.ones_like(targets) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if targets.ndim != 2 or targets.shape[0] != X.shape[0] or weight.shape != targets.shape:
            raise ValueError(
                f"targets and weights must have shape (n_tasks, n_questions) for {X.shape[0]} tasks; got "
                f"{targets.shape} and {weight.shape}."
            )
        first = _start(X.shape[1], targets, weight, start)
        # Every head is scaled to one unit of weight, so that the search treats rare questions like others.
        total = np.maximum(weight.sum(axis=0), 1e-12)
        arguments = (X, targets, weight / total, 1.0 / (self.C * total))
        options = {"maxiter": self.max_iter, "gtol": self.tol, "ftol": 1e-12, "maxls": 50}
        with blas_threads(X.shape[0] * X.shape[1] * targets.shape[1]):
            found = minimize(_loss, first.ravel(), args=arguments, jac=True, method="L-BFGS-B", options=options)
        coefficients = found.x.reshape(first.shape)
        self.coef_: Floats = coefficients[:-1].T
        self.intercept_: Floats = coefficients[-1]
        self.n_iter_ = int(found.nit)
        return self

    def for_one_question(self) -> SoftmaxRegression:
        """Return the same regression for one question, whose answers are two classes."""
        return SoftmaxRegression(C=self.C)

    def predict_proba(self, X: Any) -> Floats:
        """Return P(yes | features), shape (n_tasks, n_questions)."""
        check_is_fitted(self, "coef_")
        X = validate_data(self, X, reset=False, **_CHECKS)
        with blas_threads(X.shape[0] * self.coef_.size):
            scores = np.asarray(X @ self.coef_.T.astype(X.dtype), dtype=np.float64) + self.intercept_
        return np.asarray(expit(scores))

    def predict(self, X: Any) -> Any:
        """Return 1 where P(yes | features) is above one half, shape (n_tasks, n_questions)."""
        return (self.predict_proba(X) > 0.5).astype(np.int32)


def text_heads(C: Any = TEXT_C) -> list[Pipeline]:
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
    return [make_pipeline(features, SigmoidRegression(C=value)) for value in np.atleast_1d(C).tolist()]


def _start(n_features: int, targets: Floats, weight: Floats, before: SigmoidRegression | None) -> Floats:
    share = ((weight * targets).sum(axis=0) + 0.5) / (weight.sum(axis=0) + 1.0)
    first = np.zeros((n_features + 1, targets.shape[1]))
    first[-1] = logit(share)
    if before is not None and before.coef_.shape == (targets.shape[1], n_features):
        first[:-1], first[-1] = before.coef_.T, before.intercept_
    return first


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
