"""Max-MIG: a network and an aggregator of labels with the largest information about each other."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from labelonce._kernels import ScipyEngine, vote_fractions
from labelonce._types import Codes, Floats
from labelonce.baselines._networks._crowd_network import CrowdNetwork
from labelonce.baselines._networks._worker_layer import TopLayer, nearly_identity
from labelonce.data import Annotations, first_rows

_CERTAIN = 20.0  # log-odds of a gold label


class InformationGain(TopLayer):
    """The aggregator of labels, and what it and the network tell about each other.

    In the place of the worker and the label of an annotation it takes a task and its gold, -1 where there is none.
    """

    said: torch.Tensor  # worker and label of every annotation, in one number
    first: torch.Tensor  # number of the first annotation of every task, and after the last
    log_shares: torch.Tensor

    def __init__(self, n_workers: int, n_classes: int, options: MaxMIG) -> None:
        super().__init__()
        self.right = nearly_identity(n_classes, options.start).softmax(dim=1)
        self.weight = nn.Parameter(self.right.log().repeat(n_workers, 1, 1))  # [worker, label, class]
        self.bias = nn.Parameter(torch.zeros(n_classes))
        self.register_buffer("said", torch.empty(0, dtype=torch.long), persistent=False)
        self.register_buffer("first", torch.zeros(2, dtype=torch.long), persistent=False)
        self.register_buffer("log_shares", torch.full((n_classes,), -math.log(n_classes)))

    def look(self, annotations: Annotations, gold: Codes | None) -> None:
        """Keep the labels, and start from the votes."""
        votes = ScipyEngine(annotations, "float64").vote_counts()
        shares = vote_fractions(votes.copy(), gold)[np.unique(annotations.task)].sum(axis=0) + 1.0
        self.log_shares = torch.from_numpy(np.log(shares / shares.sum())).float()
        self.said = torch.from_numpy(annotations.worker.astype(np.int64) * annotations.n_classes + annotations.label)
        self.first = torch.from_numpy(np.asarray(first_rows(annotations.task, annotations.n_tasks), dtype=np.int64))
        with torch.no_grad():
            self.bias.copy_(self.log_shares)
            self.weight.copy_(torch.from_numpy(self._agreement(annotations, votes)).log().mT)

    def _agreement(self, annotations: Annotations, votes: Floats) -> Floats:
        """Return P(given | class) of every worker as the other labels of the tasks have it; one label says nothing."""
        n_classes = annotations.n_classes
        others = votes[annotations.task]
        others[np.arange(len(others)), annotations.label] -= 1
        others /= np.maximum(others.sum(axis=1, keepdims=True), 1)
        cells = [np.bincount(self.said.numpy(), one, minlength=annotations.n_workers * n_classes) for one in others.T]
        counts = np.stack(cells, axis=1).reshape(-1, n_classes, n_classes).swapaxes(1, 2) + self.right.numpy()
        return np.asarray(counts / counts.sum(axis=2, keepdims=True), dtype=np.float32)

    def aggregated(self, task: torch.Tensor, gold: torch.Tensor) -> torch.Tensor:
        """Return the log of the aggregator's class probabilities, shape (n, n_classes)."""
        start, size = self.first[task], self.first[task + 1] - self.first[task]
        row = torch.repeat_interleave(torch.arange(len(task), device=task.device), size)
        place = torch.arange(len(row), device=task.device) - (size.cumsum(0) - size)[row]
        said = self.weight.flatten(0, 1)[self.said[start[row] + place]]
        scores = self.bias.expand(len(task), -1).index_add(0, row, said)
        known = _CERTAIN * F.one_hot(gold.clamp_min(0), len(self.bias))
        return F.log_softmax(torch.where((gold >= 0)[:, None], known.to(scores.dtype), scores), dim=1)

    def forward(
        self, logits: torch.Tensor, batch: torch.Tensor, worker: torch.Tensor, label: torch.Tensor
    ) -> torch.Tensor:
        """Return minus the bound of the information; `worker` are tasks, `label` their gold."""
        del batch
        own, weighed = F.log_softmax(logits, dim=1), self.aggregated(worker, label) - self.log_shares
        together, n = torch.logsumexp(own + weighed, dim=1), len(logits)
        apart = own.exp().sum(dim=0) @ weighed.exp().sum(dim=0) - together.exp().sum()
        return apart / max(n * (n - 1), 1) - 1 - together.mean()

    def confusion(self) -> torch.Tensor:
        """Return the weights as chances of labels, [worker, class, label]."""
        return self.weight.softmax(dim=1).mT


@dataclass(kw_only=True, eq=False, repr=False)
class MaxMIG(CrowdNetwork):
    """Train a network h(x) and an aggregator g(labels) together, by the information that they share.

    The aggregator gives a task the class probabilities softmax(b + sum of W_a[s]) over its labels s of workers a, which
    is the posterior of independent workers where W_a[s] is the log of their chances, and need not be: mistakes that
    workers have in common can be weighted down. With K(x, labels) the sum over classes of h g / p, p the share of each
    class, what is maximised is the mean of 1 + log K over tasks less the mean of K over pairs of different tasks, a
    lower bound of the mutual information of features and labels. A batch holds tasks with all their labels.
    `confusion_` is W as chances: what independent workers with these weights would be like.

    Parameters
    ----------
    learner, classes
        As in `CrowdNetwork`.
    start : float
        Probability of a right label with which W starts, and b with the share of each class among the labels; where
        tasks have several labels, W starts from how each worker agrees with the others.

    References
    ----------
    P. Cao, Y. Xu, Y. Kong and Y. Wang, "Max-MIG: an Information Theoretic Approach for Joint Learning from Crowds",
    ICLR 2019.
    """

    start: float = 0.9

    _kind = InformationGain
    _ranges: ClassVar = {"start": (0.01, 0.99)}

    def _rows(self, annotations: Annotations, gold: Codes | None) -> tuple[Codes, Codes, Codes]:
        """Return the tasks with labels or gold, and their gold, -1 where there is none."""
        known = np.full(annotations.n_tasks, -1) if gold is None else gold
        labelled = np.bincount(annotations.task, minlength=annotations.n_tasks) > 0
        task = np.flatnonzero(labelled | (known >= 0)).astype(np.int32)
        return task, task, known[task]
