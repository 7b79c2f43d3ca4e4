"""labelonce is faster and smaller than crowd-kit: votes and Dawid-Skene on the same files, on one core.

CPU seconds and peak memory of the work alone; reading the file is counted only in "read parquet". Both peers
read the same Parquet files.

    python benchmarks/beside_crowdkit.py    # what `make bench` runs
"""

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from crowd import SIZES, write_crowd
from one_core import REPEATS, RESULTS, best_of, keep
from record import tabulated

ROWS = [
    *((peer, "majority vote", size, 0) for size in ("1M", "10M") for peer in ("labelonce", "crowd-kit")),
    ("labelonce", "dawid-skene", "100k", 20),
    ("crowd-kit", "dawid-skene", "100k", 20),
    ("labelonce", "dawid-skene", "1M", 20),
    ("labelonce", "dawid-skene float32", "1M", 20),
    ("crowd-kit", "dawid-skene", "1M", 20),
    ("labelonce", "dawid-skene", "10M", 20),
    ("labelonce", "dawid-skene float32", "10M", 20),
    ("crowd-kit", "dawid-skene", "10M", 2),
    *(("labelonce", "read parquet", size, 0) for size in ("1M", "10M")),
]


def table(rows: list[dict[str, Any]]) -> str:
    columns = {"work": "{work}", "annotations": "{size}", "peer": "{peer} {version}", "iterations": "{repeated}"}
    columns |= {"CPU s": "{cpu_s:.2f}", "CPU s / iteration": "{each:.3f}", "peak MB": "{peak_mb:.0f}"}
    shown = []
    for row in rows:
        n = row["iterations"]
        right = {} if row["work"] == "read parquet" else {"right": row["accuracy"]}
        shown.append(row | {"repeated": n or ""} | right | ({"each": row["cpu_s"] / n} if n else {}))
    return tabulated(shown, columns | {"accuracy": "{right:.4f}"})


def main() -> None:
    """Make the crowds, run every row, write the results."""
    rows, started = [], time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            write_crowd(size, Path(folder), strings=False)
            write_crowd(size, Path(folder), strings=True)
        for row in ROWS:
            rows.append(best_of(REPEATS, *row, folder))
            print(json.dumps(rows[-1]), flush=True)
    path, settings = RESULTS / "beside_crowdkit.json", {"cores used": 1, "best of": REPEATS}
    keep(path, rows, table, started, settings)


if __name__ == "__main__":
    main()
