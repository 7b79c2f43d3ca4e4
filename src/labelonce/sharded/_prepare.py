"""Tables of any size and order to blocks of whole tasks, in two passes over the disk."""

import os
import secrets
import shutil
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import ipc

from labelonce._kernels import BLOCK_SIZE, Block
from labelonce._types import DUPLICATES, Codes, Duplicates, Ids
from labelonce._validate import check_choice, check_int
from labelonce.data import _ids, sorted_annotations
from labelonce.files import File, file_system, find_columns, n_rows_of_parquet, naming, places_of
from labelonce.formats import find_labels
from labelonce.io import read_batches
from labelonce.sharded._shards import Shards, write_about, write_block

_ROWS = 1 << 20  # rows that are dealt out to the blocks at a time
_STREAM = "stream-{}.arrow"
_MOST_BLOCKS = 512  # files open at a time
_ROW = 16  # bytes of an annotation in a file, about: how many blocks there are need not be exact
_Path = str | os.PathLike[str]


def prepare(
    files: Any,
    folder: _Path,
    *,
    task: str = "task",
    worker: str = "worker",
    label: str = "label",
    classes: Any = None,
    duplicates: Duplicates = "error",
    block: int = BLOCK_SIZE["cpu"],
) -> Path:
    """Write annotations in tables of any size as blocks that `fit` can stream, and return the folder.

    Rows may come in any order and a task may be spread over the files. A first pass deals the rows out by a hash
    of the task, a second one sorts and indexes each part; memory is needed for one part, not for the whole.

    Parameters
    ----------
    files : path, Arrow stream, or sequence of them
        Tables as in `read_annotations`, so also patterns, folders of Parquet and addresses in object stores; and
        anything that speaks Arrow: a DuckDB relation, a frame of polars, also a lazy one, a
        `pyarrow.RecordBatchReader`.
    folder : path
        Must not exist; it appears whole or not at all. It takes about 8 bytes per annotation and the task ids,
        and twice that while it is being written.
    task, worker, label, classes, duplicates
        As in `read_annotations`.
    block : int
        Annotations in a block, about.
    """
    check_int(block, "block", 1)
    check_choice(duplicates, "duplicates", DUPLICATES)
    target = Path(folder)
    sources = [files] if isinstance(files, (str, os.PathLike)) or _is_stream(files) else list(files)
    paths = [place for one in sources for place in places_of(one)]
    if not paths:
        raise ValueError("files must name at least one table; got none.")
    if target.exists():
        raise ValueError(f"{target} must not exist yet; got a folder or file of that name. Remove it, or name another.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target}: {target.parent} must be a folder; got none. Make it first.")
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    temporary.mkdir()
    try:
        names = {"task": task, "worker": worker, "label": label}
        tables = [_kept(one, temporary, names) if _is_stream(one) else find_labels(one) for one in paths]
        n_parts = min(_MOST_BLOCKS, max(1, round(sum(map(_n_rows, tables)) / block)))
        parts, workers, classes_seen = _deal_out(tables, temporary, n_parts, **names)
        for stream in temporary.glob(_STREAM.format("*")):
            stream.unlink()
        known = (workers.table(), classes_seen.table(None if classes is None else _ids.table_of(classes, "classes")))
        _write_blocks(parts, temporary, known, (workers, classes_seen), duplicates)
        os.replace(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target


def _n_rows(file: File) -> int:
    with naming(file):
        if file.format == "parquet":
            return n_rows_of_parquet(file)
        system, place = file_system(file.path)
        return int(system.get_file_info(place).size or 0) // _ROW


def _is_stream(source: Any) -> bool:
    return hasattr(source, "__arrow_c_stream__") or hasattr(source, "collect_batches")


def _kept(source: Any, folder: Path, names: dict[str, str]) -> File:
    """Write the columns of a stream, which can be read once only, to a file, and return that."""
    path = folder / _STREAM.format(secrets.token_hex(4))
    lazy = getattr(source, "collect_batches", None)  # polars, which gives a frame at a time
    with ExitStack() as stack:
        writer: Any = None
        for part in [source] if lazy is None else lazy():
            for batch in pa.RecordBatchReader.from_stream(part):
                own = batch.select(find_columns(batch.schema.names, names))
                writer = writer or stack.enter_context(ipc.new_stream(str(path), own.schema))
                writer.write_batch(own)
    if writer is None:
        raise ValueError(f"a stream must hold at least one annotation; got 0 rows in a {type(source).__name__}.")
    return File(path, "arrow", None)


class _IdCodes:
    """The ids of a column in the order met: provisional codes, until all are known."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.code: dict[Any, int] = {}

    def encode(self, column: pa.Array) -> Codes:
        codes, ids = _ids.encode(column, self.name)
        if self.code:
            first = next(iter(self.code))
            known = np.array([first], dtype=object if isinstance(first, str) else np.int64)
            _ids.check_same_kind(ids, self.name, known)
        table = [self.code.setdefault(one, len(self.code)) for one in ids.tolist()]
        return np.array(table, dtype=np.int32)[codes]

    def table(self, declared: Ids | None = None) -> Ids:
        """Return the final table: the ids declared, or those met, sorted."""
        met = _ids.column_of(list(self.code), self.name)
        if declared is None:
            return _ids.encode(met, self.name)[1]
        _ids.encode(met, self.name, declared)  # refuses what was not declared
        return declared

    def final(self, table: Ids) -> Codes:
        """Return the final code of every provisional one."""
        return _ids.lookup(_ids.column_of(list(self.code), self.name), table)


def _deal_out(files: Iterable[File], folder: Path, n_parts: int, **names: str) -> tuple[list[Path], _IdCodes, _IdCodes]:
    """Write every row to the part that its task belongs to, with provisional codes of worker and label."""
    workers, classes = _IdCodes("worker"), _IdCodes("label")
    parts = [folder / f"part-{number}.arrow" for number in range(n_parts)]
    kind = None
    with ExitStack() as stack:
        writers: list[Any] = []
        for path, batch in _large_batches(files, **names):
            try:
                task = _ids.column_of(batch["task"], "task")
                worker, label = workers.encode(batch["worker"]), classes.encode(batch["label"])
            except (ValueError, TypeError) as error:
                raise type(error)(f"{path}: {error}") from error
            kind = kind or task.dtype
            if task.dtype != kind:
                raise ValueError(f"{path}: task must be all integers or all strings; got both kinds in the files.")
            ids = pa.array(task, pa.int64() if task.dtype == np.int64 else pa.large_string())
            table = pa.table({"task": ids, "worker": worker, "label": label})
            if not writers:
                writers = [stack.enter_context(ipc.new_stream(str(part), table.schema)) for part in parts]
            part_of = _part_of(task, n_parts)
            order = np.argsort(part_of, kind="stable")
            bounds = np.searchsorted(part_of[order], np.arange(n_parts + 1))
            table = table.take(order)
            for writer, low, high in zip(writers, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
                if high > low:
                    writer.write_table(table.slice(low, high - low))
            pa.default_memory_pool().release_unused()
    if not workers.code:
        raise ValueError("files must hold at least one annotation; got 0 rows.")
    return parts, workers, classes


def _large_batches(files: Iterable[File], **names: str) -> Iterator[tuple[File, pa.Table]]:
    for path in files:
        waiting: list[pa.RecordBatch] = []
        for batch in read_batches(path, **names):
            waiting.append(batch)
            if sum(map(len, waiting)) >= _ROWS:
                yield path, pa.Table.from_batches(waiting)
                waiting = []
        if waiting:
            yield path, pa.Table.from_batches(waiting)


def _part_of(task: Ids, n_parts: int) -> npt.NDArray[np.int64]:
    """Return the part of every row: the same for all rows of a task, and about as many tasks in each."""
    if task.dtype == np.int64:
        mixed = task.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        return ((mixed >> np.uint64(40)) % np.uint64(n_parts)).astype(np.int64)
    codes, ids = _ids.encode(task, "task")
    hashes = np.fromiter((zlib.crc32(one.encode()) for one in ids), dtype=np.int64, count=len(ids))
    return np.asarray(hashes % n_parts)[codes]


def _write_blocks(
    parts: list[Path], folder: Path, tables: tuple[Ids, Ids], seen: tuple[_IdCodes, _IdCodes], duplicates: Duplicates
) -> None:
    """Turn every part into a block, then say what there is."""
    workers, classes = tables
    worker_code, label_code = (one.final(table) for one, table in zip(seen, tables, strict=True))
    of_worker = np.zeros(len(workers), dtype=np.int64)
    blocks: list[str] = []
    n_labelled = n_overlap = 0
    for part in parts:
        with pa.memory_map(str(part)) as source:
            rows = ipc.open_stream(source).read_all()
            if len(rows):
                task, tasks = _ids.encode(rows["task"], "task")
                codes = (task, worker_code[rows["worker"].to_numpy()], label_code[rows["label"].to_numpy()])
                del rows
                own = sorted_annotations(*codes, tasks, workers, classes, duplicates=duplicates)
                blocks.append(f"block-{len(blocks):05d}")
                write_block(folder / blocks[-1], Block.of(own), own.tasks)
                n_labelled += len(tasks)
                n_overlap += int((np.bincount(own.task) > 1).sum())
                of_worker += np.bincount(own.worker, minlength=len(workers))
        part.unlink()
    name = secrets.token_hex(8)
    n_annotations = int(of_worker.sum())
    write_about(Shards(folder, name, tuple(blocks), n_annotations, n_labelled, n_overlap, classes, workers, of_worker))
