"""Random views: what a moved, flipped, cut or mixed image must be."""

import numpy as np
import torch
from numpy.testing import assert_allclose, assert_array_equal

from labelonce.neural import TorchLearner, fast_net
from labelonce.neural._augment import affine, cut_out, flip_and_crop, mix_up, recolour


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


def images(n: int = 40) -> torch.Tensor:
    return torch.randn(n, 3, 8, 8, generator=generator())


def test_an_affine_view_of_no_size_is_the_image_or_its_mirror_image() -> None:
    before = images()
    after = affine(before, generator(), turn=0, scale=0, shear=0, move=0)
    mirrored = torch.isclose(after, before.flip(-1), atol=1e-5).flatten(1).all(dim=1)
    same = torch.isclose(after, before, atol=1e-5).flatten(1).all(dim=1)
    assert (mirrored ^ same).all()
    assert 0 < int(same.sum()) < len(before)
    assert affine(before, generator()).shape == before.shape


def test_another_colour_leaves_the_shapes() -> None:
    before = images()
    assert_allclose(recolour(before, generator(), contrast=0, brightness=0, saturation=0, tint=0), before, atol=1e-5)
    tinted = recolour(before, generator(), contrast=0, brightness=0, saturation=0) - before
    assert_allclose(tinted, tinted[:, :, :1, :1].expand_as(tinted), atol=1e-5)  # one number for each channel
    grey = recolour(before, generator(), contrast=0, brightness=0, tint=0)
    assert_allclose(grey.mean(dim=1), before.mean(dim=1), atol=1e-5)


def test_a_share_of_each_batch_has_strong_views() -> None:
    learner = TorchLearner(fast_net, strong=0.75, pad=0)
    before = images()
    views = learner.views(before, generator())
    weak = [(view == one).all() or (view == one.flip(-1)).all() for view, one in zip(views, before, strict=True)]
    assert [bool(one) for one in weak] == [True] * 10 + [False] * 30
