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
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Self

import data_sets
import numpy as np
import record
from record import RESULTS, arguments, markdown, mean_error, read, save

import labelonce as lo

PATH = RESULTS / "tiny_imagenet_figure2.json"
IMAGE = "tiny_imagenet_figure2.png"
N_TRAIN, N_WORKERS, N_CLASSES = 50_000, 1000, 100
GROUPS = np.arange(N_CLASSES) // 10
CROWDS = {
    "hammer-spammer": (lo.simulate.grouped_hammer_spammer, "worker"),
    "class-wise": (lo.simulate.grouped_class_wise_hammer_spammer, "position"),
}
ONE_LABEL = ("MV", "MBEM paper", "oracle", "groups given", "groups found", "true workers", "truth")
METHODS = ("MV", "weighted MV", "EM", "MBEM paper", "oracle", "groups given", "groups found", "true workers", "truth")
OURS = ("groups given", "groups found", "true workers")
KEYS = ("seed", "crowd", "quality", "redundancy", "method")
LEARNER: dict[str, Any] = {"module_fn": lo.neural.fast_net, "epochs": 16, "epochs_by_round": (6, 12), "lr": 1.5}
LEARNER |= {"batch_size": 1024, "momentum": 0.85, "weight_decay": 1.3e-3, "warmup": 0.23, "cutout": 12}
ROUNDS = 6


def load(folder: Path) -> dict[str, Any]:
    """Return images and labels as memory-mapped arrays, decoded into `folder` once."""
    names = ("x", "y", "xt", "yt")
    if not all((folder / f"{name}.npy").exists() for name in names):
        folder.mkdir(parents=True, exist_ok=True)
        data = data_sets.load("tiny_imagenet_100", images=True)
        assert data.images is not None
        whole = (data.images[:N_TRAIN], data.gold[:N_TRAIN], data.images[N_TRAIN:], data.gold[N_TRAIN:])
        for name, array in zip(names, whole, strict=True):
            np.save(folder / f"{name}.npy", np.asarray(array))
    return {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in names}


def draw_crowd(point: dict[str, Any], y: Any) -> tuple[lo.Annotations, Any]:
    """Return the annotations of a point of the figure, and its workers."""
    rng = np.random.default_rng(point["seed"])
    true = CROWDS[point["crowd"]][0](N_WORKERS, GROUPS, point["quality"], rng)
    assigned = lo.simulate.assign(len(y), N_WORKERS, point["redundancy"], rng)
    return lo.simulate.annotate(y, true, assigned, rng), true


def method_of(point: dict[str, Any], learner: Any, true: Any) -> Any:
    """Return what is fitted at a point."""
    rows, seed = CROWDS[point["crowd"]][1], point["seed"]
    workers = {
        "groups given": lo.workers.Grouped(GROUPS, rows=rows),
        "groups found": lo.workers.Grouped("auto", rows=rows),
        "true workers": lo.workers.Known(true),
    }
    match point["method"]:
        case "MV" | "weighted MV" as name:
            return lo.TrainOnAggregate(lo.MajorityVote(), learner, targets="hard" if name == "MV" else "soft")
        case "EM":
            em = lo.DawidSkene(smoothing=0.0, max_iter=50, dtype="float64")
            return lo.TrainOnAggregate(em, learner, targets="hard")
        case "MBEM paper":
            return lo.MBEM.paper(learner)
        case "oracle":
            return lo.OracleConfusion(true.dense(), learner)
        case name:
            ours = Timed(**LEARNER)  # another start in every round
            return lo.MBEM(ours, rounds=ROUNDS, worker_model=workers[name], folds=1, random_state=seed)


class Timed(lo.neural.TorchLearner):
    """The network, with the seconds of all its fits and predictions."""

    spent: ClassVar[list[float]] = []

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit, and note how long it took."""
        started = time.perf_counter()
        super().fit(X, y, sample_weight)
        self.spent.append(time.perf_counter() - started)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Predict, and note how long it took."""
        started = time.perf_counter()
        found = super().predict_proba(X)
        self.spent.append(time.perf_counter() - started)
        return found


def run_point(folder: Path, **point: Any) -> dict[str, Any]:
    """Return top-1 and top-5 accuracy on the test images, and what our method says of itself."""
    import torch

    warnings.simplefilter("ignore")  # one label per task: that is what is measured
    torch.backends.cudnn.benchmark = True
    data = load(folder)
    n_tasks = N_TRAIN // point["redundancy"]
    X, y = data["x"][:n_tasks], np.asarray(data["y"][:n_tasks])
    ann, true = draw_crowd(point, y)
    options = LEARNER | {"epochs_by_round": ()}  # every training of the others is a full one
    learner = lo.neural.TorchLearner(**options, random_state=point["seed"])
    Timed.spent.clear()
    started = time.perf_counter()
    if point["method"] == "truth":
        model: Any = learner.fit(X, y)
    else:
        model = method_of(point, learner, true).fit(X, ann)
    seconds = round(time.perf_counter() - started, 2)
    network_s = round(sum(Timed.spent), 2)
    order = np.argsort(-model.predict_proba(data["xt"]), axis=1)[:, :5]
    right = order == np.asarray(data["yt"])[:, None]
    found = {"top1": 100 * float(right[:, 0].mean()), "top5": 100 * float(right.any(axis=1).mean())}
    if point["method"] in OURS:
        found |= {
            "posterior": 100 * float((model.labels_ == y).mean()),
            "leak": getattr(model.worker_model_, "leak_", 0.0),
            "network_s": network_s,
        }
        skill = true.skill(np.full(N_CLASSES, 1 / N_CLASSES))
        found |= {"skill_correlation": float(np.corrcoef(model.skill_, skill)[0, 1])}
        groups = getattr(model.worker_model_, "groups_", None)
        found |= {"n_groups": 0 if groups is None else groups.n_groups}
    return point | found | {"seconds": seconds}


