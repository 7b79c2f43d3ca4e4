"""What we take from scikit-learn, which ships no types: the one place where that is said."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator as _BaseEstimator
from sklearn.base import ClassifierMixin as _ClassifierMixin
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing as select_rows
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, has_fit_parameter, validate_data
from sklearn.utils.validation import _num_samples as count_rows

__all__ = [
    "BaseEstimator",
    "ClassifierBase",
    "ConvergenceWarning",
    "check_classification_targets",
    "check_is_fitted",
    "check_weight",
    "clone",
    "count_rows",
    "has_fit_parameter",
    "is_classifier",
    "select_rows",
    "validate_data",
]


class BaseEstimator(_BaseEstimator):  # type: ignore[misc]
    """scikit-learn's base of estimators: parameters by name, `clone`, `set_params`."""


class ClassifierBase(_ClassifierMixin, _BaseEstimator):  # type: ignore[misc]
    """scikit-learn's base of classifiers, `score` by accuracy, for those that have `predict_proba`."""

    classes_: npt.NDArray[Any]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most probable class of each task."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])


def check_weight(sample_weight: Any, X: Any) -> npt.NDArray[np.float64]:
    """Return weights of the rows of X, ones by default; negative ones, or nothing but zeros, are an error."""
    weight = np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True))
    if not weight.any():  # scikit-learn says so itself from 1.9
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weight
