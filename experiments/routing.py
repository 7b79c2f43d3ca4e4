"""What choosing the next task, and its worker, saves: accuracy against money for every strategy of `labelonce.routing`.

Workers arrive at random and are given one task each; after every batch MBEM is fitted to all labels, and its test
accuracy noted. Simulated workers on digits, LabelMe's photographs, the wall-following robot and film reviews:
hammer-spammers (quality 0.2), class-wise ones (0.2), specialists (0.9 right in three classes, 0.3 elsewhere; in one
class of four or two), and identical workers (0.7); LabelMe's own labels replayed, where a worker can only be asked what
it answered. The robot starts with half of its tasks labelled, as in ActiveLab's experiment; the others with a tenth
of the budget at random. The budget is one label per task; a worker who is turned away costs nothing.

    python experiments/routing.py            # needs the data of datasets.md; resumes where it was stopped
    python experiments/routing.py --worlds digits --seeds 0 1 --jobs 2
    python experiments/routing.py --table    # table and figure alone, from results/routing.json
"""

import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from record import RESULTS, Trial, arguments, main, markdown, resume
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelonce as lo
from labelonce import routing

PATH = RESULTS / "routing.json"
SEEDS, N_WORKERS, N_BATCHES = range(5), 40, 20
CROWDS = ("hammer-spammer", "class-wise", "specialists", "identical")
STRATEGIES: dict[str, tuple[routing.Strategy, bool]] = {
    "Random": (routing.Random(), False),
    "FewestLabels": (routing.FewestLabels(), False),
    "ModelUncertainty": (routing.ModelUncertainty(), False),
    "LabelModelUncertainty": (routing.LabelModelUncertainty(), False),
    "ActiveLab": (routing.ActiveLab(), False),
    "ImpactSampling": (routing.ImpactSampling(), False),
    "AdaptiveRounds": (routing.AdaptiveRounds(), False),
    "RiskThreshold": (routing.RiskThreshold(risk=0.0), False),
    "Information": (routing.Information(), False),
    "IntervalEstimation, may decline": (routing.IntervalEstimation(), True),
    "ExpertList, may decline": (routing.ExpertList(risk=0.0), True),
    "Information, may decline": (routing.Information(), True),
}


@dataclass
class World:
    """A problem: tasks to buy labels for, and tasks to test on."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    C: float
    start: float  # share of the budget that is spent at random before the first fit
    budget: int


def world_of(name: str, rng: np.random.Generator) -> World:
    """Return the tasks of a problem, in random order; what is fitted to features sees the training tasks alone."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return _split(X / 16, y, 1297, rng, C=1.0)
    if name == "wall robot":
        return _robot(rng)
    data = lo.datasets.load({"film reviews": "sentiment_polarity"}.get(name, "labelme"))
    if name == "labelme":
        assert data.features is not None
        return _split(data.features.astype(np.float64), data.gold, 1500, rng, C=0.1, components=64)
    assert data.texts is not None
    words = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform(data.texts)  # the texts need no labels
    X = TruncatedSVD(300, random_state=0).fit_transform(words)
    return _split(X / X.std(), data.gold, 3000, rng, C=0.01)


def _split(X: Any, y: Any, n: int, rng: np.random.Generator, *, C: float, components: int = 0) -> World:
    order = rng.permutation(len(y))
    X, y = X[order], y[order]
    if components:
        X = make_pipeline(StandardScaler(), PCA(components, random_state=0)).fit(X[:n]).transform(X)
        X = X / X[:n].std()
    return World(X[:n], y[:n], X[n:], y[n:], C, start=0.1, budget=n)


