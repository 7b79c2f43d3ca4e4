"""Which learner from crowds is best: the related work's and ours on one leaderboard, with one rule for all options.

Simulated workers (50 of them, a fifth good) on digits and on LabelMe's photographs, and the real crowds of LabelMe (VGG
features), film reviews and is-it-a-book (the first 256 directions of TF-IDF). All methods get the same features, labels
and candidates: softmax regression with four penalties, or a network (one hidden layer of 128 units, dropout 0.5, 50
epochs, AdamW) with three rates and decays; where a method starts from nearly right workers, also one that starts from
doubtful ones. CIFAR-10S is trained on the 1,000 photographs that its workers saw and tested on CIFAR-10's other 9,000
test images, networks alone (the small one of `labelonce train --images`, on the GPU where there is one). The candidate
is taken that, fitted to the other tasks, agrees with most of the labels of a fifth that is held out; it is then fitted
to all tasks. `MBEM` chooses by its own rule. Gold is used for the test accuracy alone;
networks are those of the last epoch.

    python experiments/leaderboard.py                           # needs the data of datasets.md; resumes
    python experiments/leaderboard.py --data digits --seeds 1   # a part
    python experiments/leaderboard.py --renew MBEM              # some methods again, in all their draws
    python experiments/leaderboard.py --table                   # the table and docs/images/leaderboard.png alone
"""

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Any

import data_sets
import numpy as np
import quality_and_redundancy as simulated
from draws import SETS, SIMPLE, real_crowd
from record import RESULTS, Trial, experiment, grouped, made_before, markdown, mean_error, read, save, write
from scipy import sparse
from scipy.stats import rankdata
from sklearn.decomposition import TruncatedSVD

import labelonce as lo

PATH = RESULTS / "leaderboard.json"
PENALTIES = (0.001, 0.01, 0.1, 1.0)
STEPS = ({"lr": 0.01, "weight_decay": 1e-4}, {"lr": 0.01, "weight_decay": 1.0}, {"lr": 0.003, "weight_decay": 1e-4})
IMAGES = "cifar10s"
IMAGE_STEPS = (
    {"lr": 0.5},
    {"optimizer": "adamw", "lr": 0.01, "weight_decay": 0.1},
    {"optimizer": "adamw", "lr": 0.003, "weight_decay": 0.1},
)
DOUBTFUL = 0.5
Cells = dict[tuple[Any, ...], dict[str, list[float]]]  # accuracies by set and redundancy, then by method
LINEAR = ["truth", "vote", "soft vote", "Dawid-Skene, then train", "CandidateLabels", "Raykar", "MBEM paper", "MBEM"]
CROWD_NETWORKS: dict[str, tuple[str, dict[str, Any]]] = {  # what only networks have: names in `baselines`, and options
    "DoctorNet, equal": ("DoctorNet", {"weights": "equal"}),
    "DoctorNet": ("DoctorNet", {}),
    "NoiseLayer": ("NoiseLayer", {}),
    "DropoutNoiseLayer": ("DropoutNoiseLayer", {}),
    "CrowdLayer MW": ("CrowdLayer", {}),
    "CrowdLayer VW": ("CrowdLayer", {"kind": "VW"}),
    "CrowdLayer VW+B": ("CrowdLayer", {"kind": "VW+B"}),
    "CoNAL": ("CoNAL", {}),
    "UnionNet": ("UnionNet", {}),
    "GeoCrowdNet F": ("GeoCrowdNet", {}),
    "GeoCrowdNet W": ("GeoCrowdNet", {"term": "W"}),
    "AnnotMix": ("AnnotMix", {}),
    "MaxMIG": ("MaxMIG", {}),
}
SOFT = partial(lo.TrainOnAggregate, lo.MajorityVote(), targets="soft")
MAKERS: dict[str, Callable[..., Any]] = {
    "truth": SOFT,
    "vote": partial(lo.TrainOnAggregate, lo.MajorityVote()),
    "soft vote": SOFT,
    "Dawid-Skene, then train": partial(lo.TrainOnAggregate, lo.DawidSkene(), targets="soft"),
    "CandidateLabels": lo.baselines.CandidateLabels,
    "Raykar": lo.baselines.Raykar,
    "MBEM paper": lo.MBEM.paper,
    "truth, network": SOFT,
    "soft vote, network": SOFT,
    "MBEM, network": partial(lo.MBEM, folds=1),
}
NETWORKS = ["truth, network", "soft vote, network", *CROWD_NETWORKS, "MBEM, network"]
METHODS = LINEAR + NETWORKS
PUBLISHED = {  # on LabelMe, VGG features, all labels: by the authors' code or notebook, best epochs included
    "truth, network": "91.2 (CrowdLayer's notebook)",
    "vote": "77.2 (CrowdLayer's notebook)",
    "Dawid-Skene, then train": "81.2 (CrowdLayer's notebook)",
    "Raykar": "82.8 (CrowdLayer's notebook), 86.1 (PyLearningCrowds' notebook)",
    "CrowdLayer MW": "83.9 (authors' notebook)",
    "CoNAL": "87.1 (authors)",
}


