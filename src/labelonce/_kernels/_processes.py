"""The processes that `torchrun` started, sums over them, and the device of each; without it there is one process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from labelonce._messages import clip, show
from labelonce._types import Floats

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class Processes:
    """The processes that work together: those that `torch.distributed` joined if `shared`, else this one alone.

    torch is not loaded to find out.
    """

    def __init__(self, *, shared: bool = True) -> None:
        joined = _distributed() if shared else None
        self.rank, self.size = (0, 1) if joined is None else (int(joined.get_rank()), int(joined.get_world_size()))

    def sum(self, value: Tensor) -> Tensor:
        """Return the sum over all processes."""
        return self.sum_(value.clone()) if self.size > 1 else value

    def sum_(self, value: Tensor) -> Tensor:
        """Replace a tensor in place by its sum over all processes, and return it."""
        if self.size > 1:
            with _reaching_all():
                _distributed().all_reduce(value)
        return value

    def gather(self, value: Tensor) -> Tensor:
        """Return the values of all processes, in order."""
        if self.size == 1:
            return value
        torch = sys.modules["torch"]
        parts = [torch.empty_like(value) for _ in range(self.size)]
        with _reaching_all():
            _distributed().all_gather(parts, value)
        whole: Tensor = torch.cat(parts)
        return whole

    def same(self, number: int, device: torch.device) -> int:
        """Return the first process's number."""
        return int(self.gather(sys.modules["torch"].tensor([number], device=device))[0])

    def wait(self) -> None:
        """Wait until all processes are here."""
        if self.size > 1:
            with _reaching_all():
                _distributed().barrier()


@contextmanager
def _reaching_all() -> Iterator[None]:
    """Say in a sentence that a process is gone, whatever gloo and nccl say."""
    try:
        yield
    except RuntimeError as error:
        said = clip(" ".join(str(error).split()), 120)
        raise ConnectionError(
            f"every process of the run must be reached; one was lost: {said}. Start the same command on every host "
            "again: what has checkpoints resumes from the last one."
        ) from error


def n_processes() -> int:
    """Return how many processes are joined by `torch.distributed`; torch is not loaded to find out."""
    return Processes().size


def add_up(numbers: Any) -> Floats:
    """Return numbers summed over all processes, as float64; every process must call this with the same shape."""
    numbers = np.array(numbers, dtype=np.float64)
    distributed = _distributed()
    if distributed is None:
        return np.asarray(numbers)
    tensor = sys.modules["torch"].from_numpy(numbers)
    if distributed.get_backend() == "nccl":
        tensor = tensor.cuda(_local_gpu())
    return np.asarray(Processes().sum_(tensor).cpu())


def find_device(device: Any = None, *, shared: bool = True) -> torch.device:
    """Return the device asked for, by default CUDA where there is any.

    Several processes that share the work have a GPU each, unless one is asked for by its number.
    """
    import torch

    n_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    try:
        found = torch.device(("cuda" if n_gpus else "cpu") if device is None else device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(
            f"device must be a name that torch knows, such as 'cpu', 'cuda' or 'cuda:0'; got {show(device)}. "
            "Leave it out to use a GPU where there is one."
        ) from error
    if found.type != "cuda":
        return found
    if (found.index or 0) >= n_gpus:
        here = f"with {n_gpus} GPUs, numbered from 0" if n_gpus else "without a GPU that PyTorch can use"
        raise ValueError(f"device must be one that is here; got {show(device)} {here}. Leave it out, or give 'cpu'.")
    own = shared and found.index is None and n_processes() > 1
    return torch.device("cuda", _local_gpu()) if own else found


@contextmanager
def join_processes(device: Any = None) -> Iterator[Processes]:
    """Join the processes that `torchrun` started: gloo on the CPU, nccl on CUDA. Leave them again at the end."""
    from torch import cuda, distributed

    started = int(os.environ.get("WORLD_SIZE", "1")) > 1 and not distributed.is_initialized()
    if started:
        _start("nccl" if find_device(device).type == "cuda" else "gloo")
    try:
        found = find_device(device)
        if found.type == "cuda":
            cuda.set_device(found if found.index is not None else 0)
        yield Processes()
    finally:
        if started:
            distributed.destroy_process_group()


def _start(backend: str) -> None:
    """Find the other processes, under a name of its own for every restart.

    `torchrun` keeps one store over restarts: without that name a process may find the address of a killed one.
    """
    from torch import distributed
    from torch.distributed.distributed_c10d import PrefixStore, rendezvous  # type: ignore[attr-defined]  # not listed

    store, rank, size = next(rendezvous("env://"))
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    own = PrefixStore(f"labelonce/{attempt}", store)
    distributed.init_process_group(backend, store=own, rank=rank, world_size=size)


def _local_gpu() -> int:
    """Return the number of this process's GPU: each of those on one machine has its own."""
    n_gpus: int = sys.modules["torch"].cuda.device_count()
    return int(os.environ.get("LOCAL_RANK", "0")) % max(n_gpus, 1)


def _distributed() -> Any:
    """Return `torch.distributed` where processes are joined, else None."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return None
    return torch.distributed
