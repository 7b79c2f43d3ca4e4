"""What choosing the next task, and its worker, saves: accuracy against money for every strategy of `labelonce.routing`.

Workers arrive at random and are given one task each; after every batch eight rounds of MBEM are fitted to all labels,
and the test accuracy noted. Simulated workers on digits, LabelMe's photographs and film reviews: hammer-spammers
(quality 0.2), class-wise ones (0.2), specialists (0.9 right in three classes, 0.3 elsewhere; in one class of four or
two), and identical workers (0.7); LabelMe's own labels replayed, where a worker can only be asked what it answered. A
tenth of the budget, one label per task, is spent at random first; a worker who is turned away costs nothing.

    python experiments/routing.py            # needs the data of datasets.md; resumes where it was stopped
    python experiments/routing.py --worlds digits --seeds 10 11 --jobs 2
    python experiments/routing.py --table    # tables and figure alone, from results/routing.json
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from draws import SETS, crew, real_components, shuffled
from record import RESULTS, Trial, experiment, grid, grouped, markdown, save, several

import labelonce as lo
from labelonce import routing

PATH = RESULTS / "routing.json"
SEEDS, N_WORKERS, N_BATCHES = range(10, 15), 40, 20
ROUNDS = 8  # of a refit
QUALITIES = {"hammer-spammer": 0.2, "class-wise": 0.2, "specialists": 0.9, "identical": 0.7}
CROWDS = (*QUALITIES, "real")


STRATEGIES = {  # "may decline" says that workers may be turned away, "gold" that 20 tasks are known, to test workers by
    "Random": routing.Random(),
    "FewestLabels": routing.FewestLabels(),
    "ActiveLab": routing.ActiveLab(),
    "AdaptiveRounds": routing.AdaptiveRounds(),
    "Information": routing.Information(),
    "Random, may decline": routing.Random(decline_below=0.5),
    "Information, may decline": routing.Information(),
    "WorkerTesting, may decline, 20 gold": routing.WorkerTesting(),
    "Information, may decline, 20 gold": routing.Information(),
}
SHOWN = ("Random", "FewestLabels", "ActiveLab", "Information", "Random, may decline", "Information, may decline")


@dataclass
class World:
    """A problem: tasks to buy labels for, and tasks to test on."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any
    C: float


@dataclass
class Crowd:
    """What every worker says of every task, -1 where nobody asked, and how often workers come.

    In a replayed crowd a worker can be asked only what it answered, and comes as often as it has labels left.
    """

    label: Any
    load: Any
    replayed: bool = False

    def can(self, worker: int) -> Any:
        """Return the tasks that a worker can label, None for all."""
        return np.flatnonzero(self.label[:, worker] >= 0) if self.replayed else None

    def at_random(self, n: int, rng: np.random.Generator) -> list[tuple[int, int]]:
        """Return pairs of a random task, each once, and a random worker who can label it."""
        tasks = rng.permutation(len(self.label))[:n]
        if not self.replayed:
            return list(zip(tasks.tolist(), rng.integers(len(self.load), size=n).tolist(), strict=True))
        workers = [int(rng.choice(np.flatnonzero(self.label[task] >= 0))) for task in tasks]
        self.load -= np.bincount(workers, minlength=len(self.load))
        return list(zip(tasks.tolist(), workers, strict=True))


def draw(world: str, crowd: str, rng: np.random.Generator) -> tuple[World, Crowd]:
    """Return a problem and its crowd; each pair of task and worker always gives the same label."""
    n, C = SETS[world]
    if crowd == "real":
        X, y, X_test, y_test, ann = real_components("labelme")
        load = np.bincount(ann.worker, minlength=ann.n_workers).astype(float)
        return World(X, y, X_test, y_test, C), Crowd(ann.to_matrix(dense=True), load, replayed=True)
    X, y = shuffled(world, rng)
    confusion = crew(crowd, N_WORKERS, int(y.max()) + 1, QUALITIES[crowd], rng)
    passed = rng.random((n, N_WORKERS))[:, :, None] > np.cumsum(confusion, axis=2)[:, y[:n]].transpose(1, 0, 2)
    label = passed.sum(axis=2).clip(0, confusion.shape[1] - 1)
    return World(X[:n], y[:n], X[n:], y[n:], C), Crowd(label, np.ones(N_WORKERS))


def trial(world: str, crowd: str, strategy: str, seed: int) -> Trial:
    """Return how many test tasks are right after every batch."""
    started = time.process_time()
    rng = np.random.default_rng(seed)
    problem, workers = draw(world, crowd, rng)
    found = spend(router_of(problem, strategy, seed), problem, workers, rng)
    row: Trial = {name: [one[name] for one in found] for name in found[0]}
    return row | {"tested": len(problem.y_test), "cpu_s": time.process_time() - started}


def router_of(problem: World, strategy: str, seed: int) -> routing.Router:
    """Return a router that has no answers yet."""
    n, n_classes = len(problem.y), int(problem.y.max()) + 1
    known = np.random.default_rng([seed, 1]).permutation(n)[: 20 if "gold" in strategy else 0]
    return routing.Router(
        np.arange(n),
        np.arange(n_classes),
        X=problem.X,
        learner=lo.MBEM(lo.SoftmaxRegression(C=problem.C), rounds=ROUNDS, folds=1, random_state=seed),
        strategy=STRATEGIES[strategy],
        limits=routing.Limits(may_decline="may decline" in strategy),
        gold={int(task): int(problem.y[task]) for task in known} or None,
        random_state=seed,
    )


