"""Targets on slots: only one batch at a time becomes dense on the device."""

from typing import Any

import numpy as np
import torch

from labelonce._kernels import Beliefs


class SlotTargets:
    """Probability targets on slots, on a device; an index gives the dense targets of some tasks.

    >>> some = Beliefs(np.array([[0.5, 0.3], [0.4, 0.0]]), 4, np.array([[0, 2], [1, -1]]), np.array([0.2, 0.6]))
    >>> SlotTargets(some, torch.device("cpu"))[torch.tensor([1])]
    tensor([[0.2000, 0.4000, 0.2000, 0.2000]])
    """

    def __init__(self, targets: Beliefs, device: torch.device) -> None:
        self.shape = targets.shape
        # What is not there goes to a column of its own, which is cut off.
        place = np.where(targets.codes >= 0, targets.codes, targets.n_classes)
        self._place = torch.from_numpy(place.astype(np.int64)).to(device)
        self._probability = torch.from_numpy(targets.probability.astype(np.float32)).to(device)
        self._each = torch.from_numpy(targets.each_other.astype(np.float32)).to(device)

    def __getitem__(self, tasks: Any) -> torch.Tensor:
        each = self._each[tasks]
        dense = each[:, None].repeat(1, self.shape[1] + 1)
        return dense.scatter_(1, self._place[tasks], self._probability[tasks])[:, :-1]
