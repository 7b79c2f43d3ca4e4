"""Files of annotations in, tables out: CSV, TSV, Parquet, JSON lines, Arrow, and the formats of other tools."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, ipc, parquet
from pyarrow.json import ParseOptions, ReadOptions, read_json

from labelonce._annotations import Annotations, Duplicates
from labelonce._files import BINARY, File, check_is_file, check_start, naming, split_codec, text, written_whole
from labelonce._ids import shorten
from labelonce._tables import DELIMITERS, ROWS, table_of, write_table
from labelonce._validate import check_choice, check_count
from labelonce.formats import _registry as tools
from labelonce.formats._answers import Fields

__all__ = ["check_target", "detect_format", "read_annotations", "read_batches", "read_gold", "write"]

_FORMATS = ("csv", "tsv", "parquet", "jsonl", "arrow")

_ALIASES = {".pq": "parquet", ".ndjson": "jsonl", ".feather": "arrow"}
_SUFFIXES = {f".{name}": name for name in _FORMATS} | _ALIASES | tools.SUFFIXES
_JSON_TYPES = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
_BYTES = 2**22
_LONGEST_LINE = 2**26
_MANY_ROWS, _MANY_BYTES = 10**6, 20 * 10**6

_Batches = Iterator[tuple[pa.RecordBatch, float]]  # each with the share of the file read so far


def read_annotations(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    task: str | None = None,
    worker: str | None = None,
    label: str | None = None,
    classes: Any = None,
    duplicates: Duplicates = "error",
    rejected: str | None = None,
    multiple: str | None = None,
    progress: bool | None = None,
) -> Annotations:
    r"""Return the annotations in three columns of a file, or in the export of a labelling tool.

    Parameters
    ----------
    path : path
        A file that ends in .csv, .tsv, .parquet, .pq, .jsonl, .ndjson, .arrow, .feather, .json or .npy;
        the text formats also with .gz or .zst behind. Text must be UTF-8.
    format : {"csv", "tsv", "parquet", "jsonl", "arrow", "label-studio", "mturk", "toloka", "prodigy", "matrix"}, \
            optional
        The format where the suffix and the first line do not tell. The compression is still read off the
        suffix.
    task, worker, label : str, optional
        The names of the columns, by default task, worker and label; in a tool's export the field that holds
        the id, by default the tool's own. `label` names the question where the export holds several.
    classes, duplicates
        As in `Annotations.from_arrays`.
    rejected : {"drop", "keep"}, optional
        Whether to keep answers that were rejected by the requester, or cancelled by the worker, in a tool's
        export. Dropped ones are counted in a `formats.LeftOutWarning`, as are skipped and empty ones.
    multiple : {"error", "join", "split"}, optional
        What to do with an answer of several labels in a tool's export: raise, make every set of labels a
        class such as "cat|dog", or ask yes or no of every label, which makes tasks such as "17|cat".
    progress : bool, optional
        Show a progress bar on stderr. Default: on a terminal, for about a million rows or more.

    Notes
    -----
    CSV and TSV do not tell numbers from strings. A column becomes integers if every value in it is
    written as Python writes an integer of 64 bits; one "007", "+1" or "1.0" keeps the whole column
    strings. An empty cell, quoted or not, is a missing value, and that is an error. "Row" in a
    message about a value counts from 0, without the header.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "labels.csv")
    ...     _ = path.write_text("task,worker,label\n1,ann,cat\n1,bob,dog\n2,bob,dog\n")
    ...     read_annotations(path)
    Annotations(3 annotations: 2 tasks x 2 workers, 2 classes, redundancy 1.5)
    """
    file = _locate_source(path, format)
    if file.format in tools.FORMATS:
        options: dict[str, Any] = {"rejected": rejected, "multiple": multiple, "classes": classes}
        with naming(file):
            return tools.read(file, Fields(task, worker, label), duplicates=duplicates, **options)
    if rejected or multiple:
        raise ValueError(f"{path}: rejected and multiple are for the exports of tools; got a {file.format} file.")
    wanted = {"task": task or "task", "worker": worker or "worker", "label": label or "label"}
    with naming(file):
        batches = _collect(file, wanted, progress)
        columns = [_column(batches, name, digits=file.format in DELIMITERS) for name in wanted]
        del batches  # their strings would add to the peak memory
        _give_back_memory()
        annotations = Annotations.from_arrays(*columns, classes=classes, duplicates=duplicates)
    del columns
    _give_back_memory()
    return annotations


def read_gold(
    path: str | os.PathLike[str], *, format: str | None = None, task: str | None = None, label: str | None = None
) -> dict[Any, Any]:
    r"""Return the known true labels in a file by task, for the `gold` of an aggregator.

    Parameters
    ----------
    path, format, task, label
        As in `read_annotations`. Toloka's control tasks and Label Studio's ground truths are gold; any table
        may hold it in columns task and label.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "gold.csv")
    ...     _ = path.write_text("task,label\n1,cat\n2,dog\n")
    ...     read_gold(path)
    {1: 'cat', 2: 'dog'}
    """
    file = _locate_source(path, format)
    if file.format in tools.FORMATS:
        with naming(file):
            return tools.read_gold(file, Fields(task, None, label))
    gold = read_annotations(path, format=format, task=task, worker=task or "task", label=label)
    return dict(zip(gold.tasks.tolist(), gold.classes[gold.label].tolist(), strict=True))


def read_batches(
    path: str | os.PathLike[str], *, task: str = "task", worker: str = "worker", label: str = "label"
) -> Iterator[pa.RecordBatch]:
    """Yield the columns task, worker and label of a Parquet file in batches, for files larger than memory."""
    file = _locate(path, "parquet")
    wanted = {"task": task, "worker": worker, "label": label}
    with naming(file):
        for batch, _ in _read_parquet(file, wanted, at_once=False):
            yield pa.record_batch([batch.column(name) for name in wanted.values()], names=list(wanted))


def write(source: Any, path: str | os.PathLike[str], *, format: str | None = None, **options: Any) -> None:
    """Write a table to a file that appears whole or not at all.

    Parameters
    ----------
    source : Annotations, fitted object or pyarrow.Table
        A table, or anything whose `to_frame()` is one.
    path, format
        As in `read_annotations`. An earlier file of that name is replaced. "label-studio" makes predictions
        with scores of a fitted object's labels, "prodigy" choices to review, "toloka" control tasks; these,
        "mturk" and "matrix" hold annotations as well.
    **options
        For "label-studio": `like`, the path of the export that the annotations came from, so that every task
        keeps its data and its id and the answers go to the same control; `task`, `label` and `multiple` as
        they were read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> ann = Annotations.from_arrays(["a", "b"], ["ann", "bob"], [0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "labels.jsonl")
    ...     write(ann, path)
    ...     print(path.read_text().splitlines()[0])
    ...     read_annotations(path) == ann
    {"task": "a", "worker": "ann", "label": 0}
    True
    """
    file = _locate(path, format)
    table = table_of(source, file)
    with naming(file), written_whole(file) as sink:
        if file.format in tools.FORMATS:
            tools.write(table, sink, file.format, **_write_options(**options))
        elif options:
            raise TypeError(f"{', '.join(options)} must be left out; got format {file.format!r}.")
        else:
            write_table(table, sink, file.format)


def _write_options(
    like: str | os.PathLike[str] | None = None, task: str | None = None, label: str | None = None, multiple: Any = None
) -> dict[str, Any]:
    """Return the options of a tool's writer, those that were given."""
    options = {
        "like": None if like is None else _locate(like, "label-studio"),
        "fields": Fields(task, None, label) if task or label else None,
        "multiple": multiple,
    }
    return {name: value for name, value in options.items() if value is not None}


def detect_format(path: str | os.PathLike[str], *, format: str | None = None, reading: bool = True) -> str:
    """Return the name of the format that a file is read in, or with `reading` False written in."""
    return (_locate_source if reading else _locate)(path, format).format


def check_target(path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Raise where `write` could not, before the work that makes what is to be written."""
    file = _locate(path, format)
    if not file.path.parent.is_dir():
        raise FileNotFoundError(f"{path}: {file.path.parent} must be a folder; got none. Make it first.")


def _locate(path: str | os.PathLike[str], format: str | None) -> File:
    check_is_file(path)
    suffix, codec = split_codec(path)
    known = format or _SUFFIXES.get(suffix)
    if known is None or (codec and known in BINARY):
        last = os.path.splitext(os.fspath(path).lower())[1]
        raise ValueError(
            f"{path} must end in one of {', '.join(_SUFFIXES)}, the text formats also with .gz or .zst behind; "
            f"got {suffix + last if codec else last!r}. Rename it, or name its format with format=..."
        )
    check_choice(known, "format", (*_FORMATS, *tools.FORMATS))
    return File(Path(path), known, codec)


def _locate_source(path: str | os.PathLike[str], format: str | None) -> File:
    """Return the file to read; without a format, that of the tool that wrote it where its first line tells."""
    file = _locate(path, format)
    if format is None and file.format in ("csv", "tsv", "jsonl"):
        return file._replace(format=tools.recognise(file))
    return file


def _collect(file: File, wanted: dict[str, str], progress: bool | None) -> list[pa.RecordBatch]:
    """Return the wanted columns in batches, strings dictionary-encoded as they arrive."""
    check_start(file)
    show = (sys.stderr.isatty() and _is_long(file)) if progress is None else progress
    batches = []
    with _bar(file.path.name) if show else nullcontext() as advance:
        for batch, share in _READERS[file.format](file, wanted):
            columns = [batch.column(name) for name in wanted.values()]
            batches.append(pa.record_batch([_compact(column) for column in columns], names=list(wanted)))
            if advance:
                advance(share)
    _give_back_memory()
    return batches


def _give_back_memory() -> None:
    """Return to the system what Arrow has freed but keeps: at 10M rows 150 MB that the next step needs."""
    pa.default_memory_pool().release_unused()


def _is_long(file: File) -> bool:
    if file.format == "parquet":
        return bool(parquet.read_metadata(file.path).num_rows >= _MANY_ROWS)
    return file.path.stat().st_size >= _MANY_BYTES / (5 if file.codec else 1)


@contextmanager
def _bar(name: str) -> Iterator[Callable[[float], None]]:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        shown = bar.add_task(f"Reading {name}", total=1.0)
        yield lambda share: bar.update(shown, completed=share)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _compact(column: pa.Array) -> pa.Array:
    """Return strings dictionary-encoded and integers in 32 bits where they fit."""
    if _is_text(column.type):
        return column.dictionary_encode()
    if column.type == pa.int64():
        with suppress(pa.ArrowInvalid):
            return column.cast(pa.int32())
    return column


def _column(batches: list[pa.RecordBatch], role: str, *, digits: bool) -> Any:
    """Return one column; with `digits`, as integers if every string is how its integer is written."""
    if not batches:
        return []
    chunks = [batch.column(role) for batch in batches]
    if len({chunk.type for chunk in chunks}) > 1:
        chunks = [chunk.cast(pa.int64()) for chunk in chunks]
    column = pa.chunked_array(chunks).combine_chunks()
    if not digits:
        return column
    try:
        numbers = column.dictionary.cast(pa.int64())
    except pa.ArrowInvalid:
        return column
    same = numbers.cast(pa.string()).equals(column.dictionary)
    return pa.DictionaryArray.from_arrays(column.indices, numbers) if same else column


def _check_columns(names: Iterable[str], wanted: dict[str, str]) -> list[str]:
    present = list(names)
    for role, name in wanted.items():
        if present.count(name) != 1:
            fix = _other_delimiter(present) or f"Name it with {role}=..."
            fix = "Rename the second one." if name in present else fix
            shown = shorten(np.array(present, dtype=object), 20)
            raise ValueError(f"the {role} column must be one of {shown}; got {name!r}. {fix}")
    return list(dict.fromkeys(wanted.values()))


def _other_delimiter(present: list[str]) -> str | None:
    """Return the fix for a header that is one name because its cells are divided by something else."""
    found = next((sign for sign in ("\t", ";", "|") if len(present) == 1 and sign in present[0]), None)
    if found is None:
        return None
    return 'Read it with format="tsv".' if found == "\t" else f"Write it with commas where it has {found!r}."


def _read_csv(file: File, wanted: dict[str, str]) -> _Batches:
    read = csv.ReadOptions(use_threads=False, block_size=_BYTES)  # only a single thread knows the row of an error
    parse = csv.ParseOptions(delimiter=DELIMITERS[file.format], newlines_in_values=True)
    with text(file) as (stream, _):
        names = _check_columns(csv.open_csv(stream, read, parse).schema.names, wanted)
    types = dict.fromkeys(names, pa.dictionary(pa.int32(), pa.string()))
    convert = csv.ConvertOptions(include_columns=names, column_types=types, null_values=[""], strings_can_be_null=True)
    with text(file) as (stream, share):
        yield from ((batch, share()) for batch in csv.open_csv(stream, read, parse, convert))


def _read_parquet(file: File, wanted: dict[str, str], *, at_once: bool = True) -> _Batches:
    with parquet.ParquetFile(file.path, pre_buffer=False) as reader:  # else it holds the whole file
        names = _check_columns(reader.schema_arrow.names, wanted)
        if at_once:
            check_count(reader.metadata.num_rows)
        # A column stored as dictionary comes with its row group's whole dictionary in every batch.
        stored = any(pa.types.is_dictionary(reader.schema_arrow.field(name).type) for name in names)
        done = 0
        for batch in reader.iter_batches(2**20 if stored else ROWS, columns=names):
            done += len(batch)
            yield batch, done / reader.metadata.num_rows


def _read_arrow(file: File, wanted: dict[str, str]) -> _Batches:
    with pa.OSFile(str(file.path)) as raw:
        is_file = raw.read(6) == b"ARROW1"
        raw.seek(0)
        reader = ipc.open_file(raw) if is_file else ipc.open_stream(raw)
        _check_columns(reader.schema.names, wanted)
        if not is_file:
            yield from ((batch, raw.tell() / raw.size()) for batch in reader)
            return
        for i in range(reader.num_record_batches):
            yield reader.get_batch(i), (i + 1) / reader.num_record_batches


def _read_jsonl(file: File, wanted: dict[str, str]) -> _Batches:
    kinds: dict[str, pa.DataType] = {}
    line = 1
    with text(file) as (stream, share):
        for block in _whole_lines(stream):
            kinds = kinds or _json_kinds(block, wanted)
            parse = ParseOptions(explicit_schema=pa.schema(kinds), unexpected_field_behavior="ignore")
            try:
                table = read_json(pa.BufferReader(block), ReadOptions(block_size=len(block) + 1), parse)
            except pa.ArrowInvalid:
                list(_json_rows(block, line, kinds))  # raises at the line to blame: Arrow counts within the block
                raise
            line += block.count(b"\n")
            yield from ((batch, share()) for batch in table.to_batches())


def _whole_lines(stream: Any) -> Iterator[bytes]:
    rest = b""
    while more := stream.read(_BYTES):
        whole, newline, rest = (rest + more).rpartition(b"\n")
        if newline:
            yield whole + newline
        if len(rest) > _LONGEST_LINE:
            raise ValueError(f"a line must have at most {_LONGEST_LINE:,} bytes; got one of more. Is it one JSON list?")
    if rest:
        yield rest


def _json_kinds(block: bytes, wanted: dict[str, str]) -> dict[str, pa.DataType]:
    """Return the types in the first row; knowing them, Arrow need not understand the other columns."""
    row = next(filter(None, _json_rows(block, 1, {})), {})
    return {name: _JSON_TYPES.get(type(row[name]), pa.string()) for name in _check_columns(row, wanted)}


def _json_rows(block: bytes, line: int, kinds: dict[str, pa.DataType]) -> Iterator[dict[str, Any]]:
    for number, said in enumerate(block.split(b"\n"), line):
        try:
            row = json.loads(said) if said.strip() else {}
        except json.JSONDecodeError:
            row = None
        if not isinstance(row, dict):
            raise ValueError(f"a line must hold one JSON object; got {said[:60]!r} at line {number}. Mend that line.")
        for name, kind in kinds.items():
            if row and _JSON_TYPES.get(type(row.get(name))) != kind:
                got = f"got {row.get(name)!r} at line {number}. Write all of them as strings."
                raise ValueError(f"{name} must hold only integers or only strings; {got}")
        yield row


_READERS = {"csv": _read_csv, "tsv": _read_csv, "parquet": _read_parquet, "jsonl": _read_jsonl, "arrow": _read_arrow}
