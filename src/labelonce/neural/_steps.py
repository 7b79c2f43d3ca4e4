"""The steps of a training, each a method to override, and where and in which precision they are done."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from labelonce._kernels import Processes
from labelonce._messages import clip, printable, show
from labelonce.neural._augment import affine, both_ways, cut_out, flip_and_crop, recolour
from labelonce.neural._data import Inputs
from labelonce.neural._options import TrainingOptions
from labelonce.neural._saving import is_ours
from labelonce.neural._training import Rows

_EXAMPLES = 5000  # inputs that a module may look at before training
_RECORDED = ("make_module", "make_optimizer", "views", "loss", "step")  # steps that a recording holds or relies on
_NOT_X = ("CUDA", "cuDNN", "allocate", " device")  # words of errors that are about the machine


class Steps(TrainingOptions):
    """What `TorchLearner` does with a network, one method for each small step."""

    modules_: list[nn.Module]

    def make_module(self, n_classes: int, example: torch.Tensor) -> nn.Module:
        """Return a fresh network on the device; `example` are two inputs, or the only one."""
        self._check_module_fn()
        module = self.module_fn(n_classes)
        if not isinstance(module, nn.Module):
            raise TypeError(f"module_fn must return a torch.nn.Module; {_name(self.module_fn)} gave {show(module)}.")
        module = module.to(example.device)
        with torch.no_grad(), self._autocast(), explained(self.module_fn, example):
            logits = module.eval()(example)  # sizes of lazy layers
        found = tuple(logits.shape) if isinstance(logits, torch.Tensor) else type(logits).__name__
        if found != (len(example), n_classes):
            raise ValueError(
                f"the module of module_fn must give {n_classes} numbers per task, one for each class, so "
                f"{(len(example), n_classes)} for {len(example)} tasks; {_name(self.module_fn)} gave {found}. "
                "Let module_fn use the number of classes that it is given."
            )
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
        if images and self.strong and self.augment != "none":
            n_weak = round((1 - self.strong) * len(batch))
            both = self.weak_views(batch[:n_weak], generator), self.strong_views(batch[n_weak:], generator)
            return torch.cat(both).contiguous(memory_format=torch.channels_last)
        return self.weak_views(batch, generator)

    def weak_views(self, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Return inputs flipped, moved and partly hidden, if they are images."""
        images = batch.ndim == 4
        if self.augment == "images" or (self.augment == "auto" and images):
            batch = flip_and_crop(batch, self.pad, generator)
        return cut_out(batch, self.cutout, generator) if self.cutout and images else batch

    def strong_views(self, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Return images that are also turned, sheared and recoloured."""
        batch = recolour(affine(batch, generator), generator)
        return cut_out(batch, self.cutout, generator) if self.cutout else batch

    def loss(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the loss summed over the batch; targets are already multiplied by the weights."""
        if self.label_smoothing:
            mass = targets.sum(dim=1, keepdim=True)
            targets = (1 - self.label_smoothing) * targets + self.label_smoothing * mass / targets.shape[1]
        return -(targets * F.log_softmax(logits.float(), dim=1)).sum()

    @torch.no_grad()
    def predict_batch(self, module: nn.Module, batch: torch.Tensor) -> torch.Tensor:
        """Return P(class) of a batch by one network, without random views."""
        return self._mean_over_views(module, batch, lambda logits: logits.softmax(dim=1))

    def _mean_over_views(
        self, module: nn.Module, batch: torch.Tensor, shown: Callable[[torch.Tensor], torch.Tensor]
    ) -> torch.Tensor:
        """Return what is `shown` of the logits of a batch, the mean over mirrored and, once trained, moved images."""
        module.eval()
        views = [(1.0, batch)]
        moves = batch.ndim == 4 and 0 < self.shift_predictions < min(batch.shape[2:])
        if moves and "_seen" not in vars(self):  # which a training holds
            views = [(0.5, batch), *((0.25, moved) for moved in both_ways(batch, self.shift_predictions))]
        if batch.ndim == 4 and self.flip_predictions:
            views = [(share / 2, one) for share, view in views for one in (view, view.flip(-1))]
        with self._autocast():
            return torch.stack([share * shown(module(view).float()) for share, view in views]).sum(dim=0)

    def step(
        self, module: Callable[[torch.Tensor], torch.Tensor], batch: torch.Tensor, targets: torch.Tensor, n_all: int
    ) -> torch.Tensor:
        """Return the loss of a batch per task, with its gradients computed; `n_all` tasks over all processes."""
        with self._autocast(), explained_alone(batch):
            logits = module(batch)
        n_processes = Processes(shared=self.shared).size  # over which gradients are averaged
        loss = self.loss(logits, targets) * (n_processes / n_all)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def _new_module(self, inputs: Inputs, rows: Rows) -> nn.Module:
        """Return a fresh network that has looked at the first inputs if it wants to: if it has a method `start`."""
        example = inputs.take(rows.number[:2])
        module = self.make_module(self._n_outputs(rows), example)
        self._check_views(tuple(example.shape))
        start: Any = getattr(module, "start", None)
        if start is not None:
            start(inputs.take(rows.number[: inputs.at_most(_EXAMPLES)]))
        return module

    def _n_outputs(self, rows: Rows) -> int:
        """Return how many numbers the network gives for a task."""
        return int(rows.targets.shape[1])

    def _check_views(self, shape: tuple[int, ...]) -> None:
        """Raise if inputs of this shape cannot be flipped and moved as asked for."""
        if self.augment == "none" or type(self).views is not Steps.views:
            return
        if len(shape) != 4:
            if self.augment == "images":
                raise ValueError(
                    f"augment='images' needs images (n_tasks, 3, height, width); X has {shape[1:]} per task. "
                    "Leave augment at 'auto', which changes images only."
                )
        elif self.pad >= min(shape[2:]):
            raise ValueError(
                f"pad must be smaller than the images, which are {shape[2]} x {shape[3]} with {shape[1]} channels; "
                f"got pad={self.pad}. Lower pad, or set augment='none' if these are not images (n_tasks, 3, height, "
                "width)."
            )

    def _records(self) -> bool:
        """Return whether steps may be recorded: nothing in them may wait for the card."""
        if self.record is not None:
            return self.record
        own = all(getattr(type(self), name) is getattr(Steps, name) for name in _RECORDED)
        return own and is_ours(self.module_fn)

    def _place(self) -> torch.device:
        """Return where the fitted networks are, which need not be where the next ones would be."""
        default = self._device()
        return next((parameter.device for parameter in self.modules_[0].parameters()), default)


@contextmanager
def explained(module_fn: Any, batch: torch.Tensor, *, fitted: bool = False) -> Iterator[None]:
    """Turn what a network says of inputs that it cannot take into one sentence; `fitted`: it could take others."""
    try:
        yield
    except (RuntimeError, ValueError, TypeError, IndexError, AssertionError) as error:
        if any(word in str(error) for word in _NOT_X):
            raise
        cause = clip(printable(str(error).split("\n")[0]), 120) or type(error).__name__
        fix = "Give tasks of the shape that it was fitted to." if fitted else _fix(tuple(batch.shape))
        raise ValueError(
            f"X must be what module_fn takes; {_name(module_fn)} failed on inputs of shape {tuple(batch.shape)} "
            f"({cause.rstrip('.')}). {fix}"
        ) from error


@contextmanager
def explained_alone(batch: torch.Tensor) -> Iterator[None]:
    """Say what to do where batch normalisation refuses a batch of one task."""
    try:
        yield
    except ValueError as error:
        if len(batch) != 1 or "more than 1 value per channel" not in str(error):
            raise
        raise ValueError(
            f"batch normalisation needs two tasks or more in a step of a process; got 1, of shape "
            f"{tuple(batch.shape[1:])}. Raise batch_size, give more tasks, or use a network without it, such as "
            "neural.mlp."
        ) from error


def _name(module_fn: Any) -> str:
    function = getattr(module_fn, "func", module_fn)
    return str(getattr(function, "__name__", None) or show(function))


def _fix(shape: tuple[int, ...]) -> str:
    """Return what to do with inputs of this shape, if the network wants images."""
    wanted = "Networks for images want (n_tasks, 3, height, width)"
    if len(shape) == 2:
        return f"{wanted}; for a table use neural.mlp."
    if len(shape) == 3:
        return f"{wanted}; for grey ones give np.repeat(X[:, None], 3, axis=1)."
    if len(shape) == 4 and 1 in (shape[1], shape[3]):
        return f"{wanted}; for grey ones give np.repeat(X, 3, axis={1 if shape[1] == 1 else 3})."
    if len(shape) == 4 and 4 in (shape[1], shape[3]):
        return f"{wanted}; without transparency that is {'X[:, :3]' if shape[1] == 4 else 'X[..., :3]'}."
    if len(shape) == 4 and shape[1] == 3:
        return "The images may be too small for it: make them larger."
    return f"{wanted}."
