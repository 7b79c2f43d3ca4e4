"""More labels for a prepared folder: only the blocks whose tasks have new labels are written again."""

import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from labelonce._kernels import BLOCK_SIZE, Block
from labelonce._types import DUPLICATES, Duplicates, Ids
from labelonce._validate import check_choice, check_int
from labelonce.data import Annotations, _ids, sorted_annotations
from labelonce.io import read_annotations
from labelonce.sharded._shards import Shards, open_shards, workers_file, write_about, write_block


def append(
    files: Any,
    folder: str | os.PathLike[str],
    *,
    task: str | None = None,
    worker: str | None = None,
    label: str | None = None,
    duplicates: Duplicates = "error",
    block: int = BLOCK_SIZE["cpu"],
) -> Path:
    """Add labels to a folder that `prepare` wrote, and return it: the labels of a day, which must fit into memory.

    Tasks and workers may be new or known; a class that is not known is an error. A reader sees the folder as it was or
    with all new labels. A fit begun before cannot be resumed.

    Parameters
    ----------
    files : path, sequence of paths or frame
        As in `read_annotations`, or as in `Annotations.from_frame`.
    folder : path
    task, worker, label
        As in `read_annotations`.
    duplicates
        As in `Annotations.from_arrays`: what to do where a worker labelled a task before.
    block : int
        Annotations in a block of new tasks, about.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pyarrow as pa
    >>> from labelonce import sharded
    >>> monday = pa.table({"task": [1, 1, 2], "worker": ["ann", "bob", "ann"], "label": ["cat", "dog", "cat"]})
    >>> tuesday = pa.table({"task": [2, 3], "worker": ["bob", "eve"], "label": ["cat", "dog"]})
    >>> with tempfile.TemporaryDirectory() as scratch:
    ...     folder = sharded.prepare(monday, pathlib.Path(scratch, "prepared"))
    ...     open_shards(sharded.append(tuesday, folder)).n_annotations
    5
    """
    check_choice(duplicates, "duplicates", DUPLICATES)
    check_int(block, "block", 1)
    old = open_shards(Path(folder))
    names = {"task": task, "worker": worker, "label": label}
    given = _read(files, {role: name for role, name in names.items() if name is not None}, old.classes)
    _ids.check_same_kind(given.workers, "worker", old.workers)
    _ids.check_same_kind(given.tasks, "task", old.tasks(0))
    now = replace(old, name=secrets.token_hex(8), workers=_with_new(old.workers, given.workers))
    changed = _BlockUpdate(now, block, duplicates)
    try:
        changed.add(given)
        write_about(changed.now)
    except BaseException:
        changed.remove(changed.written)
        raise
    changed.remove(changed.replaced)
    workers_file(old).unlink(missing_ok=True)
    return Path(folder)


def _read(files: Any, names: dict[str, Any], classes: Ids) -> Annotations:
    own: Any = {"classes": classes, "duplicates": "keep"}
    is_path = isinstance(files, str | os.PathLike | list | tuple)
    return read_annotations(files, **names, **own) if is_path else Annotations.from_frame(files, **names, **own)


class _BlockUpdate:
    """The folder as it will be: the blocks that stay, and new ones under names that no reader knows yet."""

    def __init__(self, now: Shards, block: int, duplicates: Duplicates) -> None:
        self.now, self.block, self.duplicates = now, block, duplicates
        counts = np.zeros(len(now.workers), dtype=np.int64)
        counts[: len(now.annotations_of_worker)] = now.annotations_of_worker
        self.now = replace(now, annotations_of_worker=counts)
        self.written: list[str] = []
        self.replaced: list[str] = []

    def add(self, given: Annotations) -> None:
        """Write the blocks that the new labels change, then those of new tasks."""
        is_new = np.ones(given.n_tasks, dtype=bool)
        for number in range(self.now.n_blocks):
            known = _ids.lookup(given.tasks, self.now.tasks(number)) >= 0
            if known.any():
                self.replaced.append(self.now.blocks[number])
                before = self._annotations(number)
                self._write(before, given.select(known), number)
                is_new &= ~known
        for part in _in_blocks(given.select(is_new), self.block):
            self._write(None, part, self.now.n_blocks)

    def remove(self, names: list[str]) -> None:
        for name in names:
            shutil.rmtree(self.now.folder / name, ignore_errors=True)

    def _annotations(self, number: int) -> Annotations:
        self.now.check(number)
        block, n_classes = self.now.block(number), len(self.now.classes)
        row = block.row.numpy()
        task = np.repeat(np.arange(block.n_tasks, dtype=np.int32), np.diff(block.start.numpy()))
        codes = (task, (row // n_classes).astype(np.int32), (row % n_classes).astype(np.int32))
        return sorted_annotations(*codes, self.now.tasks(number), self.now.workers, self.now.classes, duplicates="keep")

    def _write(self, before: Annotations | None, more: Annotations, number: int) -> None:
        """Write a block with its old and its new labels, and add its counts."""
        parts = [one for one in (before, more) if one is not None]
        tables = [more.tasks if before is None else _with_new(before.tasks, more.tasks)]
        tables += [self.now.workers, self.now.classes]
        columns = zip(("task", "worker", "label"), ("tasks", "workers", "classes"), tables, strict=True)
        task, worker, label = (
            np.concatenate([np.asarray(_ids.lookup(getattr(one, ids), table))[getattr(one, codes)] for one in parts])
            for codes, ids, table in columns
        )
        own = sorted_annotations(task, worker, label, *tables, duplicates=self.duplicates)
        name = f"block-{number:05d}-{self.now.name}"
        self.written.append(name)
        write_block(self.now.folder / name, Block.of(own), own.tasks)
        self._count(before, own, number, name)

    def _count(self, before: Annotations | None, own: Annotations, number: int, name: str) -> None:
        now = self.now
        totals: dict[str, Any] = {name: getattr(now, name) for name in ("n_annotations", "n_labelled", "n_overlap")}
        of_worker = now.annotations_of_worker.copy()
        for one, times in ((own, 1), (before, -1)):
            if one is not None:
                totals["n_annotations"] += times * len(one)
                totals["n_labelled"] += times * one.n_tasks
                totals["n_overlap"] += times * int((np.bincount(one.task) > 1).sum())
                of_worker += times * np.bincount(one.worker, minlength=len(of_worker))
        blocks = (*now.blocks[:number], name, *now.blocks[number + 1 :])
        self.now = replace(now, blocks=blocks, annotations_of_worker=of_worker, **totals)


def _with_new(table: Ids, ids: Ids) -> Ids:
    return np.concatenate([table, ids[_ids.lookup(ids, table) < 0]])


def _in_blocks(given: Annotations, block: int) -> Iterator[Annotations]:
    """Yield annotations in parts of about `block` of them, each of whole tasks."""
    if not len(given):
        return
    part = np.cumsum(np.bincount(given.task, minlength=given.n_tasks)) // block
    for number in np.unique(part):
        yield given.select(part == number)