def spend(router: routing.Router, problem: World, workers: Crowd, rng: np.random.Generator) -> list[dict[str, int]]:
    """Spend the budget, the first part of it at random; return what each refit is worth."""
    for task, worker in workers.at_random(len(problem.y) // 10, rng):
        router.add(task, worker, int(workers.label[task, worker]))
    router.refit()
    found = [point(router, problem)]
    left = len(problem.y) - int(router.spent)
    for batch in range(N_BATCHES):
        buy(router, workers, left * (batch + 1) // N_BATCHES - left * batch // N_BATCHES, rng)
        router.refit()
        found.append(point(router, problem))
    return found


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
        crowd.load[worker] -= crowd.replayed
        n, turned_away = n - 1, 0


def point(router: routing.Router, problem: World) -> dict[str, int]:
    """Return what the last refit is worth."""
    assert router.model_ is not None
    right = router.model_.predict(problem.X_test) == problem.y_test
    return {"spent": int(router.spent), "right": int(right.sum())}


def smooth(values: Sequence[float]) -> Any:
    """Return means of three neighbours."""
    padded = np.pad(np.asarray(values, dtype=float), 1, mode="edge")
    return np.convolve(padded, np.ones(3) / 3, mode="valid")


def saved(curve: Any, spent: Any, goal: float) -> float:
    """Return the share of money saved when a curve first reaches the goal, between two points in proportion.

    NaN if it never gets there.
    """
    there = np.flatnonzero(curve >= goal)
    if not len(there):
        return float("nan")
    first = int(there[0])
    before = max(first - 1, 0)
    rise = float(curve[first] - curve[before])
    part = (goal - curve[before]) / rise if rise > 0 else 1.0
    return float(1 - (spent[before] + part * (spent[first] - spent[before])) / spent[-1])


@dataclass
class Setting:
    """The mean curves of one world and crowd by strategy, and each draw's own.

    Draws differ more than strategies do, so that only those count which all strategies have.
    """

    spent: Any
    curves: dict[str, dict[int, Any]]

    @property
    def means(self) -> dict[str, Any]:
        """The mean curve of every strategy."""
        return {name: np.mean(list(found.values()), axis=0) for name, found in self.curves.items()}

    def saved(self, name: str) -> str:
        """Return what the mean curve saves until it is where `Random` ends, and the median of the draws' own curves."""
        random = self.curves["Random"]
        whole = saved(self.means[name], self.spent, self.means["Random"][-1])
        each = [saved(curve, self.spent, random[seed][-1]) for seed, curve in self.curves[name].items()]
        return f"{_share(whole)} ({_share(float(np.median(np.nan_to_num(each))))})"


def settings(trials: list[Trial]) -> dict[str, Setting]:
    """Return the worlds and crowds in which there are draws that all strategies have."""
    found = {}
    for (world, crowd), own in grouped(trials, "world", "crowd").items():
        curves = {
            name: {row["seed"]: smooth(np.divide(row["right"], row["tested"])) for row in rows}
            for (name,), rows in grouped(own, "strategy").items()
        }
        shared = set.intersection(*map(set, curves.values()))
        if shared and "Random" in curves:
            kept = {name: {seed: own[seed] for seed in own if seed in shared} for name, own in curves.items()}
            found[f"{world}, {crowd}"] = Setting(np.asarray(own[0]["spent"]), kept)
    return found


def table(trials: list[Trial]) -> str:
    """Return, for every world and crowd, what the main strategies save."""
    rows = []
    for name, found in settings(trials).items():
        cells = [found.saved(one) if one in found.curves else "" for one in SHOWN[1:]]
        rows.append([name, *cells, len(found.curves["Random"])])
    return markdown(["world, crowd", *SHOWN[1:], "draws"], rows)


def _share(value: float) -> str:
    return "never" if np.isnan(value) else f"{100 * value:.0f} %"


def figure(trials: list[Trial], path: Path) -> None:
    """Draw the learning curves of the main strategies."""
    from matplotlib import pyplot as plt

    found = settings(trials)
    drawing, axes = plt.subplots(-(-len(found) // 4), 4, figsize=(14, 2.8 * -(-len(found) // 4)), squeeze=False)
    for axis, (title, setting) in zip(axes.flat, found.items(), strict=False):
        for number, name in enumerate(SHOWN):
            if name in setting.means:
                axis.plot(setting.spent, 100 * setting.means[name], label=name, color=f"C{number}")
        axis.set(title=title, xlabel="labels bought", ylabel="test accuracy, %")
    for axis in axes.flat[len(found) :]:
        axis.set_axis_off()
    axes.flat[0].legend(fontsize=7)
    drawing.tight_layout()
    save(drawing, path)


def points(options: argparse.Namespace) -> list[Trial]:
    asked = {"world": options.worlds, "crowd": options.crowds, "strategy": options.strategies}
    every = [point | {"seed": seed} for seed in options.seeds for point in grid(**asked)]
    return [point for point in every if point["crowd"] != "real" or point["world"] == "labelme"]


if __name__ == "__main__":
    more: dict[str, Any] = {"worlds": several(SETS), "crowds": several(CROWDS), "strategies": several(STRATEGIES)}
    kept: dict[str, Any] = {"order": {"strategy": list(STRATEGIES)}, "settings": {"rounds": ROUNDS}}
    drawn: dict[str, Any] = {"draw": figure, "image": "routing.png"}
    experiment(__doc__, PATH, trial, points, table, **drawn, **kept, **more, seeds=several(SEEDS, type=int))
