"""A plan from a pilot of a tenth of the budget buys nearly what the best redundancy, known only with hindsight, buys.

Worlds differ in features, classes, crowd, price of a task (in labels), number of tasks there are, and learner. In each
a tenth of the budget buys a pilot of two labels per task; `planning.plan` sees its labels and the features of all
tasks, and says how to spend the budget. Brute force spends it at every redundancy of a grid, on the same tasks and
workers, and looks at the true labels of test tasks. The loss of the plan is what the mean accuracy at its redundancy
is below that of the best redundancy; since that is the largest of several noisy means, some loss is noise, which the
table states.

    python experiments/planning.py               # resumes where it was stopped
    python experiments/planning.py --seeds 2     # a small part
    python experiments/planning.py --table       # table and picture alone, from results/planning.json
"""

import argparse
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from record import RESULTS, Trial, experiment, markdown
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import labelonce as lo
from labelonce import planning

GRID = (1, 2, 3, 4, 5, 7, 10)
PILOT, PILOT_REDUNDANCY, ROUNDS, FITS = 0.1, 2, 3, 24
N_TEST = {"digits": 497, "two": 3000, "four": 3000}
LEARNERS: dict[str, Callable[[], Any]] = {
    "softmax": lambda: lo.SoftmaxRegression(C=1.0),
    "naive Bayes": GaussianNB,
    "tree": lambda: DecisionTreeClassifier(min_samples_leaf=20, random_state=0),
}


@dataclass(frozen=True)
class World:
    """A problem, its crowd and its prices; `labels` is what the budget buys at one label per task."""

    data: str
    crowd: str
    quality: float
    task_price: float
    labels: int
    pool: int | None = None
    learner: str = "softmax"
    n_workers: int = 20


WORLDS = {
    "digits, hammers 0.3": World("digits", "hammer-spammer", 0.3, 0, 1300),
    "digits, hammers 0.3, task 2": World("digits", "hammer-spammer", 0.3, 2, 1300),
    "digits, hammers 0.3, task 10": World("digits", "hammer-spammer", 0.3, 10, 1000),
    "digits, class-wise 0.5": World("digits", "class-wise", 0.5, 0, 1300),
    "digits, class-wise 0.5, task 5": World("digits", "class-wise", 0.5, 5, 1000),
    "digits, skills near 0.6, task 1": World("digits", "one-coin", 0.6, 1, 1300),
    "digits, hammers 0.5, 400 tasks": World("digits", "hammer-spammer", 0.5, 0, 1300, pool=400),
    "two classes, skills near 0.7": World("two", "one-coin", 0.7, 0, 2000),
    "two classes, skills near 0.7, task 5": World("two", "one-coin", 0.7, 5, 2000),
    "two classes, skills near 0.85, task 2": World("two", "one-coin", 0.85, 2, 2000),
    "two classes, hammers 0.3, task 10": World("two", "hammer-spammer", 0.3, 10, 1000),
    "four classes, skills near 0.55, naive Bayes": World("four", "one-coin", 0.55, 0, 2000, learner="naive Bayes"),
    "four classes, class-wise 0.4, task 3, naive Bayes": World(
        "four", "class-wise", 0.4, 3, 2000, learner="naive Bayes"
    ),
    "four classes, hammers 0.4, task 1, 500 tasks": World("four", "hammer-spammer", 0.4, 1, 1500, pool=500),
    "four classes, skills near 0.7, task 3, tree": World("four", "one-coin", 0.7, 3, 2000, learner="tree"),
}


def tasks_of(data: str, rng: np.random.Generator) -> tuple[Any, Any, Any, Any]:
    """Return features and true labels of the tasks there are, and of test tasks."""
    if data == "digits":
        X, y = load_digits(return_X_y=True)
        X = X / 16
    else:
        n_classes = {"two": 2, "four": 4}[data]
        centres = np.random.default_rng(7).normal(size=(n_classes, 10)) * {"two": 0.45, "four": 0.6}[data]
        y = rng.integers(0, n_classes, 2000 + N_TEST[data])
        X = centres[y] + rng.normal(size=(len(y), 10))
    order, n = rng.permutation(len(y)), N_TEST[data]
    return X[order[n:]], y[order[n:]], X[order[:n]], y[order[:n]]


