"""The paper's Figure 1 on CIFAR-10, and our default beside it.

Three curves for hammer-spammers and for class-wise hammer-spammers: test accuracy (a) against the quality of the
workers at one label per task, (b) against the labels per task at quality 0.2 on all 50,000 images, (c) the same with
50,000 labels in all. 100 workers drawn with replacement, a uniform prior, the last epoch of every training; the same
network, epochs and views for every method. No fit sees test data; but what
`image_learner` does (part default) was picked among eleven variants by the test accuracy of seed 0.

    python experiments/cifar10_figure1.py --part a --seeds 0 1 2       # curve (a) only; goes on where it was stopped
    python experiments/cifar10_figure1.py --part default               # our default at full strength, quality 0.2
    python experiments/cifar10_figure1.py --part ablation              # ... with one of its parts switched off
    python experiments/cifar10_figure1.py --part human                 # CIFAR-10N, one random human label an image
    python experiments/cifar10_figure1.py --part truth                 # how fast the fast net learns true labels
    python experiments/cifar10_figure1.py --part a --net resnet20 --qualities 0.2
    python experiments/cifar10_figure1.py --part abc --again MBEM      # one method again, at points that are done
    python experiments/cifar10_figure1.py --merge OTHER.json ...       # take in results from other machines
    python experiments/cifar10_figure1.py --table                      # tables and the figure from the JSON file

A network that was already trained on the same targets with the same seed is not trained again: at one label per task
MV, weighted MV, EM and weighted EM are one method, and the first round of the paper's MBEM is weighted MV. Its seconds
are counted where it was trained.
"""

import argparse
import json
import os
import platform
import time
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from ablation import UNBALANCED, left_alone
from torch import multiprocessing

import labelonce as lo
from labelonce import neural

RESULTS = Path(__file__).parent / "results" / "cifar10_figure1.json"
N_TRAIN, N_WORKERS, N_CLASSES = 50_000, 100, 10
CROWDS = {"hammer-spammer": lo.simulate.hammer_spammer, "class-wise": lo.simulate.class_wise_hammer_spammer}
QUALITIES = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
REDUNDANCIES = (1, 3, 5, 9)
METHODS = [
    "truth",
    "oracle correct",
    "oracle weighted EM",
    "MV",
    "weighted MV",
    "EM",
    "weighted EM",
    "MBEM paper",
    "MBEM",
]

FAST = {
    "module_fn": neural.fast_net,
    "batch_size": 1024,
    "lr": 1.5,
    "momentum": 0.85,
    "weight_decay": 1.3e-3,
    "warmup": 0.23,
}
NETS: dict[str, dict[str, Any]] = {
    "fast": FAST
    | {"module_fn": partial(neural.fast_net, widths=(64, 128, 256)), "epochs": 8, "epochs_by_round": (4, 6)}
    | {"pad": 2, "min_steps": 192},
    "resnet20": {"module_fn": neural.resnet20, "epochs": 32, "epochs_by_round": (8, 12), "min_steps": 1552}
    | {"batch_size": 512, "lr": 0.4, "compile": True},
    "resnet18": {"module_fn": neural.resnet18, "epochs": 30, "epochs_by_round": (6, 10)}
    | {"batch_size": 512, "lr": 0.2, "cutout": 12},
}
ROUNDS = {"fast": 9, "resnet20": 4, "resnet18": 4}
RECORD: dict[str, Any] = FAST | {"epochs": 30, "pad": 4, "label_smoothing": 0.2}


def load(folder: Path) -> dict[str, Any]:
    """Return images, true and human labels as memory-mapped arrays, decoded into `folder` once."""
    names = ["x", "y", "xt", "yt", "human"]
    if not all((folder / f"{name}.npy").exists() for name in names):
        data = lo.datasets.load("cifar10n", images=True)
        assert data.images is not None
        assert data.raw is not None
        human = data.raw.sort_by([("task", "ascending"), ("slot", "ascending")])["label"].to_numpy().reshape(-1, 3)
        whole = [data.images[:N_TRAIN], data.gold[:N_TRAIN], data.images[N_TRAIN:], data.gold[N_TRAIN:], human]
        for name, array in zip(names, whole, strict=True):
            np.save(folder / f"{name}.npy", array)
    return {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in names}


