"""Who said what: a head per worker on a shared network, and how much each head counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.optimize import minimize
from torch import nn
from torch.nn import functional as F

from labelonce._types import Floats
from labelonce.baselines._networks._crowd_network import AnnotationsTrainer, CrowdNetwork
from labelonce.baselines._networks._worker_layer import WorkerLayer
from labelonce.data import Annotations
from labelonce.learning import take_rows
from labelonce.neural import TorchLearner

_NUMBERS = 20_000_000  # heads' probabilities held at once when their weights are learned
_TO_THE_END = {"ftol": 1e-14, "gtol": 1e-6, "maxiter": 1000}


class Heads(WorkerLayer):
    """The outputs of the network, n_classes for each worker in turn; it has no parameters of its own."""

    def __init__(self, n_workers: int, n_classes: int, options: DoctorNet) -> None:
        super().__init__()
        self.n_workers, self.n_classes = n_workers, n_classes

    def log_given(self, logits: torch.Tensor, batch: torch.Tensor, worker: torch.Tensor) -> torch.Tensor:
        heads = logits.view(-1, self.n_workers, self.n_classes)
        return F.log_softmax(heads[torch.arange(len(heads), device=logits.device), worker], dim=1)

    def log_true(self, logits: torch.Tensor) -> torch.Tensor:
        return F.log_softmax(logits.view(-1, self.n_workers, self.n_classes), dim=2).mean(dim=1)


@dataclass(kw_only=True, eq=False, repr=False)
class DoctorNet(CrowdNetwork):
    """Train one head per worker on that worker's labels, and predict by the mean of the heads.

    The network has n_workers times n_classes outputs; those of worker a are trained on the labels of a alone, all below
    the last layer by everybody. The prediction is the sum over workers of w_a head_a(x), where the weights are

    * "equal": the doctor net (DN) of the publication;
    * "learned": afterwards, with the heads fixed, by the cross-entropy between the mean label of a task and the
      weighted mean of the heads of the workers who did *not* label it (the weighted doctor net, WDN).

    It learns what each worker would say. Of a worker with few labels that is little, and with thousands of workers the
    last layer is larger than the rest.

    Parameters
    ----------
    learner, classes
        As in `CrowdNetwork`.
    weights : {"learned", "equal"}

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
        What the head of a worker says, on average, of training tasks that the prediction takes for a class.
    weights_ : (n_workers,)
        How much each head counts.

    References
    ----------
    M. Y. Guan, V. Gulshan, A. M. Dai and G. E. Hinton, "Who Said What: Modeling Individual Labelers Improves
    Classification", AAAI 2018.
    """

    weights: str = "learned"

    model_: HeadsLearner = field(init=False)
    _kind: ClassVar = Heads
    _ranges: ClassVar = {"weights": ("learned", "equal")}

    def _n_outputs(self, n_workers: int, n_classes: int) -> int:
        return n_workers * n_classes

    def _model(self, networks: TorchLearner, X: Any, annotations: Annotations) -> HeadsLearner:
        model = HeadsLearner(**networks.get_params(deep=False))
        model.__dict__ |= networks.__dict__
        labelled = np.bincount(annotations.worker, minlength=annotations.n_workers) > 0
        model.head_weight_ = labelled / labelled.sum()
        if self.weights == "learned":
            model.head_weight_ = _learned_weights(model, X, annotations)
        self.weights_: Floats = model.head_weight_
        return model

    def _confusion(self, trainer: AnnotationsTrainer, X: Any, predictions: Floats) -> Floats:
        n_workers, n_classes = trainer.shape
        counts = np.zeros((n_workers, n_classes, n_classes))
        at_once = max(1, _NUMBERS // (n_workers * n_classes))
        for start in range(0, len(predictions), at_once):
            rows = np.arange(start, min(start + at_once, len(predictions)))
            heads = self.model_.predict_heads(take_rows(X, rows))
            counts += np.einsum("ik,ias->aks", predictions[rows], heads)
        return np.asarray(counts / counts.sum(axis=2, keepdims=True))


class HeadsLearner(TorchLearner):
    """A fitted network with a head per worker, which predicts the weighted mean of the heads."""

    head_weight_: Floats

    def predict_heads(self, X: Any) -> Floats:
        """Return what the head of every worker says, shape (n_tasks, n_workers, n_classes)."""
        return self._predict(X, self._heads)

    @torch.no_grad()
    def predict_batch(self, module: nn.Module, batch: torch.Tensor) -> torch.Tensor:
        heads = self._heads(module, batch)
        return torch.einsum("ias,a->is", heads, torch.from_numpy(self.head_weight_).to(heads))

    @torch.no_grad()
    def _heads(self, module: nn.Module, batch: torch.Tensor) -> torch.Tensor:
        module.eval()
        with self._autocast():
            found: torch.Tensor = module(batch).float().view(len(batch), len(self.head_weight_), -1).softmax(dim=2)
        return found


def _learned_weights(model: HeadsLearner, X: Any, annotations: Annotations) -> Floats:
    """Return the weights of the heads that predict best, on average, what other workers said of a task."""
    counts = np.bincount(annotations.task, minlength=annotations.n_tasks)
    most = max(1, _NUMBERS // (annotations.n_workers * annotations.n_classes))
    rows = np.sort(np.random.default_rng(0).permutation(np.flatnonzero(counts))[:most])
    place = np.full(annotations.n_tasks, -1)
    place[rows] = np.arange(len(rows))
    own = place[annotations.task] >= 0
    task = place[annotations.task[own]]
    mean = np.zeros((len(rows), annotations.n_classes))
    np.add.at(mean, (task, annotations.label[own]), 1 / counts[rows][task])
    others = np.repeat((model.head_weight_ > 0)[None].astype(np.float64), len(rows), axis=0)
    others[task, annotations.worker[own]] = 0
    judged = others.any(axis=1)
    if not judged.any():
        return model.head_weight_
    heads = model.predict_heads(take_rows(X, rows[judged]))
    arguments = heads, mean[judged], others[judged]
    found = minimize(
        _weights_loss, np.zeros(annotations.n_workers), args=arguments, jac=True, method="L-BFGS-B", options=_TO_THE_END
    )
    weight = np.exp(found.x - found.x.max()) * (model.head_weight_ > 0)
    return np.asarray(weight / weight.sum())


def _weights_loss(scores: Floats, heads: Floats, mean: Floats, others: Floats) -> tuple[float, Floats]:
    """Return cross-entropy and gradient of softmax weights; a little of the scores' square keeps them finite."""
    share = others * np.exp(scores - scores.max())
    share /= share.sum(axis=1, keepdims=True)
    predicted = np.maximum(np.einsum("ia,ias->is", share, heads), 1e-12)
    ratio = mean / predicted
    gain = share * (np.einsum("ias,is->ia", heads, ratio) - 1)  # every row of `mean` sums to 1
    loss = -float((mean * np.log(predicted)).sum()) + 0.5 * float(scores @ scores)
    return loss, scores - gain.sum(axis=0)
