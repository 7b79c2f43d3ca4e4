"""`labelonce demo`: a simulated crowd labels scikit-learn's digits."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from labelonce import metrics, simulate
from labelonce._annotations import Annotations
from labelonce._types import Codes, Floats
from labelonce.aggregation import IBCC, DawidSkene, MajorityVote, OneCoin
from labelonce.cli._print import stdout, table, warnings_as_notes

N_WORKERS, QUALITY, REDUNDANCIES = 50, 0.2, (1, 3, 5)


def run_demo(seed: int) -> None:
    """Print what each method makes of one, three and five labels per task, and the workers it found."""
    y_true = load_digits().target
    rng = np.random.default_rng(seed)
    confusion = simulate.hammer_spammer(N_WORKERS, 10, QUALITY, rng, exact=True)
    crowds = [_crowd(y_true, confusion, redundancy, rng) for redundancy in REDUNDANCIES]
    n_good = round(QUALITY * N_WORKERS)
    stdout.print(
        f"{len(y_true):,} handwritten digits, {N_WORKERS} workers: {n_good} are always right, the others guess.\n"
    )
    with warnings_as_notes():
        stdout.print(_method_table(crowds, y_true))
        stdout.print(_worker_table(crowds[-1], confusion))


def _crowd(y_true: Codes, confusion: Floats, redundancy: int, rng: np.random.Generator) -> Annotations:
    assignment = simulate.assign(len(y_true), N_WORKERS, redundancy, rng, replace=False)
    return simulate.annotate(y_true, confusion, assignment, rng)


def _method_table(crowds: list[Annotations], y_true: Codes) -> object:
    rows = []
    for model in (MajorityVote(), DawidSkene(), IBCC(), OneCoin()):
        accuracies = [metrics.accuracy(y_true, model.fit(ann).posterior_) for ann in crowds]
        rows.append([type(model).__name__, *(f"{100 * accuracy:.1f}" for accuracy in accuracies)])
    columns = ["method", *(f"{redundancy} per task" for redundancy in REDUNDANCIES)]
    return table("True labels found, % of tasks", columns, rows)


def _worker_table(annotations: Annotations, confusion: Floats) -> object:
    model = OneCoin().fit(annotations)
    best_first = np.argsort(-model.skill_, kind="stable")
    counts = np.bincount(annotations.worker, minlength=N_WORKERS)
    truth = confusion[:, np.arange(10), np.arange(10)].mean(axis=1)
    rows = [
        [f"worker {w}", counts[w], f"{model.skill_[w]:.2f}", f"{truth[w]:.2f}"]
        for w in (*best_first[:5], *best_first[-5:])
    ]
    title = f"The five best and the five worst workers, by OneCoin at {REDUNDANCIES[-1]} labels per task"
    return table(title, ["worker", "labels", "skill found", "true skill"], rows)
