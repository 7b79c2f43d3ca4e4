"""annot-mix: mixup of features, workers and labels at once."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.distributions import Beta
from torch.nn import functional as F

from labelonce._validate import check_number
from labelonce.baselines._networks._crowd_network import CrowdNetwork
from labelonce.baselines._networks._worker_layer import (
    GOLD,
    Annotation,
    ConfusionLayer,
    WorkerLayer,
    nearly_identity,
    seen_through,
)


class AnnotMix(CrowdNetwork):
    """Train through a confusion matrix per worker on mixed annotations: a bit of one, the rest of another.

    Two annotations (x, a, s) and (x', a', s') become one with the features c x + (1 - c) x', the worker
    c a + (1 - c) a' and the label c s + (1 - c) s', workers and labels as unit vectors, c from Beta(alpha, alpha).
    P(label | x, worker) is the sum over k of f(x)[k] A[k, label], where A is the softmax, row by row, of scores that
    are linear in the worker: half of one worker and half of another has the mean of their scores. As in all mixup, the
    network cannot memorise single labels. The publication can also let A depend on the features of tasks and workers;
    here a worker is its number.

    Parameters
    ----------
    learner : TorchLearner or Pipeline, optional
        As in `CoNAL`.
    alpha : float
        Of the Beta distribution; 0: nothing is mixed.
    start : float
        As in `GeoCrowdNet`.
    classes : column, optional
        As in `MBEM`.

    Attributes
    ----------
    model_, posterior_, labels_, confusion_, prior_, skill_, history_, tasks_, workers_, classes_
        As in `CoNAL`; `confusion_` are the matrices of whole workers.

    References
    ----------
    M. Herde, L. Lührs, D. Huseljic and B. Sick, "Annot-Mix: Learning with Noisy Class Labels from Multiple Annotators
    via a Mixup Extension", ECAI 2024.

    Examples
    --------
    >>> import numpy as np, labelonce as lo
    >>> X = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)
    >>> labels = (X[:, :1] > 0).astype(int).repeat(2, axis=1)
    >>> bool(lo.baselines.AnnotMix().fit(X, labels).score(X, labels[:, 0]) > 0.95)
    True
    """

    def __init__(self, learner: Any = None, *, alpha: float = 1.0, start: float = 0.9, classes: Any = None) -> None:
        self.learner = learner
        self.alpha = alpha
        self.start = start
        self.classes = classes

    def _check(self) -> None:
        check_number(self.alpha, "alpha", 0.0)
        check_number(self.start, "start", 0.01, 0.99)

    def _layer(self, n_workers: int, n_classes: int) -> WorkerLayer:
        return MixedMatrices(n_workers, n_classes, self.alpha, self.start)


class MixedMatrices(ConfusionLayer):
    """Scores that are linear in the worker; the row after the last worker's is gold, which is nearly always right."""

    gold: torch.Tensor

    def __init__(self, n_workers: int, n_classes: int, alpha: float, start: float) -> None:
        super().__init__()
        self.scores = nn.Parameter(nearly_identity(n_classes, start).repeat(n_workers, 1, 1))
        self.register_buffer("gold", nearly_identity(n_classes, 1 - 1e-6)[None])
        self.alpha = alpha

    def mixed(self, batch: torch.Tensor, worker: torch.Tensor, label: torch.Tensor) -> Annotation:
        """Return mixed features, workers as shares (n, n_workers + 1), and labels as shares (n, n_classes)."""
        n_workers, n_classes = self.scores.shape[:2]
        shares = F.one_hot(worker.where(worker != GOLD, n_workers), n_workers + 1).float()
        labels = F.one_hot(label, n_classes).float()
        if not self.alpha or not self.training:
            return batch, shares, labels
        alpha = torch.full((len(batch),), float(self.alpha), device=batch.device)
        own, other = Beta(alpha, alpha, validate_args=False).sample(), torch.randperm(len(batch), device=batch.device)
        return tuple(_between(part, part[other], own) for part in (batch, shares, labels))  # type: ignore[return-value]

    def log_given(self, logits: torch.Tensor, batch: torch.Tensor, worker: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
        """Return the log of f(x) A, where `worker` are shares."""
        scores = torch.einsum("na,aks->nks", worker, torch.cat([self.scores, self.gold]))
        return seen_through(logits, F.log_softmax(scores, dim=2))

    def forward(
        self, logits: torch.Tensor, batch: torch.Tensor, worker: torch.Tensor, label: torch.Tensor
    ) -> torch.Tensor:
        """Return the mean loss of mixed annotations."""
        return -(label * self.log_given(logits, batch, worker)).sum() / len(label)

    def confusion(self) -> torch.Tensor:
        """Return the matrices of whole workers."""
        return self.scores.softmax(dim=2)


def _between(first: torch.Tensor, second: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
    share = share.to(first.dtype).view(-1, *[1] * (first.ndim - 1))
    return share * first + (1 - share) * second
