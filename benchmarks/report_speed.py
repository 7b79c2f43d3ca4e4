"""The report of a large fit takes seconds and stays small: 1M annotations by 5,000 workers in ten classes.

Ids are strings, as users have.

python benchmarks/report_speed.py
"""

import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from crowd import N_CLASSES
from measure import peak_mb
from one_core import RESULTS, keep
from record import tabulated

import labelonce as lo

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
            fitted: Any = lo.MBEM(lo.SoftmaxRegression(), rounds=2).fit(X, ann)
        else:
            fitted = lo.DawidSkene(max_iter=20).fit(ann)
    with tempfile.TemporaryDirectory() as folder:
        path, start = Path(folder) / "report.html", time.perf_counter()
        lo.write_report(path, fitted, ann)
        seconds, megabytes = time.perf_counter() - start, path.stat().st_size / 1e6
    about = {"method": method, "annotations": len(ann), "tasks": n_tasks, "workers": n_workers, "classes": N_CLASSES}
    return about | {"seconds": round(seconds, 2), "megabytes": round(megabytes, 2), "peak_mb": round(peak_mb())}


def table(rows: list[dict[str, Any]]) -> str:
    columns = {"method": "{method}", "annotations": "{annotations:,}", "workers": "{workers:,}", "seconds": "{seconds}"}
    return tabulated(rows, columns | {"size of the file, MB": "{megabytes}", "peak memory, MB": "{peak_mb}"})


if __name__ == "__main__":
    started = time.perf_counter()
    rows = [measure(*size) for size in SIZES]
    keep(RESULTS / "report_speed.json", rows, table, started)
