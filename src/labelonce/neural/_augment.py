"""Random views of a batch of images, drawn on the device that holds them."""

from __future__ import annotations

import torch
from torch.nn import functional as F


def flip_and_crop(images: torch.Tensor, pad: int, generator: torch.Generator) -> torch.Tensor:
    """Return the images flipped left to right at random and moved by up to `pad` pixels, mirrored at the edge."""
    n, _, height, width = images.shape
    flip = torch.rand(n, device=images.device, generator=generator) < 0.5
    images = torch.where(flip[:, None, None, None], images.flip(-1), images)
    down, right = torch.randint(0, 2 * pad + 1, (2, n), device=images.device, generator=generator)
    rows = (down[:, None] + torch.arange(height, device=images.device))[:, None, :, None]
    columns = (right[:, None] + torch.arange(width, device=images.device))[:, None, None, :]
    padded = F.pad(images, (pad,) * 4, mode="reflect").permute(0, 2, 3, 1)
    each = torch.arange(n, device=images.device)[:, None, None]
    return padded[each, rows[:, 0], columns[:, 0]].permute(0, 3, 1, 2)  # channels last in memory


def cut_out(images: torch.Tensor, size: int, generator: torch.Generator) -> torch.Tensor:
    """Return the images with a square of `size` pixels, centred anywhere, set to the mean.

    After T. DeVries and G. W. Taylor, "Improved Regularization of Convolutional Neural Networks with Cutout", arXiv
    1708.04552, 2017.
    """
    n, _, height, width = images.shape
    device = images.device
    row = torch.randint(0, height, (n, 1, 1, 1), device=device, generator=generator)
    column = torch.randint(0, width, (n, 1, 1, 1), device=device, generator=generator)
    far_down = torch.arange(height, device=device)[:, None] - row
    far_right = torch.arange(width, device=device) - column
    half = size / 2
    hidden = (far_down.abs() < half) & (far_right.abs() < half)
    return images.masked_fill(hidden, 0.0)


def mix_up(
    inputs: torch.Tensor, targets: torch.Tensor, share: float | torch.Tensor, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return `share` of every input and its (weighted) targets, and the rest of another one's.

    After H. Zhang, M. Cisse, Y. N. Dauphin and D. Lopez-Paz, "mixup: Beyond Empirical Risk Minimization", ICLR 2018.
    """
    other = torch.randperm(len(inputs), device=inputs.device, generator=generator)
    mixed = share * inputs + (1 - share) * inputs[other]
    return mixed, share * targets + (1 - share) * targets[other]
