"""How a text file is written: its encoding, and the separator of cells in a table."""

import csv
import io
import re
from itertools import islice
from typing import NamedTuple

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_SAMPLE, _RECORDS = 2**16, 50
_EXCEL = re.compile(rb'(?:\xef\xbb\xbf)?"?sep=(.)"?\r?\n', re.IGNORECASE)
_CONTROL = re.compile(rb"[\0-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Dialect(NamedTuple):
    """The separator of cells, and the number of lines before the header: Excel may write "sep=;" there."""

    separator: str
    skipped: int = 0


def encoding_of(start: bytes, *, guess: bool) -> str | None:
    """Return the encoding of a text by its first bytes if it is not UTF-8: UTF-16, or if `guess`, Windows-1252.

    >>> encoding_of("größe;ü".encode("cp1252"), guess=True), encoding_of("task".encode("utf-16"), guess=False)
    ('cp1252', 'utf-16')
    """
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if len(start) >= 4 and not any(start[1:64:2]) and all(start[0:64:2]):  # of Latin letters, without a mark
        return "utf-16-le"
    if not guess or _CONTROL.search(start):
        return None
    try:
        start.decode()
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":  # cut in the middle of a letter
            return None
        try:
            start.decode("cp1252")
        except UnicodeDecodeError:
            return None
        return "cp1252"
    return None


def dialect_of(start: bytes, usual: str) -> Dialect:
    r"""Return the dialect by the start of a table: the usual separator, unless another one gives equal rows.

    >>> dialect_of(b"task;worker;says, in words\n1;ann;cat\n", ",").separator
    ';'
    """
    if found := _EXCEL.match(start):
        return Dialect(found[1].decode(errors="replace"), 1)
    separators = dict.fromkeys((usual, *SEPARATORS))
    counts = {separator: [len(row) for row in _rows(start, separator) if row] for separator in separators}
    even = [separator for separator, n in counts.items() if n and n[0] > 1 and len(set(n)) == 1]
    if even:
        return Dialect(even[0])
    return Dialect(max(counts, key=lambda separator: counts[separator][:1] > [1]))


def header_line(start: bytes) -> bytes:
    found = _EXCEL.match(start)
    return start[found.end() if found else 0 :].removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0]


def records(start: bytes, usual: str) -> tuple[int, list[list[str]]]:
    """Return the number of lines before the header by the start of a table, and its first rows."""
    dialect = dialect_of(start, usual)
    return dialect.skipped, _rows(start, dialect.separator)[dialect.skipped :]


def _rows(start: bytes, separator: str) -> list[list[str]]:
    sample = start[:_SAMPLE].decode(errors="replace").removeprefix("\ufeff")
    try:
        rows = list(islice(csv.reader(io.StringIO(sample, newline=""), delimiter=separator), _RECORDS))
    except csv.Error:
        return []
    if 1 < len(rows) < _RECORDS and len(start) > _SAMPLE:
        rows.pop()  # cut
    return rows
