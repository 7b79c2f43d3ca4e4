"""A network needs small batches where images are few: digits as 32 x 32 images, one label each.

1,297 digits to train on, 500 to test, 50 workers of whom 15 are always right and the others guess, one seed. The
network is the one that `labelonce train --images` uses. Beside it, trained on the labels as they are: the same network
with the batches and rates that were set for 50,000 images.

    python experiments/network_on_few_images.py            # about two CPU minutes
    python experiments/network_on_few_images.py --table    # the table alone
"""

import argparse
import time
from functools import partial

import numpy as np
import torch
from PIL import Image
from record import RESULTS, Trial, arguments, main, markdown, write
from sklearn.datasets import load_digits

import labelonce as lo
from labelonce import neural
from labelonce.runs._images import network_for

PATH = RESULTS / "network_on_few_images.json"


def run(options: argparse.Namespace) -> None:
    """Train the three and write their accuracies."""
    torch.set_num_threads(1)
    started = time.perf_counter()
    digits = load_digits()
    y = digits.target
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    train, new = order[:1297], order[1297:]
    images = [Image.fromarray((image * 15.9).astype(np.uint8)).convert("RGB") for image in digits.images]
    X = np.stack([np.asarray(one.resize((32, 32), Image.Resampling.BILINEAR)) for one in images])
    confusion = lo.simulate.hammer_spammer(50, 10, 0.3, rng, exact=True)
    ann = lo.simulate.annotate(y[train], confusion, lo.simulate.assign(len(train), 50, 1, rng), rng)

    few = network_for(len(train))
    large = neural.image_learner(module_fn=partial(neural.fast_net, widths=(16, 32, 32)), n_models=1)
    clf = lo.MBEM(few)
    rounds = [clf.score(X[new], y[new]) for _ in clf.stages(X[train], ann) if clf.history_]
    plain, at_scale = (
        lo.TrainOnAggregate(lo.MajorityVote(), learner).fit(X[train], ann).score(X[new], y[new])
        for learner in (few, large)
    )
    trials = [
        {"trained on": "labels as they are, batches of 1,024", "seed": 0, "accuracy": [at_scale]},
        {"trained on": "labels as they are, batches of 64", "seed": 0, "accuracy": [plain]},
        {"trained on": "MBEM, batches of 64, after each round", "seed": 0, "accuracy": rounds},
    ]
    write(options.out, trials, settings={"workers": 50, "quality": 0.3}, seconds=time.perf_counter() - started)


def table(trials: list[Trial]) -> str:
    """Return the test accuracies in %."""
    shown = ([one["trained on"], " ".join(f"{100 * value:.1f}" for value in one["accuracy"])] for one in trials)
    return markdown(["trained on", "test accuracy, %"], shown)


if __name__ == "__main__":
    main(arguments(__doc__, PATH).parse_args(), run, table)
