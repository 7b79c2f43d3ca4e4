"""The paper's three curves on scikit-learn's digits: MBEM beside everything it is compared with.

Claim: MBEM's default is above the paper's oracle (weighted EM with the true confusion matrices) at every point but
class-wise workers of quality 0.1, and far above majority vote. At a fixed budget of labels one per task is best for
hammer-spammers; for class-wise workers five per task are a little better (89.0 against 86.2, standard errors 1.5 and
3.5). 1,297 tasks to train on, 500 to test, 50 workers, softmax regression with C = 1 for every method, five seeds,
nothing chosen on test data.

    python experiments/digits.py            # about 12 CPU minutes; goes on where it was stopped
    python experiments/digits.py --table    # results/digits.md and docs/images/digits.png from results/digits.json
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_digits

import labelonce as lo

RESULTS = Path(__file__).parent / "results"
N_TRAIN, N_WORKERS, SEEDS = 1297, 50, range(5)
LEARNER = lo.SoftmaxRegression(C=1.0)
CROWDS = {"hammer-spammer": lo.simulate.hammer_spammer, "class-wise": lo.simulate.class_wise_hammer_spammer}
METHODS = [
    "truth", "oracle correct", "oracle weighted EM", "forward, true confusion", "unbiased, mean confusion",
    "MV", "weighted MV", "EM", "weighted EM", "MBEM paper", "MBEM",
]  # fmt: skip


def points() -> Iterator[dict[str, Any]]:
    """Yield every point of the three curves for both crowds, those that curves share once."""
    for crowd in CROWDS:
        for quality in (0.2, 0.1, 0.5, 1.0):
            yield {"crowd": crowd, "quality": quality, "redundancy": 1, "n_tasks": N_TRAIN}
        for redundancy in (3, 5):
            for n_tasks in (N_TRAIN, N_TRAIN // redundancy):
                yield {"crowd": crowd, "quality": 0.2, "redundancy": redundancy, "n_tasks": n_tasks}


def draw(point: dict[str, Any], seed: int) -> tuple[Any, ...]:
    """Return train and test digits, the annotations and the true confusion of one trial."""
    digits = load_digits()
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(digits.target))
    X, y = digits.data[order] / 16, digits.target[order]
    exact = {"exact": True} if point["crowd"] == "hammer-spammer" else {}
    confusion = CROWDS[point["crowd"]](N_WORKERS, 10, point["quality"], rng, **exact)
    n = point["n_tasks"]
    ann = lo.simulate.annotate(y[:n], confusion, lo.simulate.assign(n, N_WORKERS, point["redundancy"], rng), rng)
    return X[:n], y[:n], X[N_TRAIN:], y[N_TRAIN:], ann, confusion


def classifier(method: str, y: Any, ann: lo.Annotations, confusion: Any) -> Any:
    """Return the classifier behind a method's name."""
    load = np.bincount(ann.worker, minlength=N_WORKERS) / len(ann)
    mean = np.tensordot(load, confusion, axes=1)
    makers: dict[str, Callable[[], Any]] = {
        "oracle correct": lambda: lo.OracleCorrect(y, LEARNER),
        "oracle weighted EM": lambda: lo.OracleConfusion(confusion, LEARNER),
        "forward, true confusion": lambda: lo.ForwardCorrection(confusion, C=1.0),
        "unbiased, mean confusion": lambda: lo.UnbiasedLoss(mean, C=1.0),
        "MV": lambda: lo.TrainOnAggregate(lo.MajorityVote(), LEARNER, targets="hard"),
        "weighted MV": lambda: lo.TrainOnAggregate(lo.MajorityVote(), LEARNER, targets="soft"),
        "EM": lambda: lo.TrainOnAggregate(lo.DawidSkene(smoothing=0.0), LEARNER, targets="hard"),
        "weighted EM": lambda: lo.TrainOnAggregate(lo.DawidSkene(smoothing=0.0), LEARNER, targets="soft"),
        "MBEM paper": lambda: lo.MBEM.paper(LEARNER),
        "MBEM": lambda: lo.MBEM(LEARNER),
    }
    return makers[method]()


