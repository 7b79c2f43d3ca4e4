"""Training steps as CUDA graphs: recorded once, then replayed."""

from collections.abc import Callable

import torch

Step = Callable[[torch.Tensor, torch.Tensor, torch.Tensor | None], torch.Tensor]

_WARM_UP = 3  # steps before one is recorded: libraries choose their kernels, optimisers make their averages


def check_rates(optimizer: torch.optim.Optimizer) -> None:
    """Raise unless every rate is a tensor: a number would stay for ever what it was in the recorded step."""
    for group in optimizer.param_groups:
        if not isinstance(group["lr"], torch.Tensor):
            raise ValueError(
                f"a recorded step needs rates that are tensors on the device, one for every group; make_optimizer gave "
                f"lr={group['lr']!r}. Give a tensor, or record=False."
            )


class Recording:
    """A step that is done a few times, then recorded as a CUDA graph, and replayed from then on.

    Launching its kernels one by one may take the host longer than a small network takes the card.
    """

    def __init__(self, generator: torch.Generator) -> None:
        self.generator = generator
        self.stream = torch.cuda.Stream(generator.device)  # type: ignore[no-untyped-call]
        self.n_done = 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.inputs: list[torch.Tensor | None] = []
        self.output = torch.empty(0)

    def __call__(self, step: Step, *inputs: torch.Tensor | None) -> torch.Tensor:
        """Do the step; the returned tensor is overwritten by the next call."""
        with torch.cuda.device(self.generator.device):
            return self._do(step, *inputs)

    def _do(self, step: Step, *inputs: torch.Tensor | None) -> torch.Tensor:
        self.n_done += 1
        if self.n_done <= _WARM_UP:
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                self.output = step(*inputs)  # type: ignore[arg-type]
            torch.cuda.current_stream().wait_stream(self.stream)
            return self.output
        if self.graph is None:
            self.inputs = [None if one is None else one.clone() for one in inputs]
            self.graph = torch.cuda.CUDAGraph()
            self.graph.register_generator_state(self.generator)
            with torch.cuda.graph(self.graph, stream=self.stream, capture_error_mode="thread_local"):
                self.output = step(*self.inputs)  # type: ignore[arg-type]
        else:
            for kept, given in zip(self.inputs, inputs, strict=True):
                if kept is not None and given is not None:
                    kept.copy_(given)
        self.graph.replay()
        return self.output
