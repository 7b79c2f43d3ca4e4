"""Noise layers: one confusion that the whole crowd shares, as if it were one worker."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from labelonce._validate import check_number
from labelonce.baselines._networks._crowd_network import CrowdNetwork
from labelonce.baselines._networks._worker_layer import ConfusionLayer, WorkerLayer, nearly_identity, seen_through


class NoiseLayer(CrowdNetwork):
    """Train through one matrix of the whole crowd: P(label given) is the sum over k of f(x)[k] Q[k, given].

    For the first `burn_in` share of the epochs Q is the identity; then its rows, which sum to 1, are learned, with
    `penalty` times the mean of the diagonal added to the loss: without it the network itself would explain the noise
    and Q stay the identity. Who gave a label is not looked at.

    Parameters
    ----------
    learner : TorchLearner or Pipeline, optional
        As in `CoNAL`.
    penalty : float
        On the trace of Q divided by the number of classes.
    burn_in : float
        Share of the epochs with Q fixed.
    start : float
        Diagonal of Q when it is let go.
    classes : column, optional
        As in `MBEM`.

    Attributes
    ----------
    model_, posterior_, labels_, confusion_, prior_, skill_, history_, tasks_, workers_, classes_
        As in `CoNAL`; `confusion_` is the same matrix for all workers.

    References
    ----------
    S. Sukhbaatar, J. Bruna, M. Paluri, L. Bourdev and R. Fergus, "Training Convolutional Networks with Noisy Labels",
    ICLR 2015 workshop (arXiv 1406.2080, 2014).

    Examples
    --------
    >>> import numpy as np, labelonce as lo
    >>> X = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)
    >>> labels = (X[:, 0] > 0).astype(int)
    >>> bool(lo.baselines.NoiseLayer().fit(X, labels).score(X, labels) > 0.95)
    True
    """

    def __init__(
        self,
        learner: Any = None,
        *,
        penalty: float = 0.1,
        burn_in: float = 0.3,
        start: float = 0.9,
        classes: Any = None,
    ) -> None:
        self.learner = learner
        self.penalty = penalty
        self.burn_in = burn_in
        self.start = start
        self.classes = classes

    def _check(self) -> None:
        check_number(self.penalty, "penalty", 0.0)
        check_number(self.burn_in, "burn_in", 0.0, 0.99)
        check_number(self.start, "start", 0.01, 0.99)

    def _layer(self, n_workers: int, n_classes: int) -> WorkerLayer:
        return SharedMatrix(n_workers, n_classes, self)


class SharedMatrix(ConfusionLayer):
    """One matrix whose rows are probabilities."""

    def __init__(self, n_workers: int, n_classes: int, options: NoiseLayer) -> None:
        super().__init__()
        self.scores = nn.Parameter(nearly_identity(n_classes, options.start))
        self.n_workers, self.strength, self.burn_in = n_workers, options.penalty, options.burn_in

    def log_given(self, logits: torch.Tensor, batch: torch.Tensor, worker: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
        """Return the log of f(x) Q."""
        if self.done < self.burn_in:
            return self.log_true(logits)
        return seen_through(logits, F.log_softmax(self.scores, dim=1))

    def penalty(self, logits: torch.Tensor) -> torch.Tensor:
        """Return the mean of the diagonal, as much as it costs."""
        if self.done < self.burn_in:
            return super().penalty(logits)
        return self.strength * self.scores.softmax(dim=1).diagonal().mean()

    def confusion(self) -> torch.Tensor:
        """Return the same matrix for everybody."""
        return self.scores.softmax(dim=1).expand(self.n_workers, -1, -1)


class DropoutNoiseLayer(CrowdNetwork):
    """Train through one layer of the whole crowd with dropout: P(label given) is softmax(W' D f(x)).

    W starts as the identity and is not bounded; D drops each of the network's probabilities with probability `dropout`
    while training, so that W cannot rely on any one of them. Who gave a label is not looked at.

    Parameters
    ----------
    learner : TorchLearner or Pipeline, optional
        As in `CoNAL`.
    dropout : float
    classes : column, optional
        As in `MBEM`.

    Attributes
    ----------
    model_, posterior_, labels_, confusion_, prior_, skill_, history_, tasks_, workers_, classes_
        As in `CoNAL`; `confusion_` is the same matrix for all workers.

    References
    ----------
    I. Jindal, M. Nokleby and X. Chen, "Learning Deep Networks from Noisy Labels with Dropout Regularization", ICDM
    2016.

    Examples
    --------
    >>> import numpy as np, labelonce as lo
    >>> X = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)
    >>> labels = (X[:, 0] > 0).astype(int)
    >>> bool(lo.baselines.DropoutNoiseLayer().fit(X, labels).score(X, labels) > 0.95)
    True
    """

    def __init__(self, learner: Any = None, *, dropout: float = 0.1, classes: Any = None) -> None:
        self.learner = learner
        self.dropout = dropout
        self.classes = classes

    def _check(self) -> None:
        check_number(self.dropout, "dropout", 0.0, 0.99)

    def _layer(self, n_workers: int, n_classes: int) -> WorkerLayer:
        return DroppedMatrix(n_workers, n_classes, self.dropout)


class DroppedMatrix(ConfusionLayer):
    """One matrix of scores behind dropout."""

    def __init__(self, n_workers: int, n_classes: int, dropout: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(n_classes))
        self.n_workers, self.dropout = n_workers, dropout

    def log_given(self, logits: torch.Tensor, batch: torch.Tensor, worker: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
        """Return the log-softmax of the scores of f(x), some of it dropped."""
        kept = F.dropout(logits.softmax(dim=1), self.dropout, self.training)
        return F.log_softmax(kept @ self.weight, dim=1)

    def confusion(self) -> torch.Tensor:
        """Return what the crowd says where f is sure, the same for everybody."""
        return self.weight.softmax(dim=1).expand(self.n_workers, -1, -1)
