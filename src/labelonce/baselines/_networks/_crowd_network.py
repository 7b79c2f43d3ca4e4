"""Networks trained on the annotations themselves: the base of the learners of the related work, and their training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import nn

from labelonce._kernels import Matrices, Processes, ScipyEngine, floored_log
from labelonce._messages import show
from labelonce._sklearn import clone
from labelonce._types import Codes, Floats, Ids
from labelonce._validate import check_choice, check_number
from labelonce.baselines._joint_em import prepared
from labelonce.baselines._networks._worker_layer import GOLD, TopLayer, WithWorkers
from labelonce.data import Annotations, Gold
from labelonce.learning import AnnotationsScorer
from labelonce.neural import TorchLearner, mlp
from labelonce.neural._data import Inputs
from labelonce.neural._steps import explained_alone
from labelonce.neural._training import Rows, Training

_AS_THEY_ARE = {"holdout": 0.0, "mixup": 0.0, "label_smoothing": 0.0, "shared": False, "checkpoint": None}


def default_learner() -> TorchLearner:
    """Return what the learners of the related work train by default: one hidden layer with dropout, by AdamW."""
    network = partial(mlp, width=128, depth=1, dropout=0.5)
    return TorchLearner(
        network, epochs=50, batch_size=64, optimizer="adamw", lr=0.01, weight_decay=1e-4, random_state=0
    )


@dataclass(eq=False, repr=False)
class CrowdNetwork(AnnotationsScorer):
    """Base of the networks that are trained on the annotations, through a layer that stands for the workers.

    A batch holds annotations: the features of a task as often as it has labels in the batch. The layer is dropped after
    training; `predict_proba` is the network's own prediction.

    Parameters
    ----------
    learner : TorchLearner or Pipeline, optional
        What is trained and how. Default: one hidden layer of 128 units with dropout 0.5, 50 epochs of batches of 64
        annotations, AdamW with a rate of 0.01.
    classes : column, optional
        As in `MBEM`.

    Attributes
    ----------
    model_ : TorchLearner
        The network without the layer of the workers.
    posterior_ : (n_tasks, n_classes)
        The network's prediction for a training task times the probability of its labels by `confusion_`.
    labels_ : (n_tasks,)
    confusion_, prior_, skill_ : arrays
        As in the aggregators, as far as the layer knows its workers; the prior is the mean prediction.
    history_ : list of dict
        One entry per epoch.
    tasks_, workers_, classes_ : arrays
    """

    learner: Any = None
    _: KW_ONLY
    classes: Any = None

    _kind: ClassVar[Any]  # of layer: made from n_workers, n_classes and this, for its options
    _ranges: ClassVar[Mapping[str, Any]]  # of the options: bounds, or choices

    def fit(self, X: Any, y: Any, *, gold: Gold | None = None, tasks: Any = None) -> Self:
        """Fit to Annotations, a (n_tasks, n_workers) matrix or plain labels; `gold` and `tasks` as in `MBEM.fit`.

        A task with gold also counts as one label that is known to be right.
        """
        self._check()
        X, annotations, codes, learner = prepared(self, X, y, gold, tasks, default_learner)
        trainer = AnnotationsTrainer.of(learner, self)
        trainer.fit_annotations(X, annotations, codes)
        self.history_ = trainer.history_
        self.model_ = self._model(trainer.without_workers(learner), X, annotations)
        self._set_workers(trainer, X, annotations, codes)
        return self

    def _set_workers(self, trainer: AnnotationsTrainer, X: Any, annotations: Annotations, gold: Codes | None) -> None:
        predictions = self.model_.predict_proba(X)
        self.confusion_: Floats = self._confusion(trainer, X, predictions)
        engine = ScipyEngine(annotations, "float64")
        step = engine.e_step(floored_log(self.confusion_), floored_log(predictions), gold)
        self.posterior_: Floats = step.posterior
        self.labels_: Ids = annotations.classes[step.posterior.argmax(axis=1)]
        self.prior_: Floats = predictions.mean(axis=0)
        self.skill_: Floats = Matrices(self.confusion_).skill(self.prior_)

    def _check(self) -> None:
        for name, allowed in self._ranges.items():
            if isinstance(allowed[0], str):
                check_choice(getattr(self, name), name, allowed)
            else:
                check_number(getattr(self, name), name, *allowed)

    def _layer(self, n_workers: int, n_classes: int) -> TopLayer:
        layer: TopLayer = self._kind(n_workers, n_classes, self)
        return layer

    def _rows(self, annotations: Annotations, gold: Codes | None) -> tuple[Codes, Codes, Codes]:
        """Return what batches are made of: task, worker and label of every annotation and gold label."""
        known = np.flatnonzero(gold >= 0) if gold is not None else np.empty(0, dtype=np.int64)
        task = np.concatenate([annotations.task, known])
        worker = np.concatenate([annotations.worker, np.full(len(known), GOLD)])
        return task, worker, np.concatenate([annotations.label, gold[known] if gold is not None else known])

    def _n_outputs(self, n_workers: int, n_classes: int) -> int:
        """Return how many numbers the network gives per task."""
        return n_classes

    def _model(self, networks: TorchLearner, X: Any, annotations: Annotations) -> TorchLearner:
        """Return the fitted learner that predicts by the trained networks."""
        return networks

    def _confusion(self, trainer: AnnotationsTrainer, X: Any, predictions: Floats) -> Floats:
        """Return the workers' matrices, the mean over the networks."""
        with torch.no_grad():
            found = torch.stack([layer.confusion().double() for layer in trainer.layers]).mean(dim=0)
        return np.asarray(found.cpu())


