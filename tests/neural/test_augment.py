"""Random views: what a moved, flipped, cut or mixed image must be."""

import numpy as np
import torch
from numpy.testing import assert_allclose, assert_array_equal

from labelonce.neural._augment import cut_out, flip_and_crop, mix_up


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_every_view_is_a_window_of_the_mirrored_image_or_of_its_mirror_image() -> None:
    image = torch.arange(2 * 5 * 6, dtype=torch.float32).reshape(1, 2, 5, 6)
    views = flip_and_crop(image.expand(200, -1, -1, -1), 2, generator()).numpy()
    windows = set()
    for flipped in (image, image.flip(-1)):
        padded = np.pad(flipped[0].numpy(), ((0, 0), (2, 2), (2, 2)), mode="reflect")
        windows |= {padded[:, i : i + 5, j : j + 6].tobytes() for i in range(5) for j in range(5)}
    seen = {np.ascontiguousarray(view).tobytes() for view in views}
    assert seen <= windows
    assert len(seen) > 40  # of 50


def test_a_square_around_a_random_centre_is_hidden() -> None:
    cut = cut_out(torch.ones(300, 3, 9, 9), 4, generator())
    hidden = (cut == 0).all(dim=1)
    assert_array_equal(hidden, (cut == 0).any(dim=1))  # the same in all channels
    sizes = {(int(h.any(dim=1).sum()), int(h.any(dim=0).sum())) for h in hidden}
    assert (3, 3) in sizes  # centre in the middle: less than 2 pixels away
    assert min(min(size) for size in sizes) == 2  # cut off at the edge


def test_mixed_targets_follow_the_inputs() -> None:
    inputs = torch.eye(5)
    mixed, targets = mix_up(inputs, 3 * inputs, 0.75, generator())
    assert_allclose(targets, 3 * mixed)
    assert_allclose(mixed.sum(dim=1), torch.ones(5))
    assert (mixed.diagonal() >= 0.75).all()
