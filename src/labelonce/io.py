"""Files of annotations in, tables out: CSV, TSV, Parquet, JSON lines and Arrow."""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv, ipc, parquet
from pyarrow.json import ParseOptions, ReadOptions, read_json

from labelonce._annotations import Annotations, Duplicates
from labelonce._ids import shorten
from labelonce._validate import check_choice

__all__ = ["read_annotations", "read_batches", "write"]

_FORMATS = ("csv", "tsv", "parquet", "jsonl", "arrow")

_SUFFIXES = {f".{name}": name for name in _FORMATS} | {".pq": "parquet", ".ndjson": "jsonl", ".feather": "arrow"}
_CODECS = {".gz": "gzip", ".zst": "zstd"}
_BINARY = ("parquet", "arrow")
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_JSON_TYPES = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
_ROWS = 2**16  # the hash table of one batch fits the processor's cache
_BYTES = 2**22
_MANY_ROWS, _MANY_BYTES = 10**6, 20 * 10**6

_Batches = Iterator[tuple[pa.RecordBatch, float]]  # each with the share of the file read so far


class _File(NamedTuple):
    path: Path
    format: str
    codec: str | None


def read_annotations(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    task: str = "task",
    worker: str = "worker",
    label: str = "label",
    classes: Any = None,
    duplicates: Duplicates = "error",
    progress: bool | None = None,
) -> Annotations:
    r"""Return the annotations in three columns of a file; its other columns are not read.

    Parameters
    ----------
    path : path
        A file that ends in .csv, .tsv, .parquet, .pq, .jsonl, .ndjson, .arrow or .feather; the text
        formats also with .gz or .zst behind. Text must be UTF-8.
    format : {"csv", "tsv", "parquet", "jsonl", "arrow"}, optional
        The format where the suffix does not tell. The compression is still read off the suffix.
    task, worker, label : str
        The names of the columns.
    classes, duplicates
        As in `Annotations.from_arrays`.
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
    file = _locate(path, format)
    wanted = {"task": task, "worker": worker, "label": label}
    with _naming(file):
        batches = _collect(file, wanted, progress)
        columns = [_column(batches, name, digits=file.format in _DELIMITERS) for name in wanted]
        del batches  # their strings would add to the peak memory
        _give_back_memory()
        annotations = Annotations.from_arrays(*columns, classes=classes, duplicates=duplicates)
    del columns
    _give_back_memory()
    return annotations


def read_batches(
    path: str | os.PathLike[str], *, task: str = "task", worker: str = "worker", label: str = "label"
) -> Iterator[pa.RecordBatch]:
    """Yield the columns task, worker and label of a Parquet file in batches, for files larger than memory."""
    file = _locate(path, "parquet")
    wanted = {"task": task, "worker": worker, "label": label}
    with _naming(file):
        for batch, _ in _read_parquet(file, wanted):
            yield pa.record_batch([batch.column(name) for name in wanted.values()], names=list(wanted))


def write(source: Any, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write a table to a file that appears whole or not at all.

    Parameters
    ----------
    source : Annotations, fitted object or pyarrow.Table
        A table, or anything whose `to_frame()` is one.
    path, format
        As in `read_annotations`. An earlier file of that name is replaced.

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
    beside = file.path.with_name(f".{secrets.token_hex(8)}.tmp")  # a rename is atomic within one file system
    table = _table_of(source, file)
    with _naming(file):
        try:
            with pa.output_stream(beside, compression=file.codec) as sink:
                _write_table(table, sink, file.format)
            with beside.open("rb+") as written:
                os.fsync(written.fileno())
            os.replace(beside, file.path)
        finally:
            beside.unlink(missing_ok=True)


def _locate(path: str | os.PathLike[str], format: str | None) -> _File:
    name, last = os.path.splitext(os.fspath(path).lower())
    codec = _CODECS.get(last)
    suffix = os.path.splitext(name)[1] if codec else last
    known = format or _SUFFIXES.get(suffix)
    if known is None or (codec and known in _BINARY):
        raise ValueError(
            f"{path} must end in one of {', '.join(_SUFFIXES)}, the text formats also with .gz or .zst behind; "
            f"got {suffix + last if codec else last!r}. Rename it, or name its format with format=..."
        )
    check_choice(known, "format", _FORMATS)
    return _File(Path(path), known, codec)


@contextmanager
def _naming(file: _File) -> Iterator[None]:
    """Put the file's name in front of every error; what Arrow says of a broken file is a ValueError."""
    try:
        yield
    except UnicodeDecodeError as error:
        around = error.object[max(error.start - 20, 0) : error.start + 20]
        raise ValueError(f"{file.path}: text must be UTF-8; got {around!r}. Save the file as UTF-8.") from error
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            reason = os.strerror(error.errno)
            raise type(error)(f"{file.path}: {reason}. Check the path: it must be a file you may open.") from error
        said = " ".join(str(error).split()).rstrip(".")
        kind = file.format if file.format in _BINARY else f"UTF-8 {file.format}"
        fix = "Mend it, or name its format with format=..."
        raise ValueError(f"{file.path} must be a whole {kind} file; got: {said}. {fix}") from error
    except (ValueError, TypeError) as error:
        raise (TypeError if isinstance(error, TypeError) else ValueError)(f"{file.path}: {error}") from error