def points(options: argparse.Namespace) -> Iterator[Trial]:
    """Yield every trial, draw after draw: ten on LabelMe's real crowd, five elsewhere; a part has whole draws first."""
    cells: list[tuple[str, Any]] = [
        (f"{name}, {crowd}", r) for name in ("digits", "labelme") for crowd in SIMPLE for r in (1, 3)
    ]
    cells += [(name, r) for name in ("labelme", "sentiment_polarity", "amazon_isbook", IMAGES) for r in ("all", 1)]
    wanted = [cell for cell in cells if not options.data or cell[0].startswith(tuple(options.data))]
    for seed in range(options.seeds or 10):
        for name, redundancy in wanted:
            if options.seeds or seed < (10 if name == "labelme" else 5):
                for method in NETWORKS if name == IMAGES else METHODS:
                    yield {"data": name, "redundancy": redundancy, "seed": seed, "method": method}


def asked(options: argparse.Namespace) -> list[Trial]:
    """Return the points to run: all, or those of methods that are to be renewed, whose trials are forgotten."""
    wanted = [point for point in points(options) if not options.renew or point["method"] in options.renew]
    if options.renew:
        kept = [row for row in read(options.out) if row["method"] not in options.renew]
        made_by, seconds = made_before([options.out])
        write(options.out, kept, seconds=seconds, made_by=made_by)
    return wanted


def draw(name: str, redundancy: Any, seed: int) -> tuple[Any, ...]:
    """Return features and gold of the labelled tasks, of the test tasks, and the annotations."""
    if ", " in name:
        name, crowd = name.split(", ")
        point = {"crowd": crowd, "quality": 0.2, "redundancy": redundancy, "n_tasks": SETS[name][0], "seed": seed}
        X, y, X_test, y_test, ann, _ = simulated.draw(name, point)
    elif name == IMAGES:
        return draw_images(redundancy, seed)
    else:
        X, y, X_test, y_test, ann = real_crowd(name, redundancy, seed)
        if sparse.issparse(X):
            directions = TruncatedSVD(256, random_state=0).fit(X)
            X, X_test = directions.transform(X), directions.transform(X_test)
            X, X_test = X / X.std(), X_test / X.std()
    return X, y, X_test, y_test, ann


def draw_images(redundancy: Any, seed: int) -> tuple[Any, ...]:
    """Return the photographs that CIFAR-10S's workers saw with their gold, CIFAR-10's other test images, and labels."""
    data = data_sets.load(IMAGES, images=True)
    assert data.annotations is not None
    assert data.images is not None
    ann, gold = data.annotations, np.asarray(data.gold)
    rest = np.setdiff1d(np.arange(len(gold)), ann.tasks)
    drawn = ann if redundancy == "all" else ann.sample(redundancy=redundancy, random_state=seed)
    return data.images[ann.tasks], gold[ann.tasks], data.images[rest], gold[rest], drawn


def network(seed: int, **step: Any) -> Any:
    """Return the network that all methods train."""
    from labelonce import neural

    shape = partial(neural.mlp, width=128, depth=1, dropout=0.5)
    fixed: dict[str, Any] = {"epochs": 50, "batch_size": 64, "optimizer": "adamw", "device": "cpu"}
    return neural.TorchLearner(shape, random_state=seed, **fixed, **step)


def image_network(seed: int, **step: Any) -> Any:
    """Return the network for photographs, with at least 60 epochs."""
    from labelonce.runs._images import network_for

    return network_for(1000).set_params(random_state=seed, min_steps=960, **step)


def candidates(method: str, seed: int, data: str) -> list[Any]:
    """Return what is chosen from for a method."""
    if method == "MBEM":
        return [lo.MBEM([lo.SoftmaxRegression(C=C) for C in PENALTIES], random_state=seed)]
    if method in LINEAR:
        return [MAKERS[method](lo.SoftmaxRegression(C=C)) for C in PENALTIES]
    name, options = CROWD_NETWORKS.get(method, ("", {}))
    make = partial(getattr(lo.baselines, name), **options) if name else MAKERS[method]
    shape, steps = (image_network, IMAGE_STEPS) if data == IMAGES else (network, STEPS)
    found = [make(shape(seed, **step)) for step in steps]
    if "start" in found[0].get_params(deep=False):
        found.append(make(shape(seed, **steps[0]), start=DOUBTFUL))
    return found


