"""What we take from scikit-learn, which ships no types: the one place where that is said."""

from sklearn.base import BaseEstimator as _BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

__all__ = ["BaseEstimator", "ConvergenceWarning", "check_is_fitted"]


class BaseEstimator(_BaseEstimator):  # type: ignore[misc]
    """scikit-learn's base of estimators: parameters by name, `clone`, `set_params`."""