def _robot(rng: np.random.Generator) -> World:
    """Return ActiveLab's draw of the robot's readings, each as which of ten quantiles it is above."""
    table = pq.read_table(Path(os.environ["LABELONCE_DATA"]) / "wall_robot" / "features.parquet")
    names = np.asarray(table.column("label").to_pylist())
    X = np.column_stack([table.column(f"us{i}").to_numpy() for i in range(1, 25)]).astype(np.float64)
    sizes = {"Move-Forward": 1100, "Sharp-Right-Turn": 900, "Slight-Left-Turn": 300, "Slight-Right-Turn": 700}
    rows = np.concatenate([rng.permutation(np.flatnonzero(names == one))[:size] for one, size in sizes.items()])
    quantiles = np.quantile(X, np.linspace(0.05, 0.95, 10), axis=0)
    above = (X[rows, None, :] > quantiles).reshape(len(rows), -1).astype(np.float64)
    world = _split(above, np.searchsorted(sorted(sizes), names[rows]), 2000, rng, C=0.1)
    world.start, world.budget = 1 / 3, 3000
    return world


def crowd_of(name: str, n_classes: int, rng: np.random.Generator) -> Any:
    """Return the confusion of the workers."""
    if name == "hammer-spammer":
        return lo.simulate.hammer_spammer(N_WORKERS, n_classes, 0.2, rng, exact=True)
    if name == "class-wise":
        return lo.simulate.class_wise_hammer_spammer(N_WORKERS, n_classes, 0.2, rng)
    right = np.full((N_WORKERS, n_classes), 0.7)
    if name == "specialists":
        right[:] = max(0.3, 1 / n_classes)
        known = 3 if n_classes > 4 else 1
        for worker in range(N_WORKERS):
            right[worker, rng.permutation(n_classes)[:known]] = 0.9
    wrong = (1 - right) / (n_classes - 1)
    return np.where(np.eye(n_classes, dtype=bool), right[:, :, None], wrong[:, :, None])


class Crowd:
    """Workers who answer from their confusion, each pair of task and worker always alike."""

    def __init__(self, y: Any, confusion: Any, rng: np.random.Generator) -> None:
        chances = np.cumsum(confusion, axis=2)
        drawn = rng.random((len(y), len(confusion)))
        self.label = (drawn[:, :, None] > chances[:, y].transpose(1, 0, 2)).sum(axis=2).clip(0, confusion.shape[1] - 1)
        self.load = np.ones(len(confusion))

    def can(self, worker: int) -> Any:
        """Return the tasks that a worker can label."""
        return None if worker < len(self.load) else []

    def at_random(self, n: int, rng: np.random.Generator) -> list[tuple[int, int]]:
        """Return pairs of a random task, each once, and a random worker."""
        tasks = rng.permutation(len(self.label))[:n]
        return list(zip(tasks.tolist(), rng.integers(len(self.load), size=n).tolist(), strict=True))

    def taken(self, worker: int) -> None:
        """Note that a worker has labelled a task."""


class Replayed(Crowd):
    """Real labels: a worker can be asked only what it answered, and comes as often as it has labels left."""

    def __init__(self, ann: lo.Annotations) -> None:
        self.label = ann.to_matrix(dense=True)
        self.load = np.bincount(ann.worker, minlength=ann.n_workers).astype(float)

    def can(self, worker: int) -> Any:
        """Return the tasks that a worker answered."""
        return np.flatnonzero(self.label[:, worker] >= 0)

    def at_random(self, n: int, rng: np.random.Generator) -> list[tuple[int, int]]:
        """Return pairs of a random task, each once, and one of those who answered it."""
        tasks = rng.permutation(len(self.label))[:n]
        workers = [int(rng.choice(np.flatnonzero(self.label[task] >= 0))) for task in tasks]
        self.load -= np.bincount(workers, minlength=len(self.load))
        return list(zip(tasks.tolist(), workers, strict=True))

    def taken(self, worker: int) -> None:
        """Note that a worker has one label less to give."""
        self.load[worker] -= 1


def draw(world: str, crowd: str, rng: np.random.Generator) -> tuple[World, Crowd]:
    """Return a problem and its crowd."""
    if crowd != "real":
        found = world_of(world, rng)
        return found, Crowd(found.y, crowd_of(crowd, int(found.y.max()) + 1, rng), rng)
    data = lo.datasets.load("labelme")
    assert data.features is not None
    assert data.annotations is not None
    assert data.split is not None
    n, test = data.annotations.n_tasks, np.flatnonzero(data.split == "test")
    reduced = make_pipeline(StandardScaler(), PCA(64, random_state=0)).fit(data.features[:n].astype(np.float64))
    X = reduced.transform(data.features.astype(np.float64))
    X = X / X[:n].std()
    tasks = data.annotations.align(np.arange(n))
    return World(X[:n], data.gold[:n], X[test], data.gold[test], 0.1, 0.1, n), Replayed(tasks)