def choose(found: list[Any], X: Any, ann: lo.Annotations, seed: int) -> Any:
    """Return the candidate that agrees with most labels of held-out tasks, the first of equals, not fitted."""
    from sklearn.base import clone

    if len(found) == 1:
        return found[0]
    held = np.random.default_rng(seed).random(ann.n_tasks) < 0.2
    rest, unseen = ann.select(~held), ann.select(held)
    scores = []
    for one in found:
        picks = clone(one).fit(X[~held], rest).predict_proba(X[held]).argmax(axis=1)
        scores.append(float((picks[unseen.task] == unseen.label).mean()))
    return found[int(np.argmax(scores))]


def trial(data: str, redundancy: Any, seed: int, method: str) -> Trial:
    """Return the test accuracy of one method, what was chosen, and the seconds."""
    if method in NETWORKS:
        import torch

        torch.set_num_threads(1)
    X, y, X_test, y_test, ann = draw(data, redundancy, seed)
    if data != IMAGES:
        X, X_test = X.astype(np.float32), X_test.astype(np.float32)
    if method.startswith("truth"):
        ann = lo.Annotations.from_matrix(y[:, None], classes=ann.classes)
    started = time.process_time()
    found = candidates(method, seed, data)
    best = choose(found, X, ann, seed)
    accuracy = float((best.fit(X, ann).predict(X_test) == y_test).mean())
    chosen = next(number for number, one in enumerate(found) if one is best)
    return {"accuracy": accuracy, "candidate": chosen, "cpu_s": time.process_time() - started}


def by_cell(trials: list[Trial]) -> Cells:
    """Return the accuracies of every method in every cell, in %."""
    return {
        cell: {method: [100 * row["accuracy"] for row in rows] for (method,), rows in grouped(own, "method").items()}
        for cell, own in grouped(trials, "data", "redundancy").items()
    }


def shared_draws(trials: list[Trial]) -> list[Trial]:
    """Return the trials of draws that all methods of their cell have: only those can be ranked."""
    kept = []
    for own in grouped(trials, "data", "redundancy").values():
        methods = {row["method"] for row in own}
        whole = {seed for (seed,), rows in grouped(own, "seed").items() if {row["method"] for row in rows} == methods}
        kept += [row for row in own if row["seed"] in whole]
    return kept


def mean_ranks(cells: Cells) -> dict[str, float]:
    """Return the mean over cells of a method's rank by mean accuracy, the truth left out; ties share their mean."""
    ranks: dict[str, list[float]] = {}
    for cell in cells.values():
        means = {method: fmean(values) for method, values in cell.items() if not method.startswith("truth")}
        for method, rank in zip(means, rankdata([-mean for mean in means.values()]), strict=True):
            ranks.setdefault(method, []).append(float(rank))
    return {method: fmean(found) for method, found in ranks.items()}


def table(trials: list[Trial]) -> str:
    """Return mean and standard error of every method in every cell, its mean rank, and what was published."""
    cells = by_cell(trials)
    ranks = mean_ranks(by_cell(shared_draws(trials)))
    used = sorted(dict.fromkeys(row["method"] for row in trials), key=lambda method: ranks.get(method, 0.0))
    seconds = {method: fmean(row["cpu_s"] for row in trials if row["method"] == method) for method in used}
    head = ["method", "mean rank", *(f"{name}, r = {r}" for name, r in cells), "CPU seconds", "published, LabelMe all"]
    rows = []
    for method in used:
        rank = f"{ranks[method]:.1f}" if method in ranks else ""
        means = [mean_error(cell.get(method, [])) for cell in cells.values()]
        rows.append([method, rank, *means, f"{seconds[method]:.1f}", PUBLISHED.get(method, "")])
    return markdown(head, rows)


def plot(trials: list[Trial], path: Path) -> None:
    """Draw the mean rank of every method, best on top."""
    from matplotlib import pyplot as plt

    cells = by_cell(shared_draws(trials))
    ranks = dict(sorted(mean_ranks(cells).items(), key=lambda item: -item[1]))
    figure, axis = plt.subplots(figsize=(8, 0.3 * len(ranks) + 1), layout="constrained")
    colours = ["C3" if method.startswith("MBEM") else "C7" for method in ranks]
    axis.barh(list(ranks), list(ranks.values()), color=colours)
    axis.set_xlabel(f"mean rank over {len(cells)} sets (1: the most accurate)")
    axis.grid(axis="x", alpha=0.3)
    save(figure, path)


if __name__ == "__main__":
    experiment(
        __doc__,
        PATH,
        trial,
        asked,
        table,
        draw=plot if find_spec("matplotlib") else None,  # where there is none, --table draws it elsewhere
        image="leaderboard.png",
        order={"method": METHODS},
        settings={"penalties": PENALTIES, "steps": STEPS, "image_steps": IMAGE_STEPS, "doubtful": DOUBTFUL},
        data={"nargs": "*", "default": [], "help": "sets whose names start so; default all"},
        renew={"nargs": "+", "choices": METHODS, "default": [], "help": "methods whose trials are run again"},
        seeds={"type": int, "help": "draws of every set; default 10 on LabelMe's crowd, 5 elsewhere"},
    )
