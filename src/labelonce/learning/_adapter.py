"""From labels to probability targets, and from a scikit-learn classifier to a learner that takes them."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from labelonce._kernels import Beliefs, on_slots
from labelonce._sklearn import (
    check_classification_targets,
    check_is_fitted,
    check_weight,
    clone,
    count_rows,
    has_fit_parameter,
    is_classifier,
    select_rows,
    validate_data,
)
from labelonce._types import Codes, Floats, Ids
from labelonce._validate import check_distribution, check_int
from labelonce.data import check_memory
from labelonce.learning._learner import Learner

NEGLIGIBLE = 1e-6
"""Share of a task's weight below which a class gets no row of its own."""


def as_learner(estimator: Any) -> Learner:
    """Return a learner that takes probability targets: `estimator` itself if it does, else `RepeatedRows` of it.

    A `Pipeline` is not taken apart here, and its `fit` has no `sample_weight`: give its last step.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> as_learner(LogisticRegression())
    RepeatedRows(estimator=LogisticRegression())
    """
    if isinstance(estimator, Learner):
        return estimator
    _check_classifier(estimator)
    return RepeatedRows(estimator)


@dataclass(eq=False, repr=False)
class RepeatedRows(Learner):
    """A scikit-learn classifier that takes probability targets, as weighted repeated rows.

    A task of weight w and posterior q becomes one row for each of its most probable classes, with weight w q
    scaled to sum to w again. Where the loss is a weighted sum over rows and `top` covers all classes, that is
    exactly the loss on the probability targets.

    Parameters
    ----------
    estimator : object
        A classifier with `predict_proba` whose `fit` takes `sample_weight`; it is cloned, never changed.
    top : int
        Largest number of rows per task. The time to fit grows with it; the rest of the posterior is ignored.

    Attributes
    ----------
    classes_ : (n_classes,)
        The codes 0 .. n_classes - 1.
    seen_ : (n_seen,)
        The codes that had a row; the others get probability zero.
    estimator_ : object
        The fitted clone, trained on positions in `seen_`; None if only one class was seen.

    Notes
    -----
    Whatever counts rows instead of weights sees the copies: `min_samples_leaf` of trees, early stopping, and the
    folds of `CalibratedClassifierCV`, where copies of one task fall on both sides of a split.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> soft = np.array([[1.0, 0.0, 0.0], [0.8, 0.2, 0.0], [0.2, 0.8, 0.0], [0.0, 1.0, 0.0]])
    >>> RepeatedRows(LogisticRegression(C=10.0)).fit(X, soft).predict_proba(X).round(2)
    array([[0.95, 0.05, 0.  ],
           [0.82, 0.18, 0.  ],
           [0.18, 0.82, 0.  ],
           [0.05, 0.95, 0.  ]])
    """

    estimator: Any
    top: int = 3

    takes_slots = True

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to probability targets, shape (n_tasks, n_classes), or to `Beliefs`."""
        _check_classifier(self.estimator)
        top = check_int(self.top, "top", 1)
        X = X.tocsr() if sparse.issparse(X) else X
        few, weight = on_slots(y), check_weight(sample_weight, X)
        targets: Any = check_targets(y, count_rows(X)) if few is None else few
        task, code, amount = repeat_rows(targets, weight, top) if few is None else repeat_slots(few, weight, top)
        self.classes_ = np.arange(targets.shape[1])
        # Positions, not codes: some classifiers insist on 0 .. n - 1 without gaps.
        self.seen_, position = np.unique(code, return_inverse=True)
        self.estimator_: Any = None
        if len(self.seen_) > 1:
            rows = X if np.array_equal(task, np.arange(len(targets))) else select_rows(X, task)
            self.estimator_ = clone(self.estimator).fit(rows, position, sample_weight=amount)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return P(class | features), shape (n_tasks, n_classes)."""
        check_is_fitted(self, "seen_")
        probabilities = np.zeros((count_rows(X), len(self.classes_)))
        probabilities[:, self.seen_] = 1.0 if self.estimator_ is None else self.estimator_.predict_proba(X)
        return probabilities


