"""A table of labels of any size, from partitioned Parquet to labels and workers: seconds and memory of every step.

Ten labels per task, 10,000 workers, ten classes, in a folder with one Parquet file for each day; half of the workers
guess, the others are right in nine cases of ten. Each step is a command line in processes of its own. Memory is the
most that one process held of its own; the pages of files, which the system keeps while there is room, are in a column
of their own. On a busy machine the CPU seconds say more than the seconds.

    python benchmarks/scale.py --scratch FOLDER --sizes 10M 100M 1B    # rows of other sizes are kept
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from one_core import RESULTS, keep
from record import read, tabulated

SIZES = {"1M": 10**6, "10M": 10**7, "100M": 10**8, "1B": 10**9}
N_CLASSES, N_WORKERS, REDUNDANCY, DAYS = 10, 10_000, 10, 20
PART = 10**6  # tasks that are drawn at a time
TORCHRUN = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d"]
TORCHRUN += ["--rdzv-endpoint", "localhost:0"]


def make(folder: Path, n_annotations: int) -> None:
    """Write the crowd; the rows of a task lie far apart in a file, and no worker has a task twice."""
    rng = np.random.default_rng(0)
    n_tasks = n_annotations // REDUNDANCY
    for day, first in enumerate(range(0, n_tasks, max(n_tasks // DAYS, 1))):
        place = folder / f"day={day:02}"
        place.mkdir(parents=True)
        with pq.ParquetWriter(place / "part.parquet", _SCHEMA) as writer:
            last = min(first + max(n_tasks // DAYS, 1), n_tasks)
            for start in range(first, last, PART):
                writer.write_table(_rows(np.arange(start, min(start + PART, last)), rng))


_SCHEMA = pa.schema([("task", pa.int64()), ("worker", pa.int32()), ("label", pa.int32())])


def _rows(tasks: Any, rng: np.random.Generator) -> pa.Table:
    task = np.tile(tasks, REDUNDANCY)
    of_task = np.tile(rng.integers(0, N_WORKERS, len(tasks)), REDUNDANCY)
    worker = (of_task + np.repeat(np.arange(REDUNDANCY), len(tasks)) * 997) % N_WORKERS
    right = (rng.random(len(task)) < 0.9) & (worker % 2 == 0)
    label = np.where(right, task * 7919 % N_CLASSES, rng.integers(0, N_CLASSES, len(task)))
    return pa.table([task, worker.astype(np.int32), label.astype(np.int32)], schema=_SCHEMA)


def timed(step: str, command: Sequence[str], folder: Path) -> dict[str, Any]:
    """Run a command to its end; return its seconds, and the most memory of one of its processes."""
    held: dict[int, tuple[int, int]] = {}
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    log = folder / "log"
    with log.open("w") as sink, subprocess.Popen(command, stdout=sink, stderr=sink) as process:
        ended = threading.Event()
        watcher = threading.Thread(target=_watch, args=(process.pid, held, ended))
        watcher.start()
        status = process.wait()
        seconds = time.perf_counter() - started
        ended.set()
        watcher.join()
    if status:
        sys.exit(f"scale.py: {step} ended with {status}: {log.read_text()[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    own, files = (max((one[i] for one in held.values()), default=0) / 1024 for i in (0, 1))
    iterations = log.read_text().count("iteration ")
    row = {"step": step, "seconds": seconds, "cpu_s": cpu, "own_mb": own, "files_mb": files, "iterations": iterations}
    return row | {"load": os.getloadavg()[0]}


def _watch(root: int, held: dict[int, tuple[int, int]], ended: threading.Event) -> None:
    while not ended.wait(0.2):
        for pid in _family(root):
            try:
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            except OSError:
                continue
            found = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.startswith("Rss")}
            before = held.get(pid, (0, 0))
            held[pid] = (max(before[0], found.get("RssAnon", 0)), max(before[1], found.get("RssFile", 0)))


def _family(root: int) -> list[int]:
    found = [root]
    for pid in found:
        try:
            found += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        except OSError:
            continue
    return found


def accuracy(folder: Path) -> float:
    """Return the share of right labels in the Parquet files of a folder."""
    right = total = 0
    for batch in ds.dataset(folder).to_batches(columns=["task", "label"]):
        task, label = (np.asarray(batch.column(name)) for name in ("task", "label"))
        right, total = right + int((label == task * 7919 % N_CLASSES).sum()), total + len(task)
    return right / total


def size_gb(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e9


def one_size(name: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return what every step took for one size; the folders are removed again."""
    home = options.scratch / name
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    crowd, prepared, python = home / "labels", home / "prepared", sys.executable
    make(crowd, SIZES[name])
    rows = []

    def step(what: str, command: Sequence[str], output: Path) -> None:
        row = timed(what, command, home) | {"size": name, "output_gb": size_gb(output)}
        if output != prepared:
            row["accuracy"] = accuracy(output / "labels")
            shutil.rmtree(output)
        rows.append(row | {"input_gb": size_gb(crowd)})
        print(json.dumps(rows[-1]), flush=True)

    labelonce = ["-m", "labelonce"]
    fit = [*labelonce, "sharded", "fit", str(prepared), "--max-iter", str(options.max_iter), "-o"]
    if SIZES[name] <= options.in_memory:
        clean = home / "clean"
        (clean / "labels").mkdir(parents=True)
        given = [str(crowd), "-o", str(clean / "labels" / "all.parquet"), "--workers", str(clean / "workers.csv")]
        step("aggregate, in memory", [python, *labelonce, "aggregate", *given], clean)
    step("sharded prepare", [python, *labelonce, "sharded", "prepare", str(crowd), "-o", str(prepared)], prepared)
    step("sharded fit, one process", [python, *fit, str(home / "one")], home / "one")
    step("sharded fit, two processes", [python, *TORCHRUN, *fit, str(home / "two")], home / "two")
    shutil.rmtree(home)
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    columns = {"labels": "{size}", "step": "{step}", "seconds": "{seconds:,.0f}", "CPU seconds": "{cpu_s:,.0f}"}
    columns |= {"iterations": "{rounds}", "own memory, MB": "{own_mb:,.0f}", "pages of files, MB": "{files_mb:,.0f}"}
    columns |= {"written, GB": "{output_gb:.2f}", "accuracy": "{accuracy:.4f}", "load average": "{load:.1f}"}
    return tabulated([row | {"rounds": row["iterations"] or ""} for row in rows], columns)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scratch", type=Path, required=True, help="folder for the files, on a disk with room")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["10M", "100M"])
    parser.add_argument("--max-iter", type=int, default=20)
    parser.add_argument("--in-memory", type=int, default=10**8, help="the most labels that are also read into memory")
    chosen = parser.parse_args()
    began, found = time.perf_counter(), read(RESULTS / "scale.json")
    for name in chosen.sizes:
        found = [row for row in found if row["size"] != name] + one_size(name, chosen)
        found.sort(key=lambda row: SIZES[row["size"]])
        keep(RESULTS / "scale.json", found, table, began)
