"""Columns of a CSV or TSV file as strings, for the tools that export such files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pyarrow import csv

from labelonce.files._csv_quotes import quoted_text, quotes_blamed
from labelonce.files._open import File, text

DELIMITERS = {"mturk": ",", "matrix": ",", "toloka": "\t"}


def column_names(file: File) -> list[str]:
    """Return the names in the header."""
    with text(file) as (stream, _), quotes_blamed(file, DELIMITERS[file.format]):
        names: list[str] = csv.open_csv(stream, _read(), _parse(file)).schema.names
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"a column must be named once; got {twice!r} {names.count(twice)} times. Rename the second.")
    return names


def string_columns(file: File, names: Iterable[str]) -> dict[str, list[str]]:
    """Return the named columns; an empty cell is an empty string."""
    wanted = list(dict.fromkeys(names))
    convert = csv.ConvertOptions(
        include_columns=wanted, column_types=dict.fromkeys(wanted, "string"), strings_can_be_null=False
    )
    with quoted_text(file, DELIMITERS[file.format]) as (stream, _):
        table = csv.read_csv(stream, _read(), _parse(file), convert)
        stream.rows = table.num_rows
    return {name: table.column(name).to_pylist() for name in wanted}


def write_rows(sink: Any, format: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a header and rows; cells are quoted where they must be."""
    delimiter = DELIMITERS[format]
    for row in (header, *rows):
        sink.write((delimiter.join(_cell(str(value), delimiter) for value in row) + "\n").encode())


def _cell(value: str, delimiter: str) -> str:
    if value and not any(character in value for character in (delimiter, '"', "\n", "\r")):
        return value
    return '"' + value.replace('"', '""') + '"' if value else value


def _read() -> csv.ReadOptions:
    return csv.ReadOptions(use_threads=False)


def _parse(file: File) -> csv.ParseOptions:
    return csv.ParseOptions(delimiter=DELIMITERS[file.format], newlines_in_values=True)
