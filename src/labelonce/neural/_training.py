"""One network's training: the order of the tasks, the processes that share it, and the epochs done."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import torch

# Loaded before the processes are joined: its default arguments keep the group that there is, torch loads it with the
# first optimiser, and threads of a group that is kept may touch a tensor while Python ends, which aborts the process.
import torch.distributed.nn.functional
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from labelonce._kernels import Processes, on_slots
from labelonce._rules import RULES
from labelonce._types import Floats, Ids
from labelonce.neural._recording import Recording, Step, check_rates
from labelonce.neural._slot_targets import SlotTargets


@dataclass
class Rows:
    """The tasks that are trained on: their numbers in the inputs, targets, and weights with a mean of 1.

    Under `torchrun` every process has its own tasks; `first` and `n_all` place them among those of all processes.
    """

    number: torch.Tensor
    targets: Any  # a tensor, or CandidateTargets, whose index gives one
    weight: torch.Tensor
    first: int
    n_all: int

    def batches(self, size: int, generator: torch.Generator) -> Iterator[tuple[torch.Tensor, int]]:
        """Yield, in a random order that all processes share, this process's part of each batch and the whole's size."""
        order = torch.randperm(self.n_all, generator=generator, device=generator.device)
        whole = order[: self.n_all - self.n_all % size] if self.n_all >= size else order
        for batch in torch.split(whole, size):
            if len(self.number) == self.n_all:
                yield batch, len(batch)
            else:
                mine = batch[(batch >= self.first) & (batch < self.first + len(self.number))] - self.first
                yield mine, len(batch)


def make_rows(number: Ids, targets: Any, weight: Floats, device: torch.device, processes: Processes) -> Rows:
    """Return the rows on the device, with their place among those of all processes; targets may be `Beliefs`."""
    counts = processes.gather(torch.tensor([len(number)], device=device)).tolist()
    n_all = int(sum(counts))
    total = float(processes.sum(torch.tensor(weight.sum(), dtype=torch.float64, device=device)))
    scaled = weight * (n_all / total)
    number_, weight_ = (torch.from_numpy(part).to(device) for part in (number, scaled))
    few = on_slots(targets)
    targets_: Any = torch.from_numpy(targets).to(device).float() if few is None else SlotTargets(few, device)
    return Rows(number_, targets_, weight_.float(), int(sum(counts[: processes.rank])), n_all)


def wrap(module: nn.Module, device: torch.device, processes: Processes) -> nn.Module:
    """Return the module, wrapped where several processes train it: gradients are averaged over them."""
    if processes.size == 1:
        return module
    if device.type == "cuda":
        module = nn.SyncBatchNorm.convert_sync_batchnorm(module)  # type: ignore[no-untyped-call]
    ids = [device.index] if device.type == "cuda" else None
    known = signature(DistributedDataParallel).parameters
    name = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
    left_alone: dict[str, Any] = {name: False}
    return DistributedDataParallel(module, device_ids=ids, **left_alone)


def average_buffers(module: nn.Module, share: float, processes: Processes) -> None:
    """Make the statistics of normalisation layers the same in all processes; this one has a share of the tasks."""
    if processes.size > 1:
        for buffer in module.buffers():
            if buffer.is_floating_point():
                buffer.copy_(processes.sum(buffer * share))


class Teacher:
    """The average of a network's weights over its steps, which predicts better than the last weights while it learns.

    It forgets the steps with `decay`, faster at first. After A. Tarvainen and H. Valpola, "Mean Teachers Are Better
    Role Models", NeurIPS 2017.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.module, self.decay, self.steps = deepcopy(module).eval().requires_grad_(False), decay, 0

    @torch.no_grad()
    def follow(self, module: nn.Module) -> None:
        """Take a step of the network into the average, statistics of its normalisation layers included."""
        self.steps += 1
        share = 1 - min(self.decay, self.steps / (self.steps + 50))
        torch._foreach_lerp_(_floats(self.module), _floats(module), share)