def points(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield every trial, those of the first claims first; the truth is the same for all crowds."""
    for redundancy in options.redundancies:
        for seed in options.seeds:
            for quality in options.qualities:
                for crowd in options.crowds:
                    base = {"seed": seed, "crowd": crowd, "quality": quality, "redundancy": redundancy}
                    for method in METHODS if redundancy > 1 else ONE_LABEL:
                        alone = method == "truth" and (crowd, quality) != (options.crowds[0], options.qualities[0])
                        if method in options.methods and not alone:
                            yield base | {"method": method}


def run(options: argparse.Namespace) -> None:
    """Run what the results file does not have, some at a time, until the time is over."""
    from joblib import Parallel, delayed

    done = read(options.out)
    seen = {tuple(row[key] for key in KEYS) for row in done}
    started = time.perf_counter()
    load(options.cache)
    wait = [point for point in points(options) if tuple(point[key] for key in KEYS) not in seen]
    wait.sort(key=lambda point: point["method"] not in OURS)  # the long ones first

    def work() -> Iterator[Any]:
        for point in sorted(wait, key=lambda point: (point["redundancy"] > 1, point["seed"])):
            if time.perf_counter() - started < 60 * options.minutes:
                yield delayed(run_point)(options.cache, **point)

    jobs = Parallel(n_jobs=options.jobs, return_as="generator_unordered", pre_dispatch=options.jobs)
    settings = {
        "learner": LEARNER | {"module_fn": "fast_net"},
        "rounds": ROUNDS,
        "n_workers": N_WORKERS,
        "n_train": N_TRAIN,
    }
    for row in jobs(work()):
        done.append(row)
        done.sort(key=lambda one: [CROWD_ORDER[one["crowd"]], *(one[key] for key in KEYS[2:4]), one["seed"]])
        record.write(options.out, done, settings=settings, seconds=time.perf_counter() - started)
        print(*(row[key] for key in KEYS), {name: row[name] for name in row if name not in KEYS}, flush=True)


CROWD_ORDER = {crowd: place for place, crowd in enumerate(CROWDS)}


def values(trials: list[dict[str, Any]], measure: str, **wanted: Any) -> list[float]:
    """Return the numbers of some trials; the truth, and one label's vote, stand for those that are the same."""
    if wanted["method"] == "truth":
        wanted = {"method": "truth", "redundancy": wanted["redundancy"]}
    elif wanted["redundancy"] == 1 and wanted["method"] in ("weighted MV", "EM"):
        wanted["method"] = "MV"
    return [row[measure] for row in trials if all(row[key] == value for key, value in wanted.items())]


def table(trials: list[dict[str, Any]]) -> str:
    """Return top-1 and top-5 accuracies, mean and standard error over seeds."""
    text = ""
    qualities = sorted({row["quality"] for row in trials})
    for measure, name in (("top1", "Top-1"), ("top5", "Top-5")):
        rows = []
        for crowd in CROWDS:
            for quality in qualities:
                for redundancy in sorted({row["redundancy"] for row in trials}):
                    at = {"crowd": crowd, "quality": quality, "redundancy": redundancy}
                    cells = [mean_error(values(trials, measure, method=method, **at)) for method in METHODS]
                    if any(cells[:-1]):
                        rows.append([crowd, quality, redundancy, *cells])
        text += f"{name}, %\n\n" + markdown(["crowd", "quality", "labels per image", *METHODS], rows) + "\n"
    return text


def draw(trials: list[dict[str, Any]], path: Path) -> None:
    """Draw top-1 error against the labels per image, as the paper does."""
    from matplotlib import pyplot as plt

    qualities = sorted({row["quality"] for row in trials})
    figure, axes = plt.subplots(
        len(qualities), 2, figsize=(11, 4 * len(qualities)), layout="constrained", squeeze=False
    )
    for row_of, quality in zip(axes, qualities, strict=True):
        for axis, crowd in zip(row_of, CROWDS, strict=True):
            for place, method in enumerate(METHODS):
                found = {
                    redundancy: values(
                        trials, "top1", crowd=crowd, quality=quality, redundancy=redundancy, method=method
                    )
                    for redundancy in sorted({one["redundancy"] for one in trials})
                }
                shown = {number: 100 - float(np.mean(some)) for number, some in found.items() if some}
                style = "-" if method in OURS else "--"
                axis.plot(list(shown), list(shown.values()), style, marker=".", color=f"C{place}", label=method)
            axis.set(
                title=f"{crowd}, quality {quality}", xlabel="labels per image (50,000 in all)", ylabel="top-1 error, %"
            )
            axis.grid(alpha=0.3)
    axes[0][0].legend(fontsize=8)
    save(figure, path)


def main() -> None:
    """Run what is missing and make table and figure."""
    parser = arguments(__doc__, PATH)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--crowds", nargs="+", choices=CROWDS, default=list(CROWDS))
    parser.add_argument("--qualities", type=float, nargs="+", default=[0.2, 0.6])
    parser.add_argument("--redundancies", type=int, nargs="+", default=[1, 2, 3, 5, 7, 9])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--minutes", type=float, default=1e6, help="start no trial after so long")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "tiny_imagenet_100")
    record.main(parser.parse_args(), run, table, draw=draw, image=IMAGE)


if __name__ == "__main__":
    main()
