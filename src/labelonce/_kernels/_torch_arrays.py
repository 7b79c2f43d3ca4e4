"""The sums on slots in torch: on CPU threads or CUDA, where the places of the labels stay between steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelonce._kernels._processes import find_device
from labelonce._types import Floats

_BLOCK = {"cpu": 1 << 20, "cuda": 1 << 24}


class TorchArrays:
    """Tensors on a device; see `Arrays`."""

    functions = torch
    keeps_blocks = True

    def __init__(self, dtype: str = "float64", device: str | None = None) -> None:
        self.device, self.dtype, self.kind = find_device(device), np.dtype(dtype), getattr(torch, dtype)
        self.block = _BLOCK[self.device.type]

    def put(self, array: Any) -> Tensor:
        return torch.as_tensor(array, device=self.device)

    def get(self, array: Tensor) -> Floats:
        return np.asarray(array.cpu())

    def floats(self, array: Any) -> Tensor:
        return torch.as_tensor(array, dtype=self.kind, device=self.device)

    def zeros(self, n: int) -> Tensor:
        return torch.zeros(n, dtype=torch.float64, device=self.device)

    def take(self, table: Tensor, place: Tensor) -> Tensor:
        return table[place]

    def rows(self, wide: Tensor, place: Tensor) -> Tensor:
        return wide[place]

    def set_at(self, wide: Tensor, place: Tensor, values: Any) -> None:
        values = torch.as_tensor(values, dtype=wide.dtype, device=self.device).expand(len(wide))
        wide.scatter_(1, place[:, None], values[:, None])

    def at(self, wide: Tensor, place: Tensor) -> Tensor:
        return wide.gather(1, place[:, None])[:, 0]

    def sum_runs(self, wide: Tensor, start: Tensor, each: int) -> Tensor:
        if each:
            return wide.view(-1, each, wide.shape[1]).sum(dim=1)
        return torch.segment_reduce(wide, "sum", offsets=start, unsafe=True, initial=0)

    def normalise(self, log_joint: Tensor) -> float:
        mass = log_joint.logsumexp(dim=1, keepdim=True)
        log_joint.sub_(mass).exp_()
        return float(mass.sum(dtype=torch.float64))

    def add_at(self, totals: Tensor, place: Tensor, values: Tensor) -> None:
        totals.index_add_(0, place.flatten(), values.flatten().double())
