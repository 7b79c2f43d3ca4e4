"""The paper's Figure 1 on CIFAR-10, and our default beside it.

Three curves for hammer-spammers and for class-wise hammer-spammers: test accuracy (a) against the quality of the
workers at one label per task, (b) against the labels per task at quality 0.2 on all 50,000 images, (c) the same with
50,000 labels in all. 100 workers drawn with replacement, a uniform prior, the last epoch of every training; the same
network, epochs and views for every method. No fit sees test data; but what
`image_learner` does (part default) was picked among eleven variants by the test accuracy of seed 0. Needs the
data of datasets.md.

    python experiments/cifar10_figure1.py --part a --seeds 0 1 2       # curve (a) only; resumes where it was stopped
    python experiments/cifar10_figure1.py --part default               # our default at full strength, quality 0.2
    python experiments/cifar10_figure1.py --part ablation              # ... with one of its parts switched off
    python experiments/cifar10_figure1.py --part human                 # CIFAR-10N, one random human label per image
    python experiments/cifar10_figure1.py --part truth                 # how fast the fast net learns true labels
    python experiments/cifar10_figure1.py --part a --net resnet20 --qualities 0.2
    python experiments/cifar10_figure1.py --part abc --again MBEM      # one method again, at points that are done
    python experiments/cifar10_figure1.py --merge OTHER.json ...       # take in results from other machines
    python experiments/cifar10_figure1.py --table                      # tables and the figure from the JSON file

A network that was already trained on the same targets with the same seed is not trained again: at one label per task
MV, weighted MV, EM and weighted EM are one method, and the first round of the paper's MBEM is weighted MV. Its seconds
are counted where it was trained. Every row says by which settings and which code (`source`) it was made; where some
methods were done again, `kept` says it of the others.
"""

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from queue import Empty
from typing import Any, ClassVar, Self

import data_sets
import numpy as np
import torch
from cifar10_tables import METHODS, environment, kept, key_of, plain, source, write, write_tables
from mbem_ablation import UNBALANCED, left_alone
from record import IMAGES, RESULTS, read
from torch import multiprocessing

import labelonce as lo
from labelonce import neural

CODE = Path(__file__)
PATH = RESULTS / "cifar10_figure1.json"
IMAGE = IMAGES / "cifar10_figure1.png"
N_TRAIN, N_WORKERS, N_CLASSES = 50_000, 100, 10
CROWDS = {"hammer-spammer": lo.simulate.hammer_spammer, "class-wise": lo.simulate.class_wise_hammer_spammer}
QUALITIES = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
REDUNDANCIES = (1, 3, 5, 9)
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
BASELINES: dict[str, Any] = {"epochs_by_round": ()}


def load(folder: Path) -> dict[str, Any]:
    """Return images, true and human labels as memory-mapped arrays, decoded into `folder` once."""
    names = ["x", "y", "xt", "yt", "human"]
    if not all((folder / f"{name}.npy").exists() for name in names):
        data = data_sets.load("cifar10n", images=True)
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


def mbem_of(trial: dict[str, Any]) -> lo.MBEM:
    """Return our method with the settings of a trial."""
    part, seed = trial.get("part", "figure"), trial["seed"]
    if part not in BASE:
        learner = neural.TorchLearner(**NETS[trial["net"]])  # another start in every round
        return lo.MBEM(learner, rounds=ROUNDS[trial["net"]], random_state=seed)
    base, options = BASE[part], VARIANTS[trial["variant"]]
    learner = neural.image_learner(**base["learner"] | options.get("learner", {}))
    return lo.MBEM(learner, **base["mbem"] | options.get("mbem", {}), random_state=seed)


