"""Losses corrected for known label noise: the unbiased (backward) loss and the more stable forward loss."""

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse

from labelonce._sklearn import validate_data
from labelonce._types import Floats
from labelonce._validate import check_distribution
from labelonce.aggregation import DoubtWarning
from labelonce.data import Annotations
from labelonce.learning import Loss, SoftmaxModel, check_arrays, match_rows
from labelonce.learning._softmax import CHECKS, loss_and_gradient, softmax

LARGE_WEIGHT = 10.0  # a label that counts ten times, or minus ten: one mistake outweighs ten tasks


@dataclass(eq=False, repr=False)
class CorrectedSoftmax(SoftmaxModel):
    """Base: softmax regression on annotations with a loss that knows the workers."""

    confusion: Any

    def fit(self, X: Any, y: Any, *, tasks: Any = None) -> Self:
        """Fit to Annotations or a (n_tasks, n_workers) matrix; `tasks` as in `MBEM.fit`."""
        self._check()
        X, annotations = match_rows(X, y, tasks, learner=self)
        check_arrays(self, annotations, matrices=1)
        X = validate_data(self, X, **CHECKS)
        classes = annotations.classes
        loss, arguments = self._objective(X, annotations, self._matrices(annotations))
        penalty = self._penalty(len(classes), len(annotations))
        start = self._start(X.shape[1], classes, np.ones(len(classes)))
        self._minimise(loss, (*arguments, penalty), start, classes, np.arange(len(classes)))
        return self

    def _matrices(self, annotations: Annotations) -> Floats:
        """Return every worker's matrix; one given matrix is everybody's."""
        n_classes = annotations.n_classes
        given = np.asarray(self.confusion, dtype=np.float64)
        if given.ndim == 2:
            shared = check_distribution(given, "confusion", (n_classes, n_classes))
            return np.broadcast_to(shared, (annotations.n_workers, n_classes, n_classes))
        return check_distribution(given, "confusion", (annotations.n_workers, n_classes, n_classes))

    @abstractmethod
    def _objective(self, X: Any, annotations: Annotations, confusion: Floats) -> tuple[Loss, tuple[Any, ...]]:
        """Return a function of coefficients that gives loss and gradient, and its arguments before the penalty."""


class UnbiasedLoss(CorrectedSoftmax):
    r"""Softmax regression on the unbiased loss, or backward correction, for any number of classes.

    A label z stands for the weights `inverse(confusion)[z, k]` on the losses of all classes k: on average over
    the noise that is the loss on the true label. The weights may be negative and grow without bound as the labels
    approach random ones, so that only the penalty bounds the loss from below; `max_weight_` is the largest.

    The other options are those of `SoftmaxRegression`.

    Parameters
    ----------
    confusion : (n_classes, n_classes) or (n_workers, n_classes, n_classes)
        P(given | true), shared or per worker. It must be invertible: not a spammer's.

    Attributes
    ----------
    max_weight_ : float
        Largest absolute weight that a label got.

    References
    ----------
    N. Natarajan, I. S. Dhillon, P. Ravikumar and A. Tewari, "Learning with Noisy Labels", NIPS 2013.

    Examples
    --------
    >>> import numpy as np, labelonce as lo
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> noise = np.array([[0.8, 0.2], [0.3, 0.7]])
    >>> model = lo.baselines.UnbiasedLoss(noise).fit(X, lo.Annotations.from_matrix([[0], [0], [1], [1]]))
    >>> model.max_weight_
    1.6
    """

    def _objective(self, X: Any, annotations: Annotations, confusion: Floats) -> tuple[Loss, tuple[Any, ...]]:
        inverse = _inverse(confusion)
        weights = inverse[annotations.worker, annotations.label]
        self.max_weight_ = float(np.abs(weights).max())
        if self.max_weight_ > LARGE_WEIGHT:
            warnings.warn(
                f"UnbiasedLoss gives a label a weight of up to {self.max_weight_:.3g} (more than {LARGE_WEIGHT:g}): "
                "the noise is too close to random for this loss. Use ForwardCorrection or MBEM.",
                DoubtWarning,
                stacklevel=4,
            )
        total = _sum_by_task(annotations, weights)
        number = np.bincount(annotations.task, minlength=annotations.n_tasks)
        kept = np.flatnonzero(number)
        targets, share = total[kept] / number[kept, None], (number[kept] / len(annotations))[:, None]
        return loss_and_gradient, (X[kept], targets, share)


class ForwardCorrection(CorrectedSoftmax):
    """Softmax regression on the forward-corrected loss: minus log of the sum over k of f(x)[k] * confusion[k, label].

    The model's prediction is passed through the worker's confusion and compared with the label given. The loss is
    bounded below, needs no inverse, and a spammer's labels have no influence.

    The other options are those of `SoftmaxRegression`.

    Parameters
    ----------
    confusion : (n_classes, n_classes) or (n_workers, n_classes, n_classes)
        P(given | true), shared or per worker.

    References
    ----------
    G. Patrini, A. Rozza, A. K. Menon, R. Nock and L. Qu, "Making Deep Neural Networks Robust to Label Noise: A Loss
    Correction Approach", CVPR 2017.

    Examples
    --------
    >>> import numpy as np, labelonce as lo
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> noise = np.array([[0.8, 0.2], [0.3, 0.7]])
    >>> lo.baselines.ForwardCorrection(noise).fit(X, lo.Annotations.from_matrix([[0], [0], [1], [1]])).predict(X)
    array([0, 0, 1, 1])
    """

    def _objective(self, X: Any, annotations: Annotations, confusion: Floats) -> tuple[Loss, tuple[Any, ...]]:
        likelihood = np.maximum(confusion[annotations.worker, :, annotations.label], 1e-12)
        return _forward_loss, (X, annotations, likelihood)


def _inverse(confusion: Floats) -> Floats:
    condition = np.linalg.cond(confusion)
    worst = int(np.argmax(condition))
    if not condition[worst] < 1e10:
        raise ValueError(
            f"confusion must be invertible for the unbiased loss; worker {worst}'s matrix is not (condition "
            f"{condition[worst]:.2g}), as a spammer's. Give the crowd's mean matrix, or use ForwardCorrection."
        )
    return np.asarray(np.linalg.inv(confusion))


def _sum_by_task(annotations: Annotations, values: Floats) -> Floats:
    """Return the sum over each task's annotations of (n_annotations, n_classes) values."""
    n = len(annotations)
    member = sparse.csr_array((np.ones(n), (annotations.task, np.arange(n))), shape=(annotations.n_tasks, n))
    return np.asarray(member @ values)


def _forward_loss(
    flat: Floats, X: Any, annotations: Annotations, likelihood: Floats, penalty: float
) -> tuple[float, Floats]:
    coefficients = flat.reshape(-1, annotations.n_classes)
    slopes = coefficients[:-1]
    scores = np.asarray(X @ slopes) + coefficients[-1]
    explained = softmax(scores, out=scores)[annotations.task]
    joint = explained * likelihood
    evidence = joint.sum(axis=1, keepdims=True)
    residual = _sum_by_task(annotations, explained - joint / evidence) / len(annotations)
    gradient = np.vstack([np.asarray(X.T @ residual) + penalty * slopes, residual.sum(axis=0)])
    loss = -float(np.log(evidence).mean()) + 0.5 * penalty * float(np.vdot(slopes, slopes))
    return loss, gradient.ravel()
