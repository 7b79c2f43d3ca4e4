"""Networks trained through matrices of the crowd or of each worker: noise layers, CrowdLayer, UnionNet, GeoCrowdNet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn
from torch.nn import functional as F

from labelonce.baselines._networks._crowd_network import CrowdNetwork
from labelonce.baselines._networks._worker_layer import ConfusionLayer, nearly_identity, seen_through


class SharedMatrix(ConfusionLayer):
    """One matrix whose rows are probabilities."""

    def __init__(self, n_workers: int, n_classes: int, options: NoiseLayer) -> None:
        super().__init__(n_workers, nearly_identity(n_classes, options.start))
        self.strength, self.burn_in = options.penalty, options.burn_in

    def log_given(self, logits: torch.Tensor, batch: torch.Tensor, worker: torch.Tensor) -> torch.Tensor:
        if self.done < self.burn_in:
            return self.log_true(logits)
        return seen_through(logits, F.log_softmax(self.scores, dim=1))

    def penalty(self, logits: torch.Tensor) -> torch.Tensor:
        """Return the mean of the diagonal, as much as it costs."""
        if self.done < self.burn_in:
            return super().penalty(logits)
        return self.strength * self.scores.softmax(dim=1).diagonal().mean()


@dataclass(kw_only=True, eq=False, repr=False)
class NoiseLayer(CrowdNetwork):
    """Train through one matrix of the whole crowd: P(label given) is the sum over k of f(x)[k] Q[k, given].

    For the first `burn_in` share of the epochs Q is the identity; then its rows, which sum to 1, are learned, with
    `penalty` times the mean of the diagonal added to the loss: without it the network itself would explain the noise
    and Q stay the identity. Who gave a label is not looked at; `confusion_` is the same matrix for all workers.

    Parameters
    ----------
    learner, classes
        As in `CrowdNetwork`.
    penalty : float
        On the trace of Q divided by the number of classes.
    burn_in : float
        Share of the epochs with Q fixed.
    start : float
        Diagonal of Q when it is let go.

    References
    ----------
    S. Sukhbaatar, J. Bruna, M. Paluri, L. Bourdev and R. Fergus, "Training Convolutional Networks with Noisy Labels",
    ICLR 2015 workshop (arXiv 1406.2080, 2014).
    """

    penalty: float = 0.1
    burn_in: float = 0.3
    start: float = 0.9

    _kind = SharedMatrix
    _ranges: ClassVar = {"penalty": (0.0,), "burn_in": (0.0, 0.99), "start": (0.01, 0.99)}


class DroppedMatrix(ConfusionLayer):
    """One matrix of scores behind dropout."""

    def __init__(self, n_workers: int, n_classes: int, options: DropoutNoiseLayer) -> None:
        super().__init__(n_workers, torch.eye(n_classes))
        self.dropout = options.dropout

    def log_given(self, logits: torch.Tensor, batch: torch.Tensor, worker: torch.Tensor) -> torch.Tensor:
        kept = F.dropout(logits.softmax(dim=1), self.dropout, self.training)
        return F.log_softmax(kept @ self.scores, dim=1)


@dataclass(kw_only=True, eq=False, repr=False)
class DropoutNoiseLayer(CrowdNetwork):
    """Train through one layer of the whole crowd with dropout: P(label given) is softmax(W' D f(x)).

    W starts as the identity and is not bounded; D drops each of the network's probabilities with probability `dropout`
    while training, so that W cannot rely on any one of them. Who gave a label is not looked at; `confusion_` is the
    same matrix for all workers.

    Parameters
    ----------
    learner, classes
        As in `CrowdNetwork`.
    dropout : float

    References
    ----------
    I. Jindal, M. Nokleby and X. Chen, "Learning Deep Networks from Noisy Labels with Dropout Regularization", ICDM
    2016.
    """

    dropout: float = 0.1

    _kind = DroppedMatrix
    _ranges: ClassVar = {"dropout": (0.0, 0.99)}


class Matrices(ConfusionLayer):
    """Scores of labels from the network's probabilities: a matrix per worker, or a weight and a bias per class."""

    def __init__(self, n_workers: int, n_classes: int, options: CrowdLayer) -> None:
        vectors = options.kind != "MW"
        start = torch.ones(n_workers, n_classes) if vectors else torch.eye(n_classes).repeat(n_workers, 1, 1)
        super().__init__(n_workers, start)
        bias = torch.zeros(n_workers, n_classes)
        self.bias = nn.Parameter(bias, requires_grad=options.kind == "VW+B") if vectors else nn.Buffer(bias)

    def log_given(self, logits: torch.Tensor, batch: torch.Tensor, worker: torch.Tensor) -> torch.Tensor:
        scores = torch.einsum("nk,nks->ns", logits.softmax(dim=1), self._matrices()[worker])
        return F.log_softmax(scores + self.bias[worker], dim=1)

    def _matrices(self) -> torch.Tensor:
        return torch.diag_embed(self.scores) if self.scores.ndim == 2 else self.scores

    def confusion(self) -> torch.Tensor:
        return (self._matrices() + self.bias[:, None, :]).softmax(dim=2)


@dataclass(kw_only=True, eq=False, repr=False)
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
    learner, classes
        As in `CrowdNetwork`.
    kind : {"MW", "VW", "VW+B"}

    References
    ----------
    F. Rodrigues and F. C. Pereira, "Deep Learning from Crowds", AAAI 2018.
    """

    kind: str = "MW"

    _kind = Matrices
    _ranges: ClassVar = {"kind": ("MW", "VW", "VW+B")}


class Union(ConfusionLayer):
    """A matrix [true, (worker, given)] whose rows are probabilities, as [worker, true, given]."""

    def __init__(self, n_workers: int, n_classes: int, options: UnionNet) -> None:
        super().__init__(n_workers, nearly_identity(n_classes, options.start).repeat(n_workers, 1, 1))

    def log_given(self, logits: torch.Tensor, batch: torch.Tensor, worker: torch.Tensor) -> torch.Tensor:
        log_union = self.scores - torch.logsumexp(self.scores, dim=(0, 2), keepdim=True)
        return seen_through(logits, log_union[worker])


@dataclass(kw_only=True, eq=False, repr=False)
class UnionNet(CrowdNetwork):
    """Train through one matrix from classes to pairs of worker and label: the parametric form, UnionNet-B.

    The pairs (worker a, label s) are taken as the outcomes of one variable: P(a, s | x) is the sum over k of f(x)[k]
    T[k, (a, s)], where a row of T is a softmax over all pairs and starts with most of its mass on the labels s = k. The
    workers compete: one whose labels follow the network gets more of the mass. The loss is the mean of minus the log
    over all annotations; `confusion_` is T scaled to sum to 1 for every worker and class.

    Parameters
    ----------
    learner, classes
        As in `CrowdNetwork`.
    start : float
        As in `GeoCrowdNet`.

    References
    ----------
    H. Wei, R. Xie, L. Feng, B. Han and B. An, "Deep Learning From Multiple Noisy Annotators as A Union", IEEE
    Transactions on Neural Networks and Learning Systems, 2022.
    """

    start: float = 0.9

    _kind = Union
    _ranges: ClassVar = {"start": (0.01, 0.99)}


class StochasticMatrices(ConfusionLayer):
    """A matrix per worker whose rows are probabilities."""

    def __init__(self, n_workers: int, n_classes: int, options: GeoCrowdNet) -> None:
        super().__init__(n_workers, nearly_identity(n_classes, options.start).repeat(n_workers, 1, 1))
        self.term, self.strength = options.term, options.penalty

    def log_given(self, logits: torch.Tensor, batch: torch.Tensor, worker: torch.Tensor) -> torch.Tensor:
        return seen_through(logits, F.log_softmax(self.scores[worker], dim=2))

    def penalty(self, logits: torch.Tensor) -> torch.Tensor:
        """Return minus the log-determinant, as much as it counts; nothing where it is not finite."""
        if self.term == "none" or self.strength == 0:
            return super().penalty(logits)
        rows = logits.softmax(dim=1) if self.term == "F" else self.scores.softmax(dim=2).mT.flatten(0, 1)
        value = torch.logdet(rows.T @ rows)
        return -self.strength * value if value.isfinite() else super().penalty(logits)


@dataclass(kw_only=True, eq=False, repr=False)
class GeoCrowdNet(CrowdNetwork):
    """Train through a confusion matrix per worker, and spread predictions or matrices as far as they go.

    P(label s of worker a) is the sum over k of f(x)[k] A_a[k, s], where the rows of A_a sum to 1 (`confusion_`). Many
    networks and matrices explain the labels equally well; the loss picks one by minus `penalty` times

    * "F": log det(F' F), where F are the predictions of the batch, as rows;
    * "W": log det(W' W), where W are the matrices of all workers, one below the other;
    * "none": nothing, which is the coupled cross-entropy (CCEM) alone.

    Where the determinant is not finite, the term is left out, as in the publication's code.

    Parameters
    ----------
    learner, classes
        As in `CrowdNetwork`.
    term : {"F", "W", "none"}
    penalty : float
    start : float
        P(right) of every worker before training. Near 1, as published, a network that can overfit its labels does so
        before it doubts anybody; where labels are mostly wrong, start lower.

    References
    ----------
    S. Ibrahim, T. Nguyen and X. Fu, "Deep Learning From Crowdsourced Labels: Coupled Cross-Entropy Minimization,
    Identifiability, and Regularization", ICLR 2023.
    """

    term: str = "F"
    penalty: float = 0.01
    start: float = 0.9

    _kind = StochasticMatrices
    _ranges: ClassVar = {"term": ("F", "W", "none"), "penalty": (0.0,), "start": (0.01, 0.99)}
