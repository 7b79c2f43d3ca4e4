"""Scores of fitted classifiers without gold, as scikit-learn asks for them."""

from typing import Any

import numpy as np

from labelonce._kernels import Beliefs, FittedConfusion, FittedFactors, confusion_of, label_likelihoods
from labelonce._messages import shorten
from labelonce._sklearn import check_is_fitted
from labelonce._types import Ids
from labelonce._validate import check_distribution
from labelonce.aggregation._base import fitted_answers
from labelonce.data import Annotations
from labelonce.data._answers import agreement
from labelonce.learning._features import FeaturesClassifier
from labelonce.learning._inputs import is_matrix, match_rows


def annotation_log_likelihood(annotations: Annotations, predictions: Any, confusion: Any) -> float:
    """Return the mean log-likelihood of annotations under a model and its workers; higher is better.

    The mean over annotations of log sum_k predictions[task, k] * confusion[worker, k, label]: how well the
    model's view of a task, seen through the worker's confusion, predicts the label that the worker gave. With
    annotations that the fit did not see it ranks fits as unseen gold would, and needs no gold.

    Parameters
    ----------
    annotations : Annotations
        Best held out: see `MBEM.score_annotations`.
    predictions : (n_tasks, n_classes)
        P(class | features) of every task.
    confusion : (n_workers, n_classes, n_answers)
        P(given | true) as [worker, true, given].

    Examples
    --------
    >>> import numpy as np, labelonce as lo
    >>> from labelonce.learning import annotation_log_likelihood
    >>> ann = lo.Annotations.from_arrays([0, 1], [0, 0], [0, 1])
    >>> sure = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> good = np.array([[[0.9, 0.1], [0.1, 0.9]]])
    >>> round(annotation_log_likelihood(ann, sure, good), 3)
    -0.198
    >>> round(annotation_log_likelihood(ann, 1 - sure, good), 3)
    -1.715
    """
    shape = (annotations.n_tasks, annotations.n_classes)
    probabilities = check_distribution(predictions, "predictions", shape)
    matrices = check_distribution(confusion, "confusion", (annotations.n_workers, shape[1], annotations.n_answers))
    return _mean_log(annotations, probabilities, confusion_of(matrices))


def _mean_log(annotations: Annotations, predictions: Any, crowd: Any) -> float:
    likelihood = label_likelihoods(annotations, Beliefs.of(predictions), crowd)
    return float(np.log(np.maximum(likelihood, 1e-300)).mean())


class AnnotationsScorer(FeaturesClassifier):
    """Base of the classifiers that know their workers, `workers_` and `confusion_`, and so can score annotations."""

    workers_: Ids
    confusion_: Any = FittedConfusion()
    factors_: Any = FittedFactors()
    _confusion: Any  # what both of them show

    @property
    def answers_(self) -> Ids:
        """The answers that the columns of `confusion_` stand for."""
        return fitted_answers(self)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return how often `predict(X)` is the label in y: true labels, a matrix of annotations, or Annotations.

        Answers that are no class do not count; on a scale each counts as it leans.
        """
        if not is_matrix(y):
            return float(super().score(X, y, sample_weight))
        check_is_fitted(self, "model_")
        X, annotations = match_rows(X, y, None, classes=self.classes_)
        agreed, total = agreement(annotations, self.predict_proba(X).argmax(axis=1))
        return agreed / max(total, 1e-300)

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
        return _mean_log(annotations, self.predict_proba(X), self._confusion)
