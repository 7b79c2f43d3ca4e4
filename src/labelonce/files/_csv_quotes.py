"""The quotes of a CSV or TSV file: one that is not closed would silently swallow the rows behind it."""

import re
from collections.abc import Iterator

from labelonce._messages import clip, printable
from labelonce.files._open import LONGEST_LINE, File, Text, text

_BYTES = 2**22


def check_quotes(file: File, delimiter: str) -> None:
    """Raise at the first quoted cell that has no end, or that ends on another line and in the middle of a cell.

    As for Arrow a quote opens a cell only as its first character, and two of them within are one that is meant.
    """
    opening = re.compile(f'(?:^|^\ufeff|[{delimiter}\r])"'.encode())
    closing = re.compile(b'[^"]*+(?:""[^"]*+)*+"')
    cell = f'(?:"{closing.pattern.decode()}|[^"{delimiter}]*+)'
    plain = re.compile(f"{cell}(?:{delimiter}{cell})*+".encode())  # most lines: one look is enough
    opened: tuple[int, bytes] | None = None
    with text(file) as stream:
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


def _lines(stream: Text) -> Iterator[bytes]:
    """Yield the lines; where one is too long for Arrow, only those before."""
    rest = b""
    while more := stream.read(_BYTES):
        *whole, rest = (rest + more).split(b"\n")
        yield from whole
        if len(rest) > LONGEST_LINE:
            return
    yield rest


def _reject(opened: tuple[int, bytes]) -> None:
    number, start = opened
    shown = clip(printable(start.decode(errors="replace")), 40)
    raise ValueError(
        f"a quoted cell must end with a quote before the next cell; got {shown} at line {number}, which does not. "
        "Close it, or write a quote that is data twice and in a quoted cell."
    )
