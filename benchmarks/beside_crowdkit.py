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
from record import markdown

ROWS = [
    ("labelonce", "majority vote", "1M", 0),
    ("crowd-kit", "majority vote", "1M", 0),
    ("labelonce", "majority vote", "10M", 0),
    ("crowd-kit", "majority vote", "10M", 0),
    ("labelonce", "dawid-skene", "100k", 20),
    ("crowd-kit", "dawid-skene", "100k", 20),
    ("labelonce", "dawid-skene", "1M", 20),
    ("labelonce", "dawid-skene float32", "1M", 20),
    ("crowd-kit", "dawid-skene", "1M", 20),
    ("labelonce", "dawid-skene", "10M", 20),
    ("labelonce", "dawid-skene float32", "10M", 20),
    ("crowd-kit", "dawid-skene", "10M", 2),
    ("labelonce", "read parquet", "1M", 0),
    ("labelonce", "read parquet", "10M", 0),
]


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a table."""
    head = ["work", "annotations", "peer", "iterations", "CPU s", "CPU s / iteration", "peak MB", "accuracy"]
    lines = []
    for row in rows:
        cpu, iterations = row["cpu_s"], row["iterations"]
        each = f"{cpu / iterations:.3f}" if iterations else ""
        accuracy = "" if row["work"] == "read parquet" else f"{row['accuracy']:.4f}"
        cells = [row["work"], row["size"], f"{row['peer']} {row['version']}", iterations or "", f"{cpu:.2f}", each]
        lines.append([*cells, f"{row['peak_mb']:.0f}", accuracy])
    return markdown(head, lines)


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
