"""The quotes of a CSV or TSV file: one that is not closed would swallow the rows behind it without a word."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from labelonce._messages import clip, printable
from labelonce.files._open import File, text

_BYTES = 2**22
_LONGEST_LINE = 2**26


class _Counted:
    """A stream that counts its quotes and its line ends; the reader adds the `rows` that it made of them."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self._stream, self.quotes, self.lines, self.rows = stream, 0, 0, 0

    def read(self, n: int | None = None) -> bytes:
        data: bytes = self._stream.read(n)
        self.quotes += data.count(b'"')
        self.lines += data.count(b"\n")
        return data

    def close(self) -> None:
        self.closed = True


@contextmanager
def quoted_text(file: File, delimiter: str) -> Iterator[tuple[_Counted, Callable[[], float]]]:
    """Open the text as `text` does; where its quotes may have swallowed rows, look at them one by one.

    They may if their number is odd, or if there are fewer `rows` than lines.
    """
    with text(file) as (stream, share), quotes_blamed(file, delimiter):
        counted = _Counted(stream)
        yield counted, share
    if counted.quotes % 2 or (counted.quotes and counted.lines > counted.rows + 1):
        _check_quotes(file, delimiter)


@contextmanager
def quotes_blamed(file: File, delimiter: str) -> Iterator[None]:
    """Where Arrow cannot read a file, look first whether its quotes are to blame."""
    try:
        yield
    except pa.ArrowInvalid:
        _check_quotes(file, delimiter)
        raise


def _check_quotes(file: File, delimiter: str) -> None:
    """Raise at the first quoted cell that has no end, or that ends on another line and in the middle of a cell.

    As for Arrow a quote opens a cell only as its first character, and two of them within are one that is meant.
    """
    opening = re.compile(f'(?:^|^\ufeff|[{delimiter}\r])"'.encode())
    closing = re.compile(b'[^"]*+(?:""[^"]*+)*+"')
    cell = f'(?:"{closing.pattern.decode()}|[^"{delimiter}]*+)'
    plain = re.compile(f"{cell}(?:{delimiter}{cell})*+".encode())  # most lines: one look is enough
    opened: tuple[int, bytes] | None = None
    with text(file) as (stream, _):
        for number, line in enumerate(_lines(stream), 1):
            if not opened and plain.fullmatch(line):
                continue
            place = 0
            while found := closing.match(line, place) if opened else opening.search(line, place):
                place = found.end()
                if not opened:
                    opened = number, line[found.end() - 1 :]
                    continue
                if opened[0] != number and line[place : place + 1] not in (delimiter.encode(), b"\r", b""):
                    _reject(opened)
                opened = None
    if opened:
        _reject(opened)


def _lines(stream: Any) -> Iterator[bytes]:
    """Yield the lines; where one is too long for Arrow, only those before."""
    rest = b""
    while more := stream.read(_BYTES):
        *whole, rest = (rest + more).split(b"\n")
        yield from whole
        if len(rest) > _LONGEST_LINE:
            return
    yield rest


def _reject(opened: tuple[int, bytes]) -> None:
    number, start = opened
    shown = clip(printable(start.decode(errors="replace")), 40)
    raise ValueError(
        f"a quoted cell must end with a quote before the next cell; got {shown} at line {number}, which does not. "
        "Close it, or write a quote that is data twice and in a quoted cell."
    )