def _floats(module: nn.Module) -> list[torch.Tensor]:
    return [one.detach() for one in (*module.parameters(), *module.buffers()) if one.is_floating_point()]


class Training:
    """One network on its way: the module, its optimiser, the epochs done, and what is random.

    `order` draws the order of the tasks, the same in all processes; `generator` everything else. They are one where one
    process trains.
    """

    def __init__(
        self,
        module: nn.Module,
        optimizer: torch.optim.Optimizer,
        generator: torch.Generator,
        seed: int,
        size: int,
        epochs: int,
        processes: Processes,
        *,
        compiled: bool,
        recorded: bool,
        teacher: float = 0.0,
    ) -> None:
        self.module, self.optimizer, self.order, self.processes = module, optimizer, generator, processes
        self.seed, self.size, self.epochs = seed, size, epochs
        self.epoch, self.stopped = 0, False
        self.generator = generator if processes.size == 1 else torch.Generator(generator.device)
        self.stepped: Any = wrap(module, generator.device, processes)
        self.teacher = Teacher(module, teacher) if teacher else None
        if compiled:
            self.stepped = torch.compile(self.stepped)
        self.recording: Recording | None = None
        if recorded:
            check_rates(optimizer)
            self.recording = Recording(generator)

    @contextmanager
    def in_epoch(self, share: float) -> Iterator[None]:
        """Do an epoch inside: what is random is decided by its number, and all processes end with the same module.

        Every process draws views of its own; `share` of all tasks are its own.
        """
        self.module.train()
        device = self.order.device
        own = np.random.SeedSequence([self.seed, self.epoch, self.processes.rank]).generate_state(2)
        if self.processes.size > 1:
            self.generator.manual_seed(int(own[0]))
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(int(own[1]))  # of dropout
            yield
        self.epoch += 1
        average_buffers(self.module, share, self.processes)
        if self.teacher is not None:
            average_buffers(self.teacher.module, share, self.processes)

    @property
    def predictor(self) -> nn.Module:
        return self.module if self.teacher is None else self.teacher.module

    def finish(self) -> None:
        """Let go of what only steps need: gradients would keep a recording's memory."""
        self.optimizer.zero_grad(set_to_none=True)
        self.recording = None

    def set_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            own = rate * group.get("rate", 1.0)
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].fill_(own)
            else:
                group["lr"] = own

    def do(self, step: Step, *inputs: torch.Tensor | None) -> torch.Tensor:
        """Do a step, or replay the recorded one."""
        done = step(*inputs) if self.recording is None else self.recording(step, *inputs)  # type: ignore[arg-type]
        if self.teacher is not None:
            self.teacher.follow(self.module)
        return done


def end_of(stage: int, n: int) -> float:
    """Return the share of the epochs that is done after a stage of `n`; the first is the longest.

    >>> [end_of(stage, 4) for stage in range(4)], end_of(0, 1)
    ([0.25, 0.5, 0.75, 1.0], 1.0)
    """
    first = RULES.first_judgement
    return 1.0 if stage + 1 == n else first + (1 - first) * stage / (n - 1)


class Best:
    """The epoch with the lowest loss on held-out targets, and whether patience has run out."""

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.loss = float("inf")
        self.since = 0
        self.state: dict[str, torch.Tensor] = {}

    def is_over(self, loss: float, module: nn.Module) -> bool:
        """Take note of an epoch; return whether the best one is `patience` epochs ago."""
        self.since += 1
        if loss < self.loss:
            self.loss, self.since = loss, 0
            self.state = {name: value.clone() for name, value in module.state_dict().items()}
        return self.since >= self.patience

    def restore(self, module: nn.Module) -> None:
        """Give the module the parameters of the best epoch, if one was noted."""
        if self.state:
            module.load_state_dict(self.state)


@dataclass
class Run:
    """A training with the tasks that it is fitted to, those held out, and the best epoch on these."""

    job: Training
    rows: Rows
    fitted: Ids
    held: Ids
    best: Best
