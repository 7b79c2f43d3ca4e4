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
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from draws import crew, digits
from record import RESULTS, Trial, experiment, grouped, markdown
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import labelonce as lo
from labelonce import planning

GRID = (1, 2, 3, 4, 5, 7, 10)
PILOT, PILOT_REDUNDANCY, ROUNDS, FITS = 0.1, 2, 3, 24
N_WORKERS = 20
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
    "four classes, class-wise 0.4, task 3, naive Bayes": World("four", "class-wise", 0.4, 3, 2000, None, "naive Bayes"),
    "four classes, hammers 0.4, task 1, 500 tasks": World("four", "hammer-spammer", 0.4, 1, 1500, pool=500),
    "four classes, skills near 0.7, task 3, tree": World("four", "one-coin", 0.7, 3, 2000, learner="tree"),
}


def tasks_of(data: str, rng: np.random.Generator) -> tuple[Any, Any, Any, Any]:
    """Return features and true labels of the tasks there are, and of test tasks."""
    n = N_TEST[data]
    if data == "digits":
        X, y = digits(rng)
    else:
        n_classes, distance = {"two": (2, 0.45), "four": (4, 0.6)}[data]
        centres = np.random.default_rng(7).normal(size=(n_classes, 10)) * distance
        y = rng.integers(0, n_classes, 2000 + n)
        X = centres[y] + rng.normal(size=(len(y), 10))
    order = rng.permutation(len(y))
    return X[order[n:]], y[order[n:]], X[order[:n]], y[order[:n]]


def trial(world: str, seed: int) -> Trial:
    """Return what was planned and what every redundancy reached, in one draw of tasks, workers and labels."""
    started = time.process_time()
    here = WORLDS[world]
    rng = np.random.default_rng([seed, *world.encode()])
    X, y, X_test, y_test = tasks_of(here.data, rng)
    confusion = crew(here.crowd, N_WORKERS, int(y.max()) + 1, here.quality, rng)
    budget, pool = here.labels * (1 + here.task_price), min(here.pool or len(y), len(y))

    def labels(n: int, redundancy: int) -> lo.Annotations:
        assignment = lo.simulate.assign(n, N_WORKERS, redundancy, rng, replace=False)
        return lo.simulate.annotate(y[:n], confusion, assignment, rng)

    def fit(ann: lo.Annotations, **options: Any) -> lo.MBEM:
        return lo.MBEM(LEARNERS[here.learner](), rounds=ROUNDS, **options).fit(X[: ann.n_tasks], ann)

    pilot_labels = labels(round(PILOT * budget / (PILOT_REDUNDANCY + here.task_price)), PILOT_REDUNDANCY)
    pilot = fit(pilot_labels)
    prices: dict[str, Any] = {"budget": budget, "task_price": here.task_price, "tasks": pool, "test_tasks": 0}
    rows = {"features": X, "annotations": pilot_labels.align(np.arange(len(X)))}
    found = planning.plan(pilot, **prices, **rows, redundancies=GRID, fits=FITS, random_state=seed)
    plan_s = time.process_time() - started
    models = {r: fit(labels(min(pool, int(budget / (here.task_price + r))), r), folds=1) for r in GRID}
    truth = lo.workers.Known(confusion).fit_counts(np.ones_like(confusion))
    assert found.accuracy is not None
    return {
        "redundancy": found.redundancy,
        "by_true_crowd": planning.plan(truth, **prices, redundancies=GRID).redundancy,
        "expected": [found.accuracy.value, found.accuracy.low, found.accuracy.high],
        "simulated": {row.redundancy: row.simulated for row in found.rows if row.simulated is not None},
        "reached": {r: float((model.predict(X_test) == y_test).mean()) for r, model in models.items()},
        "plan_s": round(plan_s, 1),
        "cpu_s": round(time.process_time() - started, 1),
    }


