"""What `image_learner` makes of images with one label each: accuracy and seconds by epochs, on seven sets.

CIFAR-10 and 100 classes of Tiny ImageNet with simulated workers (hammer-spammers and class-wise ones), human labels of
CIFAR-10N and CIFAR-10S, small draws of CIFAR-10, and "pairs": two CIFAR-10 images side by side with ten yes-or-no
questions. Rows of the true labels, of the true workers and of votes are trained alike. No fit sees test data. Needs the
data of datasets.md and a GPU.

    python experiments/images.py --part time --jobs 1 --alone    # what seconds buy
    python experiments/images.py --part cifar10 --seeds 51 52 53 --jobs 4
    python experiments/images.py --table
"""

import argparse
import json
import tempfile
import time
import warnings
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import data_sets
import numpy as np
from curves import rival
from draws import simulated
from record import RESULTS, Trial, arguments, grouped, main, markdown, mean_error, resume

import labelonce as lo
from labelonce import neural
from labelonce._kernels import Beliefs
from labelonce._sklearn import clone
from labelonce.learning import _mbem, _rounds, _verdict
from labelonce.learning._case import Case
from labelonce.learning._choice import folds_of
from labelonce.learning._judge import View
from labelonce.runs._images import SMALL, network_for

PATH = RESULTS / "images.json"
CROWDS = {"hammer-spammer": "worker", "class-wise": "position"}  # with what the rows of groups are
GROUPS = np.arange(100) // 10
OURS = ("ours", "groups given", "groups found", "true workers")
TUNING = 100  # seeds from which trials are for tuning: no table shows them, and they are tested after every round
KEYS = ("set", "crowd", "quality", "redundancy", "tasks", "method", "epochs", "options", "seed")
WAYS = ["main", "three parts", "model", "both"]
PART: dict[str, list[dict[str, Any]]] = {
    "time": [{"epochs": epochs} for epochs in (10, 20, 40, 80, 160)],
    "cifar10": [{"crowd": crowd, "epochs": epochs} for epochs in (80, 120) for crowd in CROWDS],
    "shown": [{"options": json.dumps({"shown": WAYS})}],
    "quality": [{"crowd": crowd, "quality": quality} for crowd in CROWDS for quality in (0.1, 0.3, 0.5, 0.7, 1.0)],
    "redundancy": [{"crowd": crowd, "redundancy": r} for crowd in CROWDS for r in (3, 5, 9)],
    "budget": [{"crowd": crowd, "redundancy": r, "tasks": 50_000 // r} for crowd in CROWDS for r in (3, 5, 9)],
    "truth": [{"method": "truth"}],
    "human": [{"set": "cifar10n", "crowd": crowd, "epochs": 80} for crowd in ("random-1", "aggregate", "worst")]
    + [{"set": "cifar10n", "crowd": "random-1", "epochs": 120}],
    "few workers": [{"set": "cifar10s", "crowd": "people", "method": method} for method in ("ours", "vote")],
    "small": [{"crowd": crowd, "tasks": n} for crowd in CROWDS for n in (500, 2_000)],
    "tiny": [
        {"set": "tiny", "crowd": crowd, "method": method, "epochs": 50}
        for method in ("groups given", "true workers", "groups found", "oracle")
        for crowd in CROWDS
    ]
    + [{"set": "tiny", "method": "truth", "epochs": 50}],
    "pairs": [
        {"set": "pairs", "tasks": 2_000, "epochs": 20, "method": method, "options": options}
        for method, options in (("ours", "{}"), ("ours on a CPU", '{"device": "cpu"}'))
    ],
}


def load(folder: Path, name: str) -> dict[str, Any]:
    """Return arrays of a data set as memory-mapped files, decoded into `folder` once."""
    found = data_sets.mapped(folder, "tiny_imagenet_100" if name == "tiny" else "cifar10")
    if name in ("cifar10n", "cifar10s"):
        if not (folder / f"{name}.npy").exists():
            ann: Any = data_sets.load(name).annotations
            np.save(folder / f"{name}.npy", np.stack([ann.tasks[ann.task], ann.worker, ann.label], axis=1))
        found["labels"] = np.load(folder / f"{name}.npy")
    return found


def problem(folder: Path, point: Trial) -> tuple[Any, ...]:
    """Return images, truth, annotations, true workers, and images and truth of a test."""
    data, rng = load(folder, point["set"]), np.random.default_rng(point["seed"])
    X, y = data["x"][: point["tasks"]], np.asarray(data["y"][: point["tasks"]])
    test = data["xt"], np.asarray(data["yt"])
    if point["set"] == "cifar10s":  # people labelled test images: those that they did not are the test
        task, worker, label = data["labels"].T
        some = np.unique(task)
        rest, row = np.setdiff1d(np.arange(10_000), some), np.searchsorted(some, task)
        ann = lo.Annotations.from_arrays(row, worker, label, classes=range(10), duplicates="keep")
        return test[0][some], test[1][some], ann, None, test[0][rest], test[1][rest]
    if point["set"] == "cifar10n":
        label = data["labels"][np.lexsort(data["labels"].T[[1, 0]])][:, 2].reshape(-1, 3)[: len(y)]
        ann = lo.Annotations.from_arrays(np.arange(len(y)), np.zeros(len(y), int), _human(label, y, point, rng))
        return X, y, ann, None, *test
    classes, n_workers = (GROUPS, 1000) if point["set"] == "tiny" else (10, 100)
    return X, y, *simulated(rng, y, classes, point["crowd"], point["quality"], n_workers, point["redundancy"]), *test


def _human(label: Any, y: Any, point: Trial, rng: Any) -> Any:
    """Return one label per image from three: the first, the most frequent (ties drawn), or a wrong one if there is."""
    if point["crowd"] == "random-1":
        return label[:, 0]
    counts = (label[:, :, None] == np.arange(10)).sum(axis=1)
    if point["crowd"] == "aggregate":
        return (counts + 0.5 * rng.random(counts.shape)).argmax(axis=1)
    wrong = label != y[:, None]
    place = np.where(wrong, rng.random(label.shape), -1).argmax(axis=1)
    return label[np.arange(len(label)), np.where(wrong.any(axis=1), place, 0)]


def network(point: Trial, options: dict[str, Any]) -> Any:
    """Return the learner; `width` and the `widths` of `early` name narrower networks."""
    if point["tasks"] < SMALL or point["set"] == "cifar10s":
        return network_for(1_000 if point["set"] == "cifar10s" else point["tasks"]).set_params(**options)
    width, early = options.pop("width", 64), options.pop("early", {})
    chosen: dict[str, Any] = {"module_fn": partial(neural.resnet9, width=width), "epochs": point["epochs"]}
    learner: Any = neural.image_learner(**chosen | options)
    if "widths" in early:
        early["module_fn"] = partial(neural.fast_net, widths=tuple(early.pop("widths")))
    if learner.early_learner is not None:
        learner.early_learner.set_params(**early)
    return learner


def model_of(point: Trial, true: Any) -> Any:
    options = json.loads(point["options"])
    learner, method = network(point, options.pop("learner", {})), point["method"]
    workers: Any = lo.workers.Known(true) if method == "true workers" else None
    if method in ("groups given", "groups found"):
        rows = CROWDS[point["crowd"]]
        workers = lo.workers.Grouped(GROUPS if method == "groups given" else "auto", rows=rows)
    return lo.MBEM(learner, worker_model=workers, random_state=point["seed"], **options)


def trial(folder: Path, alone: bool = False, **point: Any) -> Trial:
    """Return test accuracy, that of the labels and what is said of it, and the seconds, of networks and in all."""
    import torch

    warnings.simplefilter("ignore")  # one label per task: that is what is measured
    torch.backends.cudnn.benchmark = True
    SPENT.clear()
    if point["set"] == "pairs":
        return point | pairs(folder, point)
    X, y, ann, true, Xt, yt = problem(folder, point)
    found: Trial = {}
    started = time.perf_counter()
    if point["method"] not in OURS:
        model = plain(point, X, y, ann, true)
        seconds = time.perf_counter() - started
    else:
        options = json.loads(point["options"])
        ways = options.pop("shown", [])
        model, found, end = model_of(point | {"options": json.dumps(options)}, true), {"curve": []}, None
        for stage in model.stages(X, ann):
            if stage._plan is not None and stage.n_rounds_ == stage.planned_rounds_:
                end = stage._plan, stage._last
            if stage.history_ and point["seed"] >= TUNING:
                paused = time.perf_counter()
                found["curve"].append([_right(stage.model_.predict(Xt), yt), _right(_labels(stage), y)])
                started += time.perf_counter() - paused
        seconds, says = time.perf_counter() - started, model.estimated_accuracy_
        found |= {"labels": _right(model.labels_, y), "says": [says.value, says.low, says.high]}
        found |= {"posterior": _right(_labels(model), y), "rounds": model.n_rounds_}
    found |= {"seconds": round(seconds, 1)} | ({"alone": True} if alone else {})
    if SPENT:  # not in the processes of several jobs
        found |= {"spent": {name: round(value, 1) for name, value in SPENT.items()}}
    found |= {"accuracy": _right(model.predict(Xt), yt), "mirrored": _right(mirrored(model, Xt), yt)}
    if point["method"] in OURS:
        found |= {"model": _right(model.predict(X), y), "unseen": _right(_beliefs(model.predictions_).argmax(), y)}
        found |= {"shown": {way: shown(way, model, end, X, y, ann) for way in ways}} if ways else {}
    return point | found


def mirrored(model: Any, X: Any) -> Any:
    """Return what is predicted from images and their mirror images alone, without moved ones."""
    learner = getattr(model, "model_", model)
    by, learner.shift_predictions = learner.shift_predictions, 0
    found = model.predict(X)
    learner.shift_predictions = by
    return found


def shown(way: str, model: Any, end: Any, X: Any, y: Any, ann: Any) -> Trial:
    """Return what people would be shown if other networks judged: right predictions and labels, and what it says.

    `end` is the plan and the last round. "main" are networks like the model on half of the tasks each, a fifth as long;
    "three parts" leaves out a third of the tasks in turn; "model" judges its own tasks; "both" is the mean of the
    model's predictions and those that judge by default.
    """
    (plan, last), problem = end, model._problem(X, ann, None, None, resume=True)
    slots = None if last.predictions.classes is None else last.predictions.codes
    learner, parts = plan.how.learner.for_folds(last.number), plan.parts
    if way == "main":
        learner = clone(plan.how.learner)
        learner.set_params(epochs=max(1, learner.epochs // 5), n_models=1, strong=0.0, random_state=0)
    if way in ("model", "both"):
        found = problem.predict(model.model_, slots, 0)
        if way == "both":
            found = _rounds.mean_predictions([_beliefs(model.predictions_).on(found.classes), found])
    else:
        fold = folds_of(problem, 3 if way == "three parts" else parts, plan.how.seed)
        fits = _rounds.fit_parts(problem, learner, last.targets, last.target_weight, fold, [None] * (fold.max() + 1))
        found = _rounds.asker(problem, fits, fold)(slots, 0)
    workers = clone(plan.how.workers)
    view = View.of(problem, workers, _mbem._told(found), last.predictions.argmax())
    verdict = _verdict.reach(Case.of(view), workers)
    says = verdict.accuracy()
    right = {"unseen": _right(found.argmax(), y), "labels": _right(verdict.labels, y)}
    return right | {"says": [says.value, says.low, says.high]}


def _beliefs(shown: Any) -> Beliefs:
    return shown if isinstance(shown, Beliefs) else Beliefs.of(shown)


def _labels(model: Any) -> Any:
    """Return the most probable class of every task, in the rounds' own posterior while they go on."""
    return (model.posterior_ if model._last is None else model._last.beliefs).argmax(axis=1)


def _right(found: Any, true: Any) -> float:
    return round(float((found == true).mean()), 5)


def plain(point: Trial, X: Any, y: Any, ann: Any, true: Any) -> Any:
    """Return the network of the one training, trained on the truth, on votes, or on what an oracle says."""
    learner = network(point, json.loads(point["options"]).get("learner", {})).set_params(random_state=point["seed"])
    if point["method"] == "truth":
        return learner.fit(X, y)
    oracle = point["method"] == "oracle"
    return rival("oracle" if oracle else "weighted MV", learner, y, true.dense() if oracle else None).fit(X, ann)


def timed(method: Any, name: str) -> Any:
    """Return a function that adds up the seconds of its calls in `SPENT`."""

    def call(*args: Any, **options: Any) -> Any:
        started = time.perf_counter()
        found = method(*args, **options)
        SPENT[name] = SPENT.get(name, 0.0) + time.perf_counter() - started
        return found

    return call


SPENT: dict[str, float] = {}
PARTS: list[tuple[Any, str, str]] = [
    (neural.TorchLearner, "_train", "networks"),
    (neural.TorchLearner, "_predict", "predictions"),
    (_rounds, "judge", "judging"),
    (_mbem, "reach", "verdict"),
]
for OWNER, NAME, PART_OF in PARTS:
    setattr(OWNER, NAME, timed(getattr(OWNER, NAME), PART_OF))


def pairs(folder: Path, point: Trial) -> Trial:
    """Return accuracy on ten questions about two images side by side: whether there is a cat, and so on."""
    from labelonce.multilabel import MultiLabelAnnotations, MultiLabelMBEM

    data, rng = load(folder, "cifar10"), np.random.default_rng(point["seed"])

    def draw(x: Any, y: Any, n: int) -> tuple[Any, Any]:
        left, right = rng.integers(0, len(x), (2, n))
        small = np.concatenate([x[left][:, ::2, ::2], x[right][:, ::2, ::2]], axis=2)
        both = np.zeros((n, 10), dtype=np.int64)
        both[np.arange(n), y[left]] = both[np.arange(n), y[right]] = 1
        return np.pad(small, ((0, 0), (8, 8), (0, 0), (0, 0)), mode="edge"), both

    X, asked = draw(data["x"], np.asarray(data["y"]), point["tasks"])
    Xt, true = draw(data["xt"], np.asarray(data["yt"]), 2_000)
    worker = rng.integers(0, 20, len(X))
    guess = rng.random(asked.shape) > np.where(np.arange(20) < 12, 0.9, 0.5)[worker][:, None]
    answers = np.where(guess, 1 - asked, asked)
    task, question = np.divmod(np.arange(answers.size), 10)
    ann = MultiLabelAnnotations.from_arrays(task, question, worker[task], answers.ravel())
    small: dict[str, Any] = {"batch_size": 128, "lr": 0.2}
    options = {"module_fn": partial(neural.resnet9, width=8), "epochs": point["epochs"]} | small
    learner: Any = neural.image_learner(**options | json.loads(point["options"]))
    learner.early_learner.set_params(module_fn=partial(neural.fast_net, widths=(16, 32, 32)), **small)
    started = time.perf_counter()
    model = MultiLabelMBEM(learner, random_state=point["seed"]).fit(X, ann)
    seconds = round(time.perf_counter() - started, 1)
    right = float(((model.predict_proba(Xt) > 0.5) == true).mean())
    says, given = model.estimated_accuracy_, float((answers == asked).mean())
    return {"accuracy": right, "seconds": seconds, "given": given, "says": [says.value, says.low, says.high]}


def points(options: argparse.Namespace) -> Iterator[Trial]:
    usual = {"set": "cifar10", "crowd": "hammer-spammer", "quality": 0.2, "redundancy": 1, "tasks": 50_000}
    usual |= {"method": "ours", "epochs": options.epochs, "options": "{}"}
    parts = [one for part in options.part for one in PART[part]]
    parts += [json.loads(line) for line in options.points.read_text().splitlines() if line] if options.points else []
    for seed, one in product(options.seeds, parts):
        point = usual | {"seed": seed} | one
        yield {key: point[key] for key in KEYS}


def run(options: argparse.Namespace) -> None:
    asked = list(points(options))
    for name in {point["set"] for point in asked}:
        load(options.cache, name)
    resume(options, partial(trial, options.cache, options.alone), asked)


COLUMNS = {"accuracy": "test accuracy", "mirrored": "without moved views", "labels": "labels right"}


def table(trials: list[Trial]) -> str:
    """Return accuracies in %, mean and standard error over seeds; a number of seeds in brackets where some lack it."""
    rows, names = [], KEYS[:-2]
    told = [row | {"method": _named(row)} for row in trials if row["seed"] < TUNING]
    for key, some in grouped(told, *names).items():
        cells = [_cell([100 * row[name] for row in some if name in row], len(some)) for name in COLUMNS]
        said = _cell([100 * row["says"][0] for row in some if isinstance(row.get("says"), list)], len(some))
        alone = mean_error([row["seconds"] for row in some if row.get("alone")])
        rows.append([*key, len(some), *cells, said, alone])
    return markdown([*names, "seeds", *COLUMNS.values(), "says", "seconds alone on the card"], rows) + judges(trials)


def _cell(values: list[float], n_seeds: int) -> str:
    return mean_error(values) + (f" ({len(values)})" if 0 < len(values) < n_seeds else "")


def _named(row: Trial) -> str:
    """Return the method, with what the learner has in place of its own."""
    learner = json.loads(row["options"]).get("learner", {})
    return ", ".join([row["method"], *(f"{name} {value}" for name, value in learner.items())])


def judges(trials: list[Trial]) -> str:
    """Return how often predictions and labels are right, and what is said of the labels, by who judges at the end."""
    rows = []
    for row in (row for row in trials if "shown" in row):
        for way, found in ({"early networks, the default": row} | row["shown"]).items():
            figures = [f"{100 * one:.1f}" for one in (found["unseen"], found["labels"], found["says"][0])]
            rows.append([row["set"], row["crowd"], row["epochs"], row["seed"], way, *figures])
    head = ["set", "crowd", "epochs", "seed", "judged by", "predictions right", "labels right", "says"]
    return "\n" + markdown(head, rows) if rows else ""


if __name__ == "__main__":
    parser = arguments(__doc__, PATH)
    parser.add_argument("--part", nargs="*", default=[], choices=PART)
    parser.add_argument("--points", type=Path, help="further trials, one JSON object per line")
    parser.add_argument("--seeds", type=int, nargs="+", default=[51])
    parser.add_argument("--epochs", type=int, default=80)
    parser.add_argument("--alone", action="store_true", help="nothing else runs on the card: seconds are shown")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "images")
    main(parser.parse_args(), run, table)
