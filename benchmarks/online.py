"""What it costs to take 1M annotations in 100 batches, beside one full fit: `python benchmarks/online.py`.

The crowd of crowd.py at 1M, in random order: half the workers 0.9 right, half random; every batch brings new tasks.
CPU seconds on one thread, the median of three trials by their ratio. Results go to results/online.json, the table to
results/online.md.
"""

import json
import os
import platform
import time
import warnings
from pathlib import Path
from typing import Any

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np
from crowd import N_CLASSES, REDUNDANCY, SIZES

import labelonce as lo
from labelonce._types import Codes

N_BATCHES, REPEATS = 100, 3
RESULTS = Path(__file__).parent / "results"


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
    online.posterior_  # noqa: B018  # reading visits all tasks once more: part of the cost
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


def main() -> None:
    """Measure both models and write the results."""
    warnings.simplefilter("ignore")
    data = batches()
    kinds = (lo.DawidSkene, lo.IBCC)
    rows = [
        sorted((trial(kind, *data) for _ in range(REPEATS)), key=lambda row: float(row["full fits"]))[REPEATS // 2]
        for kind in kinds
    ]
    about = {"command": "python benchmarks/online.py", "python": platform.python_version(), "median of": REPEATS}
    (RESULTS / "online.json").write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")
    head = ["method", "full fit, CPU s", "100 batches, CPU s", "in full fits", "accuracy, full", "accuracy, batches"]
    lines = ["| " + " | ".join([*head, "same labels"]) + " |", "|---" * 7 + "|"]
    for row in rows:
        numbers = [f"{row[key]:.2f}" for key in ("full_s", "online_s", "full fits")]
        numbers += [f"{row[key]:.4f}" for key in ("full accuracy", "online accuracy", "same labels")]
        lines.append("| " + " | ".join([row["method"], *numbers]) + " |")
    (RESULTS / "online.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
