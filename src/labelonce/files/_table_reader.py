"""Columns of a file of rows, read in batches: CSV, TSV, Parquet, JSON lines and Arrow."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, ipc, parquet
from pyarrow.json import ParseOptions, ReadOptions, read_json

from labelonce._messages import printable, shorten
from labelonce._validate import check_count
from labelonce.data._ids import is_text
from labelonce.files._csv_quotes import quoted_text, quotes_blamed
from labelonce.files._open import File, check_start, text
from labelonce.files._table_writer import DELIMITERS, ROWS

_JSON_TYPES = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
_BYTES = 2**22
_LONGEST_LINE = 2**26
_MANY_ROWS, _MANY_BYTES = 10**6, 20 * 10**6
_FIRST, _SENTENCE = 100, 3  # rows looked at, and words that a text has on average, an id or a name not

_Batches = Iterator[tuple[pa.RecordBatch, float]]  # each with the share of the file read so far


def collect(file: File, wanted: dict[str, str], progress: bool | None) -> list[pa.RecordBatch]:
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
    give_back_memory()
    return batches


def give_back_memory() -> None:
    """Return to the system what Arrow has freed but keeps: at 10M rows 150 MB that the next step needs."""
    pa.default_memory_pool().release_unused()


def _is_long(file: File) -> bool:
    if file.format == "parquet":
        return bool(parquet.read_metadata(file.path).num_rows >= _MANY_ROWS)
    return file.path.stat().st_size >= _MANY_BYTES / (5 if file.codec else 1)


@contextmanager
def _bar(name: str) -> Iterator[Callable[[float], None]]:
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as bar:
        shown = bar.add_task(f"Reading {escape(printable(name))}", total=1.0)
        yield lambda share: bar.update(shown, completed=share)


def _compact(column: pa.Array) -> pa.Array:
    """Return strings dictionary-encoded and integers in 32 bits where they fit."""
    if is_text(column.type):
        return column.dictionary_encode()
    if column.type == pa.int64():
        with suppress(pa.ArrowInvalid):
            return column.cast(pa.int32())
    return column


def column_of(batches: list[pa.RecordBatch], role: str, *, digits: bool) -> Any:
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


def check_columns(names: Iterable[str], wanted: dict[str, str]) -> list[str]:
    """Return the names of the wanted columns, each once; one that is not there or there twice is an error."""
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
    with text(file) as (stream, _), quotes_blamed(file, parse.delimiter):
        names = check_columns(csv.open_csv(stream, read, parse).schema.names, wanted)
    types = dict.fromkeys(names, pa.dictionary(pa.int32(), pa.string()))
    convert = csv.ConvertOptions(include_columns=names, column_types=types, null_values=[""], strings_can_be_null=True)
    with quoted_text(file, parse.delimiter) as (stream, share):
        for batch in csv.open_csv(stream, read, parse, convert):
            stream.rows += len(batch)
            yield batch, share()


def read_parquet(file: File, wanted: dict[str, str], *, at_once: bool = True) -> _Batches:
    """Yield the wanted columns in batches; what is read `at_once` must have no more rows than codes can count."""
    with parquet.ParquetFile(file.path, pre_buffer=False) as reader:  # else it holds the whole file
        names = check_columns(reader.schema_arrow.names, wanted)
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
        check_columns(reader.schema.names, wanted)
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
    return {name: _JSON_TYPES.get(type(row[name]), pa.string()) for name in check_columns(row, wanted)}


def _json_rows(block: bytes, line: int, kinds: dict[str, pa.DataType]) -> Iterator[dict[str, Any]]:
    for number, said in enumerate(block.split(b"\n"), line):
        try:
            row = json.loads(said) if said.strip() else {}
        except (json.JSONDecodeError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise ValueError(f"a line must hold one JSON object; got {said[:60]!r} at line {number}. Mend that line.")
        for name, kind in kinds.items():
            if row and _JSON_TYPES.get(type(row.get(name))) != kind:
                got = f"got {row.get(name)!r} at line {number}. Write all of them as strings."
                raise ValueError(f"{name} must hold only integers or only strings; {got}")
        yield row


_READERS = {"csv": _read_csv, "tsv": _read_csv, "parquet": read_parquet, "jsonl": _read_jsonl, "arrow": _read_arrow}


def text_column(file: File, ignore: Iterable[str]) -> str | None:
    """Return the column whose first rows read most like sentences, None where no column does."""
    lengths = {}
    try:
        rows = _first_rows(file)
    except pa.ArrowException:  # in a column that nobody asked for
        return None
    for name in set(rows.column_names) - set(ignore):
        column = rows.column(rows.column_names.index(name)).slice(0, _FIRST)
        words = [len(value.split()) for value in column.to_pylist() if isinstance(value, str)]
        if words and np.mean(words) >= _SENTENCE:
            lengths[name] = float(np.mean(words))
    return max(sorted(lengths), key=lengths.__getitem__, default=None)


def _first_rows(file: File) -> Any:
    """Return all columns of the first rows, at least one batch."""
    if file.format == "parquet":
        with parquet.ParquetFile(file.path) as reader:
            return next(reader.iter_batches(_FIRST))
    with text(file) as (stream, _):
        if file.format == "jsonl":
            block = next(_whole_lines(stream))
            return read_json(pa.BufferReader(block), ReadOptions(block_size=len(block) + 1))
        if file.format == "arrow":
            return next(batch for batch, _ in _read_arrow(file, {}))
        parse = csv.ParseOptions(delimiter=DELIMITERS[file.format], newlines_in_values=True)
        return csv.open_csv(stream, csv.ReadOptions(block_size=_BYTES), parse).read_next_batch()
