"""How well each worker model finds simulated workers again, and whether its intervals hold what they promise.

Claim: from 20 labels per worker on, 90 % credible intervals of the skill cover 88.3 to 92.2 % on a crowd that the
model describes, 93.2 % in one cell of 45 (`Full`, 10 classes, 20 labels); `Full` is within 0.004 of the best model's
confusion error on every crowd. 200 workers per crowd, 10 seeds, predictions = truth.

    python experiments/worker_recovery.py            # one core; writes results, table and figure
    python experiments/worker_recovery.py --table    # the table and docs/images/worker_recovery.svg alone
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from record import RESULTS, Trial, arguments, main, markdown, write

from labelonce import metrics, simulate, workers

PATH = RESULTS / "worker_recovery.json"
LABELS = [5, 10, 20, 50, 100, 200, 500]
CLASSES = [2, 4, 10]
N_WORKERS, N_SEEDS, LEVEL = 200, 10, 0.9
MODELS = [workers.OneCoin, workers.ClassWise, workers.Full, workers.Counted]
OWN = {"one-coin": "OneCoin", "class-wise": "ClassWise", "Dirichlet rows": "Full"}


def one_coin(n_classes: int, rng: np.random.Generator) -> Any:
    """Accuracies from Beta(6, 2)."""
    return simulate.one_coin(rng.beta(6, 2, N_WORKERS), n_classes)


def class_wise(n_classes: int, rng: np.random.Generator) -> Any:
    """Overall accuracies from Beta(6, 2), and by class from Betas around them that are worth 8 labels."""
    overall = np.repeat(rng.beta(6, 2, N_WORKERS), n_classes)
    right = rng.beta(8 * overall, 8 * (1 - overall)).reshape(N_WORKERS, n_classes, 1)
    return np.where(np.eye(n_classes, dtype=bool), right, (1 - right) / (n_classes - 1))


def dirichlet(n_classes: int, rng: np.random.Generator) -> Any:
    """Rows from Dirichlet distributions, 4 for the true class and 0.5 for each other."""
    return simulate.dirichlet(N_WORKERS, n_classes, rng)


CROWDS: dict[str, Callable[[int, np.random.Generator], Any]] = {
    "one-coin": one_coin,
    "class-wise": class_wise,
    "Dirichlet rows": dirichlet,
}


def draw_counts(confusion: Any, n_labels: int, rng: np.random.Generator) -> Any:
    """Return counts [worker, true, given] of `n_labels` per worker, with true labels drawn uniformly."""
    n_classes = confusion.shape[1]
    per_class = rng.multinomial(n_labels, np.full(n_classes, 1 / n_classes), len(confusion))
    return rng.multinomial(per_class, confusion).astype(float)


def measure(model: workers.WorkerModel, confusion: Any, counts: Any) -> list[float]:
    """Return the confusion error, and the shares of skills and of entries inside their intervals."""
    model.fit_counts(counts)
    skill = np.einsum("wkk->w", confusion) / confusion.shape[1]
    skill_low, skill_high = model.skill_interval(level=LEVEL)
    low, high = model.confusion_interval(level=LEVEL)
    inside = (skill_low <= skill) & (skill <= skill_high), (low <= confusion) & (confusion <= high)
    return [metrics.confusion_error(confusion, model.confusion_), *(float(part.mean()) for part in inside)]


def run(options: argparse.Namespace) -> None:
    """Measure every model on every crowd and write the means over the seeds."""
    start, rows = time.perf_counter(), []
    for crowd, make in CROWDS.items():
        for n_classes in CLASSES:
            for n_labels in LABELS:
                found: dict[str, list[list[float]]] = {model.__name__: [] for model in MODELS}
                for seed in range(N_SEEDS):
                    rng = np.random.default_rng([seed, list(CROWDS).index(crowd), n_classes, n_labels])
                    confusion = make(n_classes, rng)
                    counts = draw_counts(confusion, n_labels, rng)
                    for model in MODELS:
                        found[model.__name__].append(measure(model(), confusion, counts))
                for name, values in found.items():
                    error, skill, entries = np.mean(values, axis=0).round(4).tolist()
                    place = {"crowd": crowd, "classes": n_classes, "labels": n_labels, "model": name}
                    spread = round(float(np.std(values, axis=0, ddof=1)[1] / np.sqrt(N_SEEDS)), 4)
                    rows.append({**place, "error": error, "skill": skill, "skill_se": spread, "entries": entries})
            print(crowd, n_classes, f"{time.perf_counter() - start:.0f} s", flush=True)
    settings = {"workers": N_WORKERS, "seeds": list(range(N_SEEDS)), "level": LEVEL, "labels": LABELS}
    write(options.out, rows, settings=settings, seconds=time.perf_counter() - start)


def pick(rows: list[dict[str, Any]], **where: Any) -> list[dict[str, Any]]:
    return [row for row in rows if all(row[key] == value for key, value in where.items())]


def table(trials: list[Trial]) -> str:
    """Return coverage on each model's own crowd, and the errors of all models at 10 classes."""
    parts = []
    for key, title in (("skill", "skills"), ("entries", "confusion entries")):
        parts.append(f"Share of {title} inside their 90 % intervals, each model on the crowd it describes:\n")
        own = [(crowd, model, k) for crowd, model in OWN.items() for k in CLASSES]
        rows = [[f"`{model}`", k, *cells(trials, key, crowd, model, k)] for crowd, model, k in own]
        parts.append(markdown(["model", "classes", *LABELS], rows))
    parts.append("Confusion error (mean total variation of a row) at 10 classes:\n")
    every = [(crowd, model.__name__) for crowd in CROWDS for model in MODELS]
    rows = [[crowd, f"`{name}`", *cells(trials, "error", crowd, name, 10)] for crowd, name in every]
    parts.append(markdown(["crowd", "model", *LABELS], rows))
    return "\n".join(parts)


