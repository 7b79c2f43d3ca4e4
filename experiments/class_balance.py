"""Calibrating the class balance of MBEM's predictions keeps the classes that few workers know.

Ten Gaussian classes in 400 dimensions, two pairs of them close to each other, 20,000 tasks to train on and 4,000 to
test; 40 workers, one label per task, softmax regression with C = 0.001 in in-sample rounds: like a network on images,
a model that learns truth well and raw labels badly. Classes are equally frequent, or in the ratios 1 : 2 : ... : 10.

    python experiments/class_balance.py            # resumes where it was stopped
    python experiments/class_balance.py --table    # the table alone, from results/class_balance.json
"""

import time
import warnings
from contextlib import nullcontext
from itertools import product
from typing import Any

import numpy as np
from mbem_ablation import left_alone
from record import RESULTS, Trial, arguments, main, markdown, resume

import labelonce as lo

PATH = RESULTS / "class_balance.json"
N_TRAIN, N_TEST, N_FEATURES, N_WORKERS, N_CLASSES, ROUNDS = 20_000, 4_000, 400, 40, 10, 8
CROWDS = {"hammer-spammer": lo.simulate.hammer_spammer, "class-wise": lo.simulate.class_wise_hammer_spammer}
POINTS = [("class-wise", 0.1), ("class-wise", 0.2), ("hammer-spammer", 0.1), ("hammer-spammer", 0.2)]
SHARES = {"equal": np.ones(N_CLASSES), "1 : 2 : ... : 10": np.arange(1.0, N_CLASSES + 1)}


def draw(crowd: str, quality: float, shares: str, seed: int) -> tuple[Any, ...]:
    """Return features, true labels, annotations and the true confusion."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(N_CLASSES, N_FEATURES))
    centres *= 3.3 / np.sqrt((centres**2).sum(axis=1).mean())
    centres[[5, 9]] = 0.5 * centres[[3, 1]] + 0.8 * centres[[5, 9]]
    y = rng.choice(N_CLASSES, N_TRAIN + N_TEST, p=SHARES[shares] / SHARES[shares].sum())
    X = centres[y] + rng.normal(size=(len(y), N_FEATURES))
    confusion = CROWDS[crowd](N_WORKERS, N_CLASSES, quality, rng)
    assigned = lo.simulate.assign(N_TRAIN, N_WORKERS, 1, rng)
    return X, y, lo.simulate.annotate(y[:N_TRAIN], confusion, assigned, rng), confusion


def trial(crowd: str, quality: float, shares: str, seed: int) -> dict[str, Any]:
    """Return test accuracies, MBEM's after every round."""
    started = time.process_time()
    warnings.simplefilter("ignore")  # one label per task, classes that are lost: that is what is measured
    X, y, ann, confusion = draw(crowd, quality, shares, seed)
    learner = lo.SoftmaxRegression(C=0.001)
    train, test = X[:N_TRAIN], (X[N_TRAIN:], y[N_TRAIN:])
    row: dict[str, Any] = {"crowd": crowd, "quality": quality, "shares": shares, "seed": seed}
    row["truth"] = learner.fit(train, y[:N_TRAIN]).score(*test)
    row["oracle"] = lo.OracleConfusion(confusion, learner).fit(train, ann).score(*test)
    for name in ("left alone", "calibrated"):
        with left_alone() if name == "left alone" else nullcontext():
            mbem = lo.MBEM(learner, rounds=ROUNDS, random_state=0)
            row[name] = [fit.score(*test) for fit in mbem.stages(train, ann) if fit.history_]
        row[f"{name}, rarest class"] = int(np.bincount(mbem.labels_, minlength=N_CLASSES).min())
    return row | {"cpu_s": time.process_time() - started}


def table(trials: list[Trial]) -> str:
    """Return means over the seeds; MBEM after rounds 2, 4 and the last."""
    head = ["classes", "crowd", "quality", "truth", "the paper's oracle"]
    head += ["MBEM, class balance left alone: rounds 2, 4, 8", "calibrated: rounds 2, 4, 8"]
    rows = []
    for shares, (crowd, quality) in product(SHARES, POINTS):
        own = [row for row in trials if (row["shares"], row["crowd"], row["quality"]) == (shares, crowd, quality)]
        cells = [shares, crowd, quality]
        cells += [f"{100 * np.mean([row[name] for row in own]):.1f}" for name in ("truth", "oracle")]
        for name in ("left alone", "calibrated"):
            rounds = 100 * np.mean([row[name] for row in own], axis=0)
            cells.append(" ".join(f"{rounds[at - 1]:.1f}" for at in (2, 4, ROUNDS)))
        rows.append(cells)
    return markdown(head, rows)


if __name__ == "__main__":
    points = [
        {"crowd": crowd, "quality": quality, "shares": shares, "seed": seed}
        for shares, (crowd, quality), seed in product(SHARES, POINTS, range(3))
    ]
    main(arguments(__doc__, PATH).parse_args(), lambda options: resume(options, trial, points), table)
