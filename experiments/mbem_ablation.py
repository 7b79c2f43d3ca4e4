"""Which options of MBEM's default pay: each one switched off alone, on digits and on real crowds, one label per task.

One penalty per set and four rounds, so that a row shows the option and not the luck of a choice; the last row leaves
the number of rounds open, as the default does. Digits: 1,297 tasks, 50 workers of which 20 % are good, both kinds of
crowd. Real crowds as in mbem_on_real_crowds.py.

    python experiments/mbem_ablation.py            # needs the data of datasets.md; resumes where it was stopped
    python experiments/mbem_ablation.py --table    # the table alone, from results/mbem_ablation.json
"""

import time
import warnings
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from unittest.mock import patch

import mbem_on_real_crowds
import quality_and_redundancy
from record import RESULTS, Trial, arguments, main, markdown, mean_error, resume

import labelonce as lo

PATH = RESULTS / "mbem_ablation.json"
SEEDS = {"hammer-spammer": 5, "class-wise": 5, "labelme": 3, "amazon_isbook": 3, "sentiment_polarity": 3}
PENALTY = {"hammer-spammer": 1.0, "class-wise": 1.0} | mbem_on_real_crowds.SUITABLE_PENALTY
BASE, UNBALANCED = "four rounds", "predictions' class balance left alone"
VARIANTS: dict[str, dict[str, Any]] = {
    BASE: {},
    UNBALANCED: {},
    "weighting none": {"weighting": "none"},
    "posterior prior": {"posterior": "prior"},
    "predictions in-sample": {"predictions": "in_sample"},
    "predictions out-of-fold": {"predictions": "out_of_fold"},
    "counts hard": {"counts": "hard"},
    "counts soft": {"counts": "soft"},
    "workers by plain counting": {"worker_model": lo.workers.Counted()},
    "workers with one coin": {"worker_model": lo.workers.OneCoin()},
    "prior from picks": {"prior": "picks"},
    "prior learned": {"prior": "learned"},
    "two rounds": {"rounds": 2},
    "six rounds": {"rounds": 6},
    "rounds chosen": {"rounds": "auto"},
}


def draw(name: str, seed: int) -> tuple[Any, ...]:
    """Return training features, annotations, test features and true labels."""
    if name in quality_and_redundancy.CROWDS:
        n_train = quality_and_redundancy.PROBLEMS["digits"].n_train
        point = {"crowd": name, "quality": 0.2, "redundancy": 1, "n_tasks": n_train}
        X, _, X_test, y_test, ann, _ = quality_and_redundancy.draw("digits", point, seed)
    else:
        X, _, X_test, y_test, ann = mbem_on_real_crowds.draw(name, 1, seed)
    return X, ann, X_test, y_test


def left_alone() -> AbstractContextManager[Any]:
    """Keep MBEM from shifting the class balance of predictions."""
    return patch.multiple("labelonce.learning._calibration", _SHIFT=0.0, _PULLS=(0.0,))


def trial(name: str, seed: int) -> dict[str, Any]:
    """Return the test accuracy of every variant."""
    warnings.simplefilter("ignore")  # one label per task: that is what is measured
    started = time.process_time()
    X, ann, X_test, y_test = draw(name, seed)
    learner = lo.SoftmaxRegression(C=PENALTY[name])
    fixed = {"rounds": 4}
    accuracy = {}
    for variant, options in VARIANTS.items():
        with left_alone() if variant == UNBALANCED else nullcontext():
            fit = lo.MBEM(learner, **(fixed | options)).fit(X, ann)
        accuracy[variant] = float((fit.predict(X_test) == y_test).mean())
    return {"name": name, "seed": seed, "accuracy": accuracy, "cpu_s": time.process_time() - started}


def table(trials: list[Trial]) -> str:
    """Return the accuracy of four rounds and what every variant adds to it, paired over the seeds."""
    names = list(dict.fromkeys(row["name"] for row in trials))
    shown = {name: f"digits, {name}" if name in quality_and_redundancy.CROWDS else name for name in names}
    head = ["option", *(f"{shown[name]} ({sum(row['name'] == name for row in trials)})" for name in names)]
    return markdown(head, ([variant, *(_cell(trials, name, variant) for name in names)] for variant in VARIANTS))


def _cell(trials: list[Trial], name: str, variant: str) -> str:
    rows = [row["accuracy"] for row in trials if row["name"] == name]
    if variant == BASE:
        return mean_error([100 * row[BASE] for row in rows])
    return mean_error([100 * (row[variant] - row[BASE]) for row in rows], sign="+")


if __name__ == "__main__":
    points = [{"name": name, "seed": seed} for seed in range(5) for name, n in SEEDS.items() if seed < n]
    main(
        arguments(__doc__, PATH).parse_args(),
        lambda options: resume(options, trial, points, order={"name": list(SEEDS)}),
        table,
    )
