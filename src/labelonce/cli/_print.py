"""What the commands show a person: tables on stdout, notes on stderr."""

import io
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from labelonce._messages import printable
from labelonce._types import Estimate
from labelonce.data import Summary
from labelonce.files import File, dialect_in_words, write_table

stdout = Console(highlight=False)
stderr = Console(stderr=True, highlight=False)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    """Return a table whose first column is text and whose others are numbers."""
    made = Table(title=title, title_justify="left", title_style="bold")
    for i, column in enumerate(columns):
        made.add_column(column, justify="left" if i == 0 else "right")
    for row in rows:
        made.add_row(*map(str, row))
    return made


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table: drawn on a terminal, tab-separated lines elsewhere. Ids in it can do no harm."""
    cells = [[printable(str(cell)) for cell in row] for row in rows]
    if stdout.is_terminal:
        stdout.print(table(title, columns, [[escape(cell) for cell in row] for row in cells]))
    else:
        print_plain("\n".join(["", f"# {title}", "\t".join(columns), *map("\t".join, cells)]))


def cell(value: float | str | None) -> str:
    """Return what a table shows of a value: nothing for None, three digits of a share or a score."""
    return "" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)


def print_plain(text: str) -> None:
    """Print text as it is, however wide."""
    stdout.file.write(f"{text}\n")  # rich would expand tabs


def print_status(sentence: str) -> None:
    """Print the progress of a command as one line on stderr."""
    stderr.file.write(f"{printable(sentence)}\n")
    stderr.file.flush()


def print_note(sentence: str) -> None:
    """Print a note on stderr, on one line."""
    stderr.file.write(f"note: {printable(' '.join(sentence.splitlines()))}\n")


def print_json(found: dict[str, Any]) -> None:
    """Print one JSON object on one line, in ASCII: any terminal and any pipe can take it."""
    print_plain(json.dumps(found, allow_nan=False))


def print_rows(rows: pa.Table, format: str = "csv") -> None:
    """Write a table to stdout, unchanged for a pipe, without control characters for a terminal."""
    if not sys.stdout.isatty():
        write_table(rows, sys.stdout.buffer, format)
        return
    sink = io.BytesIO()
    write_table(rows, sink, format)
    print_plain("\n".join(map(printable, sink.getvalue().decode().splitlines())))


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Print warnings as notes after the work, each sentence once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for sentence in dict.fromkeys(str(warning.message) for warning in caught):
        print_note(sentence)


def one_line(message: str) -> str:
    """Return a message of the library on one line, as a sentence."""
    message = printable(" ".join(message.split("\n")))
    return message if message.endswith((".", "?")) else f"{message}."


def read_from(files: Sequence[File]) -> str:
    """Return the names of files and how each of them is written."""
    return ", ".join(f"{file}: {dialect_in_words(file)}" for file in files)


def right_in_words(right: Estimate) -> str:
    """Return how many labels are right, with the range."""
    return f"{right.value:.1%} of the labels are right, by estimate ({right.low:.0%} to {right.high:.0%})"


def alpha_of(found: Summary) -> str:
    """Return Krippendorff's alpha for the end of a line, nothing where it is unknown."""
    return "" if found.alpha is None else f"; Krippendorff's alpha {found.alpha}"


def problem_lines(found: Summary) -> Iterator[str]:
    """Yield what looks wrong, one line for each problem, and an empty line after them."""
    yield "What looks wrong" if found.problems else "What looks wrong: nothing"
    yield from (f"  {problem.kind}: {problem.sentence}" for problem in found.problems)
    yield ""
