"""The paper's Figure 1 on CIFAR-10.

Three curves for hammer-spammers and for class-wise hammer-spammers: test accuracy (a) against the quality of the
workers at one label per task, (b) against the labels per task at quality 0.2 on all 50,000 images, (c) the same with
50,000 labels in all. 100 workers drawn with replacement, a uniform prior, the last epoch of every training; the same
network, epochs and views for every method. At one label per task MV, weighted MV, EM and weighted EM are one method.
No fit sees test data. Needs the data of datasets.md and a GPU. What the default makes of images is in images.py; the
figure has its curve with 20 epochs.

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
from itertools import product
from pathlib import Path
from typing import Any

import curves
import data_sets
import numpy as np
from draws import SIMPLE, simulated
from record import RESULTS, Trial, arguments, main, markdown, mean_error, read, resume, several

import labelonce as lo
from labelonce import neural

PATH = RESULTS / "cifar10_figure1.json"
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


def points(options: argparse.Namespace) -> Iterator[Trial]:
    """Yield every trial that is asked for, each once."""
    places = curves.places(options.tasks, options.qualities, options.redundancies, options.part)
    for place, seed, crowd, method in product(places, options.seeds, SIMPLE, METHODS):
        if place[1] > 1 or method not in SAME_AT_ONE:
            yield dict(zip(KEYS, (options.net, crowd, *place), strict=True)) | {"seed": seed, "method": method}


def draw(point: Trial, data: dict[str, Any]) -> tuple[Any, Any, lo.Annotations, Any]:
    """Return images, true labels, annotations and the true confusion of a trial."""
    rng, n = np.random.default_rng(point["seed"]), point["n_tasks"]
    X, y = data["x"][:n], np.asarray(data["y"][:n])
    return X, y, *simulated(rng, y, 10, point["crowd"], point["quality"], 100, point["redundancy"])


def trial(folder: Path, **point: Any) -> Trial:
    """Return the test accuracy of a method at one point, of MBEM's after every round, too."""
    import torch

    warnings.simplefilter("ignore")  # one label per task: that is what is measured
    torch.backends.cudnn.benchmark = True
    data = data_sets.mapped(folder, "cifar10")
    X, y, ann, confusion = draw(point, data)
    method, settings, seed = point["method"], NETS[point["net"]], point["seed"]
    learner = neural.TorchLearner(**settings | {"epochs_by_round": ()}, random_state=seed)  # others train in full
    model: Any = lo.MBEM(neural.TorchLearner(**settings), rounds=ROUNDS[point["net"]], random_state=seed)
    started = time.perf_counter()

    def accuracy() -> float:
        return float((model.predict(data["xt"]) == data["yt"]).mean())

    if method == "MBEM":
        rounds = [accuracy() for stage in model.stages(X, ann) if stage.history_]
        more = {"rounds": rounds, "labels": float((model.labels_ == y).mean())}
    else:
        model = learner if method == "truth" else curves.rival(method, learner, y, confusion)
        model.fit(X, y if method == "truth" else ann)
        more = {}
    return point | {"seconds": round(time.perf_counter() - started, 1), "accuracy": accuracy()} | more


def run(options: argparse.Namespace) -> None:
    data_sets.mapped(options.cache, "cifar10")
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
    """Draw the curves of the fast network, and those of `image_learner` where images.py has them."""
    found = {key[1:]: at for key, at in means(trials).items() if key[0] == "fast"}
    for row in read(RESULTS / "images.json"):
        place = tuple(row[key] for key in ("crowd", "quality", "redundancy", "tasks"))
        asked = (row["set"], row["method"], row["epochs"], row["options"]) == ("cifar10", "ours", 20, "{}")
        if asked and place in found:
            found[place].setdefault("image_learner", []).append(100 * row["accuracy"])
    curves.plot(found, path)


if __name__ == "__main__":
    parser = arguments(__doc__, PATH)
    parser.add_argument("--part", **several("abc", choices=[*"abc"]))
    parser.add_argument("--seeds", **several(range(3), type=int))
    parser.add_argument("--qualities", **several(QUALITIES, type=float))
    parser.add_argument("--redundancies", **several(REDUNDANCIES, type=int))
    parser.add_argument("--net", default="fast", choices=NETS)
    parser.add_argument("--tasks", type=int, default=50_000, help="images to train on")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "images")
    main(parser.parse_args(), run, table, draw=plot, image="cifar10_figure1.png")
