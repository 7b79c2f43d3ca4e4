"""JSON lines are checked before Arrow reads them: a row that is no object, or nested deeply, would crash it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

_DEEPEST = 100  # brackets in each other; Arrow 26 overflows its stack between 5,000 and 20,000
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SPACE = b" \t\r\n"
_BYTES = 2**20  # looked at together
_STEP = np.zeros(256, dtype=np.int32)
_STEP[[ord("{"), ord("[")]] = 1
_STEP[[ord("}"), ord("]")]] = -1
_IS_SPACE = np.zeros(256, dtype=bool)
_IS_SPACE[list(_SPACE)] = True


def checked(block: bytes, line: int = 1) -> bytes:
    r"""Return whole lines of a file, the first of them `line`, if every row is one object that is not nested deeply.

    >>> checked(b'{"task": 1, "tags": ["a"]}\n')
    b'{"task": 1, "tags": ["a"]}\n'
    >>> checked(b'{"task": 1}\nnull\n')
    Traceback (most recent call last):
    ValueError: a line must hold one JSON object; got b'null' at line 2. Fix that line.
    """
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
        """Return the next `n` bytes."""
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
    """Return the error about a line that is no JSON object."""
    is_list = number == 1 and said.lstrip(_SPACE).startswith(b"[")
    fix = "Write one object per line, and not one list of them." if is_list else "Fix that line."
    return ValueError(f"a line must hold one JSON object; got {said.strip()[:60]!r} at line {number}. {fix}")