def trial(point: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return the test accuracy of every method on one crowd, and how well MBEM found its workers."""
    warnings.simplefilter("ignore")  # one label per task, large weights: that is what is measured
    X, y, X_test, y_test, ann, confusion = draw(point, seed)
    accuracy: dict[str, float] = {}
    started = time.process_time()
    for method in METHODS:
        if method == "truth":
            model: Any = lo.SoftmaxRegression(C=1.0).fit(X, y)
        else:
            model = classifier(method, y, ann, confusion).fit(X, ann)
        accuracy[method] = float((model.predict(X_test) == y_test).mean())
    found = {"confusion_error": lo.metrics.confusion_error(confusion, model.confusion_), "rounds": model.n_rounds_}
    return point | {"seed": seed, "accuracy": accuracy, "mbem": found, "cpu_s": time.process_time() - started}


def run(path: Path) -> None:
    """Run what is not in the file yet, two trials at a time."""
    done = json.loads(path.read_text())["trials"] if path.exists() else []
    seen = {(*key_of(row), row["seed"]) for row in done}
    versions = {name: version(name) for name in ("labelonce", "numpy", "scipy", "scikit-learn")}
    todo = [(point, seed) for point in points() for seed in SEEDS if (*key_of(point), seed) not in seen]
    for row in Parallel(n_jobs=2, return_as="generator_unordered")(delayed(trial)(*one) for one in todo):
        done.append(row)
        done.sort(key=lambda row: (*key_of(row), row["seed"]))
        path.write_text(json.dumps({"versions": versions, "device": "cpu", "trials": done}, indent=1) + "\n")
        print(*key_of(row), row["seed"], row["accuracy"]["MBEM"], flush=True)


def key_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return what makes a point."""
    return row["crowd"], row["quality"], row["redundancy"], row["n_tasks"]


def summary(trials: list[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, tuple[float, float]]]:
    """Return mean and standard error of every method at every point, in %."""
    rows: dict[tuple[Any, ...], list[dict[str, float]]] = {}
    for row in trials:
        rows.setdefault(key_of(row), []).append(row["accuracy"])
    return {
        key: {
            method: (100 * float(np.mean(values)), 100 * float(np.std(values, ddof=1) / np.sqrt(len(values))))
            for method in reversed(METHODS)
            for values in [[accuracy[method] for accuracy in accuracies]]
        }
        for key, accuracies in rows.items()
    }


def table(path: Path) -> None:
    """Write the table and the figure."""
    trials = json.loads(path.read_text())["trials"]
    means = summary(trials)
    head = ["crowd", "quality", "labels per task", "tasks", *reversed(METHODS)]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for key, row in means.items():
        cells = [*map(str, key), *(f"{mean:.1f} ± {error:.1f}" for mean, error in row.values())]
        lines.append("| " + " | ".join(cells) + " |")
    path.with_suffix(".md").write_text("\n".join(lines) + "\n")
    plot(means, RESULTS.parents[1] / "docs" / "images" / "digits.png")


def plot(means: dict[tuple[Any, ...], dict[str, tuple[float, float]]], path: Path) -> None:
    """Draw the three curves of both crowds in the paper's layout: error against quality or redundancy."""
    from matplotlib import pyplot as plt

    shown = {"truth": "k:", "oracle weighted EM": "C7-.", "MV": "C1--", "weighted MV": "C1-", "weighted EM": "C2-"}
    shown |= {"MBEM paper": "C9-", "MBEM": "C3-"}
    figure, axes = plt.subplots(2, 3, figsize=(12, 7), sharey=True, layout="constrained")
    titles = {"quality": "worker quality (1 label per task)", "tasks": "labels per task (1,297 tasks)"}
    titles["budget"] = "labels per task (1,297 labels in all)"
    curves = {
        "quality": lambda key: key[2] == 1,
        "tasks": lambda key: key[1] == 0.2 and key[3] == N_TRAIN,
        "budget": lambda key: key[1] == 0.2 and key[3] == N_TRAIN // key[2],
    }
    for line, crowd in zip(axes, CROWDS, strict=True):
        for axis, curve in zip(line, titles, strict=True):
            keys = sorted(key for key in means if key[0] == crowd and curves[curve](key))
            x = [key[1] if curve == "quality" else key[2] for key in keys]
            for method, style in shown.items():
                y = [100 - means[key][method][0] for key in keys]
                axis.plot(
                    x, y, style, label=method, marker="o", markersize=3, linewidth=2.5 if method == "MBEM" else 1.2
                )
            axis.set_xticks(x)
            axis.set_xlabel(titles[curve])
            axis.set_title(crowd, fontsize=10)
            axis.grid(alpha=0.3)
        line[0].set_ylabel("test error, %")
    axes[0, 0].legend(fontsize=8)
    figure.savefig(path, dpi=90)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true")
    RESULTS.mkdir(exist_ok=True)
    (table if parser.parse_args().table else run)(RESULTS / "digits.json")
