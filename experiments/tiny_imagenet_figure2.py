"""The paper's Figure 2 at our scale: 100 classes of Tiny ImageNet, 1,000 workers who confuse classes in groups of 10.

Hammer-spammers and class-wise hammer-spammers of quality 0.2 and 0.6; 50,000 labels in all, 1 to 9 per image. Top-1
and top-5 test accuracy of the vote, the weighted vote, EM, the paper's MBEM and its oracle (which knows the workers),
and of ours with the groups given, with groups found in the labels, and with the true workers; the same network, epochs
and views for all. At one label per image the vote, the weighted vote and EM are one. No fit sees test data. Needs the
data of datasets.md and a GPU.

    python experiments/tiny_imagenet_figure2.py --jobs 6 --seeds 0 1 2               # resumes where it was stopped
    python experiments/tiny_imagenet_figure2.py --redundancies 1 --qualities 0.2 --minutes 9
    python experiments/tiny_imagenet_figure2.py --table                              # table and figure from the JSON
"""

import argparse
import tempfile
import time
import warnings
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import curves
import data_sets
import numpy as np
from draws import GROUPED, simulated
from record import RESULTS, Trial, arguments, grid, main, markdown, mean_error, resume, save, several

import labelonce as lo

PATH = RESULTS / "tiny_imagenet_figure2.json"
N_TRAIN, N_WORKERS, N_CLASSES = 50_000, 1000, 100
GROUPS = np.arange(N_CLASSES) // 10
ROWS = {"hammer-spammer": "worker", "class-wise": "position"}
METHODS = ("MV", "weighted MV", "EM", "MBEM paper", "oracle", "groups given", "groups found", "true workers", "truth")
OURS = ("groups given", "groups found", "true workers")
LEARNER: dict[str, Any] = {"module_fn": lo.neural.fast_net, "epochs": 16, "epochs_by_round": (6, 12), "lr": 1.5}
LEARNER |= {"batch_size": 1024, "momentum": 0.85, "weight_decay": 1.3e-3, "warmup": 0.23, "cutout": 12}
ROUNDS = 6
SETTINGS = {"learner": LEARNER | {"module_fn": "fast_net"}, "rounds": ROUNDS}
SETTINGS |= {"n_workers": N_WORKERS, "n_train": N_TRAIN}


def model_of(point: Trial, true: Any) -> Any:
    """Return what is fitted at a point; every training of the others is a full one."""
    method, rows, seed = point["method"], ROWS[point["crowd"]], point["seed"]
    workers = {
        "groups given": lo.workers.Grouped(GROUPS, rows=rows),
        "groups found": lo.workers.Grouped("auto", rows=rows),
        "true workers": lo.workers.Known(true),
    }
    if method in OURS:  # another start in every round
        ours = lo.neural.TorchLearner(**LEARNER)
        return lo.MBEM(ours, rounds=ROUNDS, worker_model=workers[method], folds=1, random_state=seed)
    learner = lo.neural.TorchLearner(**LEARNER | {"epochs_by_round": ()}, random_state=seed)
    em = lo.DawidSkene(smoothing=0.0, max_iter=50, dtype="float64")
    true = true.dense() if method == "oracle" else None
    return learner if method == "truth" else curves.rival(method, learner, None, true, em)


def trial(folder: Path, **point: Any) -> Trial:
    """Return top-1 and top-5 accuracy on the test images, and what our method says of itself."""
    import torch

    warnings.simplefilter("ignore")  # one label per task: that is what is measured
    torch.backends.cudnn.benchmark = True
    data = data_sets.mapped(folder, "tiny_imagenet_100")
    n_tasks, rng, method = N_TRAIN // point["redundancy"], np.random.default_rng(point["seed"]), point["method"]
    X, y = data["x"][:n_tasks], np.asarray(data["y"][:n_tasks])
    ann, true = simulated(rng, y, GROUPS, point["crowd"], point["quality"], N_WORKERS, point["redundancy"])
    started = time.perf_counter()
    model = model_of(point, true).fit(X, y if method == "truth" else ann)
    seconds = round(time.perf_counter() - started, 2)
    order = np.argsort(-model.predict_proba(data["xt"]), axis=1)[:, :5]
    right = order == np.asarray(data["yt"])[:, None]
    found = {"top1": 100 * float(right[:, 0].mean()), "top5": 100 * float(right.any(axis=1).mean())}
    if method in OURS:
        workers, skill = model.worker_model_, true.skill(np.full(N_CLASSES, 1 / N_CLASSES))
        groups = getattr(workers, "groups_", None)
        found |= {"posterior": 100 * float((model.labels_ == y).mean()), "leak": getattr(workers, "leak_", 0.0)}
        found |= {"skill_correlation": float(np.corrcoef(model.skill_, skill)[0, 1])}
        found |= {"n_groups": 0 if groups is None else groups.n_groups}
    return point | found | {"seconds": seconds}


