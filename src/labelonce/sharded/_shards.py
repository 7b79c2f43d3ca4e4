"""The prepared form on disk: a folder for each block of tasks, its index as memory-mapped arrays."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from labelonce._kernels import Block
from labelonce._messages import clip, printable
from labelonce._types import Ids
from labelonce._validate import check_int
from labelonce.data import _ids
from labelonce.files import atomic_write

FORMAT = 2
_NAME = re.compile(r"(block-[0-9]+(-[0-9a-f]+)?|[0-9a-f]+)")
_INTEGERS = (torch.int32, torch.int64)
_ARRAYS = [field.name for field in fields(Block)]


@dataclass(frozen=True)
class Shards:
    """What a prepared folder holds; the blocks are opened one at a time."""

    folder: Path
    name: str
    blocks: tuple[str, ...]
    n_annotations: int
    n_labelled: int
    n_overlap: int
    classes: Ids
    workers: Ids
    annotations_of_worker: npt.NDArray[np.int64]

    @property
    def n_blocks(self) -> int:
        return len(self.blocks)

    def place(self, number: int) -> Path:
        return self.folder / self.blocks[number]

    def block(self, number: int) -> Block:
        """Return a block as tensors over the files: pages are read when used and may be dropped by the system."""
        folder = self.place(number)
        with _as_prepared(folder):
            # Copy-on-write, for torch must be able to write; it never does.
            arrays = (np.load(folder / f"{name}.npy", mmap_mode="c", allow_pickle=False) for name in _ARRAYS)
            return Block(*(torch.from_numpy(array) for array in arrays))

    def check(self, number: int) -> None:
        """Raise where the index of a block leads outside: torch would read there."""
        folder, block = self.place(number), self.block(number)
        n_rows, n_tasks = len(self.workers) * len(self.classes), len(self.tasks(number))
        with _as_prepared(folder):
            is_right = (
                all(getattr(block, name).dtype in _INTEGERS and getattr(block, name).ndim == 1 for name in _ARRAYS)
                and block.row.dtype == block.start.dtype
                and block.n_tasks == n_tasks
                and len(block.row) == len(block.task)
                and len(block.seen) == len(block.seen_piece) - 1
                and all(_is_below(*one) for one in ((block.row, n_rows), (block.task, n_tasks), (block.seen, n_rows)))
                and bool((block.seen.diff() > 0).all())
                and _starts_of(block.start, len(block.row))
                and _starts_of(block.piece, len(block.task))
                and _starts_of(block.seen_piece, len(block.piece) - 1)
            )
            if not is_right:
                raise ValueError("its arrays do not fit together")

    def tasks(self, number: int) -> Ids:
        with _as_prepared(self.place(number)):
            table = pq.read_table(self.place(number) / "tasks.parquet")
            return _ids.to_numpy(table["task"].combine_chunks())


def write_block(folder: Path, block: Block, tasks: Ids) -> None:
    folder.mkdir()
    for name in _ARRAYS:
        np.save(folder / f"{name}.npy", getattr(block, name).numpy())
    pq.write_table(pa.table({"task": pa.array(tasks)}), folder / "tasks.parquet")


def write_about(shards: Shards) -> None:
    """Write what `open_shards` reads, last: a folder without it was not finished."""
    workers = {"worker": pa.array(shards.workers), "annotations": shards.annotations_of_worker}
    pq.write_table(pa.table(workers), workers_file(shards))
    names = ("name", "blocks", "n_annotations", "n_labelled", "n_overlap")
    about = {"format": FORMAT} | {name: getattr(shards, name) for name in names} | {"classes": shards.classes.tolist()}
    atomic_write(shards.folder / "shards.json", (json.dumps(about, indent=1) + "\n").encode())


def workers_file(shards: Shards) -> Path:
    """Return where the workers stand: under the name of the shards, so that shards.json alone says what counts."""
    return shards.folder / f"workers-{shards.name}.parquet"


def open_shards(folder: Path) -> Shards:
    path = folder / "shards.json"
    if not path.is_file():
        raise ValueError(f"{folder} must be a folder that `prepare` wrote; got none with shards.json in it.")
    with _as_prepared(folder):
        about: dict[str, Any] = json.loads(path.read_bytes())
        if about.pop("format") != FORMAT:
            raise ValueError(f"{path.name} must have format {FORMAT}")
        for name in ("n_annotations", "n_labelled", "n_overlap"):
            check_int(about[name], name, 1 if name != "n_overlap" else 0)
        if not all(_NAME.fullmatch(one) for one in (about["name"], *about["blocks"])) or not about["blocks"]:
            raise ValueError("the names of blocks are others")
        workers = pq.read_table(folder / f"workers-{about['name']}.parquet")
        shards = Shards(
            folder=folder,
            **about | {"blocks": tuple(about["blocks"]), "classes": _ids.table_of(about["classes"], "classes")},
            workers=_ids.table_of(workers["worker"], "workers"),
            annotations_of_worker=workers["annotations"].to_numpy(),
        )
        if shards.annotations_of_worker.dtype != np.int64:
            raise ValueError("the file of workers has other types")
        return shards


@contextmanager
def _as_prepared(folder: Path) -> Iterator[None]:
    """Say in a sentence that files are not as `prepare` wrote them, whatever fails because of that."""
    try:
        yield
    except Exception as error:  # a damaged file may fail in any way
        got = f"{type(error).__name__}: {printable(clip(' '.join(str(error).split()), 200))}"
        raise ValueError(f"{folder} must be as prepare wrote it; got {got}. Prepare the annotations again.") from error


def _is_below(values: torch.Tensor, n: int) -> bool:
    return len(values) == 0 or bool(values.min() >= 0 and values.max() < n)


def _starts_of(values: torch.Tensor, n: int) -> bool:
    """Return whether values are where runs start, and after them where the last one ends."""
    return len(values) > 0 and bool(values[0] == 0 and values[-1] == n and (values.diff() >= 0).all())
