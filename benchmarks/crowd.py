"""The crowds that every peer is timed on, written once as Parquet: half the workers 0.9 right, half random."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from labelonce import simulate
from labelonce._types import Codes

N_CLASSES, REDUNDANCY = 10, 5
SIZES = {"100k": (20_000, 200), "1M": (200_000, 2_000), "10M": (2_000_000, 10_000)}


def write_crowd(size: str, folder: Path, *, strings: bool, n_classes: int = N_CLASSES) -> None:
    """Write annotations in random order (task, worker, label) and the true labels."""
    n_tasks, n_workers = SIZES[size]
    rng = np.random.default_rng(0)
    accuracy = np.where(np.arange(n_workers) % 2 == 0, 0.9, 1 / n_classes)
    y_true = rng.integers(0, n_classes, n_tasks)
    assignment = simulate.assign(n_tasks, n_workers, REDUNDANCY, rng, replace=False)
    ann = simulate.annotate(y_true, simulate.one_coin(accuracy, n_classes), assignment, rng)
    order = rng.permutation(len(ann))
    codes = {"task": ann.task[order], "worker": ann.worker[order], "label": ann.label[order]}
    table = pa.table({name: _named(name, values) if strings else values for name, values in codes.items()})
    pq.write_table(table, folder / f"{size}-{'strings' if strings else 'codes'}.parquet", compression="zstd")
    np.save(folder / f"{size}-truth.npy", y_true.astype(np.int32))


def _named(name: str, values: Codes) -> pa.Array:
    names = pa.array([f"{name}-{code:07d}" for code in range(int(values.max()) + 1)])
    return pa.DictionaryArray.from_arrays(pa.array(values), names).dictionary_decode()