def points(curves: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield every trial of some curves of the figure."""
    n = options.tasks
    for seed in options.seeds:
        for crowd in options.crowds:
            base = {"seed": seed, "crowd": crowd, "net": options.net, "quality": 0.2, "redundancy": 1, "n_tasks": n}
            if "a" in curves:
                yield from (base | {"quality": quality} for quality in options.qualities)
            for redundancy in options.redundancies:
                if "b" in curves:
                    yield base | {"redundancy": redundancy}
                if "c" in curves:
                    yield base | {"redundancy": redundancy, "n_tasks": n // redundancy}


def draw(trial: dict[str, Any], data: dict[str, Any]) -> tuple[Any, Any, lo.Annotations, Any]:
    """Return images, true labels, annotations and the true confusion of a trial."""
    rng = np.random.default_rng(trial["seed"])
    X, y = data["x"][: trial["n_tasks"]], data["y"][: trial["n_tasks"]]
    confusion = CROWDS[trial["crowd"]](N_WORKERS, N_CLASSES, trial["quality"], rng)
    assigned = lo.simulate.assign(len(y), N_WORKERS, trial["redundancy"], rng)
    return X, y, lo.simulate.annotate(y, confusion, assigned, rng), confusion


def baseline(method: str, learner: Any, y: Any, confusion: Any) -> Any:
    """Return what MBEM is compared with."""
    aggregate = partial(lo.TrainOnAggregate, learner=learner)
    match method:
        case "oracle correct":
            return lo.OracleCorrect(y, learner)
        case "oracle weighted EM":
            return lo.OracleConfusion(confusion, learner)
        case "MV" | "weighted MV":
            return aggregate(lo.MajorityVote(), targets="hard" if method == "MV" else "soft")
        case "EM" | "weighted EM":
            return aggregate(lo.DawidSkene(smoothing=0.0), targets="hard" if method == "EM" else "soft")
    return lo.MBEM.paper(learner, prior="uniform")


class Once(neural.TorchLearner):
    """A network that is trained only once on the same targets and weights with the same settings."""

    trained: ClassVar[dict[tuple[str, bytes], neural.TorchLearner]] = {}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit, or take over what was fitted before."""
        weight = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        y = np.asarray(y)
        targets = np.asarray(y, dtype=float) if y.ndim == 2 else np.eye(N_CLASSES)[y]
        key = (str(self.get_params()), sha256(targets.round(6).tobytes() + weight.tobytes()).digest())
        if key not in self.trained:
            self.trained[key] = super().fit(X, targets, weight)
        self.__dict__ |= self.trained[key].__dict__
        return self


def run_trial(trial: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Return the test accuracy of every method at one point of the figure, of some if it is done `again`."""
    before = trial.pop("before", {"accuracy": {}, "seconds": {}})
    X, y, ann, confusion = draw(trial, data)
    settings = NETS[trial["net"]]
    Once.trained.clear()
    learner = Once(**settings | {"epochs_by_round": (), "random_state": trial["seed"]})
    accuracy: dict[str, float] = dict(before["accuracy"])
    seconds: dict[str, float] = dict(before["seconds"])
    found = before.get("mbem", {})
    for method in trial.pop("again", METHODS[1:]):
        started = time.perf_counter()
        if method == "MBEM":
            fresh = neural.TorchLearner(**settings)  # another start in every round
            model: Any = lo.MBEM(fresh, rounds=ROUNDS[trial["net"]], random_state=trial["seed"]).fit(X, ann)
            found = {"confusion_error": lo.metrics.confusion_error(confusion, model.confusion_)}
            found |= {"posterior_accuracy": float((model.labels_ == y).mean()), "rounds": len(model.history_)}
        else:
            model = baseline(method, learner, y, confusion).fit(X, ann)
        seconds[method] = round(time.perf_counter() - started, 2)
        accuracy[method] = float((model.predict(data["xt"]) == data["yt"]).mean())
    if "truth" not in accuracy:
        accuracy["truth"] = truth(trial["net"], trial["seed"], len(y), data)
    return {"part": "figure"} | trial | {"accuracy": accuracy, "seconds": seconds, "mbem": found}


def truth(net: str, seed: int, n_tasks: int, data: dict[str, Any]) -> float:
    """Return the test accuracy with all true labels, which points of the figure share."""
    settings = {name: value for name, value in NETS[net].items() if name != "module_fn"} | {"net": net}
    key = sha256(json.dumps([settings, seed, n_tasks]).encode()).hexdigest()[:16]
    file = Path(data["x"].filename).with_name(f"truth-{key}.json")
    if not file.exists():
        model = neural.TorchLearner(**NETS[net], random_state=seed).fit(data["x"][:n_tasks], data["y"][:n_tasks])
        beside = file.with_suffix(f".{os.getpid()}")
        beside.write_text(json.dumps(float((model.predict(data["xt"]) == data["yt"]).mean())))
        beside.replace(file)
    found: float = json.loads(file.read_text())
    return found


def run_truth(trial: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Return how well and how fast the fast net learns true labels, once kernels are loaded and chosen."""
    n = trial["n_tasks"]
    neural.TorchLearner(**RECORD | {"epochs": 1}).fit(data["x"][:2048], data["y"][:2048])
    started = time.perf_counter()
    model = neural.TorchLearner(**RECORD, random_state=trial["seed"]).fit(data["x"][:n], data["y"][:n])
    seconds = round(time.perf_counter() - started, 2)
    accuracy = float((model.predict(data["xt"]) == data["yt"]).mean())
    return trial | {"accuracy": {"truth": accuracy}, "seconds": {"truth": seconds}}


def run_rounds(trial: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Return the test accuracy of our default, or of a variant of it, after every round; time counts everything."""
    X, y, ann, confusion = draw(trial, data)
    options = VARIANTS[trial["variant"]]
    base = BASE[trial["part"]]
    learner = neural.image_learner(**base["learner"] | options.get("learner", {}))
    mbem = lo.MBEM(learner, **base["mbem"] | options.get("mbem", {}), random_state=trial["seed"])
    with left_alone() if trial["variant"] == UNBALANCED else nullcontext():
        rounds = stages(mbem, X, y, ann, data)
    return trial | {"rounds": rounds, "confusion_error": lo.metrics.confusion_error(confusion, mbem.confusion_)}


def stages(mbem: lo.MBEM, X: Any, y: Any, ann: lo.Annotations, data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what every round reached, and the seconds up to then without those of the test."""
    rounds = []
    spent = 0.0
    started = time.perf_counter()
    for model in mbem.stages(X, ann):
        if model.history_:
            spent += time.perf_counter() - started
            accuracy = float((model.predict(data["xt"]) == data["yt"]).mean())
            right = float((model.labels_ == y).mean())
            rounds.append({"test": accuracy, "posterior": right, "seconds": round(spent, 1)})
            started = time.perf_counter()
    return rounds


BASE: dict[str, dict[str, dict[str, Any]]] = {
    "default": {"learner": {}, "mbem": {}},
    "ablation": {"learner": {"n_models": 1, "epochs": 16}, "mbem": {"rounds": 6}},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "": {},
    "no cutout": {"learner": {"cutout": 0}},
    "two networks": {"learner": {"n_models": 2}},
    "mixup": {"learner": {"mixup": 0.5}},
    "12 epochs in every round": {"learner": {"epochs": 12, "epochs_by_round": (12,)}},
    UNBALANCED: {},
    "no information weights": {"mbem": {"weighting": "none"}},
    "posterior by the prior": {"mbem": {"posterior": "prior"}},
    "hard counts": {"mbem": {"counts": "hard"}},
    "workers counted, not shrunk": {"mbem": {"worker_model": lo.workers.Counted()}},
}


HUMAN: dict[str, dict[str, Any]] = {
    "plain": {"cutout": 0},
    "cutout": {},
    "mixup": {"cutout": 0, "mixup": 1.0},
    "MBEM": {},
}


def run_human(trial: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Return test accuracies with one random human label an image, all of them as if by one worker."""
    X = data["x"][: trial["n_tasks"]]
    n = len(X)
    rng = np.random.default_rng(trial["seed"])
    label = data["human"][np.arange(n), rng.integers(0, 3, n)]
    ann = lo.Annotations.from_arrays(np.arange(n), np.zeros(n, dtype=int), label, classes=np.arange(N_CLASSES))
    seconds: dict[str, float] = {}
    accuracy: dict[str, float] = {}
    for method, options in HUMAN.items():
        learner = neural.TorchLearner(**NETS["resnet18"] | options)
        started = time.perf_counter()
        if method == "MBEM":
            model: Any = lo.MBEM(learner, rounds=ROUNDS["resnet18"], random_state=trial["seed"]).fit(X, ann)
        else:
            model = learner.set_params(random_state=trial["seed"]).fit(X, label)
        seconds[method] = round(time.perf_counter() - started, 2)
        accuracy[method] = float((model.predict(data["xt"]) == data["yt"]).mean())
    noise = float((label != data["y"][:n]).mean())
    found = {"labels": "one of three at random", "noise": noise, "accuracy": accuracy, "seconds": seconds}
    return trial | found


JOBS = {"figure": run_trial, "default": run_rounds, "ablation": run_rounds, "human": run_human, "truth": run_truth}


def trials(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return what is asked for, each trial once."""
    return list({key_of(trial): trial for part in options.part for trial in trials_of(part, options)}.values())


def trials_of(part: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the trials of a part."""
    if part in BASE:
        base = {"part": part, "net": "fast", "quality": 0.2, "redundancy": 1, "n_tasks": options.tasks}
        for seed in options.seeds:
            for variant in [""] if part == "default" else options.variants:
                yield from (base | {"seed": seed, "crowd": crowd, "variant": variant} for crowd in options.crowds)
    elif part in JOBS:
        base = {"part": part, "net": "resnet18" if part == "human" else "fast", "n_tasks": options.tasks}
        yield from (base | {"seed": seed} for seed in options.seeds)
    else:
        yield from points(part, options)


def key_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return what makes a trial."""
    names = ("part", "net", "crowd", "quality", "redundancy", "n_tasks", "seed", "variant")
    return tuple(row.get(name, "figure" if name == "part" else "") for name in names)


def work(todo: Any, done: Any, folder: Path, deadline: float, at_once: int) -> None:
    """Do trials from a queue until it is empty or time is up, beside others `at_once`."""
    warnings.simplefilter("ignore")  # one label per task: that is what is measured
    torch.backends.cudnn.benchmark = True
    data = load(folder)
    while time.time() < deadline and (trial := todo.get()) is not None:
        started = time.perf_counter()
        row = JOBS[trial.get("part", "figure")](trial, data)
        row["seconds_in_all"] = round(time.perf_counter() - started, 1)
        done.put(row | {"at_once": at_once} | environment())
    done.put(None)


def environment() -> dict[str, Any]:
    """Return what the numbers were made with."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    versions = {"labelonce": lo.__version__, "torch": torch.__version__, "numpy": np.__version__}
    return {"device": device, "versions": versions | {"python": platform.python_version()}}


def run(options: argparse.Namespace) -> None:
    """Run what is not in the file yet, some trials at a time, and write every result as it comes."""
    options.cache.mkdir(parents=True, exist_ok=True)
    load(options.cache)
    rows = read(options.out)
    seen = {key_of(row): row for row in rows}
    context = multiprocessing.get_context("spawn")
    todo, done = context.Queue(), context.Queue()
    for trial in trials(options):
        before = seen.get(key_of(trial))
        if before is None:
            todo.put(trial)
        elif trial.get("part", "figure") == "figure" and options.again:
            todo.put(trial | {"again": options.again, "before": before})
    deadline = time.time() + options.seconds
    for _ in range(options.processes):
        todo.put(None)
    arguments = (todo, done, options.cache, deadline, options.processes)
    processes = [context.Process(target=work, args=arguments) for _ in range(options.processes)]
    for process in processes:
        process.start()
    ended = 0
    while ended < len(processes):
        row = done.get()
        if row is None:
            ended += 1
            continue
        rows.append(row)
        write(options.out, rows)
        print(*key_of(row), row.get("accuracy") or row["rounds"][-1], row["seconds_in_all"], flush=True)


def read(path: Path) -> list[dict[str, Any]]:
    """Return the results of a file, none where there is none."""
    found: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    return found


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write results, one a line, in a fixed order; of two with the same key the later one counts."""
    unique = {key_of(row): row for row in rows}
    lines = ",\n".join(json.dumps(unique[key]) for key in sorted(unique, key=str))
    beside = path.with_suffix(".part")
    beside.write_text(f"[\n{lines}\n]\n")
    beside.replace(path)


def table(rows: list[dict[str, Any]], path: Path) -> None:
    """Write results/cifar10_figure1.md and docs/images/cifar10_figure1.png."""
    parts = [figure_table(rows), rounds_table(rows), human_table(rows), truth_table(rows)]
    path.with_suffix(".md").write_text("\n\n".join(part for part in parts if part) + "\n")
    plot(means(rows), RESULTS.parents[2] / "docs" / "images" / "cifar10_figure1.png")


def means(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return accuracies in % of every point of the figure, a list over seeds for every method."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in sorted((row for row in rows if row["part"] == "figure"), key=lambda row: str(key_of(row))):
        key = tuple(row[name] for name in ("net", "crowd", "quality", "redundancy", "n_tasks"))
        at = found.setdefault(key, {method: [] for method in METHODS})
        for method, accuracy in row["accuracy"].items():
            at[method].append(100 * accuracy)
    return found


def figure_table(rows: list[dict[str, Any]]) -> str:
    """Return the points of the figure, mean and standard error over seeds."""
    head = ["net", "crowd", "quality", "labels per task", "tasks", "seeds", *METHODS]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for key, at in means(rows).items():
        cells = [*map(str, key), str(len(at["MV"])), *(spread(at[method]) for method in METHODS)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def rounds_table(rows: list[dict[str, Any]]) -> str:
    """Return our default and its variants: test accuracy after every round, and seconds."""
    chosen = sorted((row for row in rows if row["part"] in BASE), key=lambda row: str(key_of(row)))
    head = ["part", "variant", "crowd", "seed", "test accuracy after each round", "posterior right", "seconds"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for row in chosen:
        tests = " ".join(f"{100 * one['test']:.1f}" for one in row["rounds"])
        last = row["rounds"][-1]
        cells = [row["part"], row["variant"], row["crowd"], row["seed"], tests, f"{100 * last['posterior']:.1f}"]
        lines.append("| " + " | ".join(map(str, [*cells, last["seconds"]])) + " |")
    return "\n".join(lines) if chosen else ""


def human_table(rows: list[dict[str, Any]]) -> str:
    """Return the results on CIFAR-10N."""
    chosen = [row for row in rows if row["part"] == "human"]
    head = ["CIFAR-10N, one random label", "seeds", *HUMAN]
    spreads = [spread([100 * row["accuracy"][method] for row in chosen]) for method in HUMAN] if chosen else []
    noise = np.mean([row["noise"] for row in chosen]) if chosen else 0.0
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    lines.append("| " + " | ".join([f"noise {100 * noise:.1f} %", str(len(chosen)), *spreads]) + " |")
    return "\n".join(lines) if chosen else ""


def truth_table(rows: list[dict[str, Any]]) -> str:
    """Return the fast net on true labels, every seed with its seconds."""
    chosen = sorted((row for row in rows if row["part"] == "truth"), key=lambda row: str(key_of(row)))
    lines = [f"| fast net on true labels, {RECORD['epochs']} epochs | test accuracy | seconds |", "|---" * 3 + "|"]
    for row in chosen:
        lines.append(f"| seed {row['seed']} | {100 * row['accuracy']['truth']:.2f} | {row['seconds']['truth']} |")
    return "\n".join(lines) if chosen else ""


def spread(values: list[float]) -> str:
    """Return mean ± standard error, or the one value."""
    if len(values) < 2:
        return f"{np.mean(values):.1f}" if values else ""
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.1f}"


def plot(points: dict[tuple[Any, ...], dict[str, Any]], path: Path) -> None:
    """Draw the six panels in the paper's layout: test error against quality or labels per task."""
    from matplotlib import pyplot as plt

    styles = {"truth": "k:", "oracle correct": "C7:", "oracle weighted EM": "C7-.", "MV": "C1--", "weighted MV": "C1-"}
    styles |= {"EM": "C2--", "weighted EM": "C2-", "MBEM paper": "C9-", "MBEM": "C3-"}
    crowds = [crowd for crowd in CROWDS if any(key[:2] == ("fast", crowd) for key in points)]
    size = (12, 3.5 * len(crowds))
    figure, axes = plt.subplots(len(crowds), 3, figsize=size, sharey=True, layout="constrained", squeeze=False)
    most = max((key[4] for key in points), default=0)
    titles = ["worker quality, 1 label per task", "labels per task, all images", "labels per task, fixed budget"]
    for row, crowd in zip(axes, crowds, strict=True):
        of_crowd = {key[2:]: at for key, at in points.items() if key[:2] == ("fast", crowd)}
        panels = [
            {key[0]: at for key, at in of_crowd.items() if key[1] == 1},
            {key[1]: at for key, at in of_crowd.items() if key[0] == 0.2 and key[2] == most},
            {key[1]: at for key, at in of_crowd.items() if key[0] == 0.2 and key[2] == most // key[1]},
        ]
        for axis, panel, title in zip(row, panels, titles, strict=True):
            for method, style in styles.items():
                at = sorted(panel)
                errors = [100 - np.mean(panel[x][method]) for x in at]
                axis.plot(at, errors, style, marker="." if len(at) < 3 else None, label=method)
            axis.set_title(f"{crowd}: {title}", fontsize=10)
            axis.set(xlabel="quality" if panel is panels[0] else "labels per task")
        row[0].set_ylabel("test error, %")
    axes[0, 0].legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", default=["abc"], help="letters of curves, default, ablation, human, truth")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--crowds", nargs="+", default=list(CROWDS), choices=list(CROWDS))
    parser.add_argument("--qualities", type=float, nargs="+", default=QUALITIES)
    parser.add_argument("--redundancies", type=int, nargs="+", default=REDUNDANCIES)
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS))
    parser.add_argument("--net", default="fast", choices=["fast", "resnet20"])
    parser.add_argument("--again", nargs="+", choices=METHODS[1:], help="methods to do again at points that are done")
    parser.add_argument("--tasks", type=int, default=N_TRAIN, help="images to train on")
    parser.add_argument("--processes", type=int, default=1, help="trials at once on the card")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no trial after this time")
    parser.add_argument("--cache", type=Path, default=Path("cifar10_cache"), help="folder for the decoded images")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--merge", type=Path, nargs="+", default=[])
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if options.merge:
        write(options.out, [row for path in [options.out, *options.merge] for row in read(path)])
    elif options.table:
        table(read(options.out), options.out)
    else:
        run(options)


if __name__ == "__main__":
    main()
