"""Boosted trees on probability targets, by LightGBM."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Self

import numpy as np
from scipy import sparse

from labelonce._sklearn import check_is_fitted, validate_data
from labelonce._types import Floats, Ids
from labelonce._validate import check_int, check_number, check_positive
from labelonce.learning._adapter import training_rows
from labelonce.learning._learner import Learner
from labelonce.learning._softmax import softmax

CHECKS = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": "allow-nan"}

Objective = Callable[[Floats, Any], tuple[Floats, Floats]]


@dataclass(kw_only=True, eq=False, repr=False)
class BoostedTrees(Learner):
    r"""Gradient boosted trees that take probability targets, with the softmax loss.

    LightGBM with the gradient `w * (p - q)` and the diagonal hessian `w * K / (K - 1) * p * (1 - p)` for a
    target q and a prediction p, starting from the class shares. On labels it is LightGBM's own `multiclass`
    objective; on posteriors it needs one row per task. Features may be missing (NaN).

    Parameters
    ----------
    n_estimators : int
        Boosting steps; each adds one tree per class.
    learning_rate : float
        Factor on each tree, in (0, 1]: smaller needs more steps.
    num_leaves, min_child_samples : int
        Most leaves of a tree, and fewest tasks in a leaf.
    reg_lambda : float
        Penalty on the squared value of a leaf.
    colsample_bytree : float
        Share of the features, in (0, 1], drawn for each tree.
    random_state : int
        Seed of the draw of features, and of the rows that set the bins if there are more than 200,000.
    n_jobs : int
        Threads; -1 for all. The result does not depend on it.

    Attributes
    ----------
    booster_ : lightgbm.Booster
        The trees; None if the targets have mass in one class only.
    classes_ : (n_classes,)
        The labels in order, or the columns of the targets. Rows of weight zero are not looked at.
    seen_ : (n_seen,)
        Positions of the classes with any mass in the targets; the others get probability zero.
    log_share_ : (n_seen,)
        Logs of their shares of the weight: the scores before the first tree.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    G. Ke, Q. Meng, T. Finley, T. Wang, W. Chen, W. Ma, Q. Ye and T.-Y. Liu, "LightGBM: A Highly Efficient Gradient
    Boosting Decision Tree", NIPS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat([[-2.0], [-1.0], [1.0], [2.0]], 25, axis=0)
    >>> soft = np.repeat([[1.0, 0.0], [0.8, 0.2], [0.2, 0.8], [0.0, 1.0]], 25, axis=0)
    >>> BoostedTrees().fit(X, soft).predict_proba(X[::25]).round(2)
    array([[0.93, 0.07],
           [0.87, 0.13],
           [0.13, 0.87],
           [0.07, 0.93]])
    """

    n_estimators: int = 200
    learning_rate: float = 0.05
    num_leaves: int = 15
    min_child_samples: int = 20
    reg_lambda: float = 0.0
    colsample_bytree: float = 1.0
    random_state: int = 0
    n_jobs: int = 1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to labels (n_tasks,) or to probability targets (n_tasks, n_classes)."""
        lightgbm = _lightgbm()
        n_estimators = check_int(self.n_estimators, "n_estimators", 1)
        settings = self._settings()
        X, targets, weight, classes = training_rows(self, X, y, sample_weight, **CHECKS)
        mass = weight @ targets
        self.classes_ = classes
        self.seen_: Ids = np.flatnonzero(mass)
        self.log_share_: Floats = np.log(mass[self.seen_] / weight.sum())
        self.booster_: Any = None
        if len(self.seen_) > 1:
            self._warn_if_too_few(len(targets))
            rows = lightgbm.Dataset(_old_sparse(X), init_score=np.tile(self.log_share_, (len(targets), 1)))
            settings |= {"objective": _softmax_objective(targets[:, self.seen_], weight), "num_class": len(self.seen_)}
            self.booster_ = lightgbm.train(settings, rows, num_boost_round=n_estimators)
        return self

    def _settings(self) -> dict[str, Any]:
        """Return the parameters in LightGBM's names, checked."""
        return {
            "learning_rate": check_positive(self.learning_rate, "learning_rate", 1.0),
            "num_leaves": check_int(self.num_leaves, "num_leaves", 2),
            "min_data_in_leaf": check_int(self.min_child_samples, "min_child_samples", 1),
            "lambda_l2": check_number(self.reg_lambda, "reg_lambda", 0.0),
            "feature_fraction": check_positive(self.colsample_bytree, "colsample_bytree", 1.0),
            "seed": check_int(self.random_state, "random_state", 0),
            "num_threads": max(check_int(self.n_jobs, "n_jobs", -1), 0),
            "deterministic": True,
            "force_col_wise": True,
            "feature_pre_filter": False,  # else it aborts, instead of growing no tree, where no feature can split
            "verbosity": -1,
        }

    def _warn_if_too_few(self, n_tasks: int) -> None:
        if n_tasks < 2 * self.min_child_samples:
            warnings.warn(
                f"BoostedTrees cannot split {n_tasks} tasks with min_child_samples={self.min_child_samples}, so it "
                f"predicts the class shares. Lower min_child_samples to {n_tasks // 2} or less, or use "
                "SoftmaxRegression.",
                UserWarning,
                stacklevel=3,
            )

    def predict_proba(self, X: Any) -> Floats:
        """Return P(class | features), shape (n_tasks, n_classes)."""
        check_is_fitted(self, "seen_")
        X = validate_data(self, X, reset=False, **CHECKS)
        probabilities = np.zeros((X.shape[0], len(self.classes_)))
        if self.booster_ is None:
            probabilities[:, self.seen_] = 1.0
        else:
            scores = self.booster_.predict(_old_sparse(X), raw_score=True, num_threads=max(self.n_jobs, 0))
            probabilities[:, self.seen_] = softmax(scores + self.log_share_)
        return probabilities

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if state.get("booster_") is not None:
            state["booster_"] = self.booster_.model_to_string()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if isinstance(state.get("booster_"), str):
            self.booster_ = _lightgbm().Booster(model_str=state["booster_"])


def _softmax_objective(targets: Floats, weight: Floats) -> Objective:
    """Return the gradient and hessian of the weighted cross-entropy as a function of the scores."""
    n_classes = targets.shape[1]
    column = weight[:, None]

    def objective(scores: Floats, _: Any) -> tuple[Floats, Floats]:
        probabilities = softmax(scores)
        hessian = column * (n_classes / (n_classes - 1)) * probabilities * (1 - probabilities)
        return column * (probabilities - targets), hessian

    return objective


def _old_sparse(X: Any) -> Any:
    """Return X as it is, or as a sparse *matrix*: LightGBM warns of scipy's sparse arrays."""
    return sparse.csr_matrix(X) if sparse.issparse(X) else X


def _lightgbm() -> ModuleType:
    try:
        import lightgbm
    except ImportError as error:
        raise ImportError("BoostedTrees needs LightGBM; install it with: pip install 'labelonce[boost]'.") from error
    return lightgbm