def repeat_rows(targets: Floats, weight: Floats, top: int) -> tuple[Codes, Codes, Floats]:
    """Return task, class code and weight of the rows that stand for the `top` classes of each target."""
    n_tasks, n_classes = targets.shape
    kept = np.where(targets < NEGLIGIBLE, 0.0, targets)
    if top < n_classes:
        # Ties go to other classes in other rows: else every uniform posterior would vote for the same few.
        turn = (np.arange(n_classes) - np.arange(n_tasks)[:, None]) % n_classes
        order = np.argpartition(kept - 1e-9 / n_classes * turn, n_classes - top, axis=1)
        np.put_along_axis(kept, order[:, : n_classes - top], 0.0, axis=1)
    kept *= (weight / kept.sum(axis=1))[:, None]
    task, code = np.nonzero(kept)
    return task.astype(np.int32), code.astype(np.int32), kept[task, code]


def repeat_slots(targets: Beliefs, weight: Floats, top: int) -> tuple[Codes, Codes, Floats]:
    """Return the rows of `repeat_rows` for targets on slots; a task all of whose slots are negligible has none."""
    kept = np.flatnonzero(targets.probability.max(axis=1, initial=0.0) >= NEGLIGIBLE).astype(np.int32)
    task, place, weight = repeat_rows(np.asarray(targets.probability[kept], dtype=np.float64), weight[kept], top)
    return kept[task], targets.codes[kept[task], place], weight


def training_rows(estimator: Any, X: Any, y: Any, sample_weight: Any, **checks: Any) -> tuple[Any, Floats, Floats, Ids]:
    """Return features, probability targets and weights of the rows that have weight, and the classes.

    `y` is a column of labels, or probability targets whose classes are their columns. The estimator learns the
    number and the names of its features; `checks` go to scikit-learn's `validate_data`.
    """
    shape = np.asarray(y).shape
    soft = len(shape) == 2 and shape[1] > 1
    if soft:
        X = validate_data(estimator, X, **checks)
        y = check_targets(y, X.shape[0])
    else:
        X, y = validate_data(estimator, X, y, **checks)
        check_classification_targets(y)
    X, y, weight = weighted_rows(X, y, sample_weight)
    check_probabilities(estimator, len(y), y.shape[1] if soft else len(np.unique(y)))
    targets, classes = (y, np.arange(y.shape[1])) if soft else one_hot(y)
    return X, targets, weight, classes


def weighted_rows(X: Any, targets: Any, sample_weight: Any) -> tuple[Any, Any, Floats]:
    """Return features, targets and weights of the rows that have weight."""
    weight = check_weight(sample_weight, X)
    keep = np.flatnonzero(weight > 0)
    return (X, targets, weight) if len(keep) == len(weight) else (X[keep], targets[keep], weight[keep])


def check_probabilities(learner: Any, n_tasks: int, n_classes: int) -> None:
    """Raise if probabilities of every task and class do not fit into the memory, four times over in a fit."""
    check_memory(
        8.0 * 4 * n_tasks * n_classes,
        f"{type(learner).__name__} with {n_tasks:,} tasks and {n_classes:,} classes",
        "Train on fewer tasks, or by MBEM(worker_model=workers.Grouped(groups)), which keeps a few classes per task.",
    )


def check_targets(values: Any, n_rows: int) -> Floats:
    """Return probability targets of `n_rows` rows as float64."""
    values = np.asarray(values)
    shape = values.shape
    if len(shape) != 2:
        raise ValueError(f"targets must have shape (n_tasks, n_classes); got {shape}.")
    return check_distribution(values, "targets", (n_rows, shape[1]))


def one_hot(labels: Ids) -> tuple[Floats, Ids]:
    """Return labels as probability targets, and the classes that are their columns."""
    classes, code = np.unique(labels, return_inverse=True)
    targets = np.zeros((len(labels), len(classes)))
    targets[np.arange(len(labels)), code] = 1.0
    return targets, classes


def _check_classifier(estimator: Any) -> None:
    if isinstance(estimator, type):
        name = estimator.__name__
        raise TypeError(f"a learner must be an instance; got the class {name}. Write {name}().")
    name = type(estimator).__name__
    if not hasattr(estimator, "predict_proba"):
        cure = "Use a classifier, such as SoftmaxRegression()."
        if hasattr(estimator, "__sklearn_tags__") and is_classifier(estimator):
            cure = f"Use CalibratedClassifierCV({name}())."
        raise TypeError(f"a learner must have predict_proba; {name} has none. {cure}")
    if not has_fit_parameter(estimator, "sample_weight"):
        raise TypeError(
            f"a learner must take sample_weight in fit; {name} does not. "
            "Use SoftmaxRegression(), or a classifier that does, such as RandomForestClassifier()."
        )
