"""Networks for small images and for feature vectors; each function returns a fresh module for `n_classes`."""

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F


class MLP(nn.Sequential):
    """Hidden layers of equal width with ReLU, for feature vectors; the first layer takes any number of features."""

    def __init__(self, n_classes: int, *, width: int = 256, depth: int = 2, dropout: float = 0.0) -> None:
        layers: list[nn.Module] = [nn.Flatten()]
        for number in range(depth):
            layers += [nn.LazyLinear(width) if number == 0 else nn.Linear(width, width), nn.ReLU(), nn.Dropout(dropout)]
        super().__init__(*layers, nn.LazyLinear(n_classes))


class FastNet(nn.Module):
    """A shallow wide net that learns 32 x 32 images in a few epochs.

    A frozen first layer whitens 2 x 2 patches of the training images, so that training starts well conditioned; then
    three groups of convolutions, each halving the image, and a linear layer on the maximum. Normalisation has no
    scale, only a shift.

    References
    ----------
    K. Jordan, "94% on CIFAR-10 in 3.29 Seconds on a Single GPU", arXiv 2404.00498, 2024, which builds on D. Page,
    "How to Train Your ResNet", 2018.
    """

    def __init__(self, n_classes: int, *, widths: tuple[int, int, int] = (64, 256, 256)) -> None:
        super().__init__()
        self.whiten = nn.Conv2d(3, 24, 2, bias=False)
        self.whiten.weight.requires_grad_(False)
        sizes = (24, *widths)
        self.groups = nn.Sequential(*(_group(sizes[i], sizes[i + 1]) for i in range(3)))
        self.head = nn.Linear(widths[-1], n_classes, bias=False)
        self.scale = 1 / 9
        self.vector_rate = 64.0  # shifts learn that much faster than filters

    @torch.no_grad()
    def start(self, images: torch.Tensor) -> None:
        """Set the first layer from the principal directions of the images' patches, both signs."""
        patches = images.float().unfold(2, 2, 1).unfold(3, 2, 1).permute(0, 2, 3, 1, 4, 5).reshape(-1, 12)
        centred = patches - patches.mean(dim=0)
        values, vectors = torch.linalg.eigh(centred.T @ centred / len(centred))
        filters = (vectors / (values + 5e-4).sqrt()).T.reshape(12, 3, 2, 2)
        self.whiten.weight.copy_(torch.cat([filters, -filters]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits."""
        x = self.groups(F.gelu(self.whiten(x)))
        return self.scale * self.head(x.amax(dim=(2, 3)))  # type: ignore[no-any-return]


def _group(n_in: int, n_out: int) -> nn.Sequential:
    halved = (_conv(n_in, n_out), nn.MaxPool2d(2), _shift(n_out), nn.GELU())
    return nn.Sequential(*halved, _conv(n_out, n_out), _shift(n_out), nn.GELU())


def _conv(n_in: int, n_out: int) -> nn.Conv2d:
    layer = nn.Conv2d(n_in, n_out, 3, padding=1, bias=False)
    with torch.no_grad():
        n_kept = min(n_in, n_out)
        nn.init.dirac_(layer.weight[:n_kept])  # starts by passing its input on
    return layer


def _shift(n_channels: int) -> nn.BatchNorm2d:
    layer = nn.BatchNorm2d(n_channels, momentum=0.4)
    layer.weight.requires_grad_(False)
    return layer


class ResNet(nn.Module):
    """Residual networks with basic blocks, for 32 x 32 images: `resnet20` and `resnet18`.

    References
    ----------
    K. He, X. Zhang, S. Ren and J. Sun, "Deep Residual Learning for Image Recognition", CVPR 2016.
    """

    def __init__(self, n_classes: int, *, widths: tuple[int, ...], blocks: tuple[int, ...], projection: bool) -> None:
        super().__init__()
        self.stem = nn.Sequential(_conv3(3, widths[0]), nn.BatchNorm2d(widths[0]), nn.ReLU(inplace=True))
        layers: list[nn.Module] = []
        n_in = widths[0]
        for stage, (width, n_blocks) in enumerate(zip(widths, blocks, strict=True)):
            for block in range(n_blocks):
                stride = 2 if stage > 0 and block == 0 else 1
                layers.append(Block(n_in, width, stride, projection=projection))
                n_in = width
        self.blocks = nn.Sequential(*layers)
        self.head = nn.Linear(n_in, n_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits."""
        return self.head(self.blocks(self.stem(x)).mean(dim=(2, 3)))  # type: ignore[no-any-return]


class Block(nn.Module):
    """Two convolutions with a shortcut connection; it is a projection or zero padding where the size changes."""

    def __init__(self, n_in: int, n_out: int, stride: int, *, projection: bool) -> None:
        super().__init__()
        self.first = nn.Sequential(_conv3(n_in, n_out, stride), nn.BatchNorm2d(n_out), nn.ReLU(inplace=True))
        self.second = nn.Sequential(_conv3(n_out, n_out), nn.BatchNorm2d(n_out))
        self.stride, self.missing = stride, n_out - n_in
        self.short_cut: nn.Module | None = None
        if projection and (stride != 1 or self.missing):
            self.short_cut = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride=stride, bias=False), nn.BatchNorm2d(n_out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's output."""
        y = self.second(self.first(x))
        if self.short_cut is not None:
            x = self.short_cut(x)
        elif self.stride != 1 or self.missing:
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.missing))
        return F.relu(x + y)


