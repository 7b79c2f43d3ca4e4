"""The prepared form on disk: a folder for each block of tasks, its index as memory-mapped arrays."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from labelonce._kernels import Block
from labelonce._types import Ids
from labelonce.data import _ids

FORMAT = 1
_ARRAYS = [field.name for field in fields(Block)]


@dataclass(frozen=True)
class Shards:
    """What a prepared folder holds; the blocks are opened one at a time."""

    folder: Path
    name: str
    n_blocks: int
    n_annotations: int
    n_labelled: int
    n_overlap: int
    classes: Ids
    workers: Ids
    annotations_of_worker: npt.NDArray[np.int64]

    def block(self, number: int) -> Block:
        """Return a block as tensors over the files: pages are read when used and may be dropped by the system."""
        folder = block_folder(self.folder, number)
        # Copy-on-write, for torch must be able to write; it never does.
        arrays = (np.load(folder / f"{name}.npy", mmap_mode="c") for name in _ARRAYS)
        return Block(*(torch.from_numpy(array) for array in arrays))

    def tasks(self, number: int) -> Ids:
        """Return the ids of a block's tasks."""
        table = pq.read_table(block_folder(self.folder, number) / "tasks.parquet")
        return _ids.to_numpy(table["task"].combine_chunks())


def block_folder(folder: Path, number: int) -> Path:
    """Return where a block lies."""
    return folder / f"block-{number:05d}"


def write_block(folder: Path, block: Block, tasks: Ids) -> None:
    """Write a block and the ids of its tasks."""
    folder.mkdir()
    for name in _ARRAYS:
        np.save(folder / f"{name}.npy", getattr(block, name).numpy())
    pq.write_table(pa.table({"task": pa.array(tasks)}), folder / "tasks.parquet")


def write_about(shards: Shards) -> None:
    """Write what `open_shards` reads, last: a folder without it was not finished."""
    workers = {"worker": pa.array(shards.workers), "annotations": shards.annotations_of_worker}
    pq.write_table(pa.table(workers), shards.folder / "workers.parquet")
    numbers = {name: getattr(shards, name) for name in ("name", "n_blocks", "n_annotations", "n_labelled", "n_overlap")}
    about = {"format": FORMAT} | numbers | {"classes": shards.classes.tolist()}
    (shards.folder / "shards.json").write_text(json.dumps(about, indent=1) + "\n")


def open_shards(folder: Path) -> Shards:
    """Return the prepared annotations in a folder."""
    path = folder / "shards.json"
    if not path.is_file():
        raise ValueError(f"{folder} must be a folder that `prepare` wrote; got none with shards.json in it.")
    about: dict[str, Any] = json.loads(path.read_text())
    if about.pop("format") != FORMAT:
        raise ValueError(f"{path} must have format {FORMAT}. Prepare the annotations again with this version.")
    workers = pq.read_table(folder / "workers.parquet")
    return Shards(
        folder=folder,
        **about | {"classes": _ids.table_of(about["classes"], "classes")},
        workers=_ids.to_numpy(workers["worker"].combine_chunks()),
        annotations_of_worker=workers["annotations"].to_numpy(),
    )
