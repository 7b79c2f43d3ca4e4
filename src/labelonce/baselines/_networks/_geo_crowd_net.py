"""GeoCrowdNet: a matrix per worker, made unique by the spread of predictions or of matrices."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from labelonce._validate import check_choice, check_number
from labelonce.baselines._networks._crowd_network import CrowdNetwork
from labelonce.baselines._networks._worker_layer import ConfusionLayer, WorkerLayer, nearly_identity, seen_through


class GeoCrowdNet(CrowdNetwork):
    """Train through a confusion matrix per worker, and spread predictions or matrices as far as they go.

    P(label s of worker a) is the sum over k of f(x)[k] A_a[k, s], where the rows of A_a sum to 1. Many networks and
    matrices explain the labels equally well; the loss picks one by minus `penalty` times

    * "F": log det(F' F), where F are the predictions of the batch, as rows;
    * "W": log det(W' W), where W are the matrices of all workers, one below the other;
    * "none": nothing, which is the coupled cross-entropy (CCEM) alone.

    Where the determinant is not finite, the term is left out, as in the publication's code.

    Parameters
    ----------
    learner : TorchLearner or Pipeline, optional
        As in `CoNAL`.
    term : {"F", "W", "none"}
    penalty : float
    start : float
        P(right) of every worker before training. Near 1, as published, a network that can memorise its labels does so
        before it doubts anybody; where labels are mostly wrong, start lower.
    classes : column, optional
        As in `MBEM`.

    Attributes
    ----------
    model_, posterior_, labels_, confusion_, prior_, skill_, history_, tasks_, workers_, classes_
        As in `CoNAL`; `confusion_` are the matrices A.

    References
    ----------
    S. Ibrahim, T. Nguyen and X. Fu, "Deep Learning From Crowdsourced Labels: Coupled Cross-Entropy Minimization,
    Identifiability, and Regularization", ICLR 2023.

    Examples
    --------
    >>> import numpy as np, labelonce as lo
    >>> X = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)
    >>> labels = (X[:, :1] > 0).astype(int).repeat(2, axis=1)
    >>> bool(lo.baselines.GeoCrowdNet(term="W").fit(X, labels).score(X, labels[:, 0]) > 0.95)
    True
    """

    def __init__(
        self, learner: Any = None, *, term: str = "F", penalty: float = 0.01, start: float = 0.9, classes: Any = None
    ) -> None:
        self.learner = learner
        self.term = term
        self.penalty = penalty
        self.start = start
        self.classes = classes

    def _check(self) -> None:
        check_choice(self.term, "term", ("F", "W", "none"))
        check_number(self.penalty, "penalty", 0.0)
        check_number(self.start, "start", 0.01, 0.99)

    def _layer(self, n_workers: int, n_classes: int) -> WorkerLayer:
        return StochasticMatrices(n_workers, n_classes, self.term, self.penalty, self.start)


class StochasticMatrices(ConfusionLayer):
    """A matrix per worker whose rows are probabilities."""

    def __init__(self, n_workers: int, n_classes: int, term: str, penalty: float, start: float) -> None:
        super().__init__()
        self.scores = nn.Parameter(nearly_identity(n_classes, start).repeat(n_workers, 1, 1))
        self.term, self.strength = term, penalty

    def log_given(self, logits: torch.Tensor, batch: torch.Tensor, worker: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
        """Return the log of f(x) A_a."""
        return seen_through(logits, F.log_softmax(self.scores[worker], dim=2))

    def penalty(self, logits: torch.Tensor) -> torch.Tensor:
        """Return minus the log-determinant, as much as it counts; nothing where it is not finite."""
        if self.term == "none" or self.strength == 0:
            return super().penalty(logits)
        if self.term == "F":
            predicted = logits.softmax(dim=1)
            square = predicted.T @ predicted
        else:
            matrices = self.scores.softmax(dim=2)
            square = torch.einsum("aks,als->kl", matrices, matrices)
        value = torch.logdet(square)
        if not value.isfinite():
            return super().penalty(logits)
        return -self.strength * value

    def confusion(self) -> torch.Tensor:
        """Return the matrices."""
        return self.scores.softmax(dim=2)
