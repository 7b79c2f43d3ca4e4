"""The paper's Figure 1 on CIFAR-10.

Three curves for hammer-spammers and for class-wise hammer-spammers: test accuracy (a) against the quality of the
workers at one label per task, (b) against the labels per task at quality 0.2 on all 50,000 images, (c) the same with
50,000 labels in all. 100 workers drawn with replacement, a uniform prior, the last epoch of every training; the same
network, epochs and views for every method. At one label per task MV, weighted MV, EM and weighted EM are one method.
No fit sees test data. Needs the data of datasets.md and a GPU. What the default makes of images is in images.py.

    python experiments/cifar10_figure1.py --part a --seeds 0 1 2       # curve (a) only; resumes where it was stopped
    python experiments/cifar10_figure1.py --part c --net resnet20 --redundancies 3 5
    python experiments/cifar10_figure1.py --table                      # tables and the figure from the JSON file
"""

import argparse
import tempfile
import time
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import data_sets
import numpy as np
from record import RESULTS, Trial, arguments, main, markdown, mean_error, resume, save

import labelonce as lo
from labelonce import neural

PATH = RESULTS / "cifar10_figure1.json"
N_TRAIN, N_WORKERS, N_CLASSES = 50_000, 100, 10
CROWDS = {"hammer-spammer": lo.simulate.hammer_spammer, "class-wise": lo.simulate.class_wise_hammer_spammer}
QUALITIES, REDUNDANCIES = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0), (1, 3, 5, 9)
NETS: dict[str, dict[str, Any]] = {
    "fast": {"module_fn": partial(neural.fast_net, widths=(64, 128, 256)), "batch_size": 1024, "lr": 1.5}
    | {"momentum": 0.85, "weight_decay": 1.3e-3, "warmup": 0.23, "epochs": 8, "epochs_by_round": (4, 6)}
    | {"pad": 2, "min_steps": 192},
    "resnet20": {"module_fn": neural.resnet20, "epochs": 32, "epochs_by_round": (8, 12), "min_steps": 1552}
    | {"batch_size": 512, "lr": 0.4, "compile": True},
}
ROUNDS = {"fast": 9, "resnet20": 4}
SAME_AT_ONE = ("weighted MV", "EM", "weighted EM")
METHODS = ("truth", "oracle correct", "oracle weighted EM", "MV", *SAME_AT_ONE, "MBEM paper", "MBEM")
KEYS = ("net", "crowd", "quality", "redundancy", "n_tasks")


def load(folder: Path) -> dict[str, Any]:
    """Return images and true labels as memory-mapped arrays, decoded into `folder` once."""
    names = ("x", "y", "xt", "yt")
    if not all((folder / f"{name}.npy").exists() for name in names):
        folder.mkdir(parents=True, exist_ok=True)
        data = data_sets.load("cifar10", images=True)
        assert data.images is not None
        whole = (data.images[:N_TRAIN], data.gold[:N_TRAIN], data.images[N_TRAIN:], data.gold[N_TRAIN:])
        for name, array in zip(names, whole, strict=True):
            np.save(folder / f"{name}.npy", np.asarray(array))
    return {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in names}


def points(options: argparse.Namespace) -> Iterator[Trial]:
    """Yield every trial that is asked for, each once."""
    seen = set()
    for part, seed, crowd in (
        (part, seed, crowd) for part in options.part for seed in options.seeds for crowd in CROWDS
    ):
        for quality, redundancy, n_tasks in _places(part, options):
            for method in METHODS:
                at = (options.net, crowd, quality, redundancy, n_tasks)
                if (redundancy == 1 and method in SAME_AT_ONE) or (at, seed, method) in seen:
                    continue
                seen.add((at, seed, method))
                yield dict(zip(KEYS, at, strict=True)) | {"seed": seed, "method": method}


def _places(part: str, options: argparse.Namespace) -> Iterator[tuple[float, int, int]]:
    if part == "a":
        yield from ((quality, 1, options.tasks) for quality in options.qualities)
    else:
        for redundancy in options.redundancies:
            yield 0.2, redundancy, options.tasks if part == "b" else options.tasks // redundancy


def draw(point: Trial, data: dict[str, Any]) -> tuple[Any, Any, lo.Annotations, Any]:
    """Return images, true labels, annotations and the true confusion of a trial."""
    rng = np.random.default_rng(point["seed"])
    X, y = data["x"][: point["n_tasks"]], np.asarray(data["y"][: point["n_tasks"]])
    confusion = CROWDS[point["crowd"]](N_WORKERS, N_CLASSES, point["quality"], rng)
    assigned = lo.simulate.assign(len(y), N_WORKERS, point["redundancy"], rng)
    return X, y, lo.simulate.annotate(y, confusion, assigned, rng), confusion


