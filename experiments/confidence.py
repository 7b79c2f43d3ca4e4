"""How sure the labels are: MBEM's confidence, ranges, skills and review list, next to the truth that it never saw.

Every set at one label per task and at several. With many classes the workers take them for each other in groups of ten,
the groups are given, wrong or to be found, classes are points in 20 dimensions and tasks normal around them; CIFAR-100N
is 12,000 of its real labels with such features. Small photographs are 380 of LabelMe's, 32 x 32 pixels, by 15 simulated
workers of whom 5 are good, with the network of `labelonce train --images`, which overfits. See `worlds.py` for more.

    python experiments/confidence.py            # needs the data of datasets.md; resumes where it was stopped
    python experiments/confidence.py --table    # table and picture alone, from results/confidence.json
"""

import time
import warnings
from pathlib import Path
from textwrap import fill
from typing import Any, Literal

import data_sets
import numpy as np
from draws import digits, many_classes, real_crowd, simulated
from record import RESULTS, Trial, experiment, grouped, markdown, save
from sklearn.datasets import load_breast_cancer, make_classification

import labelonce as lo
from labelonce import workers

PATH = RESULTS / "confidence.json"
Redundancy = int | Literal["all"]
TITLES = {
    "digits": "digits, hammers and spammers",
    "class-wise": "digits, class-wise spammers",
    "weak": "digits, 12 of 64 pixels",
    "labelme": "LabelMe",
    "sentiment_polarity": "film reviews",
    "amazon_isbook": "is it a book?",
    "made-up": "made-up features, workers of all kinds",
    "tumours": "tumours, malignant or benign, workers of all kinds",
    "photographs": "small photographs",
    "many given": "100 classes, groups given",
    "many found": "100 classes, groups found",
    "many class-wise": "200 classes, class-wise spammers, groups given",
    "many class-wise found": "200 classes, class-wise spammers, groups found",
    "many wrong": "100 classes, wrong groups given",
    "many anywhere": "100 classes, mistakes anywhere",
    "cifar100n superclasses": "CIFAR-100N, superclasses given",
    "cifar100n found": "CIFAR-100N, groups found",
    "many alike": "60 classes that look like those of their group, groups found",
}
SUITABLE_PENALTY = {"labelme": 0.01, "sentiment_polarity": 10.0, "amazon_isbook": 10.0}
SEEDS = (2, 3, 4, 5)
REVIEWED = (0.05, 0.1, 0.2)
BINS = 10


def crowd(name: str, redundancy: Redundancy, seed: int) -> tuple[Any, Any, lo.Annotations, lo.MBEM]:
    """Return features, true labels, annotations and the classifier of a set."""
    if name in SUITABLE_PENALTY:
        X, y, _, _, ann = real_crowd(name, redundancy, seed)
        return X, y, ann, lo.MBEM(lo.SoftmaxRegression(C=SUITABLE_PENALTY[name]), rounds=5)
    assert isinstance(redundancy, int)
    if is_large(name):
        return crowd_of_many(name, redundancy, seed)
    rng = np.random.default_rng(seed)
    clf = lo.MBEM(lo.SoftmaxRegression(), rounds=5)
    if name == "made-up":
        X, y = make_classification(2000, 20, n_informative=8, n_classes=4, random_state=seed)
        confusion = lo.simulate.dirichlet(40, 4, rng)
    elif name == "tumours":
        X, y = load_breast_cancer(return_X_y=True)
        X, confusion = (X - X.mean(axis=0)) / X.std(axis=0), lo.simulate.dirichlet(20, 2, rng)
    elif name == "photographs":
        data = data_sets.load("labelme", images=True)
        rows = rng.permutation(1000)[:380]
        X, y = np.asarray(data.images)[rows][:, ::2, ::2], data.gold[rows]
        confusion, clf = lo.simulate.hammer_spammer(15, 8, 1 / 3, rng, exact=True), lo.MBEM(small_network(len(y)))
    else:
        X, y = digits(rng, pixels=slice(20, 32) if name == "weak" else slice(None))
        rows = rng.permutation(len(y))[:1297]
        kind = "class-wise" if name == "class-wise" else "hammer-spammer"
        return X[rows], y[rows], simulated(rng, y[rows], 10, kind, 0.2, 50, redundancy)[0], clf
    assignment = lo.simulate.assign(len(y), len(confusion), redundancy, rng)
    return X, y, lo.simulate.annotate(y, confusion, assignment, rng), clf