def cells(trials: list[Trial], key: str, crowd: str, model: str, n_classes: int) -> list[str]:
    return [f"{row[key]:.3f}" for row in pick(trials, crowd=crowd, model=model, classes=n_classes)]


def plot(rows: list[Trial], path: Path) -> None:
    """Draw errors and coverage against the labels per worker."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.rcParams.update({"svg.hashsalt": "labelonce", "font.size": 9})
    styles = [("#0072B2", "o", "-"), ("#D55E00", "s", "--"), ("#000000", "D", ":"), ("#999999", "x", "-")]
    figure, axes = plt.subplots(2, 3, figsize=(9.5, 5.6), sharex=True, sharey="row", layout="constrained")
    for (upper, lower), (crowd, own) in zip(axes.T, OWN.items(), strict=True):
        for model, (colour, marker, dashes) in zip(MODELS, styles, strict=True):
            errors = [row["error"] for row in pick(rows, crowd=crowd, model=model.__name__, classes=10)]
            upper.plot(LABELS, errors, color=colour, marker=marker, ls=dashes, ms=4, label=model.__name__)
        for n_classes, (colour, marker, dashes) in zip(CLASSES, styles, strict=False):
            found = pick(rows, crowd=crowd, model=own, classes=n_classes)
            bars = {"yerr": [2 * row["skill_se"] for row in found], "capsize": 2, "label": f"{n_classes} classes"}
            lower.errorbar(
                LABELS, [row["skill"] for row in found], color=colour, marker=marker, ls=dashes, ms=4, **bars
            )
        lower.axhspan(LEVEL - 0.03, LEVEL + 0.03, color="#E5E5E5", zorder=0)
        upper.set(title=f"{crowd}: error, 10 classes", xscale="log", yscale="log", yticks=[0.02, 0.05, 0.1, 0.2, 0.5])
        upper.yaxis.set_major_formatter("{x:g}")
        lower.set(title=f"{crowd}: coverage of {own}", xlabel="labels per worker", xticks=LABELS, xticklabels=LABELS)
        upper.minorticks_off()
        lower.minorticks_off()
    axes[0, 0].set_ylabel("confusion error")
    axes[1, 0].set(ylabel="skills in 90 % intervals (± 2 s.e.)", ylim=(0.8, 1.005), yticks=[0.8, 0.85, 0.9, 0.95, 1.0])
    axes[0, 2].legend(frameon=False, loc="lower left")
    axes[1, 0].legend(frameon=False, loc="lower left", fontsize=8)
    figure.savefig(path, metadata={"Date": None}, dpi=110)


if __name__ == "__main__":
    main(arguments(__doc__, PATH).parse_args(), run, table, draw=plot, image="worker_recovery.svg")
