"""Tables in: columns or all of a CSV, TSV, Parquet, JSON lines or Arrow file."""

import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, ipc, parquet
from pyarrow.dataset import dataset
from pyarrow.json import ReadOptions, read_json

from labelonce._messages import clip, printable
from labelonce._validate import check_count
from labelonce.data import is_text
from labelonce.files._column_names import find_columns
from labelonce.files._csv_quotes import check_quotes
from labelonce.files._dialect import SEPARATORS, Dialect, dialect_of
from labelonce.files._json_table import Batches, checked, json_batches, json_table
from labelonce.files._open import BINARY, BLOCK_BYTES, DELIMITERS, File, Text, opened, text
from labelonce.files._places import address_of, file_system, is_table_in_parts
from labelonce.files._table_writer import ROWS

_MANY_ROWS, _MANY_BYTES = 10**6, 20 * 10**6
_DECIMAL = re.compile(r"(?:[+-]?\d+(?:,\d+)?(?:[eE][+-]?\d+)?)?")
_UNEVEN = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+): (.*)", re.DOTALL)


def read_columns(file: File, wanted: Mapping[str, str], progress: bool | None = False) -> list[Any]:
    """Return the columns of ids that `wanted` names by their roles, for files of any length.

    Strings are dictionary-encoded as they arrive; those of a CSV file become integers where all of them are.
    """
    shown = (sys.stderr.isatty() and _is_long(file)) if progress is None else progress
    chunks: list[list[pa.Array]] = [[] for _ in wanted]
    with _bar(file.path.name) if shown else nullcontext() as advance:
        for batch, share in _BATCHES[file.format](file, wanted):
            for found, name in zip(chunks, wanted.values(), strict=True):
                found.append(_compact(batch.column(name)))
            if advance:
                advance(share)
    give_back_memory()
    return [_joined(found, digits=file.format in DELIMITERS) for found in chunks]


def give_back_memory() -> None:
    """Return memory to the system that Arrow has freed but keeps: at 10M rows 150 MB that the next step needs."""
    pa.default_memory_pool().release_unused()


def read_table(file: File, strings: Sequence[str] | None = None) -> pa.Table:
    """Return all columns; those named by `strings`, by default all, stay strings where a format cannot tell."""
    if file.format in BINARY:
        batches = [batch for batch, _ in _all_columns(file)]
        table = pa.Table.from_batches(batches) if batches else pa.table({})
    elif file.format == "jsonl":
        table = json_table(file, strings or ())
    else:
        with _delimited(file) as rows:
            types = dict.fromkeys(rows.names() if strings is None else strings, pa.string())
            table = csv.read_csv(rows.stream, rows.read, rows.parse, csv.ConvertOptions(column_types=types))
            rows.number = table.num_rows
        if rows.parse.delimiter != ",":
            table = _with_decimal_commas(table, types)
    if table.num_rows == 0:
        raise ValueError("the table must have at least one row; got 0.")
    return table


def _with_decimal_commas(table: pa.Table, kept: Collection[str]) -> pa.Table:
    """Return a table whose texts that are all numbers with decimal commas, or empty, are numbers."""
    for place, name in enumerate(table.column_names):
        texts = table.column(place)
        if name in kept or not is_text(texts.type) or not _DECIMAL.fullmatch(texts[0].as_py() or ""):
            continue
        texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)
        if pc.all(pc.match_substring_regex(texts, f"^(?:{_DECIMAL.pattern})$")).as_py():
            numbers = pc.replace_substring(texts, ",", ".").cast(pa.float64())
            table = table.set_column(place, name, numbers)
    return table


def dialect_in_words(file: File) -> str:
    """Return the format of a file, and how it differs from what is usual there, such as "csv with semicolons"."""
    if file.format not in DELIMITERS:
        return file.format
    with text(file) as stream:
        separator, encoding = _dialect(file, stream.start(lines=2)).separator, stream.encoding
    said = ["xlsx" if file.codec == "xlsx" else file.format]
    if separator != DELIMITERS[file.format]:
        said.append(f"with {SEPARATORS.get(separator, repr(separator))}")
    if encoding:
        said.append(f"in {'UTF-16' if encoding.startswith('utf') else 'Windows-1252'}")
    return " ".join(said)


