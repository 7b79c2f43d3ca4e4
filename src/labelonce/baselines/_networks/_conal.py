"""CoNAL: confusion that all workers share, and confusion of each one's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn
from torch.nn import functional as F

from labelonce._validate import check_int
from labelonce.baselines._networks._crowd_network import CrowdNetwork
from labelonce.baselines._networks._worker_layer import ConfusionLayer


class CommonAndOwn(ConfusionLayer):
    """A matrix that all share, one per worker, and the gate between them."""

    gates: torch.Tensor

    def __init__(self, n_workers: int, n_classes: int, options: CoNAL) -> None:
        super().__init__(n_workers, torch.eye(n_classes).repeat(n_workers, 1, 1))
        self.common = nn.Parameter(torch.eye(n_classes))
        self.worker = nn.Parameter(torch.zeros(n_workers, options.embedding))
        self.task = nn.Sequential(nn.Flatten(), nn.LazyLinear(128), nn.Linear(128, options.embedding))
        self.strength = options.penalty
        # Sum and number of the gates of every worker's annotations, those of late epochs above all.
        self.register_buffer("gates", torch.tensor([0.5, 1.0]).repeat(n_workers, 1))

    def log_given(self, logits: torch.Tensor, batch: torch.Tensor, worker: torch.Tensor) -> torch.Tensor:
        gate = (self.worker[worker] * F.normalize(self.task(batch), dim=1)).sum(dim=1).sigmoid()
        if self.training:
            new = torch.stack([gate.detach(), torch.ones_like(gate)], dim=1)
            self.gates.mul_(0.99).index_add_(0, worker, new)
        matrix = self._mixed(gate, self.scores[worker])
        return F.log_softmax(torch.einsum("nk,nks->ns", logits.softmax(dim=1), matrix), dim=1)

    def _mixed(self, gate: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
        gate = gate[:, None, None]
        return gate * self.common + (1 - gate) * own

    def penalty(self, logits: torch.Tensor) -> torch.Tensor:
        apart = ((self.scores - self.common) ** 2).sum(dim=(1, 2))
        return -self.strength * (apart + 1e-12).sqrt().sum()  # the root of 0 has no gradient

    def confusion(self) -> torch.Tensor:
        """Return what workers say where f is sure, at their mean gate."""
        return self._mixed(self.gates[:, 0] / self.gates[:, 1], self.scores).softmax(dim=2)


@dataclass(kw_only=True, eq=False, repr=False)
class CoNAL(CrowdNetwork):
    r"""Train through a mixture of one matrix that all workers share and one of each worker's own.

    The label s that worker a gave to a task with features x has the probability softmax(g)[s], where

        g = c W' f(x) + (1 - c) W_a' f(x),    c = sigmoid(u_a . v(x)).

    W is the common matrix and W_a the worker's, which all start as the identity; u_a is an embedding of the worker,
    v(x) one of the task, of length 1: on some tasks everybody makes the same mistakes. The loss is the mean
    cross-entropy less `penalty` times the sum of the distances between W_a and W, which keeps them apart.

    `confusion_` is what a worker would say of a task that the network is sure of.

    Parameters
    ----------
    learner, classes
        As in `CrowdNetwork`.
    penalty : float
        The publication has 1e-5.
    embedding : int
        Length of u_a and v(x).

    References
    ----------
    Z. Chu, J. Ma and H. Wang, "Learning from Crowds by Modeling Common Confusions", AAAI 2021.

    Examples
    --------
    >>> import numpy as np, labelonce as lo
    >>> X = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)
    >>> labels = (X[:, :1] > 0).astype(int).repeat(2, axis=1)
    >>> bool(lo.baselines.CoNAL().fit(X, labels).score(X, labels[:, 0]) > 0.95)
    True
    """

    penalty: float = 1e-5
    embedding: int = 20

    _kind = CommonAndOwn
    _ranges: ClassVar = {"penalty": (0.0,)}

    def _check(self) -> None:
        super()._check()
        check_int(self.embedding, "embedding", 1)
