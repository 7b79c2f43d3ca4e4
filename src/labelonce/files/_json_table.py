"""JSON lines as a table. They are checked first: a row that is no object, or nested deeply, would crash Arrow."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow.json import ParseOptions, ReadOptions, read_json

from labelonce._messages import show
from labelonce.data import extra_names
from labelonce.files._column_names import NUMBERS, find_columns
from labelonce.files._open import BLOCK_BYTES, LONGEST_LINE, File, Text, text

_DEEPEST = 100  # brackets in each other; Arrow 26 overflows its stack between 5,000 and 20,000
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SPACE = b" \t\r\n"
_BYTES = 2**20  # looked at together
_STEP = np.zeros(256, dtype=np.int32)
_STEP[[ord("{"), ord("[")]] = 1
_STEP[[ord("}"), ord("]")]] = -1
_IS_SPACE = np.zeros(256, dtype=bool)
_IS_SPACE[list(_SPACE)] = True
_JSON_TYPES = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
_FIRST_ROWS = 1000  # of JSON, which tell the columns and their types

Batches = Iterator[tuple[pa.RecordBatch, float]]  # each with the share of the file read so far


def checked(block: bytes, line: int = 1) -> bytes:
    """Return whole lines of a file, the first of them `line`, if every row is one object that is not nested deeply."""
    start = 0
    while start < len(block):
        end = block.find(b"\n", start + _BYTES) + 1 or len(block)
        part = block[start:end]
        if not _is_flat(part) and not _is_plain(part):
            _blame(part, line)
        start, line = end, line + part.count(b"\n")
    return block


class CheckedLines:
    """A stream whose lines are checked while they are read; Arrow understands none before it is complete."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self._stream, self._rest, self._line = stream, b"", 1

    def read(self, n: int | None = None) -> bytes:
        data: bytes = self._stream.read(n)
        whole, newline, rest = (self._rest + data).rpartition(b"\n")
        lines = checked(whole + newline if data else whole + newline + rest, self._line)
        self._line, self._rest = self._line + lines.count(b"\n"), rest if data else b""
        return data

    def close(self) -> None:
        """Leave the stream to whoever opened it."""
        self.closed = True


def _is_flat(lines: bytes) -> bool:
    """Return whether the only braces of every line are at its ends: a quick test that most files pass."""
    letters = np.frombuffer(lines, dtype=np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    if len(ends) == 0 or ends[-1] != len(letters) - 1:
        return False
    starts = np.concatenate([[0], ends[:-1] + 1])
    brackets = np.searchsorted(starts, np.flatnonzero(letters == ord("[")), side="right")
    return bool(
        (letters[starts] == ord("{")).all()
        and (letters[ends - 1] == ord("}")).all()
        and lines.count(b"{") == lines.count(b"}") == len(starts)
        and np.bincount(brackets).max(initial=0) < _DEEPEST
    )


def _is_plain(lines: bytes) -> bool:
    """Return whether all rows are objects, one after the other, that are not nested deeply."""
    outside = np.frombuffer(_STRING.sub(b"", lines.removeprefix(b"\xef\xbb\xbf")), dtype=np.uint8)
    steps = _STEP[outside]
    depth = np.cumsum(steps)
    opens_object = (depth == 1) & (steps == 1)
    return bool(
        depth.max(initial=0) <= _DEEPEST
        and depth.min(initial=0) >= 0
        and (_IS_SPACE[outside[(depth == 0) & (steps == 0)]]).all()
        and (outside[opens_object] == ord("{")).all()
        and (depth[outside == ord("\n")] == 0).all()
    )


def _blame(lines: bytes, line: int) -> None:
    """Raise an error for the first bad line; invalid JSON is found by Arrow."""
    for number, said in enumerate(lines.split(b"\n"), line):
        if not _is_plain(said):
            if said.lstrip(_SPACE).startswith(b"{") and said.count(b"{") + said.count(b"[") > _DEEPEST:
                got = f"got {said.strip()[:60]!r} at line {number}"
                raise ValueError(f"brackets must be nested at most {_DEEPEST} deep; {got}. Fix that line.")
            raise no_object(said, number)


def no_object(said: bytes, number: int) -> ValueError:
    is_list = number == 1 and said.lstrip(_SPACE).startswith(b"[")
    fix = "Write one object per line, and not one list of them." if is_list else "Fix that line."
    return ValueError(f"a line must hold one JSON object; got {said.strip()[:60]!r} at line {number}. {fix}")


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
                fix = "one of its values there" if isinstance(value, dict | list) else "all of them as strings"
                got = f"got {show(value)} at line {number}. Write {fix}."
                raise ValueError(f"{name} must hold only integers or only strings; {got}")
        yield row