def trial(world: str, crowd: str, strategy: str, seed: int) -> Trial:
    """Return, after every batch, the test accuracy, and how far chances and class shares are from the truth."""
    warnings.simplefilter("ignore")
    started = time.process_time()
    rng = np.random.default_rng(seed)
    problem, workers = draw(world, crowd, rng)
    rule, may_decline = STRATEGIES[strategy]
    n_classes = int(problem.y.max()) + 1
    learner = lo.MBEM(
        lo.SoftmaxRegression(C=problem.C), rounds=4, predictions="in_sample", confidence="posterior", random_state=seed
    )
    router = routing.Router(
        np.arange(len(problem.y)),
        np.arange(n_classes),
        X=problem.X,
        learner=learner,
        strategy=rule,
        may_decline=may_decline,
        random_state=seed,
    )
    for task, worker in workers.at_random(int(problem.start * problem.budget), rng):
        router.add(task, worker, int(workers.label[task, worker]))
    router.refit()
    points = [point(router, problem)]
    left = problem.budget - int(router.spent)
    for batch in range(N_BATCHES):
        buy(router, workers, left * (batch + 1) // N_BATCHES - left * batch // N_BATCHES, rng)
        router.refit()
        points.append(point(router, problem))
    row: Trial = {"world": world, "crowd": crowd, "strategy": strategy, "seed": seed}
    row |= {name: [one[name] for one in points] for name in points[0]}
    return row | {"final": points[-1]["accuracy"], "cpu_s": time.process_time() - started}


def buy(router: routing.Router, crowd: Crowd, n: int, rng: np.random.Generator) -> None:
    """Buy n labels from workers who arrive at random; stop when nobody finds a task."""
    turned_away = 0
    while n > 0 and turned_away < 1000:
        worker = int(rng.choice(len(crowd.load), p=crowd.load / crowd.load.sum()))
        task = router.next(worker, among=crowd.can(worker))
        if task is None:
            turned_away += 1
            continue
        router.add(task, worker, int(crowd.label[task, worker]))
        crowd.taken(worker)
        n, turned_away = n - 1, 0


def point(router: routing.Router, problem: World) -> dict[str, float]:
    """Return what the last refit is worth."""
    assert router.model_ is not None
    chances = router.model_.predict_proba(problem.X_test)
    picks = chances.argmax(axis=1)
    right = picks == problem.y_test
    sure = chances.max(axis=1)
    bins = np.minimum((sure * 10).astype(int), 9)
    gaps = [abs(right[bins == one].mean() - sure[bins == one].mean()) * (bins == one).mean() for one in set(bins)]
    shares = [np.bincount(one, minlength=chances.shape[1]) / len(one) for one in (picks, problem.y_test)]
    return {
        "spent": router.spent,
        "accuracy": float(right.mean()),
        "labels": float((router.model_.labels_ == problem.y).mean()),
        "calibration": float(sum(gaps)),
        "balance": float(np.abs(shares[0] - shares[1]).sum() / 2),
    }


def smooth(values: Sequence[float]) -> Any:
    """Return means of three neighbours."""
    padded = np.pad(np.asarray(values, dtype=float), 1, mode="edge")
    return np.convolve(padded, np.ones(3) / 3, mode="valid")


def saved(curve: Any, spent: Any, goal: float) -> float:
    """Return the share of money saved until a curve stays at the goal or above; NaN if it never gets there."""
    there = np.flatnonzero(curve >= goal)
    return float(1 - spent[there[0]] / spent[-1]) if len(there) else float("nan")


def settings_of(trials: list[Trial]) -> list[tuple[str, str]]:
    """Return the worlds and crowds that have trials, in order."""
    return list(dict.fromkeys((row["world"], row["crowd"]) for row in trials))


def table(trials: list[Trial]) -> str:
    """Return, for every world, the share saved and the final accuracy of every strategy."""
    return "\n".join(
        f"## {world}, {crowd}\n\n{_table_of(trials, world, crowd)}" for world, crowd in settings_of(trials)
    )


def _table_of(trials: list[Trial], world: str, crowd: str) -> str:
    own = [row for row in trials if (row["world"], row["crowd"]) == (world, crowd)]
    by = {name: [row for row in own if row["strategy"] == name] for name in STRATEGIES}
    curves = {name: [smooth(row["accuracy"]) for row in rows] for name, rows in by.items() if rows}
    if "Random" not in curves:
        return "no trial of Random yet\n"
    spent = np.asarray(by["Random"][0]["spent"])
    means = {name: np.mean(rows, axis=0) for name, rows in curves.items()}
    best = np.max(list(means.values()), axis=0)
    goals = {row["seed"]: smooth(row["accuracy"])[-1] for row in by["Random"]}
    rows = []
    for name, mean in means.items():
        each = [saved(smooth(row["accuracy"]), spent, goals[row["seed"]]) for row in by[name] if row["seed"] in goals]
        median = float(np.median([0.0 if np.isnan(one) else one for one in each])) if each else float("nan")
        cells = [name, _share(saved(mean, spent, means["Random"][-1])), _share(median)]
        cells += [f"{100 * mean.mean():.2f}", f"{100 * mean[-1]:.1f}", f"{100 * (best - mean).max():.1f}"]
        cells += [f"{100 * np.mean([row[key][-1] for row in by[name]]):.1f}" for key in ("calibration", "balance")]
        rows.append([*cells, len(by[name])])
    head = ["strategy", "saved, mean curve", "saved, median of seeds", "mean accuracy over the curve", "final accuracy"]
    head += ["most behind the best", "calibration error", "class balance error", "seeds"]
    return markdown(head, rows)


def _share(value: float) -> str:
    return "never" if np.isnan(value) else f"{100 * value:.0f} %"


def figure(trials: list[Trial], path: Path) -> None:
    """Draw the learning curves of the main strategies."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    found = settings_of(trials)
    shown = ("Random", "FewestLabels", "ModelUncertainty", "ActiveLab", "Information", "Information, may decline")
    columns = min(4, len(found))
    size = (4 * columns, 3.2 * -(-len(found) // columns))
    drawing, axes = plt.subplots(-(-len(found) // columns), columns, figsize=size, squeeze=False)
    for axis, (world, crowd) in zip(axes.flat, found, strict=False):
        for name in shown:
            rows = [row for row in trials if (row["world"], row["crowd"], row["strategy"]) == (world, crowd, name)]
            if rows:
                axis.plot(
                    rows[0]["spent"], 100 * np.mean([smooth(row["accuracy"]) for row in rows], axis=0), label=name
                )
        axis.set(title=f"{world}, {crowd}", xlabel="labels bought", ylabel="test accuracy, %")
    axes.flat[0].legend(fontsize=7)
    drawing.tight_layout()
    drawing.savefig(path, dpi=110)


if __name__ == "__main__":
    parser = arguments(__doc__, PATH)
    parser.add_argument("--worlds", nargs="+", default=["digits", "labelme", "wall robot", "film reviews"])
    parser.add_argument("--crowds", nargs="+", default=[*CROWDS, "real"])
    parser.add_argument("--strategies", nargs="+", default=list(STRATEGIES))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    asked = parser.parse_args()
    points = [
        {"world": world, "crowd": crowd, "strategy": strategy, "seed": seed}
        for seed, world, crowd, strategy in product(asked.seeds, asked.worlds, asked.crowds, asked.strategies)
        if crowd != "real" or world == "labelme"
    ]
    order = {"strategy": list(STRATEGIES)}
    main(
        asked,
        lambda options: resume(options, trial, points, order=order),
        table,
        draw=figure,
        image="routing.png",
    )