class AnnotationsTrainer(TorchLearner):
    """The training of a `TorchLearner` with annotations in the place of tasks, and a layer of workers on top."""

    crowd: CrowdNetwork
    shape: tuple[int, int]

    @classmethod
    def of(cls, learner: Any, crowd: CrowdNetwork) -> Self:
        if type(learner) is not TorchLearner:
            raise TypeError(
                f"learner must be a neural.TorchLearner, alone or at the end of a Pipeline; got {show(learner)}. "
                f"For other classifiers use labelonce.MBEM or labelonce.baselines.Raykar."
            )
        options = learner.get_params(deep=False)
        for name, value in _AS_THEY_ARE.items():
            if options[name] != value:
                raise ValueError(
                    f"{name} of the learner must be {value} for {type(crowd).__name__}, which trains on all "
                    f"annotations, as they are, to the last epoch; got {options[name]!r}."
                )
        if options["record"]:
            raise ValueError(
                f"record of the learner must be None or False for {type(crowd).__name__}, whose steps may wait for the "
                f"GPU; got {options['record']!r}."
            )
        trainer = cls(**options)
        trainer.crowd = crowd
        return trainer

    @property
    def layers(self) -> list[Any]:
        return [module.layer for module in self.modules_]

    def fit_annotations(self, X: Any, annotations: Annotations, gold: Codes | None) -> None:
        """Train on every row: for most methods an annotation, and every gold as one more."""
        task, worker, label = self.crowd._rows(annotations, gold)
        self._task, self._given = task.astype(np.int64), (annotations, gold)
        self.shape = annotations.n_workers, annotations.n_classes
        self.classes_ = np.arange(self.crowd._n_outputs(*self.shape))
        self._check()
        self._fit(X, np.column_stack([worker, label]).astype(np.int64), np.ones(len(worker), dtype=np.int64))

    def without_workers(self, learner: TorchLearner) -> TorchLearner:
        """Return the learner as if it had trained the networks by itself."""
        fitted: TorchLearner = clone(learner)
        fitted.modules_ = [module.base for module in self.modules_]  # type: ignore[misc]  # all are WithWorkers
        fitted.classes_, fitted.history_ = self.classes_, self.history_
        fitted._moments, fitted.n_features_in_ = self._moments, self.n_features_in_
        return fitted

    def make_module(self, n_classes: int, example: torch.Tensor) -> nn.Module:
        """Return a fresh network with a layer of workers, whose sizes the example sets."""
        base = super().make_module(len(self.classes_), example)
        layer = self.crowd._layer(*self.shape)
        layer.look(*self._given)
        whole = WithWorkers(base, layer.to(example.device))
        nobody = torch.zeros(len(example), dtype=torch.long, device=example.device)
        with torch.no_grad(), self._autocast():
            whole.eval()(example, nobody, nobody)
        return whole.train()

    def make_optimizer(self, module: nn.Module) -> torch.optim.Optimizer:
        """Return the optimiser; the workers' parameters are not decayed."""
        optimizer = super().make_optimizer(module.base)  # type: ignore[arg-type]  # a WithWorkers
        own = [parameter for parameter in module.layer.parameters() if parameter.requires_grad]  # type: ignore[union-attr]
        if own:
            rate = optimizer.param_groups[0]["lr"]
            rate = rate.clone() if isinstance(rate, torch.Tensor) else rate
            optimizer.add_param_group({"params": own, "weight_decay": 0.0, "lr": rate})
        return optimizer

    def step(self, module: Any, batch: torch.Tensor, targets: torch.Tensor, n_all: int) -> torch.Tensor:
        with self._autocast(), explained_alone(batch):
            loss: torch.Tensor = module(batch, targets[:, 0], targets[:, 1])
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def _make_rows(self, fitted: Ids, targets: Any, weight: Any, device: torch.device, processes: Processes) -> Rows:
        """Return the annotations: the task whose features they are of, worker and label."""
        task, codes, ones = (torch.from_numpy(part[fitted]).to(device) for part in (self._task, targets, weight))
        return Rows(task, codes, ones, 0, len(fitted))

    def _epoch(self, inputs: Inputs, rows: Rows, job: Training) -> float:
        job.module.layer.done = job.epoch / job.epochs  # type: ignore[union-attr]  # a WithWorkers
        return super()._epoch(inputs, rows, job)