def _conv3(n_in: int, n_out: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(n_in, n_out, 3, stride=stride, padding=1, bias=False)


class ResNet9(nn.Module):
    """Two residual blocks in a short net: nine weight layers, for 32 x 32 images."""

    def __init__(self, n_classes: int, *, width: int = 64) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            _gelu_conv(3, width),
            _gelu_conv(width, 2 * width, pool=True),
            _Residual(_gelu_conv(2 * width, 2 * width), _gelu_conv(2 * width, 2 * width)),
            _gelu_conv(2 * width, 4 * width, pool=True),
            _gelu_conv(4 * width, 4 * width, pool=True),
            _Residual(_gelu_conv(4 * width, 4 * width), _gelu_conv(4 * width, 4 * width)),
        )
        self.head = nn.Linear(4 * width, n_classes, bias=False)
        self.scale = 1 / 8

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return logits."""
        return self.scale * self.head(self.layers(x).amax(dim=(2, 3)))  # type: ignore[no-any-return]


class _Residual(nn.Sequential):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + super().forward(x)  # type: ignore[no-any-return, no-untyped-call]


def _gelu_conv(n_in: int, n_out: int, *, pool: bool = False) -> nn.Sequential:
    pooled = [nn.MaxPool2d(2)] if pool else []
    return nn.Sequential(_conv3(n_in, n_out), *pooled, nn.BatchNorm2d(n_out), nn.GELU())


def mlp(n_classes: int, **options: Any) -> MLP:
    """Return a multilayer perceptron; options: width, depth, dropout."""
    return MLP(n_classes, **options)


def fast_net(n_classes: int, **options: Any) -> FastNet:
    """Return the fastest net for small images; option: widths of its three groups."""
    return FastNet(n_classes, **options)


def resnet9(n_classes: int, **options: Any) -> ResNet9:
    """Return a short residual net; option: width."""
    return ResNet9(n_classes, **options)


def resnet20(n_classes: int) -> ResNet:
    """Return the 20-layer residual net for 32 x 32 images, with zero-padded short cuts."""
    return ResNet(n_classes, widths=(16, 32, 64), blocks=(3, 3, 3), projection=False)


def resnet18(n_classes: int) -> ResNet:
    """Return the 18-layer residual net in its form for 32 x 32 images."""
    return ResNet(n_classes, widths=(64, 128, 256, 512), blocks=(2, 2, 2, 2), projection=True)