def crowd_of(world: World, n_classes: int, rng: np.random.Generator) -> Any:
    """Return the true confusion of the workers."""
    if world.crowd == "one-coin":
        skills = np.clip(rng.normal(world.quality, 0.1, world.n_workers), 1 / n_classes, 0.99)
        return lo.simulate.one_coin(skills, n_classes)
    if world.crowd == "class-wise":
        return lo.simulate.class_wise_hammer_spammer(world.n_workers, n_classes, world.quality, rng)
    return lo.simulate.hammer_spammer(world.n_workers, n_classes, world.quality, rng, exact=True)


def trial(world: str, seed: int) -> Trial:
    """Return what was planned and what every redundancy reached, in one draw of tasks, workers and labels."""
    started = time.process_time()
    here = WORLDS[world]
    rng = np.random.default_rng([seed, *world.encode()])
    X, y, X_test, y_test = tasks_of(here.data, rng)
    n_classes = int(y.max()) + 1
    confusion = crowd_of(here, n_classes, rng)
    budget, pool = here.labels * (1 + here.task_price), min(here.pool or len(y), len(y))

    def labels(n: int, redundancy: int) -> lo.Annotations:
        assignment = lo.simulate.assign(n, here.n_workers, redundancy, rng, replace=False)
        return lo.simulate.annotate(y[:n], confusion, assignment, rng)

    def fit(ann: lo.Annotations, **options: Any) -> lo.MBEM:
        return lo.MBEM(LEARNERS[here.learner](), rounds=ROUNDS, **options).fit(X[: ann.n_tasks], ann)

    n_pilot = round(PILOT * budget / (PILOT_REDUNDANCY + here.task_price))
    pilot_labels = labels(n_pilot, PILOT_REDUNDANCY)
    pilot = fit(pilot_labels)
    prices: dict[str, Any] = {"budget": budget, "task_price": here.task_price, "tasks": pool, "test_tasks": 0}
    rows = {"features": X, "annotations": pilot_labels.align(np.arange(len(X)))}
    found = planning.plan(pilot, **prices, **rows, redundancies=GRID, fits=FITS, random_state=seed)
    plan_s = time.process_time() - started
    sizes = {r: min(pool, int(budget / (here.task_price + r))) for r in GRID}
    models = {r: fit(labels(sizes[r], r), folds=1) for r in GRID}
    reached = {r: float((model.predict(X_test) == y_test).mean()) for r, model in models.items()}
    truth = lo.workers.Known(confusion).fit_counts(np.ones_like(confusion))
    assert found.accuracy is not None
    return {
        "redundancy": found.redundancy,
        "by_information": max(found.rows, key=lambda row: row.worth).redundancy,
        "by_true_crowd": planning.plan(truth, **prices, redundancies=GRID).redundancy,
        "expected": [found.accuracy.value, found.accuracy.low, found.accuracy.high],
        "simulated": {row.redundancy: row.simulated for row in found.rows if row.simulated is not None},
        "reached": reached,
        "pilot_accuracy": float((pilot.predict(X_test) == y_test).mean()),
        "plan_s": round(plan_s, 1),
        "cpu_s": round(time.process_time() - started, 1),
    }


@dataclass(frozen=True)
class Judged:
    """What the plans of a world lost, in points of accuracy.

    `loss` is against the best mean of brute force; `noise` the standard error of the difference between that and the
    redundancy that is planned most, or else the second best; `unbiased` against the redundancy that is best on the
    other seeds, so that luck does not choose it; `once` and `thrice` are the losses of one and of three labels always.
    """

    rows: list[Trial]
    best: int
    loss: float
    noise: float
    unbiased: float
    once: float
    thrice: float

    @property
    def reached(self) -> list[float]:
        """What the planned redundancies reached."""
        return [row["reached"][str(row["redundancy"])] for row in self.rows]

    @property
    def inside(self) -> list[bool]:
        """Whether that was in the stated range."""
        ranges = [row["expected"][1:] for row in self.rows]
        return [low <= got <= high for (low, high), got in zip(ranges, self.reached, strict=True)]

    def said(self, key: str) -> str:
        """Return all redundancies that were said, with how often."""
        counts = Counter(row[key] for row in self.rows)
        return ", ".join(f"{one} ({n})" if len(counts) > 1 else f"{one}" for one, n in sorted(counts.items()))


