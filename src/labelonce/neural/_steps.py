"""The steps of a training, each a method to override, and where and in which precision they are done."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from labelonce._processes import local_gpu
from labelonce._sklearn import ClassifierBase
from labelonce.neural._augment import cut_out, flip_and_crop
from labelonce.neural._saving import is_ours
from labelonce.neural._training import Group

_RECORDED = ("make_module", "make_optimizer", "views", "loss", "step")  # steps that a recording holds or relies on


class Steps(ClassifierBase):
    """What `TorchLearner` does with a network, one small step a method."""

    module_fn: Callable[[int], nn.Module]
    optimizer: str
    lr: float
    momentum: float
    weight_decay: float
    warmup: float
    augment: str
    pad: int
    cutout: int
    label_smoothing: float
    flip_predictions: bool
    shared: bool
    record: bool | None
    device: str | None
    precision: str

    def make_module(self, n_classes: int, example: torch.Tensor) -> nn.Module:
        """Return a fresh network on the device; `example` are some inputs."""
        module = self.module_fn(n_classes).to(example.device)
        start: Any = getattr(module, "start", None)
        if start is not None:
            start(example)
        with torch.no_grad(), self._autocast():
            module.eval()(example[:2])  # sizes of lazy layers
        if example.ndim == 4:
            module = module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return module.train()

    def make_optimizer(self, module: nn.Module) -> torch.optim.Optimizer:
        """Return the optimiser; normalisation and biases are not decayed, and may have a rate of their own."""
        trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
        matrices = {"params": [p for p in trained if p.ndim > 1], "weight_decay": self.weight_decay}
        vectors = {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0}
        vectors["rate"] = getattr(module, "vector_rate", 1.0)
        groups: list[dict[str, Any]] = [group for group in (matrices, vectors) if group["params"]]
        fused = self._device().type == "cuda"
        if fused:
            for group in groups:  # a tensor, since a recorded step reads the rate when it is replayed
                group["lr"] = torch.tensor(self.lr, dtype=torch.float32, device=self._device())
        if self.optimizer == "adamw":
            betas = (self.momentum, 0.99)
            return torch.optim.AdamW(groups, lr=self.lr, betas=betas, fused=fused, capturable=fused)
        return torch.optim.SGD(groups, lr=self.lr, momentum=self.momentum, nesterov=self.momentum > 0, fused=fused)

    def rate(self, done: float) -> float:
        """Return the rate when a share `done` of the steps is over: up in a straight line, then down."""
        up = done / self.warmup if self.warmup > 0 else 1.0
        down = (1 - done) / (1 - self.warmup) if self.warmup < 1 else 1.0
        return self.lr * min(up, down)

    def views(self, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Return the random views of a batch that are trained on."""
        images = batch.ndim == 4
        if self.augment == "images" or (self.augment == "auto" and images):
            batch = flip_and_crop(batch, self.pad, generator)
        return cut_out(batch, self.cutout, generator) if self.cutout and images else batch

    def loss(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the loss summed over the batch; targets are already multiplied by the weights."""
        if self.label_smoothing:
            mass = targets.sum(dim=1, keepdim=True)
            targets = (1 - self.label_smoothing) * targets + self.label_smoothing * mass / targets.shape[1]
        return -(targets * F.log_softmax(logits.float(), dim=1)).sum()

    @torch.no_grad()
    def predict_batch(self, module: nn.Module, batch: torch.Tensor) -> torch.Tensor:
        """Return P(class) of a batch by one network, without random views."""
        module.eval()
        with self._autocast():
            found: torch.Tensor = module(batch).float().softmax(dim=1)
            if self.flip_predictions and batch.ndim == 4:
                found = (found + module(batch.flip(-1)).float().softmax(dim=1)) / 2
        return found

    def step(
        self, module: Callable[[torch.Tensor], torch.Tensor], batch: torch.Tensor, targets: torch.Tensor, n_all: int
    ) -> torch.Tensor:
        """Return the loss of a batch per task, with its gradients computed; `n_all` tasks over all processes."""
        with self._autocast():
            logits = module(batch)
        loss = self.loss(logits, targets) * (
            Group(shared=self.shared).size / n_all
        )  # gradients are averaged over processes
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def _records(self) -> bool:
        """Return whether steps may be recorded: nothing in them may wait for the card."""
        if self.record is not None:
            return self.record
        own = all(getattr(type(self), name) is getattr(Steps, name) for name in _RECORDED)
        return own and is_ours(self.module_fn)

    def _device(self) -> torch.device:
        here = torch.cuda.is_available()
        device = torch.device(("cuda" if here else "cpu") if self.device is None else self.device)
        if device.type == "cuda" and not here:
            raise ValueError(f"device must be one that is here; got {self.device!r} without a GPU. Leave it out.")
        if device.type == "cuda" and self.shared:
            return torch.device("cuda", local_gpu())
        return device

    def _dtype(self) -> torch.dtype:
        half = self.precision == "bfloat16" or (self.precision == "auto" and self._device().type == "cuda")
        return torch.bfloat16 if half else torch.float32

    def _autocast(self) -> AbstractContextManager[Any]:
        if self._dtype() == torch.float32:
            return nullcontext()
        return torch.autocast(self._device().type, self._dtype())
