"""Eleven thousand classes and a hundred thousand workers aggregate on one core: the size of Pl@ntNet.

Simulated: 1M tasks, 2.6M labels, classes in 1,100 groups (genera) of ten with shares that fall as 1 / rank, and
workers of whom few do most of the work. A worker is right with a chance of its own, Beta with a strength of 8 labels:
in the first crowd with a mean of 0.85 for the 5 % who do most and 0.5 for the others, in the second of 0.6 for all.
Nine mistakes in ten stay within the group. Each method runs in a process of its own, on one core.

python benchmarks/plantnet_size.py
"""

import json
import os
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np
from measure import report
from one_core import RESULTS, keep
from record import tabulated

import labelonce as lo
from labelonce import workers
from labelonce._kernels import Factors

N_CLASSES, N_WORKERS, N_TASKS, GROUP = 11_000, 100_000, 1_000_000, 10
CROWDS, MOST = ("the active know more", "all alike"), 8
GROUPS = np.arange(N_CLASSES) // GROUP
METHODS: dict[str, Any] = {
    "MajorityVote": lo.MajorityVote(),
    "Wawa": lo.Wawa(),
    "ExpertiseVote": lo.baselines.ExpertiseVote(),
    "OneCoin": lo.OneCoin(),
    "DawidSkene, Grouped(table)": lo.DawidSkene(worker_model=workers.Grouped(GROUPS), dtype="float32"),
    "DawidSkene, Grouped('auto')": lo.DawidSkene(worker_model=workers.Grouped("auto"), dtype="float32"),
}

SECOND = [name for name in METHODS if "auto" not in name]  # groups that are found are those of the table


def crowd(name: str) -> tuple[lo.Annotations, Any]:
    """Return the annotations and the true classes."""
    rng = np.random.default_rng(0)
    shares = 1 / np.arange(1.0, N_CLASSES + 1)
    y_true = rng.choice(N_CLASSES, N_TASKS, p=rng.permutation(shares / shares.sum())).astype(np.int32)
    active = np.arange(N_WORKERS) < N_WORKERS // 20
    mean = np.where(active, 0.85, 0.5) if name == CROWDS[0] else np.full(N_WORKERS, 0.6)
    right = rng.beta(8 * mean, 8 * (1 - mean))[:, None]
    inside = Factors.inside(right, np.zeros(N_CLASSES, np.int32), GROUPS.astype(np.int32))
    elsewhere = np.full(N_CLASSES, 0.1 / (N_CLASSES - GROUP))
    leaking = Factors(right, inside.row, inside.mistakes, 0.9 * inside.share, elsewhere)
    assignment = lo.simulate.assign(N_TASKS, N_WORKERS, MOST, rng, load=lo.simulate.zipf_load(N_WORKERS, 0.7))
    ann = lo.simulate.annotate(y_true, leaking, assignment, rng)
    kept = rng.random((N_TASKS, MOST)).argsort(axis=1).ravel() <= rng.poisson(1.6, N_TASKS)[ann.task]
    rows = (ann.task[kept], ann.worker[kept], ann.label[kept])
    return lo.Annotations(*rows, ann.tasks, ann.workers, ann.classes), y_true


def run(kind: str, name: str) -> None:
    """Fit one method and print what it took."""
    warnings.simplefilter("ignore")
    ann, y_true = crowd(kind)
    sizes = {"annotations": len(ann), "tasks": N_TASKS, "workers": N_WORKERS, "classes": N_CLASSES}
    report(
        lambda: METHODS[name].fit(ann),
        lambda model: lo.metrics.accuracy(y_true, model.posterior_),
        crowd=kind,
        method=name,
        **sizes,
    )


def table(rows: list[dict[str, Any]]) -> str:
    columns = {"crowd": "{crowd}", "method": "{method}", "labels": "{annotations:,}", "CPU seconds": "{cpu_s:.1f}"}
    columns |= {"peak memory, MB": "{peak_mb:,.0f}", "of which the labels": "{before_mb:,.0f}"}
    return tabulated(rows, columns | {"accuracy": "{accuracy:.3f}"})


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(*sys.argv[1:])
        sys.exit()
    started, rows = time.perf_counter(), []
    one = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    for kind in CROWDS:
        for method in METHODS if kind == CROWDS[0] else SECOND:
            work = [sys.executable, __file__, kind, method]
            done = subprocess.run(work, env=one, capture_output=True, text=True, check=True)
            rows.append(json.loads(done.stdout))
            print(rows[-1], flush=True)
    keep(RESULTS / "plantnet_size.json", rows, table, started)
