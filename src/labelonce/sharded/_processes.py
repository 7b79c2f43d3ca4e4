"""The processes that work together under `torchrun`; without it there is one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, distributed
from torch.distributed.distributed_c10d import PrefixStore, rendezvous  # type: ignore[attr-defined]  # not re-exported

from labelonce._kernels._torch import find_device
from labelonce._processes import local_gpu


@dataclass(frozen=True)
class Processes:
    """The number of this process, how many there are, and the device that this one works on."""

    rank: int
    size: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """Whether this process writes what there is once."""
        return self.rank == 0

    def add_up(self, numbers: Tensor) -> None:
        """Replace numbers in place by their sum over all processes."""
        if self.size > 1:
            distributed.all_reduce(numbers)

    def wait(self) -> None:
        """Wait until all processes are here."""
        if self.size > 1:
            distributed.barrier()


@contextmanager
def join_processes(device: str | None) -> Iterator[Processes]:
    """Join those that `torchrun` started: gloo on the CPU, nccl on CUDA, a GPU each."""
    found = find_device(device)
    if found.type == "cuda":
        found = torch.device("cuda", local_gpu())
        torch.cuda.set_device(found)
    started = int(os.environ.get("WORLD_SIZE", "1")) > 1 and not distributed.is_initialized()
    if started:
        _start("nccl" if found.type == "cuda" else "gloo")
    try:
        many = distributed.is_available() and distributed.is_initialized()
        rank, size = (distributed.get_rank(), distributed.get_world_size()) if many else (0, 1)
        yield Processes(rank, size, found)
    finally:
        if started:
            distributed.destroy_process_group()


def _start(backend: str) -> None:
    """Find the other processes, under a name of its own for every restart.

    `torchrun` keeps one store over restarts: without that name a process may find the address of a killed one.
    """
    store, rank, size = next(rendezvous("env://"))
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    own = PrefixStore(f"labelonce/{attempt}", store)
    distributed.init_process_group(backend, store=own, rank=rank, world_size=size)