def judge(rows: list[Trial]) -> Judged:
    """Return what the plans of one world lost."""
    reached = 100 * np.array([[row["reached"][str(r)] for r in GRID] for row in rows])
    means = reached.mean(axis=0)
    chosen = np.array([GRID.index(row["redundancy"]) for row in rows])
    best, usual = int(means.argmax()), int(np.bincount(chosen).argmax())
    rival = usual if usual != best else int(np.argsort(means)[-2])
    apart = reached[:, best] - reached[:, rival]
    others = [np.delete(reached, i, axis=0) if len(rows) > 1 else reached for i in range(len(rows))]
    return Judged(
        rows,
        best=GRID[best],
        loss=float((means[best] - means[chosen]).mean()),
        noise=float(apart.std(ddof=1) / sqrt(len(rows))) if len(rows) > 1 else float("nan"),
        unbiased=fmean(reached[i, one.mean(axis=0).argmax()] - reached[i, chosen[i]] for i, one in enumerate(others)),
        once=float(means[best] - means[GRID.index(1)]),
        thrice=float(means[best] - means[GRID.index(3)]),
    )


def judged_worlds(trials: list[Trial]) -> dict[str, Judged]:
    """Return every world and what its plans lost."""
    by_world: dict[str, list[Trial]] = defaultdict(list)
    for row in trials:
        by_world[row["world"]].append(row | {"reached": {str(r): one for r, one in row["reached"].items()}})
    return {world: judge(rows) for world, rows in by_world.items()}


def table(trials: list[Trial]) -> str:
    """Return one line per world, then the mean and the worst of the worlds."""
    judged = judged_worlds(trials)
    head = ["world", "plan", "plan, crowd known", "best", "loss", "noise", "loss, unbiased", "always 1", "always 3"]
    lines = []
    for world, one in judged.items():
        lost = [f"{one.loss:.2f}", f"± {one.noise:.2f}", f"{one.unbiased:+.2f}", f"{one.once:.2f}", f"{one.thrice:.2f}"]
        expected = f"{100 * fmean(row['expected'][0] for row in one.rows):.1f}"
        held = [expected, f"{100 * fmean(one.reached):.1f}", f"{fmean(one.inside):.0%}"]
        lines.append([world, one.said("redundancy"), one.said("by_true_crowd"), one.best, *lost, *held])
    all_of = list(judged.values())
    losses = [[getattr(one, name) for one in all_of] for name in ("loss", "noise", "unbiased", "once", "thrice")]
    held_share = f"{fmean(inside for one in all_of for inside in one.inside):.0%}"
    lines.append(["**mean**", "", "", "", *(f"{fmean(values):.2f}" for values in losses), "", "", held_share])
    lines.append(["**worst**", "", "", "", *(f"{max(values):.2f}" for values in losses), "", "", ""])
    return markdown([*head, "expected", "reached", "in its range"], lines)


def picture(trials: list[Trial], path: Path) -> None:
    """Draw what the plan, one label always and three labels always lose in every world."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "labelonce"
    import matplotlib.pyplot as plt

    judged = judged_worlds(trials)
    place = np.arange(len(judged))
    drawing, axis = plt.subplots(figsize=(8, 0.32 * len(judged) + 1.2), layout="constrained")
    marks = {"once": ("o", "always 1"), "thrice": ("s", "always 3"), "loss": ("D", "the plan")}
    for name, (mark, words) in marks.items():
        axis.plot([getattr(one, name) for one in judged.values()], place, mark, label=words)
    axis.set_yticks(place, list(judged))
    axis.set(xlabel="points of accuracy below the best redundancy")
    axis.invert_yaxis()
    axis.grid(axis="x", alpha=0.3)
    axis.legend(loc="upper right")
    drawing.savefig(path, metadata={"Date": None})


def points(options: argparse.Namespace) -> list[Trial]:
    """Return every trial that is wanted."""
    seeds = range(options.first, options.first + options.seeds)
    return [{"world": world, "seed": seed} for seed in seeds for world in WORLDS if options.world in world]


if __name__ == "__main__":
    made = {"grid": GRID, "pilot": PILOT, "pilot_redundancy": PILOT_REDUNDANCY, "rounds": ROUNDS, "fits": FITS}
    kept: dict[str, Any] = {"draw": picture, "image": "planning.svg", "order": {"world": list(WORLDS)}}
    asked: dict[str, Any] = {"seeds": {"type": int, "default": 8, "help": "draws of every world"}}
    asked |= {"first": {"type": int, "default": 0, "help": "the first seed"}}
    asked |= {"world": {"default": "", "help": "only worlds whose names contain this"}}
    experiment(__doc__, RESULTS / "planning.json", trial, points, table, settings=made, **kept, **asked)
