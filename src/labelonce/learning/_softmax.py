"""Softmax regression on probability targets: the default learner."""

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from labelonce._kernels import Beliefs, blas_threads, on_slots
from labelonce._rules import RULES
from labelonce._sklearn import ClassifierBase, ConvergenceWarning, check_is_fitted, validate_data
from labelonce._types import Floats, Ids
from labelonce._validate import check_int, check_number, check_positive
from labelonce.learning._adapter import training_rows, weighted_rows
from labelonce.learning._learner import Learner
from labelonce.learning._slot_softmax import Loss, fit_slots, searched
from labelonce.learning._threads import n_values

CHECKS = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}


@dataclass(kw_only=True, eq=False, repr=False)
class SoftmaxModel(ClassifierBase):
    """Base of the linear models with a softmax: their options, the search for the coefficients, and predictions."""

    C: float = 1.0
    max_iter: int = 500
    tol: float = 1e-5
    warm_start: bool = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check(self) -> None:
        check_positive(self.C, "C")
        check_int(self.max_iter, "max_iter", 1)
        check_number(self.tol, "tol", 0.0)

    def _penalty(self, n_classes: int, total: float) -> float:
        """Return the factor on half the squared norm of the slopes, per unit of weight."""
        return (2.0 if n_classes == 2 else 1.0) / (self.C * total)

    def _start(self, n_features: int, classes: Ids, mass: Floats) -> Floats:
        """Return the last coefficients over the last intercepts, or zeros over the logs of the class shares."""
        start = np.zeros((n_features + 1, len(classes)))
        np.log(mass, out=start[-1], where=mass > 0)
        same = self.warm_start and hasattr(self, "coef_") and self.coef_.shape == (len(classes), n_features)
        if same and np.array_equal(self.classes_, classes):
            start[:-1] = self.coef_.T
            start[-1] = np.where(np.isfinite(self.intercept_), self.intercept_, start[-1])
        return start

    def _minimise(self, loss: Loss, arguments: tuple[Any, ...], start: Floats, classes: Ids, seen: Ids) -> None:
        """Find the coefficients of the classes that were seen, by L-BFGS, and keep them."""
        options = {"maxiter": self.max_iter, "gtol": self.tol, "ftol": 64 * np.finfo(np.float64).eps, "maxls": 50}
        X = arguments[0]
        found = searched(loss, start, arguments, X.shape[0] * X.shape[1] * len(seen), options)
        coefficients = found.x.reshape(-1, len(seen))
        self.classes_ = classes
        self.coef_: Floats = np.zeros((len(classes), len(coefficients) - 1))
        self.coef_[seen] = coefficients[:-1].T
        self.intercept_: Floats = np.full(len(classes), -np.inf)
        self.intercept_[seen] = coefficients[-1] - coefficients[-1].mean()
        self.n_iter_ = int(found.nit)
        steepest = np.abs(found.jac).max()
        if not found.success and steepest > self.tol:
            warnings.warn(
                f"{type(self).__name__} stopped after {found.nit} iterations with a gradient of {steepest:.2g}, above "
                f"tol={self.tol:g}. Scale the features, or raise max_iter={self.max_iter} or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def decision_function(self, X: Any) -> Floats:
        """Return log-probabilities up to a constant, shape (n_tasks, n_classes); one column if binary."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, X: Any) -> Floats:
        """Return P(class | features), shape (n_tasks, n_classes)."""
        scores = self._scores(X)
        return softmax(scores, out=scores)

    def predict(self, X: Any) -> Ids:
        """Return the most probable class of each task."""
        best = self._scores(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self, "coef_")
        X = validate_data(self, X, reset=False, **CHECKS)
        with blas_threads(X.shape[0] * self.coef_.size):
            scores = np.asarray(X @ self.coef_.T.astype(X.dtype), dtype=np.float64)
        scores += self.intercept_
        return scores


class SoftmaxRegression(SoftmaxModel, Learner):
    """Multinomial logistic regression that takes probability targets.

    Minimises C times the weighted sum of cross-entropies plus half the squared norm of the slopes, by L-BFGS; the
    intercept is not penalised. With hard labels it equals scikit-learn's `LogisticRegression`; with posteriors it needs
    one row per task, while `LogisticRegression` needs a weighted copy of the row for every class. With two classes
    both penalise the one vector that tells them apart, the difference of the two rows of `coef_`.

    Parameters
    ----------
    C : float
        Inverse strength of the penalty, above 0, as in scikit-learn: smaller is stronger.
    max_iter, tol : int, float
        L-BFGS stops after `max_iter` iterations, or when no entry of the gradient per unit of weight is above
        `tol`.
    warm_start : bool
        Start from the coefficients of the last fit if it had the same classes and features.

    Attributes
    ----------
    coef_ : (n_classes, n_features)
        Slopes of the log-probabilities; zero for a class without any mass in the targets.
    intercept_ : (n_classes,)
        Minus infinity for a class without any mass in the targets: its probability is zero.
    classes_ : (n_classes,)
        The labels in order, or the columns of the targets. Rows of weight zero are not looked at.
    n_iter_ : int
        Iterations of L-BFGS.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> soft = np.array([[1.0, 0.0], [0.8, 0.2], [0.2, 0.8], [0.0, 1.0]])
    >>> SoftmaxRegression(C=10.0).fit(X, soft).predict_proba(X).round(2)
    array([[0.95, 0.05],
           [0.82, 0.18],
           [0.18, 0.82],
           [0.05, 0.95]])
    """

    takes_slots = True

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to labels (n_tasks,), to probability targets (n_tasks, n_classes) or to `Beliefs`."""
        self._check()
        few = on_slots(y)
        if few is not None:
            return self._fit_slots(X, few, sample_weight)
        X, targets, weight, classes = training_rows(self, X, y, sample_weight, **CHECKS)
        mass = weight @ targets
        seen = np.flatnonzero(mass)
        if len(seen) < len(classes):
            targets = targets[:, seen]
        arguments = (X, targets, (weight / weight.sum())[:, None], self._penalty(len(seen), weight.sum()))
        self._minimise(loss_and_gradient, arguments, self._start(X.shape[1], classes, mass)[:, seen], classes, seen)
        return self

    def _fit_slots(self, X: Any, targets: Beliefs, sample_weight: Any) -> Self:
        """Fit in blocks of tasks; a class without any mass keeps the probability that the rest gives it."""
        X = validate_data(self, X, **CHECKS)
        X, targets, weight = weighted_rows(X, targets, sample_weight)
        classes = np.arange(targets.n_classes)
        mass = np.maximum(targets.class_counts(weight), 1e-3)
        warm = self.warm_start and getattr(self, "coef_", np.zeros(0)).shape == (len(classes), X.shape[1])
        start = self._start(X.shape[1], classes, mass)
        penalty = self._penalty(len(classes), float(weight.sum()))
        options: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol, "warm": warm}
        found, self.n_iter_ = fit_slots(X, targets, weight, penalty, start, **options)
        self.classes_, self.coef_ = classes, found[:-1].T.copy()
        self.intercept_ = found[-1] - found[-1].mean()
        return self

    def mean_of(self, models: Sequence[Any]) -> Self | None:
        """Return the model with the mean coefficients: the geometric mean of the probabilities."""
        mean: Self = copy(models[-1])
        intercepts = np.stack([model.intercept_ for model in models])
        n_finite = np.isfinite(intercepts).sum(axis=0)
        sums = np.where(np.isfinite(intercepts), intercepts, 0.0).sum(axis=0)
        mean.coef_ = np.mean([model.coef_ for model in models], axis=0)
        mean.intercept_ = np.where(n_finite > 0, sums / np.maximum(n_finite, 1), -np.inf)
        return mean

    def is_cheap(self, X: Any, n_classes: int) -> bool:
        """Return whether a fit takes well below a second or so: by the values in X times the classes."""
        return n_values(X if hasattr(X, "shape") else np.asarray(X)) * n_classes <= RULES.cheap


