"""Random views: what a moved, flipped, cut or mixed image must be."""

import numpy as np
import torch
from numpy.testing import assert_allclose, assert_array_equal

from labelonce.neural import TorchLearner, fast_net
from labelonce.neural._augment import affine, both_ways, cut_out, flip_and_crop, mix_up, recolour


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


def test_images_are_moved_both_ways_along_the_diagonal() -> None:
    image = torch.arange(2 * 4 * 5, dtype=torch.float32).reshape(1, 2, 4, 5)
    right, left = both_ways(image, 1)
    assert_array_equal(right[:, :, 1:, 1:], image[:, :, :-1, :-1])
    assert_array_equal(left[:, :, :-1, :-1], image[:, :, 1:, 1:])
    assert_array_equal(right[:, :, 0], right[:, :, 2])  # mirrored


def test_moved_views_count_half_as_much_and_only_once_training_is_over() -> None:
    net = TorchLearner(flip_predictions=False, shift_predictions=1, device="cpu")
    image = torch.randn(6, 3, 8, 8, generator=generator())
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(2))

    def alone(view: torch.Tensor) -> torch.Tensor:
        shares: torch.Tensor = module(view).softmax(dim=1)
        return shares

    right, left = both_ways(image, 1)
    found = net.predict_batch(module, image)
    assert_allclose(found, (2 * alone(image) + alone(right) + alone(left)).detach() / 4, atol=1e-6)
    net.__dict__["_seen"] = None  # what a training holds
    assert_allclose(net.predict_batch(module, image), alone(image).detach(), atol=1e-6)


def test_a_trained_learner_predicts_with_moved_views() -> None:
    X = np.random.default_rng(0).normal(size=(12, 3, 8, 8)).astype(np.float32)
    net = TorchLearner(epochs=1, batch_size=6, pad=1, shift_predictions=1, device="cpu", random_state=0)
    moved = net.fit(X, np.arange(12) % 2).predict_proba(X)
    assert np.abs(moved - net.set_params(shift_predictions=0).predict_proba(X)).max() > 1e-5
