"""UnionNet: the labels of all workers as one set of outcomes."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from labelonce._validate import check_number
from labelonce.baselines._networks._crowd_network import CrowdNetwork
from labelonce.baselines._networks._worker_layer import ConfusionLayer, WorkerLayer, nearly_identity, seen_through


class UnionNet(CrowdNetwork):
    """Train through one matrix from classes to pairs of worker and label: the parametric form, UnionNet-B.

    The pairs (worker a, label s) are taken as the outcomes of one variable: P(a, s | x) is the sum over k of f(x)[k]
    T[k, (a, s)], where a row of T is a softmax over all pairs and starts with most of its mass on the labels s = k. The
    workers compete: one whose labels follow the network gets more of the mass. The loss is the mean of minus the log
    over all annotations.

    Parameters
    ----------
    learner : TorchLearner or Pipeline, optional
        As in `CoNAL`.
    start : float
        As in `GeoCrowdNet`.
    classes : column, optional
        As in `MBEM`.

    Attributes
    ----------
    model_, posterior_, labels_, confusion_, prior_, skill_, history_, tasks_, workers_, classes_
        As in `CoNAL`; `confusion_` is T scaled to sum to 1 for every worker and class.

    References
    ----------
    H. Wei, R. Xie, L. Feng, B. Han and B. An, "Deep Learning From Multiple Noisy Annotators as A Union", IEEE
    Transactions on Neural Networks and Learning Systems, 2022.

    Examples
    --------
    >>> import numpy as np, labelonce as lo
    >>> X = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)
    >>> labels = (X[:, :1] > 0).astype(int).repeat(2, axis=1)
    >>> bool(lo.baselines.UnionNet().fit(X, labels).score(X, labels[:, 0]) > 0.95)
    True
    """

    def __init__(self, learner: Any = None, *, start: float = 0.9, classes: Any = None) -> None:
        self.learner = learner
        self.start = start
        self.classes = classes

    def _check(self) -> None:
        check_number(self.start, "start", 0.01, 0.99)

    def _layer(self, n_workers: int, n_classes: int) -> WorkerLayer:
        return Union(n_workers, n_classes, self.start)


class Union(ConfusionLayer):
    """A matrix [true, (worker, given)] whose rows are probabilities."""

    def __init__(self, n_workers: int, n_classes: int, start: float) -> None:
        super().__init__()
        self.scores = nn.Parameter(nearly_identity(n_classes, start)[:, None, :].repeat(1, n_workers, 1))

    def log_given(self, logits: torch.Tensor, batch: torch.Tensor, worker: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
        """Return the log of P(worker, label | features)."""
        log_union = F.log_softmax(self.scores.flatten(1), dim=1).view_as(self.scores)
        return seen_through(logits, log_union.movedim(1, 0)[worker])

    def confusion(self) -> torch.Tensor:
        """Return the shares of the labels for each worker and class."""
        return self.scores.softmax(dim=2).movedim(1, 0)
