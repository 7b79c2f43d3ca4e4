"""Standardised features, of which a few values that are far too large destroy none."""

from typing import Any, Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.preprocessing import StandardScaler

from labelonce._rules import RULES
from labelonce._sklearn import BaseEstimator, check_is_fitted, validate_data
from labelonce._types import Floats, Mask

_MIDDLE_OF_NORMAL = 1.349  # the interquartile range of a normal variable, in standard deviations


class Standardiser(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Features with mean 0 and variance 1, as by `StandardScaler`; columns with extreme values by their middle half.

    A few values in a wrong unit, or a code such as 99999 for "missing", make the deviation of a column so large that
    all others become nearly equal. Such a column is centred by its median, divided by the deviation that its
    interquartile range tells, and clipped. All other columns are those of `StandardScaler()`, to the bit: columns that
    are zero or constant in the middle half are never taken for extreme. Missing values (NaN) stay missing.

    Attributes
    ----------
    extreme_ : bool array of shape (n_features,)
        The columns with extreme values.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.append(np.arange(100.0), 99999.0)[:, None]
    >>> Standardiser().fit_transform(X)[[0, 50, 100]].ravel().round(2)
    array([-1.35,  0.  ,  5.  ])
    """

    extreme_: Mask

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  # pipelines hand it over
        """Learn the mean and deviation of each column, and which columns have extreme values."""
        X = self._checked(X, reset=True)
        self._scaler = StandardScaler().fit(X)
        pairs = zip(X.T, np.sqrt(self._scaler.var_), strict=True)
        middles = [_middle(column, deviation) for column, deviation in pairs]
        self.extreme_ = np.array([one is not None for one in middles], dtype=bool)
        self._middles = np.array([one for one in middles if one is not None], dtype=np.float64).reshape(-1, 2)
        return self

    def transform(self, X: Any) -> Any:
        """Return the standardised features."""
        check_is_fitted(self, "extreme_")
        X = self._checked(X, reset=False)
        found = self._scaler.transform(X)
        for column, (median, deviation) in zip(np.flatnonzero(self.extreme_), self._middles, strict=True):
            most = RULES.clipped_feature
            found[:, column] = np.clip((X[:, column] - median) / deviation, -most, most)
        return found

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """Return X as floats; sparse features as they are, which `StandardScaler` refuses."""
        kinds, formats = [np.float64, np.float32, np.float16], ["csr", "csc"]
        return validate_data(self, X, dtype=kinds, accept_sparse=formats, ensure_all_finite="allow-nan", reset=reset)


def _middle(column: Floats, deviation: float) -> tuple[float, float] | None:
    """Return the median of a column and the deviation that its middle half tells, None if it has no extreme values.

    The largest |z| would not tell: among a share p of equal codes it is at most the square root of (1 - p) / p.
    """
    if not deviation > 0:
        return None
    times, most = RULES.extreme_feature
    low, median, high = np.nanquantile(column.astype(np.float64), (0.25, 0.5, 0.75)).tolist()
    own = (high - low) / _MIDDLE_OF_NORMAL
    rounding = 10 * np.finfo(column.dtype).eps * max(abs(low), abs(high))
    if own <= rounding or deviation <= times * own:
        return None
    far = np.abs(column - median) > RULES.clipped_feature * own
    return (median, own) if far.mean() <= most else None
