"""Time the report of a large fit: 1M annotations by 5,000 workers in ten classes, strings as ids.

python benchmarks/report.py    # writes results/report.json and results/report.md
"""

import json
import os
import platform
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from crowd import N_CLASSES
from measure import peak_mb
from run import cpu_name

import labelonce as lo

RESULTS = Path(__file__).parent / "results" / "report.json"
SIZES = [("MBEM", 1_000_000, 1, 5_000), ("DawidSkene", 200_000, 5, 5_000), ("DawidSkene", 200_000, 5, 100_000)]


def crowd(n_tasks: int, redundancy: int, n_workers: int) -> tuple[Any, lo.Annotations]:
    """Return features, and annotations with string ids as a user has; half the workers are 0.9 right, half guess."""
    rng = np.random.default_rng(0)
    right = np.where(np.arange(n_workers) % 2 == 0, 0.9, 1 / N_CLASSES)
    confusion = lo.simulate.one_coin(right, N_CLASSES)
    assignment = lo.simulate.assign(n_tasks, n_workers, redundancy, rng)
    y_true = rng.integers(0, N_CLASSES, n_tasks)
    codes = lo.simulate.annotate(y_true, confusion, assignment, rng)
    X = rng.normal(size=(n_tasks, N_CLASSES)).astype(np.float32)
    X[np.arange(n_tasks), y_true] += 2.5
    tasks, workers = ([f"{name}-{i:07d}" for i in range(n)] for name, n in (("task", n_tasks), ("worker", n_workers)))
    classes = [f"class {k}" for k in range(N_CLASSES)]
    return X, lo.Annotations(
        codes.task, codes.worker, codes.label, *(np.array(x, object) for x in (tasks, workers, classes))
    )


def measure(method: str, n_tasks: int, redundancy: int, n_workers: int) -> dict[str, Any]:
    X, ann = crowd(n_tasks, redundancy, n_workers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method == "MBEM":
            fitted: Any = lo.MBEM(lo.SoftmaxRegression(), rounds=2, predictions="in_sample").fit(X, ann)
        else:
            fitted = lo.DawidSkene(max_iter=20).fit(ann)
    with tempfile.TemporaryDirectory() as folder:
        path, start = Path(folder) / "report.html", time.perf_counter()
        lo.write_report(path, fitted, ann)
        seconds, megabytes = time.perf_counter() - start, path.stat().st_size / 1e6
    about = {"method": method, "annotations": len(ann), "tasks": n_tasks, "workers": n_workers, "classes": N_CLASSES}
    return about | {"seconds": round(seconds, 2), "megabytes": round(megabytes, 2), "peak_mb": round(peak_mb())}


def markdown(rows: list[dict[str, Any]]) -> str:
    lines = ["| method | annotations | workers | seconds | size of the file, MB | peak memory, MB |", "|---" * 6 + "|"]
    for row in rows:
        cells = [
            row["method"],
            f"{row['annotations']:,}",
            f"{row['workers']:,}",
            row["seconds"],
            row["megabytes"],
            row["peak_mb"],
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    rows = [measure(*size) for size in SIZES]
    about = {"command": "python benchmarks/report.py", "python": platform.python_version(), "machine": cpu_name()}
    about |= {"version": lo.__version__, "threads": os.environ.get("OMP_NUM_THREADS", "all")}
    RESULTS.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")
    RESULTS.with_suffix(".md").write_text(markdown(rows))
    print(markdown(rows))