def judge(rows: list[Trial]) -> dict[str, Any]:
    """Return what the plans of one world lost, in points of accuracy, and whether they kept what they promised.

    `loss` is against the best mean of brute force; `noise` the standard error of the difference between that and the
    redundancy that is planned most, or else the second best; `unbiased` against the redundancy that is best on the
    other seeds, so that luck does not choose it; `once` and `thrice` are the losses of one and of three labels always.
    """
    reached = 100 * np.array([[row["reached"][str(r)] for r in GRID] for row in rows])
    means, chosen = reached.mean(axis=0), np.array([GRID.index(row["redundancy"]) for row in rows])
    best, usual = int(means.argmax()), int(np.bincount(chosen).argmax())
    rival = usual if usual != best else int(np.argsort(means)[-2])
    apart = reached[:, best] - reached[:, rival]
    others = [np.delete(reached, i, axis=0) if len(rows) > 1 else reached for i in range(len(rows))]
    lucky = [reached[i, one.mean(axis=0).argmax()] - reached[i, chosen[i]] for i, one in enumerate(others)]
    got = [row["reached"][str(row["redundancy"])] for row in rows]
    return {
        "best": GRID[best],
        "loss": float((means[best] - means[chosen]).mean()),
        "noise": float(apart.std(ddof=1) / sqrt(len(rows))) if len(rows) > 1 else float("nan"),
        "unbiased": fmean(lucky),
        "once": float(means[best] - means[GRID.index(1)]),
        "thrice": float(means[best] - means[GRID.index(3)]),
        "reached": got,
        "inside": [row["expected"][1] <= one <= row["expected"][2] for row, one in zip(rows, got, strict=True)],
    }


def judged_worlds(trials: list[Trial]) -> dict[str, dict[str, Any]]:
    """Return every world and what its plans lost."""
    return {world: judge(rows) for (world,), rows in grouped(trials, "world").items()}


def said(rows: list[Trial], key: str) -> str:
    """Return all redundancies that were said, with how often."""
    counts = Counter(row[key] for row in rows)
    return ", ".join(f"{one} ({n})" if len(counts) > 1 else f"{one}" for one, n in sorted(counts.items()))


def table(trials: list[Trial]) -> str:
    """Return one line per world, then the mean and the worst of the worlds."""
    judged, lines = judged_worlds(trials), []
    head = ["world", "plan", "plan, crowd known", "best", "loss", "noise", "loss, unbiased", "always 1", "always 3"]
    for (world,), rows in grouped(trials, "world").items():
        one = judged[world]
        cells = [one["best"], f"{one['loss']:.2f}", f"± {one['noise']:.2f}", f"{one['unbiased']:+.2f}"]
        cells += [f"{one['once']:.2f}", f"{one['thrice']:.2f}"]
        cells += [f"{100 * fmean(values):.1f}" for values in ([row["expected"][0] for row in rows], one["reached"])]
        plans = (said(rows, key) for key in ("redundancy", "by_true_crowd"))
        lines.append([world, *plans, *cells, f"{fmean(one['inside']):.0%}"])
    losses = [[one[name] for one in judged.values()] for name in ("loss", "noise", "unbiased", "once", "thrice")]
    held_share = f"{fmean(inside for one in judged.values() for inside in one['inside']):.0%}"
    lines.append(["**mean**", "", "", "", *(f"{fmean(values):.2f}" for values in losses), "", "", held_share])
    lines.append(["**worst**", "", "", "", *(f"{max(values):.2f}" for values in losses), "", "", ""])
    return markdown([*head, "expected", "reached", "in its range"], lines)


def picture(trials: list[Trial], path: Path) -> None:
    """Draw what the plan, one label always and three labels always lose in every world."""
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "labelonce"
    judged = judged_worlds(trials)
    drawing, axis = plt.subplots(figsize=(8, 0.32 * len(judged) + 1.2), layout="constrained")
    for name, mark, words in (("once", "o", "always 1"), ("thrice", "s", "always 3"), ("loss", "D", "the plan")):
        axis.plot([one[name] for one in judged.values()], np.arange(len(judged)), mark, label=words)
    axis.set_yticks(np.arange(len(judged)), list(judged))
    axis.set(xlabel="points of accuracy below the best redundancy")
    axis.invert_yaxis()
    axis.grid(axis="x", alpha=0.3)
    axis.legend(loc="upper right")
    drawing.savefig(path, metadata={"Date": None})


def points(options: argparse.Namespace) -> list[Trial]:
    seeds = range(options.first, options.first + options.seeds)
    return [{"world": world, "seed": seed} for seed in seeds for world in WORLDS if options.world in world]


if __name__ == "__main__":
    made = {"grid": GRID, "pilot": PILOT, "pilot_redundancy": PILOT_REDUNDANCY, "rounds": ROUNDS, "fits": FITS}
    kept: dict[str, Any] = {"draw": picture, "image": "planning.svg", "order": {"world": list(WORLDS)}}
    asked: dict[str, Any] = {"seeds": {"type": int, "default": 8, "help": "draws of every world"}}
    asked |= {"first": {"type": int, "default": 0, "help": "the first seed"}}
    asked |= {"world": {"default": "", "help": "only worlds whose names contain this"}}
    experiment(__doc__, RESULTS / "planning.json", trial, points, table, settings=made, **kept, **asked)
