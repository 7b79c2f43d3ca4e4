"""What settles how right the labels are: second labels for some tasks, or known ones, on six small worlds.

python experiments/overlap_and_gold.py    # some ten minutes on one core; --table makes the pictures again

With one label per task a weak model with good workers explains the labels as well as a strong model with bad workers.
Part "power": one world, out-of-fold predictions to several powers, each with the workers fitted to it. Part "overlap":
some tasks have a second label by another worker; the width of the range of the estimated accuracy, and whether it
holds the truth. Part "gold": the true labels of some random tasks are known; the mean confidence in the labels of all
other tasks, against how often these are right. More overlap or gold always comes on top of less.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from draws import xor
from record import RESULTS, Trial, experiment, markdown, save
from sklearn.datasets import load_breast_cancer, load_digits

import labelonce as lo
from labelonce.learning import annotation_log_likelihood

OVERLAP = (0.0, 0.02, 0.05, 0.1)
GOLD = (0, 20, 50, 100, 200)
POWERS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0)
DRAWS = (0, 1, 2)
KEYS = ("part", "world", "draw", "amount")
N_TASKS = 1_500
Problem = tuple[Any, Any]


def line(rng: np.random.Generator) -> Problem:
    """Return two classes on either side of a plane, which noise hides."""
    X = rng.normal(size=(N_TASKS, 20))
    side = X @ rng.normal(size=20) / np.sqrt(20)
    return X, (side + rng.normal(size=N_TASKS) > 0).astype(int)


def table_of(load: Callable[..., Problem], rng: np.random.Generator) -> Problem:
    """Return a real table, or as many of its rows as the other worlds have."""
    X, y = load(return_X_y=True)
    rows = rng.permutation(len(y))[:N_TASKS]
    return X[rows], y[rows]


WORLDS: dict[str, tuple[Callable[..., Problem], Any]] = {  # with the workers' chances; None: 9 of 30 do not guess
    "weak table, 30 good workers": (line, [0.9] * 30),
    "weak table, 30 poor workers": (line, [0.7] * 30),
    "weak table, 5 workers": (line, [0.95, 0.85, 0.75, 0.65, 0.6]),
    "XOR, 20 workers": (partial(xor, n=N_TASKS), np.linspace(0.65, 0.95, 20)),
    "tumours, 3 workers": (partial(table_of, load_breast_cancer), [0.95, 0.8, 0.65]),
    "digits, 9 of 30 do not guess": (partial(table_of, load_digits), None),
}


def labelled(world: str, draw: int, overlap: float) -> tuple[Any, Any, lo.Annotations, Any]:
    """Return features, true classes, labels with a share of second ones, and the tasks in a random order."""
    make, skills = WORLDS[world]
    rng = np.random.default_rng([draw, *world.encode()])
    X, y = make(rng=rng)
    K = int(y.max()) + 1
    hammers = skills is None
    confusion = lo.simulate.hammer_spammer(30, K, 0.3, rng, exact=True) if hammers else lo.simulate.one_coin(skills, K)
    workers = lo.simulate.assign(len(y), len(confusion), 2, rng, replace=False)
    first, second = (lo.simulate.annotate(y, confusion, workers[:, [one]], int(rng.integers(2**31))) for one in (0, 1))
    order = rng.permutation(len(y))
    again = order[: round(overlap * len(y))]
    names = ("task", "worker", "label")
    both = [np.concatenate([getattr(first, name), getattr(second, name)[again]]) for name in names]
    return X, y, lo.Annotations.from_arrays(*both, classes=np.arange(K)).align(np.arange(len(y))), order


def trial(part: str, world: str, draw: int, amount: float) -> Trial:
    """Return what was measured at a point."""
    X, y, annotations, order = labelled(world, draw, amount if part == "overlap" else 0.0)
    if part == "power":
        return at_power(X, y, annotations, amount)
    known = order[::-1][: int(amount)] if part == "gold" else order[:0]
    gold = np.full(len(y), -1)
    gold[known] = y[known]
    model = lo.MBEM().fit(X, annotations, gold=gold if len(known) else None)
    right, rest = model.labels_ == y, np.setdiff1d(np.arange(len(y)), known)
    found = {
        "given": float((annotations.label == y[annotations.task]).mean()),
        "right": float(right.mean()),
        "low": model.estimated_accuracy_.low,
        "high": model.estimated_accuracy_.high,
        "right_unknown": float(right[rest].mean()),
        "confidence_unknown": float(model.confidence_[rest].mean()),
        "doubts": len(model.doubts_),
    }
    return {name: round(value, 4) for name, value in found.items()}


def at_power(X: Any, y: Any, annotations: lo.Annotations, power: float) -> Trial:
    """Return what the labels say of out-of-fold predictions to a power, with the workers fitted to them."""
    predictions = lo.MBEM().fit(X, annotations).predictions_ ** power
    predictions /= predictions.sum(axis=1, keepdims=True)
    workers, posterior = lo.workers.Full(), (annotations.label[:, None] == np.arange(2)) * 0.6 + 0.2
    for _ in range(200):
        confusion = workers.fit(annotations, posterior).confusion_
        posterior = predictions * confusion[annotations.worker, :, annotations.label]
        posterior /= posterior.sum(axis=1, keepdims=True)
    skill = np.sort(np.einsum("wkk->w", confusion)[annotations.worker] / 2)
    return {
        "log_likelihood": round(annotation_log_likelihood(annotations, predictions, confusion), 4),
        "predictions_sure": round(float(predictions.max(axis=1).mean()), 4),
        "best_fifth": round(float(skill[-len(skill) // 5 :].mean()), 4),
        "skill": round(float(skill.mean()), 4),
        "right": round(float((posterior.argmax(axis=1) == y).mean()), 4),
    }


def points() -> list[Trial]:
    found = [("power", next(iter(WORLDS)), 0, power) for power in POWERS]
    for part, amounts in (("overlap", OVERLAP), ("gold", GOLD)):
        found += [(part, world, draw, float(amount)) for draw in DRAWS for world in WORLDS for amount in amounts]
    return [dict(zip(KEYS, one, strict=True)) for one in found]


def width(row: Trial) -> float:
    """Return the width of the range of the estimated accuracy, in points."""
    return float(100 * (row["high"] - row["low"]))


def holds(row: Trial) -> bool:
    """Return whether that range holds the share of labels that are right."""
    return bool(row["low"] <= row["right"] <= row["high"])


def off(row: Trial) -> float:
    """Return how far the mean confidence in labels without gold is from how often they are right, in points."""
    return float(100 * abs(row["confidence_unknown"] - row["right_unknown"]))


def of(trials: list[Trial], part: str, amount: float, world: str | None = None) -> list[Trial]:
    """Return the trials of a part and an amount."""
    kept = [row for row in trials if row["part"] == part and row["amount"] == amount]
    return [row for row in kept if world in (None, row["world"])]


def table(trials: list[Trial]) -> str:
    """Return both tables; a row per world, and one for all."""
    rows, more = [], []
    for world in (*WORLDS, None):
        name = world or "**all**"
        second = [of(trials, "overlap", share, world) for share in OVERLAP]
        cells = [f"{fmean(map(width, one)):.0f}, {sum(map(holds, one))} of {len(one)}" for one in second]
        start = second[0]
        figures = [f"{100 * fmean(row[key] for row in start):.1f}" for key in ("given", "right")]
        rows.append([name, *figures, *cells])
        gold = [of(trials, "gold", number, world) for number in GOLD]
        more.append([name, *(f"{fmean(map(off, one)):.1f}, {sum(map(holds, one))} of {len(one)}" for one in gold)])
    head = ["world", "given right", "shown right", *(f"{share:.0%} second labels" for share in OVERLAP)]
    return markdown(head, rows) + "\n" + markdown(["world", *(f"{number} known" for number in GOLD)], more)


def draw(trials: list[Trial], path: Path) -> None:
    """Draw the flat likelihood, and next to it what overlap and gold change."""
    from matplotlib import pyplot as plt

    for name, paint in (("flat_likelihood", draw_likelihood), ("overlap_and_gold", draw_both)):
        figure, axes = plt.subplots(1, 2, figsize=(9, 3.9), layout="constrained")
        paint(trials, *axes)
        for axis in axes:
            axis.grid(alpha=0.3)
        save(figure, path.with_name(f"{name}.png"))


def draw_likelihood(trials: list[Trial], left: Any, right: Any) -> None:
    """Draw log-likelihood, skill and right labels against how sure the model is taken to be."""
    rows = [row for row in trials if row["part"] == "power"]
    sure = [100 * row["predictions_sure"] for row in rows]
    left.plot(sure, [row["log_likelihood"] for row in rows], "C0.-")
    left.axhline(-np.log(2), color="C7", linewidth=0.8, linestyle="--")
    left.annotate("a coin", (sure[-1], -np.log(2)), xytext=(-4, 3), textcoords="offset points", ha="right", color="C7")
    left.set(title="All of these explain the labels", ylabel="log-likelihood per label", ylim=(-0.72, -0.58))
    right.plot(sure, [100 * row["skill"] for row in rows], "C1.-", label="the workers seem right")
    right.plot(sure, [100 * row["right"] for row in rows], "C3.-", label="the labels returned are right")
    right.set(title="and they say different things", ylabel="%", ylim=(50, 100))
    right.legend(fontsize=8)
    for axis in (left, right):
        axis.set_xlabel("how sure the model is taken to be, %")


def draw_both(trials: list[Trial], left: Any, right: Any) -> None:
    """Draw the width of the range against overlap, and the error of the confidence against gold."""
    for number, world in enumerate(WORLDS):
        for axis, part, amounts, measure in ((left, "overlap", OVERLAP, width), (right, "gold", GOLD, off)):
            found = [of(trials, part, amount, world) for amount in amounts]
            x = [100 * amount for amount in amounts] if part == "overlap" else amounts
            axis.plot(x, [fmean(map(measure, one)) for one in found], f"C{number}-", linewidth=1.5, label=world)
            if part == "overlap":
                for place, one in zip(x, found, strict=True):
                    for row in one:
                        mark = "o" if holds(row) else "x"
                        axis.plot(place, width(row), f"C{number}{mark}", markersize=4 if mark == "o" else 7)
    left.set(title="Second labels (x: the truth is outside)", ylabel="width of the 90 % range, points", ylim=(0, None))
    left.set(xlabel="tasks with a second label, %", xticks=[100 * share for share in OVERLAP])
    right.set(title="Known labels", ylabel="|confidence - right|, points", ylim=(0, None), xticks=GOLD)
    right.set_xlabel("tasks whose true label is known")
    right.figure.legend(*right.get_legend_handles_labels(), fontsize=8, ncols=3, loc="outside lower center")


if __name__ == "__main__":
    order: dict[str, Any] = {"part": ["power", "overlap", "gold"], "world": list(WORLDS)}
    drawn: dict[str, Any] = {"draw": draw, "image": "overlap_and_gold.png", "order": order}
    experiment(__doc__, RESULTS / "overlap_and_gold.json", trial, lambda _: points(), table, **drawn)