def model_of(point: Trial, y: Any, confusion: Any) -> Any:
    """Return what is fitted; the networks of the others have all epochs in every training."""
    settings, seed, method = NETS[point["net"]], point["seed"], point["method"]
    learner = neural.TorchLearner(**settings | {"epochs_by_round": ()}, random_state=seed)
    match method:
        case "oracle correct":
            return lo.OracleCorrect(y, learner)
        case "oracle weighted EM":
            return lo.OracleConfusion(confusion, learner)
        case "MV" | "weighted MV":
            return lo.TrainOnAggregate(lo.MajorityVote(), learner, targets="hard" if method == "MV" else "soft")
        case "EM" | "weighted EM":
            em = lo.DawidSkene(smoothing=0.0)
            return lo.TrainOnAggregate(em, learner, targets="hard" if method == "EM" else "soft")
        case "MBEM paper":
            return lo.MBEM.paper(learner)
        case "MBEM":
            return lo.MBEM(neural.TorchLearner(**settings), rounds=ROUNDS[point["net"]], random_state=seed)
    return learner


def trial(folder: Path, **point: Any) -> Trial:
    """Return the test accuracy of a method at one point, of MBEM's after every round, too."""
    import torch

    warnings.simplefilter("ignore")  # one label per task: that is what is measured
    torch.backends.cudnn.benchmark = True
    data = load(folder)
    X, y, ann, confusion = draw(point, data)
    model, rounds, started = model_of(point, y, confusion), [], time.perf_counter()

    def accuracy() -> float:
        return float((model.predict(data["xt"]) == data["yt"]).mean())

    if point["method"] == "MBEM":
        rounds = [accuracy() for stage in model.stages(X, ann) if stage.history_]
    else:
        model.fit(X, y if point["method"] == "truth" else ann)
    found: Trial = {"seconds": round(time.perf_counter() - started, 1), "accuracy": accuracy()}
    if rounds:
        found |= {"rounds": rounds, "labels": float((model.labels_ == y).mean())}
    return point | found


def run(options: argparse.Namespace) -> None:
    """Run what is missing."""
    load(options.cache)
    resume(options, partial(trial, options.cache), list(points(options)), order={"method": METHODS})


def means(trials: list[Trial]) -> dict[tuple[Any, ...], dict[str, list[float]]]:
    """Return accuracies in % of every point of the figure, a list over seeds for every method."""
    found: dict[tuple[Any, ...], dict[str, list[float]]] = {}
    for row in sorted(trials, key=lambda row: [str(row[key]) for key in KEYS]):
        at = found.setdefault(tuple(row[key] for key in KEYS), {method: [] for method in METHODS})
        same = SAME_AT_ONE if (row["method"], row["redundancy"]) == ("MV", 1) else ()
        for method in (row["method"], *same):
            at[method].append(100 * row["accuracy"])
    return found


def table(trials: list[Trial]) -> str:
    """Return the points of the figure, mean and standard error over seeds."""
    rows = [[*key, len(at["MV"]), *(mean_error(at[method]) for method in METHODS)] for key, at in means(trials).items()]
    return markdown(["net", "crowd", "quality", "labels per task", "tasks", "seeds", *METHODS], rows)


def plot(trials: list[Trial], path: Path) -> None:
    """Draw the six panels in the paper's layout: test error against quality or labels per task."""
    from matplotlib import pyplot as plt

    styles = {"truth": "k:", "oracle correct": "C7:", "oracle weighted EM": "C7-.", "MV": "C1--", "weighted MV": "C1-"}
    styles |= {"EM": "C2--", "weighted EM": "C2-", "MBEM paper": "C9-", "MBEM": "C3-"}
    found = means(trials)
    figure, axes = plt.subplots(2, 3, figsize=(12, 7), sharey=True, layout="constrained")
    most = max((key[4] for key in found), default=0)
    titles = ["worker quality, 1 label per task", "labels per task, all images", "labels per task, fixed budget"]
    for line, crowd in zip(axes, CROWDS, strict=True):
        of_crowd = {key[2:]: at for key, at in found.items() if key[:2] == ("fast", crowd)}
        panels = [
            {key[0]: at for key, at in of_crowd.items() if key[1] == 1},
            {key[1]: at for key, at in of_crowd.items() if key[0] == 0.2 and key[2] == most},
            {key[1]: at for key, at in of_crowd.items() if key[0] == 0.2 and key[2] == most // key[1]},
        ]
        for axis, panel, title in zip(line, panels, titles, strict=True):
            for method, style in styles.items():
                errors = {x: 100 - np.mean(panel[x][method]) for x in sorted(panel) if panel[x][method]}
                axis.plot(list(errors), list(errors.values()), style, marker=".", label=method)
            axis.set_title(f"{crowd}: {title}", fontsize=10)
        line[0].set_ylabel("test error, %")
    axes[0, 0].legend(fontsize=8)
    save(figure, path)


if __name__ == "__main__":
    parser = arguments(__doc__, PATH)
    parser.add_argument("--part", nargs="+", default=["a", "b", "c"], choices=["a", "b", "c"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--qualities", type=float, nargs="+", default=QUALITIES)
    parser.add_argument("--redundancies", type=int, nargs="+", default=REDUNDANCIES)
    parser.add_argument("--net", default="fast", choices=NETS)
    parser.add_argument("--tasks", type=int, default=N_TRAIN, help="images to train on")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "cifar10")
    main(parser.parse_args(), run, table, draw=plot, image="cifar10_figure1.png")
