"""Taking 1M annotations in 100 batches costs a few full fits, and finds nearly the same labels.

The crowd of crowd.py at 1M, in random order: half the workers 0.9 right, half random; every batch brings new tasks.
CPU seconds on one thread, the median of three trials by their ratio.

    python benchmarks/online_speed.py
"""

import os
import time
import warnings
from typing import Any

from one_core import ONE_THREAD, REPEATS, RESULTS, keep

os.environ |= ONE_THREAD
import numpy as np
from crowd import N_CLASSES, REDUNDANCY, SIZES
from record import tabulated

import labelonce as lo
from labelonce._types import Codes

N_BATCHES = 100


def batches() -> tuple[lo.Annotations, list[lo.Annotations], Codes]:
    """Return all annotations, the same in batches, and the true labels."""
    n_tasks, n_workers = SIZES["1M"]
    rng = np.random.default_rng(0)
    accuracy = np.where(np.arange(n_workers) % 2 == 0, 0.9, 1 / N_CLASSES)
    y_true = rng.integers(0, N_CLASSES, n_tasks).astype(np.int32)
    assignment = lo.simulate.assign(n_tasks, n_workers, REDUNDANCY, rng, replace=False)
    ann = lo.simulate.annotate(y_true, lo.simulate.one_coin(accuracy, N_CLASSES), assignment, rng)
    parts = np.array_split(rng.permutation(len(ann)), N_BATCHES)
    classes = range(N_CLASSES)
    return ann, [_part(ann, rows, classes) for rows in parts], y_true


def _part(ann: lo.Annotations, rows: Any, classes: range) -> lo.Annotations:
    return lo.Annotations.from_arrays(ann.task[rows], ann.worker[rows], ann.label[rows], classes=classes)


def trial(kind: Any, ann: lo.Annotations, parts: list[lo.Annotations], y_true: Codes) -> dict[str, Any]:
    """Return CPU seconds and accuracy of a full fit and of the batches."""
    started = time.process_time()
    full = kind().fit(ann)
    full_s = time.process_time() - started
    online = kind()
    started = time.process_time()
    for part in parts:
        online.partial_fit(part)
    online_s = time.process_time() - started
    accuracy = [lo.metrics.accuracy(y_true[model.tasks_], model.posterior_) for model in (full, online)]
    same = float((online.labels_ == full.labels_[online.tasks_]).mean())
    return {
        "method": kind.__name__,
        "full_s": full_s,
        "online_s": online_s,
        "full fits": online_s / full_s,
        "full accuracy": accuracy[0],
        "online accuracy": accuracy[1],
        "same labels": same,
    }


def table(rows: list[dict[str, Any]]) -> str:
    columns = {"method": "{method}", "full fit, CPU s": "{full_s:.2f}", "100 batches, CPU s": "{online_s:.2f}"}
    columns |= {"in full fits": "{full fits:.2f}", "accuracy, full": "{full accuracy:.4f}"}
    return tabulated(rows, columns | {"accuracy, batches": "{online accuracy:.4f}", "same labels": "{same labels:.4f}"})


def main() -> None:
    """Measure both models and write the results."""
    warnings.simplefilter("ignore")
    started, data = time.perf_counter(), batches()
    rows = []
    for kind in (lo.DawidSkene, lo.IBCC):
        trials = sorted((trial(kind, *data) for _ in range(REPEATS)), key=lambda row: float(row["full fits"]))
        rows.append(trials[REPEATS // 2])
    path = RESULTS / "online_speed.json"
    keep(path, rows, table, started, {"median of": REPEATS})


if __name__ == "__main__":
    main()
