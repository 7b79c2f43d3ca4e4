"""What a worker makes of the network's prediction: the layer on top of it that training alone has."""

import math
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from labelonce._types import Codes
from labelonce.data import Annotations

Annotation = tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # features, worker and label of each

GOLD = -1  # in the place of a worker: the label is the true one


class TopLayer(nn.Module, ABC):
    """Base of what training alone has on top of a network: it turns the network's output into a loss."""

    done: float = 0.0  # Share of the epochs that are over

    def look(self, annotations: Annotations, gold: Codes | None) -> None:
        """Prepare for the training data, before the first batch."""

    def mixed(self, batch: torch.Tensor, worker: torch.Tensor, label: torch.Tensor) -> Annotation:
        """Return the annotations that are trained on in the place of those of a batch."""
        return batch, worker, label

    @abstractmethod
    def forward(
        self, logits: torch.Tensor, batch: torch.Tensor, worker: torch.Tensor, label: torch.Tensor
    ) -> torch.Tensor:
        """Return the mean loss of a batch."""


class WorkerLayer(TopLayer):
    """Base of the layers that turn the network's output into the probability of the label that a worker gave.

    Workers start alike, and classes too, so that neither the order of workers nor that of classes matters.
    """

    @abstractmethod
    def log_given(self, logits: torch.Tensor, batch: torch.Tensor, worker: torch.Tensor) -> torch.Tensor:
        """Return log P(label given | features, worker), shape (n, n_classes), of annotations with inputs `batch`."""

    def log_true(self, logits: torch.Tensor) -> torch.Tensor:
        """Return log P(true label | features), shape (n, n_classes)."""
        return F.log_softmax(logits, dim=1)

    def penalty(self, logits: torch.Tensor) -> torch.Tensor:
        """Return what is added to the mean loss."""
        return logits.new_zeros(())

    def forward(
        self, logits: torch.Tensor, batch: torch.Tensor, worker: torch.Tensor, label: torch.Tensor
    ) -> torch.Tensor:
        """Return the mean loss of annotations; that of `GOLD` is compared with f itself."""
        own = self.log_given(logits, batch, worker.clamp_min(0))
        found = torch.where((worker == GOLD)[:, None], self.log_true(logits), own)
        return self.penalty(logits) - found.gather(1, label[:, None]).mean()


class ConfusionLayer(WorkerLayer):
    """Base of the layers with scores of labels given classes, [true, given] of the crowd or [worker, true, given]."""

    scores: torch.Tensor

    def __init__(self, n_workers: int, scores: torch.Tensor) -> None:
        super().__init__()
        self.n_workers, self.scores = n_workers, nn.Parameter(scores)

    def confusion(self) -> torch.Tensor:
        """Return P(given | true) where f is sure, shape (n_workers, n_classes, n_classes)."""
        return self.scores.softmax(dim=-1).expand(self.n_workers, -1, -1)


class WithWorkers(nn.Module):
    """A network with a worker layer on top; what it returns is the loss of a batch of annotations."""

    def __init__(self, base: nn.Module, layer: TopLayer) -> None:
        super().__init__()
        self.base, self.layer = base, layer

    def start(self, inputs: torch.Tensor) -> None:
        look: Any = getattr(self.base, "start", None)
        if look is not None:
            look(inputs)

    def forward(self, batch: torch.Tensor, worker: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        batch, worker, label = self.layer.mixed(batch, worker, label)
        logits = self.base(batch)
        with torch.autocast(batch.device.type, enabled=False):  # probabilities of labels need their precision
            loss: torch.Tensor = self.layer(logits.float(), batch.float(), worker, label)
        return loss


def nearly_identity(n_classes: int, right: float = 0.9) -> torch.Tensor:
    """Return scores (n_classes, n_classes) whose softmax over the last axis has `right` on the diagonal."""
    odds = right * max(n_classes - 1, 1) / (1 - right)
    return math.log(odds) * torch.eye(n_classes)


def seen_through(logits: torch.Tensor, log_confusion: torch.Tensor) -> torch.Tensor:
    """Return log of the sum over k of f(x)[k] * confusion[k, given], shape (n, n_given).

    `log_confusion` is [true, given], or [annotation, true, given].
    """
    return torch.logsumexp(F.log_softmax(logits, dim=1)[:, :, None] + log_confusion, dim=1)