def points(options: argparse.Namespace) -> list[Trial]:
    """Return every trial, one label per image first, then the long ones; the truth is the same for all crowds."""
    asked = {"crowd": options.crowds, "quality": options.qualities, "redundancy": options.redundancies}
    first = (options.crowds[0], options.qualities[0])
    kept = [
        one
        for one in grid(**asked, seed=options.seeds, method=options.methods)
        if (one["redundancy"] > 1 or one["method"] not in ("weighted MV", "EM"))
        and (one["method"] != "truth" or (one["crowd"], one["quality"]) == first)
    ]
    return sorted(kept, key=lambda one: (one["redundancy"] > 1, one["seed"], one["method"] not in OURS))


def run(options: argparse.Namespace) -> None:
    data_sets.mapped(options.cache, "tiny_imagenet_100")
    order = {"crowd": list(GROUPED), "method": METHODS}
    resume(options, partial(trial, options.cache), points(options), order=order, settings=SETTINGS)


def values(trials: list[Trial], measure: str, **wanted: Any) -> list[float]:
    """Return the numbers of some trials; the truth, and one label's vote, stand for those that are the same."""
    if wanted["method"] == "truth":
        wanted = {"method": "truth", "redundancy": wanted["redundancy"]}
    elif wanted["redundancy"] == 1 and wanted["method"] in ("weighted MV", "EM"):
        wanted["method"] = "MV"
    return [row[measure] for row in trials if all(row[key] == value for key, value in wanted.items())]


def seen(trials: list[Trial]) -> tuple[list[float], list[int]]:
    """Return the qualities and the labels per image that there are."""
    return sorted({row["quality"] for row in trials}), sorted({row["redundancy"] for row in trials})


def table(trials: list[Trial]) -> str:
    """Return top-1 and top-5 accuracies, mean and standard error over seeds."""
    text = ""
    for measure, name in (("top1", "Top-1"), ("top5", "Top-5")):
        rows = []
        qualities, redundancies = seen(trials)
        for at in grid(crowd=GROUPED, quality=qualities, redundancy=redundancies):
            cells = [mean_error(values(trials, measure, method=method, **at)) for method in METHODS]
            if any(cells[:-1]):
                rows.append([*at.values(), *cells])
        text += f"{name}, %\n\n" + markdown(["crowd", "quality", "labels per image", *METHODS], rows) + "\n"
    return text


def draw(trials: list[Trial], path: Path) -> None:
    """Draw top-1 error against the labels per image, as the paper does."""
    from matplotlib import pyplot as plt

    qualities, redundancies = seen(trials)
    size = (11, 4 * len(qualities))
    figure, axes = plt.subplots(len(qualities), 2, figsize=size, layout="constrained", squeeze=False)
    for axis, (quality, crowd) in zip(axes.flat, product(qualities, GROUPED), strict=True):
        for place, method in enumerate(METHODS):
            at = {"crowd": crowd, "quality": quality, "method": method}
            found = {r: values(trials, "top1", redundancy=r, **at) for r in redundancies}
            shown = {r: 100 - float(np.mean(some)) for r, some in found.items() if some}
            style = "-" if method in OURS else "--"
            axis.plot(list(shown), list(shown.values()), style, marker=".", color=f"C{place}", label=method)
        axis.set(
            title=f"{crowd}, quality {quality}", xlabel="labels per image (50,000 in all)", ylabel="top-1 error, %"
        )
        axis.grid(alpha=0.3)
    axes[0][0].legend(fontsize=8)
    save(figure, path)


if __name__ == "__main__":
    parser = arguments(__doc__, PATH)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--crowds", **several(GROUPED, choices=GROUPED))
    parser.add_argument("--qualities", **several((0.2, 0.6), type=float))
    parser.add_argument("--redundancies", **several((1, 2, 3, 5, 7, 9), type=int))
    parser.add_argument("--methods", **several(METHODS, choices=METHODS))
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "images")
    main(parser.parse_args(), run, table, draw=draw, image="tiny_imagenet_figure2.png")
