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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import cost_of_choosing
import data_sets
import numpy as np
from draws import components
from record import RESULTS, Trial, arguments, main, markdown, mean_error, renew, resume, save
from sklearn.datasets import load_digits

import labelonce as lo

N_WORKERS, SEEDS = 50, range(5)
CROWDS = {"hammer-spammer": lo.simulate.hammer_spammer, "class-wise": lo.simulate.class_wise_hammer_spammer}
METHODS = [
    "truth", "oracle correct", "oracle weighted EM", "forward, true confusion", "unbiased, mean confusion",
    "MV", "weighted MV", "EM", "weighted EM", "MBEM paper", "MBEM",
]  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """A set: how many tasks to train on (the rest is for the test), the penalty, the file of its results."""

    n_train: int
    C: float
    file: str


PROBLEMS = {"digits": Problem(1297, 1.0, "digits"), "labelme": Problem(1500, 0.1, "labelme_simulated")}


def features_of(name: str, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return features and true labels in random order; what is fitted to features sees the training tasks alone."""
    if name == "digits":
        digits = load_digits()
        order = rng.permutation(len(digits.target))
        return digits.data[order] / 16, digits.target[order]
    data = data_sets.load(name)
    assert data.features is not None
    order = rng.permutation(len(data.gold))
    return components(data.features[order], PROBLEMS[name].n_train), data.gold[order]


def points(name: str) -> Iterator[dict[str, Any]]:
    """Yield every point of the three curves for both crowds, those that curves share once."""
    n_train = PROBLEMS[name].n_train
    for crowd in CROWDS:
        for quality in (0.2, 0.1, 0.5, 1.0):
            yield {"crowd": crowd, "quality": quality, "redundancy": 1, "n_tasks": n_train}
        for redundancy in (3, 5):
            for n_tasks in (n_train, n_train // redundancy):
                yield {"crowd": crowd, "quality": 0.2, "redundancy": redundancy, "n_tasks": n_tasks}


def draw(name: str, point: dict[str, Any], seed: int) -> tuple[Any, ...]:
    """Return train and test tasks, the annotations and the true confusion of one trial."""
    rng = np.random.default_rng(seed)
    X, y = features_of(name, rng)
    exact = {"exact": True} if point["crowd"] == "hammer-spammer" else {}
    confusion = CROWDS[point["crowd"]](N_WORKERS, int(y.max()) + 1, point["quality"], rng, **exact)
    n, n_train = point["n_tasks"], PROBLEMS[name].n_train
    ann = lo.simulate.annotate(y[:n], confusion, lo.simulate.assign(n, N_WORKERS, point["redundancy"], rng), rng)
    return X[:n], y[:n], X[n_train:], y[n_train:], ann, confusion


def classifier(method: str, C: float, y: Any, ann: lo.Annotations, confusion: Any) -> Any:
    """Return the classifier of a method, not fitted."""
    learner = lo.SoftmaxRegression(C=C)
    if method in ("MV", "weighted MV", "EM", "weighted EM"):
        aggregator = lo.MajorityVote() if method.endswith("MV") else lo.DawidSkene(smoothing=0.0)
        return lo.TrainOnAggregate(aggregator, learner, targets="soft" if "weighted" in method else "hard")
    mean = np.tensordot(np.bincount(ann.worker, minlength=N_WORKERS) / len(ann), confusion, axes=1)
    makers: dict[str, Callable[[], Any]] = {
        "oracle correct": lambda: lo.OracleCorrect(y, learner),
        "oracle weighted EM": lambda: lo.OracleConfusion(confusion, learner),
        "forward, true confusion": lambda: lo.baselines.ForwardCorrection(confusion, C=C),
        "unbiased, mean confusion": lambda: lo.baselines.UnbiasedLoss(mean, C=C),
        "MBEM paper": lambda: lo.MBEM.paper(learner),
        "MBEM": lambda: lo.MBEM(learner),
    }
    return makers[method]()


def trial(name: str, seed: int, **point: Any) -> Trial:
    """Return the test accuracy of every method on one crowd, and how well MBEM found its workers."""
    X, y, X_test, y_test, ann, confusion = draw(name, point, seed)
    C = PROBLEMS[name].C
    accuracy: dict[str, float] = {}
    started = time.process_time()
    for method in METHODS:
        if method == "truth":
            model: Any = lo.SoftmaxRegression(C=C).fit(X, y)
        else:
            model = classifier(method, C, y, ann, confusion).fit(X, ann)
        accuracy[method] = float((model.predict(X_test) == y_test).mean())
    found = {"confusion_error": lo.metrics.confusion_error(confusion, model.confusion_), "rounds": model.n_rounds_}
    row: Trial = {"accuracy": accuracy, "mbem": found}
    if point["quality"] == 0.2 and point["n_tasks"] == PROBLEMS[name].n_train:
        row["recipes"] = cost_of_choosing.recipes(X, ann, X_test, y_test, [lo.SoftmaxRegression(C=C)])
    return row | {"cpu_s": time.process_time() - started}


def mbem_again(name: str, row: Trial) -> Trial:
    """Return what another fit of MBEM alone finds in a trial."""
    X, y, X_test, y_test, ann, confusion = draw(name, row, row["seed"])
    model = classifier("MBEM", PROBLEMS[name].C, y, ann, confusion).fit(X, ann)
    found = {"confusion_error": lo.metrics.confusion_error(confusion, model.confusion_), "rounds": model.n_rounds_}
    return {"accuracy": {"MBEM": float((model.predict(X_test) == y_test).mean())}, "mbem": found}


def accuracies(trials: list[Trial]) -> dict[tuple[Any, ...], dict[str, list[float]]]:
    """Return the accuracies of every method at every point, in %."""
    rows: dict[tuple[Any, ...], list[dict[str, float]]] = {}
    for row in trials:
        key = row["crowd"], row["quality"], row["redundancy"], row["n_tasks"]
        rows.setdefault(key, []).append(row["accuracy"])
    return {
        key: {method: [100 * accuracy[method] for accuracy in found] for method in reversed(METHODS)}
        for key, found in rows.items()
    }


def table(trials: list[Trial]) -> str:
    """Return mean and standard error of every method at every point."""
    head = ["crowd", "quality", "labels per task", "tasks", *reversed(METHODS)]
    return markdown(head, ([*key, *map(mean_error, row.values())] for key, row in accuracies(trials).items()))


def plot(n_train: int, trials: list[Trial], path: Path) -> None:
    """Draw the three curves of both crowds in the paper's layout: error against quality or redundancy."""
    from matplotlib import pyplot as plt

    shown = {"truth": "k:", "oracle correct": "k--", "oracle weighted EM": "C7-.", "forward, true confusion": "C7--"}
    shown |= {"unbiased, mean confusion": "C4:", "MV": "C1--", "weighted MV": "C1-", "EM": "C2--", "weighted EM": "C2-"}
    shown |= {"MBEM paper": "C9-", "MBEM": "C3-"}
    found = accuracies(trials)
    figure, axes = plt.subplots(2, 3, figsize=(12, 7.6), sharey=True, layout="constrained")
    titles = {"quality": "worker quality (1 label per task)", "tasks": f"labels per task ({n_train:,} tasks)"}
    titles["budget"] = f"labels per task ({n_train:,} labels in all)"
    curves = {
        "quality": lambda key: key[2] == 1,
        "tasks": lambda key: key[1] == 0.2 and key[3] == n_train,
        "budget": lambda key: key[1] == 0.2 and key[3] == n_train // key[2],
    }
    for line, crowd in zip(axes, CROWDS, strict=True):
        for axis, curve in zip(line, titles, strict=True):
            keys = sorted(key for key in found if key[0] == crowd and curves[curve](key))
            x = [key[1] if curve == "quality" else key[2] for key in keys]
            for method, style in shown.items():
                y = [100 - np.mean(found[key][method]) for key in keys]
                axis.plot(
                    x, y, style, label=method, marker="o", markersize=3, linewidth=2.5 if method == "MBEM" else 1.2
                )
            axis.set_xticks(x)
            axis.set_xlabel(titles[curve])
            axis.set_title(crowd, fontsize=10)
            axis.grid(alpha=0.3)
        line[0].set_ylabel("test error, %")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=9)
    save(figure, path)


def run(options: argparse.Namespace) -> None:
    """Run the trials of one set that are missing, or MBEM again in all of them."""
    if options.renew:
        renew(options, partial(mbem_again, options.name))
        return
    grid = [point | {"seed": seed} for seed in SEEDS for point in points(options.name)]
    resume(options, partial(trial, options.name), grid)


if __name__ == "__main__":
    parser = arguments(__doc__, None)
    parser.add_argument("name", choices=PROBLEMS)
    parser.add_argument("--renew", action="store_true", help="run MBEM again in every trial and keep the rest")
    options = parser.parse_args()
    problem = PROBLEMS[options.name]
    options.out = options.out or RESULTS / f"{problem.file}.json"
    main(options, run, table, draw=partial(plot, problem.n_train), image=f"{problem.file}.png")
