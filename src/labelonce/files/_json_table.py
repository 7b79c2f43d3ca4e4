"""JSON lines as a table: objects of one row each, whose first lines tell the columns and their types."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import pyarrow as pa
from pyarrow.json import ParseOptions, ReadOptions, read_json

from labelonce._messages import show
from labelonce.data import extra_names
from labelonce.files._column_names import NUMBERS, find_columns
from labelonce.files._json_lines import CheckedLines, checked, no_object
from labelonce.files._open import BLOCK_BYTES, LONGEST_LINE, File, Text, text

_JSON_TYPES = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
_FIRST_ROWS = 1000  # of JSON, which tell the columns and their types

Batches = Iterator[tuple[pa.RecordBatch, float]]  # each with the share of the file read so far


def json_batches(file: File, wanted: Mapping[str, str]) -> Batches:
    kinds: dict[str, pa.DataType] = {}
    line = 1
    with text(file) as stream:
        stream.start(4)
        for block in _whole_lines(stream):
            if not kinds:  # knowing the types in the first row, Arrow need not understand the other columns
                row = _first_json_row(block)
                names = find_columns({**row, **dict.fromkeys(extra_names(list(wanted.values())))}, wanted)
                kinds = {name: _JSON_TYPES.get(type(row.get(name)), pa.string()) for name in names}
                kinds |= {name: pa.float64() for name in names if name.startswith(NUMBERS)}
            parse = ParseOptions(explicit_schema=pa.schema(kinds), unexpected_field_behavior="ignore")
            try:
                table = read_json(pa.BufferReader(checked(block, line)), ReadOptions(block_size=len(block) + 1), parse)
            except pa.ArrowInvalid:
                list(_json_rows(block, line, kinds))  # raises at the line to blame: Arrow counts within the block
                raise
            line += block.count(b"\n")
            yield from ((batch, stream.share) for batch in table.to_batches())


def json_table(file: File, strings: Sequence[str]) -> pa.Table:
    with text(file) as stream:
        start = stream.start(BLOCK_BYTES, lines=2)
        row = _first_json_row(start)
        kinds = {name: pa.string() for name in strings if isinstance(row.get(name), str)}  # not a time stamp
        block = BLOCK_BYTES if len(start) <= BLOCK_BYTES else 2 * len(start)
        parse = ParseOptions(explicit_schema=pa.schema(kinds))
        return read_json(CheckedLines(stream), ReadOptions(block_size=block), parse)


def _whole_lines(stream: Text) -> Iterator[bytes]:
    rest = b""
    while more := stream.read(BLOCK_BYTES):
        whole, newline, rest = (rest + more).rpartition(b"\n")
        if newline:
            yield whole + newline
        if len(rest) > LONGEST_LINE:
            raise ValueError(f"a line must have at most {LONGEST_LINE:,} bytes; got one of more. Is it one JSON list?")
    if rest:
        yield rest


def _first_json_row(block: bytes) -> dict[str, Any]:
    """Return the fields of the first rows, each with its first value, a number with decimals if there is one.

    A broken line that is not the first, or cut at the end of the block, is told when it is read.
    """
    rows = filter(None, _json_rows(block, 1, {}))
    found: dict[str, Any] = next(rows, {})
    with suppress(ValueError):
        for row in islice(rows, _FIRST_ROWS):
            for name, value in row.items():
                known = found.setdefault(name, value)
                if known is None or (type(known) is int and isinstance(value, float)):
                    found[name] = value
    return found


def _json_rows(block: bytes, line: int, kinds: dict[str, pa.DataType]) -> Iterator[dict[str, Any]]:
    for number, said in enumerate(block.split(b"\n"), line):
        try:
            row = json.loads(said) if said.strip() else {}
        except (json.JSONDecodeError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise no_object(said, number)
        for name, kind in kinds.items():
            value = row.get(name)
            is_whole = isinstance(value, int) and kind == pa.float64()
            if value is not None and _JSON_TYPES.get(type(value)) != kind and not is_whole:
                fix = (
                    "Write one of its values there"
                    if isinstance(value, dict | list)
                    else "Write all of them as strings"
                )
                got = f"got {show(value)} at line {number}. {fix}."
                raise ValueError(f"{name} must hold only integers or only strings; {got}")
        yield row