def first_rows(file: File) -> Any:
    """Return all columns of the first rows, about 4 MB of text or one batch."""
    if file.format in BINARY:
        return next(batch for batch, _ in _all_columns(file))
    with text(file) as stream:
        start = stream.start(lines=2)
        if file.format == "jsonl":
            block = start if len(start) < BLOCK_BYTES else start.rpartition(b"\n")[0]
            return read_json(pa.BufferReader(checked(block)), ReadOptions(block_size=len(block) + 1))
        read, parse = _options(_dialect(file, start))
        return _start_of_csv(start, read, parse).read_next_batch()


def column_names(file: File) -> list[str]:
    try:
        names: list[str] = first_rows(file).schema.names
    except StopIteration:
        raise ValueError("the table must have at least one row; got 0.") from None
    return names


def id_column(table: pa.Table, name: str, file: File) -> Any:
    """Return a column of `read_table` as `read_columns` would have."""
    column = table.column(name)
    is_digits = file.format in DELIMITERS
    if is_digits:
        column = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column).dictionary_encode()
    return _joined(column.chunks, digits=is_digits)


def _is_long(file: File) -> bool:
    if address_of(file.path) or file.path.is_dir():
        return True
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


def _joined(chunks: list[pa.Array], *, digits: bool) -> Any:
    """Return one column; with `digits`, as integers if every string is how its integer is written."""
    if not chunks:
        return []
    if len({chunk.type for chunk in chunks}) > 1:
        chunks = [chunk.cast(pa.int64()) for chunk in chunks]
    column = pa.chunked_array(chunks).combine_chunks()
    if not digits or not _all_digits(column.dictionary):
        return column
    return pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(pa.int64()))


@dataclass
class _Delimited:
    """An open CSV or TSV file; `number` counts the rows that were read."""

    stream: Text
    read: csv.ReadOptions
    parse: csv.ParseOptions
    number: int = 0

    def names(self) -> list[str]:
        found: list[str] = _start_of_csv(self.stream.start(), self.read, self.parse).schema.names
        return found


@contextmanager
def _delimited(file: File) -> Iterator[_Delimited]:
    """Open a CSV or TSV file; where its quotes may have swallowed rows, look at them one by one.

    They may if their number is odd, or if there are fewer rows than lines.
    """
    with text(file) as stream:
        start = stream.start(BLOCK_BYTES, lines=2)
        block = BLOCK_BYTES if len(start) <= BLOCK_BYTES else 2 * len(start)  # a row must fit
        dialect = _dialect(file, start)
        rows = _Delimited(stream, *_options(dialect, block))
        try:
            yield rows
        except pa.ArrowInvalid as error:
            check_quotes(file, dialect.separator)
            _check_even(error, dialect.skipped)
            raise
    if stream.quotes % 2 or (stream.quotes and stream.lines > rows.number + 1):
        check_quotes(file, dialect.separator)


def _check_even(error: pa.ArrowInvalid, skipped: int) -> None:
    """Raise a clear error where Arrow's error is about a row with too many or too few cells."""
    found = _UNEVEN.search(str(error))
    if found:
        place, expected, got, said = found.groups()
        fix = "Fix that row: a cell that holds the separator must be in quotes."
        if int(got) < int(expected):
            fix = "Fix that row: an empty cell needs its separator, too."
        elif expected == "1":
            fix = "If the first row is a title or a comment, delete it."
        raise ValueError(
            f"every row must have {expected} cells, as the header has; got {got} at row {int(place) - skipped}: "
            f"{clip(printable(said), 80)}. {fix}"
        ) from error


def _start_of_csv(start: bytes, read: csv.ReadOptions, parse: csv.ParseOptions) -> csv.CSVStreamingReader:
    """Open the start of a file; its last row may be cut, so it is put into a second block."""
    size = len(start) + (1 if len(start) < BLOCK_BYTES else -1)
    whole = csv.ReadOptions(use_threads=False, block_size=size, skip_rows=read.skip_rows)
    return csv.open_csv(pa.BufferReader(start), whole, parse)


def _dialect(file: File, start: bytes) -> Dialect:
    return dialect_of(start, DELIMITERS[file.format])


def _options(dialect: Dialect, block: int = BLOCK_BYTES) -> tuple[csv.ReadOptions, csv.ParseOptions]:
    """Return Arrow's options for a dialect; only with a single thread does an error name its row."""
    read = csv.ReadOptions(use_threads=False, block_size=block, skip_rows=dialect.skipped)
    return read, csv.ParseOptions(delimiter=dialect.separator, newlines_in_values=True)


