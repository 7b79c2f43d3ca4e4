"""CrowdLayer: a linear layer per worker on the network's probabilities."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from labelonce._validate import check_choice
from labelonce.baselines._networks._crowd_network import CrowdNetwork
from labelonce.baselines._networks._worker_layer import ConfusionLayer, WorkerLayer


class CrowdLayer(CrowdNetwork):
    """Train through one linear layer per worker, which takes the network's probabilities f(x) to scores of labels.

    The label s of worker a has the probability softmax(g)[s], where

    * "MW": g = W_a' f(x), a matrix per worker that starts as the identity;
    * "VW": g = w_a * f(x), a weight per worker and class that starts as 1;
    * "VW+B": g = w_a * f(x) + b_a, and a bias that starts as 0.

    The scores are not probabilities, so nothing ties a worker's matrix to its mistakes: `confusion_` is what a worker
    would say of a task that the network is sure of.

    Parameters
    ----------
    learner : TorchLearner or Pipeline, optional
        What is trained and how. Default: one hidden layer of 128 units with dropout 0.5, 50 epochs of batches of 64
        annotations, AdamW with a rate of 0.01.
    kind : {"MW", "VW", "VW+B"}
    classes : column, optional
        As in `MBEM`.

    Attributes
    ----------
    model_, posterior_, labels_, confusion_, prior_, skill_, history_, tasks_, workers_, classes_
        As in `CoNAL`.

    References
    ----------
    F. Rodrigues and F. C. Pereira, "Deep Learning from Crowds", AAAI 2018.

    Examples
    --------
    >>> import numpy as np, labelonce as lo
    >>> X = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)
    >>> labels = (X[:, :1] > 0).astype(int).repeat(2, axis=1)
    >>> bool(lo.baselines.CrowdLayer().fit(X, labels).score(X, labels[:, 0]) > 0.95)
    True
    """

    def __init__(self, learner: Any = None, *, kind: str = "MW", classes: Any = None) -> None:
        self.learner = learner
        self.kind = kind
        self.classes = classes

    def _check(self) -> None:
        check_choice(self.kind, "kind", ("MW", "VW", "VW+B"))

    def _layer(self, n_workers: int, n_classes: int) -> WorkerLayer:
        return Matrices(n_workers, n_classes) if self.kind == "MW" else Vectors(n_workers, n_classes, self.kind)


class Matrices(ConfusionLayer):
    """A matrix per worker."""

    def __init__(self, n_workers: int, n_classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(n_classes).repeat(n_workers, 1, 1))

    def log_given(self, logits: torch.Tensor, batch: torch.Tensor, worker: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
        """Return the log-softmax of the worker's scores."""
        scores = torch.einsum("nk,nks->ns", logits.softmax(dim=1), self.weight[worker])
        return F.log_softmax(scores, dim=1)

    def confusion(self) -> torch.Tensor:
        """Return what workers say where f is sure."""
        return self.weight.softmax(dim=2)


class Vectors(ConfusionLayer):
    """A weight, and with "VW+B" a bias, per worker and class."""

    def __init__(self, n_workers: int, n_classes: int, kind: str) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n_workers, n_classes))
        self.bias = nn.Parameter(torch.zeros(n_workers, n_classes), requires_grad=kind == "VW+B")

    def log_given(self, logits: torch.Tensor, batch: torch.Tensor, worker: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
        """Return the log-softmax of the worker's scores."""
        return F.log_softmax(logits.softmax(dim=1) * self.weight[worker] + self.bias[worker], dim=1)

    def confusion(self) -> torch.Tensor:
        """Return what workers say where f is sure."""
        return (torch.diag_embed(self.weight) + self.bias[:, None, :]).softmax(dim=2)
