"""At one label per task MBEM beats training on votes: the paper's three curves, next to all its rivals.

Simulated workers on scikit-learn's digits (pixels, C = 1) and on LabelMe's photographs (64 principal components of
standardised VGG features, C = 0.1): quality at one label per task, redundancy at fixed tasks, redundancy at a fixed
budget, for hammer-spammers and class-wise ones. 50 workers, softmax regression with the same penalty for every method,
five seeds; no fit sees test data.

    python experiments/quality_and_redundancy.py digits             # resumes where it was stopped
    python experiments/quality_and_redundancy.py labelme            # the same; needs the data of datasets.md
    python experiments/quality_and_redundancy.py digits --table     # results/digits.md and docs/images/digits.png alone
"""

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any

import cost_of_choosing
import curves
import numpy as np
from draws import SETS, SIMPLE, shuffled, simulated
from record import RESULTS, Trial, arguments, grouped, main, markdown, mean_error, renew, resume

import labelonce as lo

N_WORKERS, SEEDS = 50, range(5)
FILES = {"digits": "digits", "labelme": "labelme_simulated"}  # with the names of their results
KEYS = ("crowd", "quality", "redundancy", "n_tasks")
METHODS = [
    "truth", "oracle correct", "oracle weighted EM", "forward, true confusion", "unbiased, mean confusion",
    "MV", "weighted MV", "EM", "weighted EM", "MBEM paper", "MBEM",
]  # fmt: skip


def points(name: str) -> list[Trial]:
    """Return every point of the three curves for both crowds, in every draw."""
    places = curves.places(SETS[name][0], (0.2, 0.1, 0.5, 1.0), (1, 3, 5))
    rows = [dict(zip(KEYS, (crowd, *place), strict=True)) for crowd in SIMPLE for place in places]
    return [row | {"seed": seed} for seed in SEEDS for row in rows]


def draw(name: str, point: Trial) -> tuple[Any, ...]:
    """Return train and test tasks, the annotations and the true confusion of one trial."""
    rng, n, n_train = np.random.default_rng(point["seed"]), point["n_tasks"], SETS[name][0]
    X, y = shuffled(name, rng)
    place = (point["crowd"], point["quality"], N_WORKERS, point["redundancy"])
    exact: dict[str, Any] = {"exact": True} if point["crowd"] == "hammer-spammer" else {}
    ann, confusion = simulated(rng, y[:n], int(y.max()) + 1, *place, **exact)
    return X[:n], y[:n], X[n_train:], y[n_train:], ann, confusion


def classifier(method: str, C: float, y: Any, ann: lo.Annotations, confusion: Any) -> Any:
    """Return the classifier of a method, not fitted."""
    learner = lo.SoftmaxRegression(C=C)
    if method == "MBEM":
        return lo.MBEM(learner)
    if method == "forward, true confusion":
        return lo.baselines.ForwardCorrection(confusion, C=C)
    if method == "unbiased, mean confusion":
        mean = np.tensordot(np.bincount(ann.worker, minlength=N_WORKERS) / len(ann), confusion, axes=1)
        return lo.baselines.UnbiasedLoss(mean, C=C)
    return curves.rival(method, learner, y, confusion)


def measured(name: str, methods: list[str], point: Trial) -> Trial:
    """Return the test accuracy of methods, MBEM last, on one crowd, and how well MBEM found its workers."""
    X, y, X_test, y_test, ann, confusion = draw(name, point)
    C, accuracy = SETS[name][1], {}
    for method in methods:
        if method == "truth":
            model: Any = lo.SoftmaxRegression(C=C).fit(X, y)
        else:
            model = classifier(method, C, y, ann, confusion).fit(X, ann)
        accuracy[method] = float((model.predict(X_test) == y_test).mean())
    found = {"confusion_error": lo.metrics.confusion_error(confusion, model.confusion_), "rounds": model.n_rounds_}
    return {"accuracy": accuracy, "mbem": found}


def trial(name: str, **point: Any) -> Trial:
    """Return the accuracies of all methods, and at some points those of MBEM with every recipe."""
    started, (n_train, C) = time.process_time(), SETS[name]
    row = measured(name, METHODS, point)
    if point["quality"] == 0.2 and point["n_tasks"] == n_train:
        X, _, X_test, y_test, ann, _ = draw(name, point)
        row["recipes"] = cost_of_choosing.recipes(X, ann, X_test, y_test, [lo.SoftmaxRegression(C=C)])
    return row | {"cpu_s": time.process_time() - started}


def accuracies(trials: list[Trial]) -> dict[curves.Place, dict[str, list[float]]]:
    """Return the accuracies of every method at every point, in %."""
    found: dict[curves.Place, dict[str, list[float]]] = {}
    for (crowd, quality, redundancy, n), rows in grouped(trials, *KEYS).items():
        values = {method: [100 * row["accuracy"][method] for row in rows] for method in reversed(METHODS)}
        found[crowd, quality, redundancy, n] = values
    return found


def table(trials: list[Trial]) -> str:
    """Return mean and standard error of every method at every point."""
    head = ["crowd", "quality", "labels per task", "tasks", *reversed(METHODS)]
    return markdown(head, ([*key, *map(mean_error, row.values())] for key, row in accuracies(trials).items()))


def run(options: argparse.Namespace) -> None:
    """Run the trials of one set that are missing, or MBEM again in all of them."""
    if options.renew:
        renew(options, partial(measured, options.name, ["MBEM"]))
    else:
        resume(options, partial(trial, options.name), points(options.name))


if __name__ == "__main__":
    parser = arguments(__doc__, None)
    parser.add_argument("name", choices=FILES)
    parser.add_argument("--renew", action="store_true", help="run MBEM again in every trial and keep the rest")
    options = parser.parse_args()
    options.out = options.out or RESULTS / f"{FILES[options.name]}.json"

    def plot(trials: list[Trial], path: Path) -> None:
        curves.plot(accuracies(trials), path)

    main(options, run, table, draw=plot, image=f"{FILES[options.name]}.png")
