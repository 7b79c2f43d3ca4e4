"""Tables out: CSV, TSV, Parquet, JSON lines and Arrow."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import csv, ipc, parquet

from labelonce.files._open import DELIMITERS, File

ROWS = 2**16  # the hash table of one batch fits the processor's cache


def as_table(source: Any, file: File) -> pa.Table:
    """Return what is to be written as a table; what its format cannot hold is an error."""
    table = source.to_frame() if hasattr(source, "to_frame") else source
    if not isinstance(table, pa.Table):
        raise TypeError(f"source must be Annotations, a fitted object or a pyarrow.Table; got {type(source).__name__}.")
    for field in table.schema:
        if file.format in DELIMITERS and pa.types.is_nested(field.type):
            got = f"got {field.type} in column {field.name!r}. Write .parquet or .jsonl instead."
            raise ValueError(f"{file.path}: a {file.format} cell must be one value; {got}")
    return table


def write_table(table: pa.Table, sink: Any, format: str) -> None:
    if format == "arrow":
        with ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table.unify_dictionaries())
        return
    kinds = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in table.schema.types]
    schema = pa.schema(list(zip(table.column_names, kinds, strict=True)))
    batches = (batch.cast(schema) for batch in table.to_batches(2**20 if format == "parquet" else ROWS))
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


def write_rows(sink: Any, format: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a header and rows as CSV or TSV; cells are quoted only where they must be, as some tools want it."""
    delimiter = DELIMITERS[format]
    for row in (header, *rows):
        sink.write((delimiter.join(_cell(str(value), delimiter) for value in row) + "\n").encode())


def _cell(value: str, delimiter: str) -> str:
    quoted = any(character in value for character in (delimiter, '"', "\n", "\r"))
    return '"' + value.replace('"', '""') + '"' if quoted else value


def _batch_writer(sink: Any, schema: pa.Schema, format: str) -> Any:
    if format == "parquet":
        return parquet.ParquetWriter(sink, schema)
    return csv.CSVWriter(sink, schema, write_options=csv.WriteOptions(delimiter=DELIMITERS[format]))
