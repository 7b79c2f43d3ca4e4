"""The processes that `torchrun` started, and sums over them; without it there is one."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from labelonce._types import Floats


def n_processes() -> int:
    """Return how many processes are joined by `torch.distributed`; torch is not loaded to find out."""
    distributed = _distributed()
    return 1 if distributed is None else int(distributed.get_world_size())


def add_up(numbers: Any) -> Floats:
    """Return numbers summed over all processes, as float64; every process must call this with the same shape."""
    numbers = np.array(numbers, dtype=np.float64)
    distributed = _distributed()
    if distributed is None:
        return np.asarray(numbers)
    tensor = sys.modules["torch"].from_numpy(numbers)
    if distributed.get_backend() == "nccl":
        tensor = tensor.cuda(local_gpu())
    distributed.all_reduce(tensor)
    return np.asarray(tensor.cpu())


def local_gpu() -> int:
    """Return the number of this process's GPU: each of those on one machine has its own."""
    n_gpus: int = sys.modules["torch"].cuda.device_count()
    return int(os.environ.get("LOCAL_RANK", "0")) % max(n_gpus, 1)


def _distributed() -> Any:
    """Return `torch.distributed` where processes are joined, else None."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return None
    return torch.distributed