def crowd_of_many(name: str, redundancy: int, seed: int) -> tuple[Any, Any, lo.Annotations, lo.MBEM]:
    """Return a set of many classes, of a hundred labels each but for CIFAR-100N."""
    rng = np.random.default_rng(seed)
    n_classes = 200 if "class-wise" in name else 60 if "alike" in name else 100
    points = rng.normal(size=(n_classes, 20))
    if name == "many alike":
        points = 0.7 * (points + rng.normal(size=(len(points) // 10, 20)).repeat(10, axis=0))
    kind = next((kind for kind in ("cifar100n", "class-wise", "anywhere") if kind in name), "hammers")
    n_labels = 12_000 if kind == "cifar100n" else 100 * n_classes
    y, ann, groups = many_classes(rng, kind, n_classes, n_labels, n_classes, redundancy)
    X = points[y] + rng.normal(size=(len(y), 20))
    given = {"many wrong": np.arange(n_classes) % 10, "many anywhere": None}.get(name, groups)
    rows = "position" if name == "many class-wise" else "worker"
    model = workers.Grouped("auto") if name.endswith(("found", "alike")) else workers.Grouped(given, rows=rows)
    return X, ann.classes[y], ann, lo.MBEM(lo.SoftmaxRegression(C=0.1, tol=1e-3), worker_model=model, rounds=4)


def small_network(n_images: int) -> Any:
    """Return the network that `labelonce train --images` uses for so many images."""
    import torch

    from labelonce.runs._images import network_for

    torch.set_num_threads(1)
    return network_for(n_images)


def trial(name: str, redundancy: Redundancy, seed: int) -> Trial:
    """Return how confidence, skills and the review list of a fit compare with the truth."""
    started = time.process_time()
    X, y, ann, clf = crowd(name, redundancy, seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf.fit(X, ann)
    right, given = clf.labels_ == y, ann.classes[ann.label] == y[ann.task]
    return {
        "right": float(right.mean()),
        "vote": float((lo.MajorityVote().fit(ann).labels_ == y).mean()),
        "estimate": list(vars(clf.estimated_accuracy_).values()),
        "warned": any(issubclass(one.category, lo.DoubtWarning) for one in caught),
        "shown": reliability(clf.confidence_, right),
        "labels to check": shares_found(1 - clf.confidence_, ~right),
        "skills held": skills_held(clf, ann, given),
        "cpu_s": round(time.process_time() - started, 1),
    }


def reliability(promised: Any, came: Any) -> dict[str, Any]:
    """Return mean promise, expected calibration error over tenths of the cases, and the points of the curve."""
    parts = np.array_split(np.argsort(promised, kind="stable"), BINS)
    points = [[float(promised[part].mean()), float(came[part].mean())] for part in parts]
    error = sum(abs(said - was) * len(part) for (said, was), part in zip(points, parts, strict=True)) / len(promised)
    return {"mean": float(promised.mean()), "error": float(error), "points": points}


def shares_found(doubt: Any, wrong: Any) -> list[float]:
    """Return the wrong labels among the first 5, 10 and 20 % of the list, as a share of the most that there can be."""
    order = np.argsort(-doubt, kind="stable")
    sizes = [round(share * len(wrong)) for share in REVIEWED]
    return [float(wrong[order[:n]].sum() / max(1, min(n, wrong.sum()))) for n in sizes]


def skills_held(clf: lo.MBEM, ann: lo.Annotations, given: Any) -> float:
    """Return how often the 90 % interval of a worker with five labels holds its share of right labels."""
    n = np.bincount(ann.worker, minlength=ann.n_workers)
    seen, real = n >= 5, np.bincount(ann.worker, given, ann.n_workers) / np.maximum(n, 1)
    low, high = clf.verdict_.skill_interval()
    return float(((low - 1e-9 <= real) & (real <= high + 1e-9))[seen].mean())


def table(trials: list[Trial]) -> str:
    """Return one row per set and redundancy, means over the seeds."""
    head = ["set", "labels per task", "vote right, %", "labels right, %", "confidence, %", "range", "calibration error"]
    head += ["wrong labels found in 5, 10, 20 %", "skill intervals hold", "warned"]
    rows = []
    for (name, redundancy), of in grouped(trials, "name", "redundancy").items():
        low, high = 100 * np.mean([one["estimate"][1:] for one in of], axis=0)
        shown = [100 * np.mean([one[key] for one in of]) for key in ("vote", "right")]
        shown.append(100 * np.mean([one["shown"]["mean"] for one in of]))
        cells = [TITLES[name], redundancy, *(f"{value:.1f}" for value in shown), f"{low:.0f} to {high:.0f}"]
        cells.append(f"{np.mean([one['shown']['error'] for one in of]):.3f}")
        cells.append(" ".join(f"{value:.2f}" for value in np.mean([one["labels to check"] for one in of], axis=0)))
        cells.append(f"{np.mean([one['skills held'] for one in of]):.2f}")
        rows.append([*cells, f"{sum(one['warned'] for one in of)} of {len(of)}"])
    return markdown(head, rows)


def draw_curves(trials: list[Trial], path: Path) -> None:
    """Draw what was promised against what came, one panel per set and redundancy."""
    from matplotlib.figure import Figure

    found = grouped(trials, "name", "redundancy")
    n_rows = -(-len(found) // 6)
    figure = Figure(figsize=(11.4, 2 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, 6, sharex=True, sharey=True, squeeze=False).ravel()
    for axis, ((name, redundancy), of) in zip(axes, found.items(), strict=False):
        axis.plot([0, 1], [0, 1], color="0.7", linewidth=1, linestyle="--")
        for one in of:
            axis.plot(*np.transpose(one["shown"]["points"]), marker=".", color="#005a9c", linewidth=1)
        axis.set_title(f"{fill(TITLES[name], 30)},\nlabels per task: {redundancy}", fontsize=6)
    for axis in axes[len(found) :]:
        axis.set_visible(False)
    figure.supxlabel("promised", fontsize=9)
    figure.supylabel("right", fontsize=9)
    save(figure, path)


def is_large(name: str) -> bool:
    """Return whether a set has many classes."""
    return name.startswith(("many", "cifar100n"))


def points() -> list[Trial]:
    """Return every set with its redundancies and seeds, half of them for slow ones; all labels are there once."""
    found: list[Trial] = []
    for name in TITLES:
        several: Redundancy = 3 if name not in SUITABLE_PENALTY else "all"
        n_seeds = 2 if name == "photographs" or is_large(name) else 4
        for redundancy in (1, several) if not name.startswith("cifar100n") else (1,):
            seeds = SEEDS[: 1 if redundancy == "all" else n_seeds]
            found += [{"name": name, "redundancy": redundancy, "seed": seed} for seed in seeds]
    return found


if __name__ == "__main__":
    order: dict[str, list[Any]] = {"name": list(TITLES), "redundancy": [1, 3, "all"]}
    drawn: dict[str, Any] = {"draw": draw_curves, "image": "confidence.png"}
    experiment(__doc__, PATH, trial, lambda _: points(), table, order=order, **drawn)
