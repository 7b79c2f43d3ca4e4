"""What MBEM adds to its learner: 1M tasks, 100 features, ten classes, 2,000 workers, one label a task. `make bench`.

Every row runs in a process of its own on one core: the learner alone, and three rounds of MBEM with all options fixed
around the same learner, whose `fit` and `predict_proba` count their CPU seconds. Features come in two kinds: "plain",
a hundred alike, on which L-BFGS needs next to no iterations, and "skewed", where the j-th has 1/sqrt(j) of the spread
of the first, as principal components of real features have. Results go to results/overhead.json and overhead.md.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from run import HERE, ONE_THREAD, cpu_name

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
    """Return the row that one process on one core prints."""
    command = ["taskset", "-c", "0", sys.executable, "work_overhead.py", work, folder]
    done = subprocess.run(command, cwd=HERE, env=os.environ | ONE_THREAD, stdout=subprocess.PIPE, text=True, check=True)
    row: dict[str, Any] = {"features": kind}
    for line in done.stdout.splitlines()[-2:]:
        row |= json.loads(line)
    return row


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a table; the learner's rows come before those of MBEM."""
    lines = [
        "| features | work | fits | CPU s | learner's CPU s | added CPU s | added | peak MB | added MB | accuracy |",
        "|---" * 10 + "|",
    ]
    alone: dict[str, float] = {}
    for row in rows:
        added = row["cpu_s"] - row["learner_s"]
        cells = [row["features"], row["work"], str(row["fits"]), f"{row['cpu_s']:.1f}", f"{row['learner_s']:.1f}"]
        if row["work"] == "learner":
            alone[row["features"]] = row["peak_mb"]
            cells += ["", "", f"{row['peak_mb']:.0f}", ""]
        else:
            cells += [f"{added:.1f}", f"{added / row['learner_s']:.1%}", f"{row['peak_mb']:.0f}"]
            cells += [f"{row['peak_mb'] - alone[row['features']]:.0f}"]
        lines.append("| " + " | ".join([*cells, f"{row['accuracy']:.3f}"]) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Make the crowds, run every row, write the results."""
    rows = []
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            write_crowd(kind, Path(folder))
            for work in ("learner", "MBEM"):
                rows.append(measure(kind, work, folder))
                print(json.dumps(rows[-1]), flush=True)
    about = {"command": "make bench", "python": platform.python_version(), "machine": cpu_name(), "cores used": 1}
    (HERE / "results" / "overhead.json").write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")
    (HERE / "results" / "overhead.md").write_text(markdown(rows))
    print(markdown(rows))


if __name__ == "__main__":
    main()
