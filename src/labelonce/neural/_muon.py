"""Muon: momentum whose steps on filters have singular values near one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

_QUINTIC = (3.4445, -4.7750, 2.0315)  # of the authors: steep at 0, near 1 from 0.3 to 1.2


class Muon(torch.optim.Optimizer):
    """Nesterov momentum; in groups with `orthogonal` the step of a filter bank is made orthogonal.

    Such banks are kept at a norm of one per filter, so that the rate is the relative size of a step: for filters that
    are followed by normalisation. After K. Jordan, "Muon: An optimizer for hidden layers in neural networks", 2024.
    """

    def __init__(self, groups: Iterable[dict[str, Any]], *, lr: float, momentum: float) -> None:
        super().__init__(groups, {"lr": lr, "momentum": momentum, "weight_decay": 0.0, "orthogonal": False})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]  # noqa: ARG002
        """Take a step."""
        for group in self.param_groups:
            for one in group["params"]:
                if one.grad is not None:
                    self._move(one, one.grad, group)

    def _move(self, one: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]) -> None:
        if group["weight_decay"]:
            gradient = gradient.add(one, alpha=group["weight_decay"])
        state = self.state[one]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(one)
        velocity = state["momentum_buffer"].mul_(group["momentum"]).add_(gradient)
        step = gradient.add(velocity, alpha=group["momentum"])
        if group["orthogonal"]:
            one.mul_(len(one) ** 0.5 / one.norm())
            step = orthogonal(step.flatten(1)).view_as(one)
        one.sub_(step * group["lr"])


def orthogonal(matrix: torch.Tensor, steps: int = 5) -> torch.Tensor:
    """Return a matrix with the same singular vectors and singular values near one, by Newton-Schulz iterations."""
    a, b, c = _QUINTIC
    x = matrix.bfloat16() if matrix.is_cuda else matrix
    x = x / (x.norm() + 1e-7)
    wide = x if x.shape[0] <= x.shape[1] else x.T
    for _ in range(steps):
        square = wide @ wide.T
        wide = a * wide + (b * square + c * square @ square) @ wide
    found: torch.Tensor = wide if x.shape[0] <= x.shape[1] else wide.T
    return found.to(matrix.dtype)
