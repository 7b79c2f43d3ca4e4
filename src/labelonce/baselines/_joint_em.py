"""EM over a classifier and the true labels together: the loop that Raykar's and Jin's methods share."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from labelonce._kernels import Engine, ScipyEngine, mean_total_variation
from labelonce._sklearn import ConvergenceWarning, clone
from labelonce._types import Codes, Floats
from labelonce._validate import check_int, check_number
from labelonce.data import Annotations, Gold, check_gold
from labelonce.learning import (
    FeaturesClassifier,
    Learner,
    SoftmaxRegression,
    check_arrays,
    check_features,
    given_learners,
    match_rows,
    take_rows,
)


@dataclass(eq=False, repr=False)
class JointEM(FeaturesClassifier, ABC):
    """Base: fit the learner to the posteriors, recompute the posteriors with its predictions, until they settle."""

    learner: Any = None
    _: KW_ONLY
    max_iter: int = 200
    tol: float = 1e-4
    classes: Any = None

    def fit(self, X: Any, y: Any, *, gold: Gold | None = None, tasks: Any = None) -> Self:
        """Fit to Annotations, a (n_tasks, n_workers) matrix or plain labels; `gold` and `tasks` as in `MBEM.fit`."""
        check_int(self.max_iter, "max_iter", 1)
        check_number(self.tol, "tol", 0.0)
        X, annotations, codes, learner = prepared(self, X, y, gold, tasks, SoftmaxRegression)
        self._run(learner, X, annotations, codes)
        self.labels_ = annotations.classes[self.posterior_.argmax(axis=1)]
        return self

    def _run(self, learner: Learner, X: Any, annotations: Annotations, gold: Codes | None) -> None:
        """Repeat M-step and E-step until the posteriors settle."""
        engine = ScipyEngine(annotations, "float64")
        labelled = np.bincount(annotations.task, minlength=annotations.n_tasks) > 0
        rows = np.flatnonzero(labelled if gold is None else labelled | (gold >= 0))
        X_rows = take_rows(X, rows)
        posterior = self._start(engine, gold)
        model: Learner = clone(learner)
        if isinstance(model, SoftmaxRegression):
            model.set_params(warm_start=True)  # from the last solution
        for number in range(self.max_iter):
            model.fit(X_rows, posterior[rows], sample_weight=np.ones(len(rows)))
            found = self._e_step(engine, model.predict_proba(X), posterior, gold)
            change = mean_total_variation(found, posterior)
            posterior, self.n_iter_ = found, number + 1
            if change <= self.tol:
                break
        else:
            warnings.warn(
                f"{type(self).__name__} stopped after max_iter={self.max_iter} iterations, of which the last changed "
                f"the posteriors by {change:.2g}, more than tol={self.tol:g}. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self.posterior_: Floats = posterior
        self.model_ = model.set_params(**learner.get_params(deep=False))

    @abstractmethod
    def _start(self, engine: Engine, gold: Codes | None) -> Floats:
        """Return the first posteriors, shape (n_tasks, n_classes), one-hot where gold is known."""

    @abstractmethod
    def _e_step(self, engine: Engine, predictions: Floats, posterior: Floats, gold: Codes | None) -> Floats:
        """Return the posteriors given the model's predictions; `posterior` is what the model was fitted to."""


def prepared(
    clf: Any, X: Any, y: Any, gold: Gold | None, tasks: Any, default: Callable[[], Any]
) -> tuple[Any, Annotations, Codes | None, Any]:
    """Return features, annotations and gold in one order, and the learner to fit; keep the ids of the rows."""
    X, annotations = match_rows(X, y, tasks, classes=clf.classes, learner=clf)
    check_arrays(clf, annotations, matrices=6)
    check_features(clf, X, reset=True)
    codes = None if gold is None else check_gold(gold, annotations)
    (given,) = given_learners([default() if clf.learner is None else clf.learner])
    clf._features = given.features.fit(X, annotations)
    clf.classes_, clf.workers_, clf.tasks_ = annotations.classes, annotations.workers, annotations.tasks
    return clf._features.transform(X), annotations, codes, given.learner
