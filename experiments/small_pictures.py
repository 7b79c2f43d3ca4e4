"""The network that `labelonce train --images` uses for few pictures: digits as 32 x 32 pictures, one label each.

    python experiments/small_pictures.py             (about two CPU minutes; the table goes to results/)

1,297 digits to train on, 500 to test, 50 workers of whom 15 are always right and the others guess, one seed. Beside it,
trained on the labels as they are: the same network with the batches and rates that were set for 50,000 pictures.
"""

from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_digits

import labelonce as lo
from labelonce import neural
from labelonce.runs._images import network_for

RESULT = Path(__file__).parent / "results" / "small_pictures.md"


def main() -> None:
    torch.set_num_threads(1)
    digits = load_digits()
    y = digits.target
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    train, new = order[:1297], order[1297:]
    pictures = [Image.fromarray((image * 15.9).astype(np.uint8)).convert("RGB") for image in digits.images]
    X = np.stack([np.asarray(one.resize((32, 32), Image.Resampling.BILINEAR)) for one in pictures])
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
    rows = [
        ("labels as they are, batches of 1,024", f"{100 * at_scale:.1f}"),
        ("labels as they are, batches of 64", f"{100 * plain:.1f}"),
        ("MBEM, batches of 64, after each round", " ".join(f"{100 * accuracy:.1f}" for accuracy in rounds)),
    ]
    lines = ["| trained on | test accuracy, % |", "|---|---|", *(f"| {name} | {found} |" for name, found in rows)]
    RESULT.write_text("\n".join(lines) + "\n")
    print(*lines, sep="\n")


if __name__ == "__main__":
    main()