def softmax(scores: Floats, out: Floats | None = None) -> Floats:
    """Return the probabilities of scores (n_tasks, n_classes); in the array `out` if there is one."""
    odds: Floats = np.subtract(scores, scores.max(axis=1, keepdims=True), out=out)
    np.exp(odds, out=odds)
    odds /= odds.sum(axis=1, keepdims=True)
    return odds


def loss_and_gradient(flat: Floats, X: Any, targets: Floats, weight: Floats, penalty: float) -> tuple[float, Floats]:
    """Return the loss per unit of weight and its gradient; one array of shape (n_tasks, n_classes) is made."""
    coefficients = flat.reshape(-1, targets.shape[1])
    slopes = coefficients[:-1]
    # Only the products with X are in its precision: the line search stalls on the noise of a float32 loss.
    scores = np.asarray(X @ slopes.astype(X.dtype, copy=False), dtype=np.float64)
    scores += coefficients[-1]
    scores -= scores.max(axis=1, keepdims=True)
    fit = np.einsum("ik,ik->i", targets, scores)
    np.exp(scores, out=scores)
    norm = scores.sum(axis=1, keepdims=True)
    loss = float(weight[:, 0] @ (np.log(norm[:, 0]) - fit))
    scores /= norm
    scores -= targets
    scores *= weight
    gradient = np.empty_like(coefficients)
    gradient[:-1] = X.T @ scores.astype(X.dtype, copy=False)
    gradient[:-1] += penalty * slopes
    gradient[-1] = scores.sum(axis=0)
    return loss + 0.5 * penalty * float(np.vdot(slopes, slopes)), gradient.ravel()