def _csv_batches(file: File, wanted: Mapping[str, str]) -> Batches:
    with _delimited(file) as rows:
        names = find_columns(rows.names(), wanted)
        types = dict.fromkeys(names, pa.dictionary(pa.int32(), pa.string()))
        empty = {"null_values": [""], "strings_can_be_null": True}
        convert = csv.ConvertOptions(include_columns=names, column_types=types, **empty)
        for batch in csv.open_csv(rows.stream, rows.read, rows.parse, convert):
            rows.number += len(batch)
            yield batch, rows.stream.share


def parquet_batches(file: File, wanted: Mapping[str, str], *, at_once: bool = True) -> Batches:
    """Yield the wanted columns, or all, in batches; `at_once`: at most as many rows as int32 can count."""
    if is_table_in_parts(file.path):
        yield from _batches_of_parts(file, wanted, at_once=at_once)
        return
    with opened(file) as raw, parquet.ParquetFile(raw, pre_buffer=False) as reader:  # else it holds the whole file
        names = find_columns(reader.schema_arrow.names, wanted)
        if at_once:
            check_count(reader.metadata.num_rows)
        # A column stored as dictionary comes with its row group's whole dictionary in every batch.
        stored = any(pa.types.is_dictionary(reader.schema_arrow.field(name).type) for name in names)
        done = 0
        for batch in reader.iter_batches(2**20 if stored else ROWS, columns=names or None):
            done += len(batch)
            yield batch, done / reader.metadata.num_rows


def _batches_of_parts(file: File, wanted: Mapping[str, str], *, at_once: bool) -> Batches:
    """Yield the columns of Parquet files in folders, whose names may tell a column's value: day=7/part.parquet."""
    system, place = file_system(file.path)
    table = dataset(place, filesystem=system, format="parquet", partitioning="hive")
    names = find_columns(table.schema.names, wanted)
    total, done = table.count_rows(), 0
    if at_once:
        check_count(total)
    # Few rows are read ahead, else a row group of each of four files waits in memory.
    for batch in table.to_batches(columns=names or None, batch_size=ROWS, batch_readahead=2, fragment_readahead=1):
        if len(batch):
            done += len(batch)
            yield batch, done / total


def n_rows_of_parquet(file: File) -> int:
    system, place = file_system(file.path)
    if is_table_in_parts(file.path):
        return int(dataset(place, filesystem=system, format="parquet", partitioning="hive").count_rows())
    with opened(file) as raw:
        return int(parquet.read_metadata(raw).num_rows)


def stream_of_ids(file: File, wanted: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
    """Yield columns of ids, named by their roles, in batches, for files larger than memory.

    Whether a column of CSV holds integers is known at its end only: such a file is read twice.
    """
    read = partial(parquet_batches, at_once=False) if file.format == "parquet" else _BATCHES[file.format]
    kinds: dict[str, pa.DataType] = {}
    if file.format in DELIMITERS:
        whole = set(wanted)
        for batch, _ in read(file, wanted):
            whole -= {role for role in whole if not _all_digits(batch.column(wanted[role]).dictionary)}
        kinds = {role: pa.int64() if role in whole else pa.string() for role in wanted}
    for batch, _ in read(file, wanted):
        columns = {role: batch.column(name) for role, name in wanted.items()}
        yield pa.record_batch({role: one.cast(kinds.get(role, one.type)) for role, one in columns.items()})


def _all_digits(texts: pa.Array) -> bool:
    """Return whether every text is how its integer is written."""
    try:
        return bool(texts.cast(pa.int64()).cast(pa.string()).equals(texts))
    except pa.ArrowInvalid:
        return False


def _all_columns(file: File) -> Batches:
    return parquet_batches(file, {}, at_once=False) if file.format == "parquet" else _arrow_batches(file, {})


def _arrow_batches(file: File, wanted: Mapping[str, str]) -> Batches:
    with opened(file) as raw:
        is_file = raw.read(6) == b"ARROW1"
        raw.seek(0)
        reader = ipc.open_file(raw) if is_file else ipc.open_stream(raw)
        find_columns(reader.schema.names, wanted)
        if not is_file:
            yield from ((batch, raw.tell() / raw.size()) for batch in reader)
            return
        for i in range(reader.num_record_batches):
            yield reader.get_batch(i), (i + 1) / reader.num_record_batches


_BATCHES: dict[str, Callable[[File, Mapping[str, str]], Batches]] = {
    "csv": _csv_batches,
    "tsv": _csv_batches,
    "parquet": parquet_batches,
    "jsonl": json_batches,
    "arrow": _arrow_batches,
}
