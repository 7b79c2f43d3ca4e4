"""The learner for small images, with the settings that were measured."""

from __future__ import annotations

from typing import Any

from labelonce.neural._learner import TorchLearner
from labelonce.neural._networks import fast_net, resnet9


def image_learner(**options: Any) -> TorchLearner:
    """Return a learner for small images with the settings that we measured with `MBEM` on 32 x 32 images.

    Three short rounds of `fast_net`, then one training of `resnet9` for `epochs` (80 if not given), in which the
    workers are judged again and again. Options are those of `TorchLearner` and override these settings: more `epochs`
    trade time for accuracy.
    """
    images: dict[str, Any] = {"batch_size": 1024, "pad": 4, "cutout": 12, "shift_predictions": 1}
    fast: dict[str, Any] = {"epochs": 12, "lr": 1.5, "momentum": 0.85, "weight_decay": 1.3e-3, "warmup": 0.23}
    measured: dict[str, Any] = {
        "module_fn": resnet9,
        "epochs": 80,
        "epochs_by_round": (6, 12, 12),
        "one_training": True,
        "early_learner": TorchLearner(fast_net, **fast, **images),
        "lr": 0.4,
        "momentum": 0.9,
        "weight_decay": 5e-4,
        "warmup": 0.1,
        "strong": 0.75,
        "ema": 0.99,
    }
    return TorchLearner(**images | measured | options)
