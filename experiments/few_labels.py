"""What a round makes of predictions that are P(class) exactly, where workers have few labels for each chance.

50,000 tasks of 100 classes in groups of ten with one label each by 1,000 workers. Either 20 % of the workers are always
right, or each is for 20 % of the places in a group; else they guess within the group. Features are normal around the
centres of the classes, so that P(class) is known; at a smaller distance of the centres they tell less. One round, as
the sixth of a fit, judges these predictions: with workers that are drawn, with those of the expected counts' fixed
point, and with the true ones.

    python experiments/few_labels.py
"""

from typing import Any
from unittest import mock

import numpy as np
from record import RESULTS, Trial, experiment, grouped, markdown, mean_error

import labelonce as lo
from labelonce._kernels import Beliefs
from labelonce.learning import _judge
from labelonce.learning._judge import View, judge
from labelonce.learning._problem import Problem

PATH = RESULTS / "few_labels.json"
GROUPS = np.arange(100) // 10
CROWDS = {
    "hammer-spammer": (lo.simulate.grouped_hammer_spammer, "worker"),
    "class-wise": (lo.simulate.grouped_class_wise_hammer_spammer, "position"),
}
WAYS = ("drawn", "fixed point", "true workers")


def trial(**point: Any) -> Trial:
    """Return how often predictions and labels are right, how sure these are, and the exponent of the predictions."""
    rng, distance = np.random.default_rng(point["seed"]), point["distance"]
    centres, true = distance * rng.normal(size=(100, 64)), rng.integers(100, size=50_000)
    score = (centres[true] + rng.normal(size=(50_000, 64))) @ centres.T - (centres**2).sum(axis=1) / 2
    score = np.exp(score - score.max(axis=1, keepdims=True))
    predictions = Beliefs.of(score / score.sum(axis=1, keepdims=True))
    simulated, rows = CROWDS[point["crowd"]]
    crowd = simulated(1_000, GROUPS, 0.2, rng)
    ann = lo.simulate.annotate(true, crowd, lo.simulate.assign(50_000, 1_000, 1, rng), rng)
    known, problem = point["workers"] == "true workers", Problem(np.zeros((50_000, 1)), ann)
    workers: Any = lo.workers.Known(crowd) if known else lo.workers.Grouped(GROUPS, rows=rows)
    view = View.of(problem, workers, lambda slots, _: predictions.on(slots))
    with mock.patch.object(_judge, "_few_labels", return_value=point["workers"] == "drawn"):
        found = judge(view, workers, 6)
    assert found.calibration is not None
    right = [float((one.argmax() == true).mean()) for one in (predictions, found.beliefs)]
    exponent = float(found.calibration.exponent[0])
    return {
        "predictions": right[0],
        "labels": right[1],
        "says": float(found.beliefs.max().mean()),
        "exponent": exponent,
    }


def points() -> list[Trial]:
    """Return every trial: crowds, features, seeds and ways."""
    return [
        {"crowd": crowd, "distance": distance, "workers": workers, "seed": seed}
        for crowd in CROWDS
        for distance in (0.2, 0.25, 0.3, 0.4)
        for workers in WAYS
        for seed in range(3)
    ]


def table(trials: list[Trial]) -> str:
    """Return means and standard errors over the draws."""
    head = ["crowd", "distance", "workers", "predictions right, %", "labels right, %", "says, %", "exponent"]
    rows = []
    for key, some in grouped(trials, "crowd", "distance", "workers").items():
        shares = [mean_error([100 * row[name] for row in some]) for name in ("predictions", "labels", "says")]
        rows.append([*key, *shares, f"{np.mean([row['exponent'] for row in some]):.2f}"])
    return markdown(head, rows)


if __name__ == "__main__":
    experiment(__doc__, PATH, trial, lambda _: points(), table)
