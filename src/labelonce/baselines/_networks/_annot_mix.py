"""annot-mix: mixup of features, workers and labels at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch.distributions import Beta
from torch.nn import functional as F

from labelonce.baselines._networks._crowd_network import CrowdNetwork
from labelonce.baselines._networks._worker_layer import GOLD, Annotation, ConfusionLayer, nearly_identity, seen_through


class MixedMatrices(ConfusionLayer):
    """Scores that are linear in the worker; the row after the last worker's is gold, which is nearly always right."""

    gold: torch.Tensor

    def __init__(self, n_workers: int, n_classes: int, options: AnnotMix) -> None:
        super().__init__(n_workers, nearly_identity(n_classes, options.start).repeat(n_workers, 1, 1))
        self.register_buffer("gold", nearly_identity(n_classes, 1 - 1e-6)[None])
        self.alpha = options.alpha

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

    def log_given(self, logits: torch.Tensor, batch: torch.Tensor, worker: torch.Tensor) -> torch.Tensor:
        """Return the log of f(x) A, where `worker` are shares."""
        scores = torch.einsum("na,aks->nks", worker, torch.cat([self.scores, self.gold]))
        return seen_through(logits, F.log_softmax(scores, dim=2))

    def forward(
        self, logits: torch.Tensor, batch: torch.Tensor, worker: torch.Tensor, label: torch.Tensor
    ) -> torch.Tensor:
        return -(label * self.log_given(logits, batch, worker)).sum() / len(label)


@dataclass(kw_only=True, eq=False, repr=False)
class AnnotMix(CrowdNetwork):
    """Train through a confusion matrix per worker on mixed annotations: a bit of one, the rest of another.

    Two annotations (x, a, s) and (x', a', s') become one with the features c x + (1 - c) x', the worker
    c a + (1 - c) a' and the label c s + (1 - c) s', workers and labels as unit vectors, c from Beta(alpha, alpha).
    P(label | x, worker) is the sum over k of f(x)[k] A[k, label], where A is the softmax, row by row, of scores that
    are linear in the worker: half of one worker and half of another has the mean of their scores. As in all mixup, the
    network cannot overfit single labels. The publication can also let A depend on the features of tasks and workers;
    here a worker is its number, and `confusion_` are the matrices of whole workers.

    Parameters
    ----------
    learner, classes
        As in `CrowdNetwork`.
    alpha : float
        Of the Beta distribution; 0: nothing is mixed.
    start : float
        As in `GeoCrowdNet`.

    References
    ----------
    M. Herde, L. Lührs, D. Huseljic and B. Sick, "Annot-Mix: Learning with Noisy Class Labels from Multiple Annotators
    via a Mixup Extension", ECAI 2024.
    """

    alpha: float = 1.0
    start: float = 0.9

    _kind = MixedMatrices
    _ranges: ClassVar = {"alpha": (0.0,), "start": (0.01, 0.99)}


def _between(first: torch.Tensor, second: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
    share = share.to(first.dtype).view(-1, *[1] * (first.ndim - 1))
    return share * first + (1 - share) * second
