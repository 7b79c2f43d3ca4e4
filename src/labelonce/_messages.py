"""How values and arguments are shown in sentences: cut where they are long, on one line, safe for a terminal."""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_OPTIONS: ContextVar[Mapping[str, str] | None] = ContextVar("options", default=None)
_ROWS: ContextVar[Callable[[int], str] | None] = ContextVar("rows", default=None)


def argument(name: str, *values: str) -> str:
    """Return how the caller writes an argument, with any of some values: in Python, or on the command line.

    >>> print(argument("task"), argument("duplicates", "first", "last"), sep="; ")
    task=...; duplicates="first" or "last"
    >>> with named_as_options({"duplicates": "--duplicates"}):
    ...     argument("duplicates", "first", "last")
    '--duplicates first or last'
    """
    option = (_OPTIONS.get() or {}).get(name)
    shown = list(values) if option else [f'"{value}"' for value in values]
    listed = " or ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
    return f"{option} {listed}".rstrip() if option else f"{name}={listed or '...'}"


def named(name: str) -> str:
    """Return the name of an argument as the caller knows it: `seed` in Python, `--seed` on the command line."""
    return (_OPTIONS.get() or {}).get(name, name)


def is_offered(name: str) -> bool:
    """Return whether the caller can give an argument: always in Python, on the command line if there is an option."""
    options = _OPTIONS.get()
    return options is None or name in options


def at_command_line() -> bool:
    """Return whether the caller is somebody at the command line."""
    return _OPTIONS.get() is not None


@contextmanager
def named_as_options(options: Mapping[str, str]) -> Iterator[None]:
    """Let `argument` speak to somebody at the command line, whose options are given by the names of arguments."""
    token = _OPTIONS.set(options)
    try:
        yield
    finally:
        _OPTIONS.reset(token)


def row(number: Any) -> str:
    """Return what a row is called, of those counted from 0: by its place in a file where it came from one.

    >>> with rows_called(lambda number: f"row {number + 2} of labels.csv"):
    ...     print(row(5))
    row 7 of labels.csv
    """
    called = _ROWS.get()
    return f"row {number}" if called is None else called(int(number))


@contextmanager
def rows_called(name: Callable[[int], str]) -> Iterator[None]:
    """Let `row` speak of rows in a file."""
    token = _ROWS.set(name)
    try:
        yield
    finally:
        _ROWS.reset(token)


def shorten(ids: Any, most: int = 6) -> str:
    """Return the first few ids in brackets, for a message."""
    shown = ", ".join(show(value) for value in ids[:most])
    return f"[{shown}]" if len(ids) <= most else f"[{shown}, ... {len(ids)} in all]"


def show(value: Any, most: int = 60) -> str:
    """Return a value as one would type it, cut where it is long, for a message."""
    numpy = sys.modules.get("numpy")  # where it is not loaded, no value is of its types
    return clip(repr(value.item() if numpy and isinstance(value, numpy.generic) else value), most)


def clip(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def printable(text: str) -> str:
    r"""Return a text on one line, with control characters written out: raw they could change what a terminal shows.

    >>> print(printable("eve\x1b[31m\n"))
    eve\x1b[31m\n
    """
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def described(value: Any) -> str:
    """Return a value's text on one line, functions by their names: no memory address, so equal values read equal.

    >>> from functools import partial
    >>> described({"by": partial(clip, most=9)})
    "{'by': functools.partial(clip, most=9)}"
    """
    named = re.sub(r"<function (\S+) at 0x[0-9a-fA-F]+>", r"\1", str(value))
    return " ".join(re.sub(r" at 0x[0-9a-fA-F]+", "", named).split())
