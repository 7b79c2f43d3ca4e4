"""MBEM adds little to its learner: 1M tasks, 100 features, ten classes, 2,000 workers, one label per task.

Every row runs in a process of its own on one core: the learner alone, and three rounds of MBEM with all options fixed
around the same learner, whose `fit` and `predict_proba` count their CPU seconds. Features come in two kinds: "plain",
a hundred alike, on which L-BFGS needs next to no iterations, and "skewed", where the j-th has 1/sqrt(j) of the spread
of the first, as principal components of real features have.

    python benchmarks/mbem_overhead.py    # what `make bench` runs
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from one_core import RESULTS, keep, printed_by
from record import markdown

from labelonce import simulate

N_TASKS, N_FEATURES, N_CLASSES, N_WORKERS = 1_000_000, 100, 10, 2_000
KINDS = ("skewed", "plain")


def write_crowd(kind: str, folder: Path) -> None:
    """Write features, true labels and one annotation for each task; busy workers label more."""
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, N_CLASSES, N_TASKS)
    X = rng.standard_normal((N_TASKS, N_FEATURES))
    X += (0.35 * rng.standard_normal((N_CLASSES, N_FEATURES)))[y_true]
    if kind == "skewed":
        X /= np.sqrt(np.arange(1, N_FEATURES + 1))
    confusion = simulate.dirichlet(N_WORKERS, N_CLASSES, rng)
    assignment = simulate.assign(N_TASKS, N_WORKERS, 1, rng, load=simulate.zipf_load(N_WORKERS, 0.5))
    ann = simulate.annotate(y_true, confusion, assignment, rng)
    np.save(folder / "features.npy", X)
    np.save(folder / "truth.npy", y_true)
    np.save(folder / "annotations.npy", np.stack([ann.task, ann.worker, ann.label]))


def measure(kind: str, work: str, folder: str) -> dict[str, Any]:
    """Return what one process on one core prints."""
    row: dict[str, Any] = {"features": kind}
    for part in printed_by(sys.executable, "mbem_overhead_work.py", work, folder):
        row |= part
    return row


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a table; the learner's rows come before those of MBEM."""
    head = ["features", "work", "fits", "CPU s", "learner's CPU s", "added CPU s", "added", "peak MB", "added MB"]
    alone: dict[str, float] = {}
    lines = []
    for row in rows:
        added = row["cpu_s"] - row["learner_s"]
        cells = [row["features"], row["work"], str(row["fits"]), f"{row['cpu_s']:.1f}", f"{row['learner_s']:.1f}"]
        if row["work"] == "learner":
            alone[row["features"]] = row["peak_mb"]
            cells += ["", "", f"{row['peak_mb']:.0f}", ""]
        else:
            cells += [f"{added:.1f}", f"{added / row['learner_s']:.1%}", f"{row['peak_mb']:.0f}"]
            cells += [f"{row['peak_mb'] - alone[row['features']]:.0f}"]
        lines.append([*cells, f"{row['accuracy']:.3f}"])
    return markdown([*head, "accuracy"], lines)


def main() -> None:
    """Make the crowds, run every row, write the results."""
    rows, started = [], time.perf_counter()
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            write_crowd(kind, Path(folder))
            for work in ("learner", "MBEM"):
                rows.append(measure(kind, work, folder))
                print(json.dumps(rows[-1]), flush=True)
    path = RESULTS / "mbem_overhead.json"
    keep(path, rows, table, started, {"cores used": 1})


if __name__ == "__main__":
    main()
