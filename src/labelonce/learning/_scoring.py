"""Scores of fitted classifiers without gold, as scikit-learn asks for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelonce._kernels import ConfusionOnRequest, Factors
from labelonce._messages import shorten
from labelonce._sklearn import check_is_fitted
from labelonce._types import Floats, Ids
from labelonce.aggregation._base import fitted_answers
from labelonce.data import Annotations
from labelonce.learning._features import FeaturesClassifier
from labelonce.learning._inputs import is_matrix, match_rows
from labelonce.learning._selection import annotation_log_likelihood


class AnnotationsScorer(FeaturesClassifier):
    """Base of the classifiers that know their workers, `workers_` and `confusion_`, and so can score annotations."""

    workers_: Ids
    confusion_: Any = ConfusionOnRequest()

    @property
    def answers_(self) -> Ids:
        """The answers that the columns of `confusion_` stand for."""
        return fitted_answers(self)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on true labels, or the mean log-likelihood of annotations (a matrix or Annotations).

        The second needs no gold, so `GridSearchCV` and `cross_val_score` can choose by it.
        """
        if is_matrix(y):
            return self.score_annotations(X, y)
        return float(super().score(X, y, sample_weight))

    def score_annotations(self, X: Any, y: Any, *, tasks: Any = None) -> float:
        """Return `annotation_log_likelihood` of annotations by the same workers, on these or other tasks.

        `tasks` are the task ids of the rows of X, as in `MBEM.fit`.
        """
        check_is_fitted(self, "model_")
        square = np.array_equal(self.answers_, self.classes_)
        X, annotations = match_rows(X, y, tasks, classes=self.classes_, learner=self if square else None)
        if not np.array_equal(annotations.answers, self.answers_):
            raise ValueError(
                f"annotations must have the answers of the fit, {shorten(self.answers_)}; got "
                f"{shorten(annotations.answers)}. Declare them with answers=..."
            )
        if not np.array_equal(annotations.workers, self.workers_):
            raise ValueError(
                f"annotations must have the {len(self.workers_)} workers of the fit, {shorten(self.workers_)}; "
                f"got {annotations.n_workers}, {shorten(annotations.workers)}."
            )
        if "factors_" in vars(self):
            return factor_log_likelihood(annotations, self.predict_proba(X), self.factors_)
        return annotation_log_likelihood(annotations, self.predict_proba(X), self.confusion_)


def factor_log_likelihood(annotations: Annotations, predictions: Floats, factors: Factors) -> float:
    """Return `annotation_log_likelihood` under workers without matrices; a block of annotations is looked at a time."""
    step, total = max(1, 10**6 // factors.n_classes), 0.0
    for start in range(0, len(annotations), step):
        rows = slice(start, start + step)
        worker, label = annotations.worker[rows, None], annotations.label[rows, None]
        given = factors.probability(worker, np.arange(factors.n_classes, dtype=np.int32), label)
        likelihood = np.einsum("ak,ak->a", predictions[annotations.task[rows]], given)
        total += float(np.log(np.maximum(likelihood, 1e-300)).sum())
    return total / max(1, len(annotations))