def _collect(file: _File, wanted: dict[str, str], progress: bool | None) -> list[pa.RecordBatch]:
    """Return the wanted columns in batches, strings dictionary-encoded as they arrive."""
    with file.path.open("rb") as opened:
        if not opened.read(1):
            raise ValueError("the file must hold annotations; got 0 bytes. Was it written to the end?")
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


def _is_long(file: _File) -> bool:
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
            fix = "Rename the second one." if name in present else f"Name it with {role}=..."
            shown = shorten(np.array(present, dtype=object), 20)
            raise ValueError(f"the {role} column must be one of {shown}; got {name!r}. {fix}")
    return list(dict.fromkeys(wanted.values()))


@contextmanager
def _text(file: _File) -> Iterator[tuple[Any, Callable[[], float]]]:
    """Open the text, and a function that tells the share of the file read so far."""
    with pa.OSFile(str(file.path)) as raw:
        size = raw.size()
        yield pa.CompressedInputStream(raw, file.codec) if file.codec else raw, lambda: raw.tell() / size


def _read_csv(file: _File, wanted: dict[str, str]) -> _Batches:
    read = csv.ReadOptions(use_threads=False, block_size=_BYTES)  # only a single thread knows the row of an error
    parse = csv.ParseOptions(delimiter=_DELIMITERS[file.format], newlines_in_values=True)
    with _text(file) as (stream, _):
        names = _check_columns(csv.open_csv(stream, read, parse).schema.names, wanted)
    types = dict.fromkeys(names, pa.dictionary(pa.int32(), pa.string()))
    convert = csv.ConvertOptions(include_columns=names, column_types=types, null_values=[""], strings_can_be_null=True)
    with _text(file) as (stream, share):
        yield from ((batch, share()) for batch in csv.open_csv(stream, read, parse, convert))


def _read_parquet(file: _File, wanted: dict[str, str]) -> _Batches:
    with parquet.ParquetFile(file.path, pre_buffer=False) as reader:  # else it holds the whole file
        names = _check_columns(reader.schema_arrow.names, wanted)
        # A column stored as dictionary comes with its row group's whole dictionary in every batch.
        stored = any(pa.types.is_dictionary(reader.schema_arrow.field(name).type) for name in names)
        done = 0
        for batch in reader.iter_batches(2**20 if stored else _ROWS, columns=names):
            done += len(batch)
            yield batch, done / reader.metadata.num_rows


def _read_arrow(file: _File, wanted: dict[str, str]) -> _Batches:
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


def _read_jsonl(file: _File, wanted: dict[str, str]) -> _Batches:
    kinds: dict[str, pa.DataType] = {}
    line = 1
    with _text(file) as (stream, share):
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
    if rest:
        yield rest


def _json_kinds(block: bytes, wanted: dict[str, str]) -> dict[str, pa.DataType]:
    """Return the types in the first row; knowing them, Arrow need not understand the other columns."""
    row = next(filter(None, _json_rows(block, 1, {})), {})
    return {name: _JSON_TYPES.get(type(row[name]), pa.string()) for name in _check_columns(row, wanted)}


def _json_rows(block: bytes, line: int, kinds: dict[str, pa.DataType]) -> Iterator[dict[str, Any]]:
    for number, text in enumerate(block.split(b"\n"), line):
        try:
            row = json.loads(text) if text.strip() else {}
        except json.JSONDecodeError:
            row = None
        if not isinstance(row, dict):
            raise ValueError(f"a line must hold one JSON object; got {text[:60]!r} at line {number}. Mend that line.")
        for name, kind in kinds.items():
            if row and _JSON_TYPES.get(type(row.get(name))) != kind:
                got = f"got {row.get(name)!r} at line {number}. Write all of them as strings."
                raise ValueError(f"{name} must hold only integers or only strings; {got}")
        yield row


def _table_of(source: Any, file: _File) -> pa.Table:
    table = source.to_frame() if hasattr(source, "to_frame") else source
    if not isinstance(table, pa.Table):
        raise TypeError(f"source must be Annotations, a fitted object or a pyarrow.Table; got {type(source).__name__}.")
    for field in table.schema:
        if file.format in _DELIMITERS and pa.types.is_nested(field.type):
            got = f"got {field.type} in column {field.name!r}. Write .parquet or .jsonl instead."
            raise ValueError(f"{file.path}: a {file.format} cell must be one value; {got}")
    return table


def _write_table(table: pa.Table, sink: Any, format: str) -> None:
    if format == "arrow":
        with ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table.unify_dictionaries())
        return
    kinds = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in table.schema.types]
    schema = pa.schema(list(zip(table.column_names, kinds, strict=True)))
    batches = (batch.cast(schema) for batch in table.to_batches(2**20 if format == "parquet" else _ROWS))
    if format == "jsonl":
        encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=str).encode
        for batch in batches:
            rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            lines = (encode(dict(zip(table.column_names, row, strict=True))) + "\n" for row in rows)
            sink.write("".join(lines).encode())
        return
    with _batch_writer(sink, schema, format) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _batch_writer(sink: Any, schema: pa.Schema, format: str) -> Any:
    if format == "parquet":
        return parquet.ParquetWriter(sink, schema)
    return csv.CSVWriter(sink, schema, write_options=csv.WriteOptions(delimiter=_DELIMITERS[format]))


_READERS = {"csv": _read_csv, "tsv": _read_csv, "parquet": _read_parquet, "jsonl": _read_jsonl, "arrow": _read_arrow}