def settings_of(trial: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a trial for its row: of the network, of MBEM, and where other methods differ."""
    part = trial.get("part", "figure")
    if part == "truth":
        return {"learner": plain(neural.TorchLearner(**RECORD, random_state=trial["seed"]).get_params())}
    options = mbem_of(trial).get_params(deep=False)
    learner = options.pop("learner").get_params()
    others = {"figure": {"baselines": BASELINES}, "human": {"methods": HUMAN}}.get(part, {})
    found: dict[str, Any] = plain({"learner": learner, "mbem": options} | others)
    return found


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
    methods = trial.pop("again", METHODS[1:])
    Once.trained.clear()
    learner = Once(**NETS[trial["net"]] | BASELINES, random_state=trial["seed"])
    accuracy: dict[str, float] = dict(before["accuracy"])
    seconds: dict[str, float] = dict(before["seconds"])
    found = before.get("mbem", {})
    for method in methods:
        started = time.perf_counter()
        if method == "MBEM":
            model: Any = mbem_of(trial).fit(X, ann)
            found = {"confusion_error": lo.metrics.confusion_error(confusion, model.confusion_)}
            found |= {"posterior_accuracy": float((model.labels_ == y).mean()), "rounds": len(model.history_)}
        else:
            model = baseline(method, learner, y, confusion).fit(X, ann)
        seconds[method] = round(time.perf_counter() - started, 2)
        accuracy[method] = float((model.predict(data["xt"]) == data["yt"]).mean())
    if "truth" not in accuracy:
        accuracy["truth"] = truth(trial["net"], trial["seed"], len(y), data)
    row = {"part": "figure"} | trial | {"accuracy": accuracy, "seconds": seconds, "mbem": found}
    return row | {"kept": kept(before, methods)} if before["accuracy"] else row


def truth(net: str, seed: int, n_tasks: int, data: dict[str, Any]) -> float:
    """Return the test accuracy with all true labels, which points of the figure share."""
    key = sha256(json.dumps([plain(NETS[net]), seed, n_tasks, source(CODE)]).encode()).hexdigest()[:16]
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
    mbem = mbem_of(trial)
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


HUMAN: dict[str, dict[str, Any]] = {"plain": {"cutout": 0}, "cutout": {}, "mixup": {"cutout": 0, "mixup": 1.0}}
HUMAN |= {"MBEM": {}}


def run_human(trial: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Return test accuracies with one random human label per image, all of them as if by one worker."""
    X = data["x"][: trial["n_tasks"]]
    n = len(X)
    rng = np.random.default_rng(trial["seed"])
    label = data["human"][np.arange(n), rng.integers(0, 3, n)]
    ann = lo.Annotations.from_arrays(np.arange(n), np.zeros(n, dtype=int), label, classes=np.arange(N_CLASSES))
    seconds: dict[str, float] = {}
    accuracy: dict[str, float] = {}
    for method, options in HUMAN.items():
        started = time.perf_counter()
        if method == "MBEM":
            model: Any = mbem_of(trial).fit(X, ann)
        else:
            model = neural.TorchLearner(**NETS[trial["net"]] | options, random_state=trial["seed"]).fit(X, label)
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


def open_trials(options: argparse.Namespace, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the trials that are not among the results yet, and those of which methods are done again."""
    seen = {key_of(row): row for row in rows}
    for trial in trials(options):
        before = seen.get(key_of(trial))
        if before is None:
            yield trial
        elif trial.get("part", "figure") == "figure" and options.again:
            yield trial | {"again": options.again, "before": before}


def work(todo: Any, done: Any, folder: Path, deadline: float, at_once: int) -> None:
    """Do trials from a queue until it is empty or time is up, beside others `at_once`."""
    warnings.simplefilter("ignore")  # one label per task: that is what is measured
    torch.backends.cudnn.benchmark = True
    data = load(folder)
    while time.time() < deadline and (trial := todo.get()) is not None:
        started = time.perf_counter()
        row = JOBS[trial.get("part", "figure")](trial, data)
        seconds = round(time.perf_counter() - started, 1)
        made = {"settings": settings_of(trial), "source": source(CODE), "seconds_in_all": seconds, "at_once": at_once}
        done.put(row | made | environment())


def results(processes: list[Any], done: Any) -> Iterator[dict[str, Any]]:
    """Yield what processes put into a queue until all have ended, in whatever way."""
    ended = False
    while not ended:
        ended = not any(process.is_alive() for process in processes)  # before the look: all that they sent is there
        with suppress(Empty):
            while True:
                yield done.get(timeout=1.0)


def run(options: argparse.Namespace) -> None:
    """Run what is not in the file yet, some trials at a time, and write every result as it comes."""
    options.cache.mkdir(parents=True, exist_ok=True)
    load(options.cache)
    rows = read(options.out)
    context = multiprocessing.get_context("spawn")
    todo, done = context.Queue(), context.Queue()
    for trial in [*open_trials(options, rows), *[None] * options.processes]:
        todo.put(trial)
    arguments = (todo, done, options.cache, time.time() + options.seconds, options.processes)
    processes = [context.Process(target=work, args=arguments) for _ in range(options.processes)]
    for process in processes:
        process.start()
    for row in results(processes, done):
        rows.append(row)
        write(options.out, rows)
        print(*key_of(row), row.get("accuracy") or row["rounds"][-1], row["seconds_in_all"], flush=True)
    codes = [process.exitcode for process in processes if process.exitcode != 0]
    if codes:
        sys.exit(
            f"{len(codes)} of {len(processes)} processes failed with exit codes {codes}, for the reason above; the "
            f"results that came are in {options.out}, and the same command resumes from there."
        )


def epochs_of(variant: str) -> int:
    """Return how many epochs a variant of the ablation trains in all."""
    mbem = mbem_of({"part": "ablation", "variant": variant, "seed": 0})
    of_rounds = [mbem.learner.for_round(number, mbem.rounds).epochs for number in range(1, mbem.rounds + 1)]
    return int(mbem.learner.n_models * sum(of_rounds))


def main(arguments: list[str] | None = None) -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="+", default=["abc"], help="letters of curves, default, ablation, human, truth")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--crowds", nargs="+", default=list(CROWDS), choices=list(CROWDS))
    parser.add_argument("--qualities", type=float, nargs="+", default=QUALITIES)
    parser.add_argument("--redundancies", type=int, nargs="+", default=REDUNDANCIES)
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--net", default="fast", choices=["fast", "resnet20"])
    parser.add_argument("--again", nargs="+", choices=METHODS[1:], help="methods to do again at points that are done")
    parser.add_argument("--tasks", type=int, default=N_TRAIN, help="images to train on")
    parser.add_argument("--processes", type=int, default=1, help="trials at once on the card")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no trial after this time")
    parser.add_argument("--cache", type=Path, default=Path("cifar10_cache"), help="folder for the decoded images")
    parser.add_argument("--out", type=Path, default=PATH)
    parser.add_argument("--merge", type=Path, nargs="+", default=[])
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args(arguments)
    if options.merge:
        write(options.out, [row for path in [options.out, *options.merge] for row in read(path)])
    elif options.table:
        write_tables(options.out, epochs_of, list(CROWDS), IMAGE)
    else:
        run(options)


if __name__ == "__main__":
    main()
