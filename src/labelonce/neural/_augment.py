"""Random views of a batch of images, drawn on the device that holds them."""

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


def both_ways(images: torch.Tensor, by: int) -> list[torch.Tensor]:
    """Return the images moved down and right, and up and left, by N pixels, mirrored at the edge."""
    height, width = images.shape[2:]
    padded = F.pad(images, (by,) * 4, mode="reflect")
    moved = (padded[:, :, at : at + height, at : at + width] for at in (0, 2 * by))
    return [one.contiguous(memory_format=torch.channels_last) for one in moved]


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


def affine(
    images: torch.Tensor,
    generator: torch.Generator,
    *,
    turn: float = 0.4,
    scale: float = 0.2,
    shear: float = 0.25,
    move: float = 0.15,
    share: float = 0.7,
) -> torch.Tensor:
    """Return the images flipped at random and moved by up to `move` of their half width, mirrored at the edge.

    A `share` of them is also turned (radians), scaled and sheared by up to so much.
    """
    n, device = len(images), images.device
    used = torch.rand(n, device=device, generator=generator) < share
    angle, size, skew = (_even(images, generator, -most, most) * used for most in (turn, scale, shear))
    right, down = (_even(images, generator, -move, move) for _ in range(2))
    flip = (torch.rand(n, device=device, generator=generator) < 0.5) * 2.0 - 1.0
    cos, sin = angle.cos() / (1 + size), angle.sin() / (1 + size)
    rows = (torch.stack([flip * cos, skew - sin, right], 1), torch.stack([flip * sin, cos, down], 1))
    grid = F.affine_grid(torch.stack(rows, 1), list(images.shape), align_corners=False)
    moved = F.grid_sample(images.float(), grid, padding_mode="reflection", align_corners=False)
    return moved.to(images.dtype)


def recolour(
    images: torch.Tensor,
    generator: torch.Generator,
    *,
    contrast: float = 0.6,
    brightness: float = 0.6,
    saturation: float = 1.0,
    tint: float = 0.2,
) -> torch.Tensor:
    """Return standardised images with another contrast, brightness, saturation and tint, each drawn up to so much."""
    pixels = images.float()

    def drawn(most: float, middle: float, n_channels: int = 1) -> torch.Tensor:
        return _even(images, generator, middle - most, middle + most, n_channels, 1, 1)

    mean = pixels.mean(dim=(1, 2, 3), keepdim=True)
    pixels = (pixels - mean) * drawn(contrast, 1.0) + mean + drawn(brightness, 0.0)
    grey = pixels.mean(dim=1, keepdim=True)
    pixels = grey + (pixels - grey) * drawn(saturation, 1.0)
    return (pixels + drawn(tint, 0.0, images.shape[1])).to(images.dtype)


def _even(images: torch.Tensor, generator: torch.Generator, least: float, most: float, *shape: int) -> torch.Tensor:
    """Return numbers between two ends for every image."""
    drawn = torch.rand(len(images), *shape, device=images.device, generator=generator)
    return least + (most - least) * drawn


def mix_up(
    inputs: torch.Tensor, targets: torch.Tensor, share: float | torch.Tensor, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return `share` of every input and its (weighted) targets, and the rest of another one's.

    After H. Zhang, M. Cisse, Y. N. Dauphin and D. Lopez-Paz, "mixup: Beyond Empirical Risk Minimization", ICLR 2018.
    """
    other = torch.randperm(len(inputs), device=inputs.device, generator=generator)
    mixed = share * inputs + (1 - share) * inputs[other]
    return mixed, share * targets + (1 - share) * targets[other]
