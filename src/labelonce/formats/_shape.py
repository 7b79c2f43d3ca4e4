"""How to recognise tables without one label per row: questions, in long form or with one column each."""

from collections.abc import Mapping
from shlex import quote

import pyarrow as pa

from labelonce._messages import argument, at_command_line, is_offered, shorten, show
from labelonce._types import TOOLS
from labelonce.data import is_text
from labelonce.files import DELIMITERS, File, column_names, first_rows, records, text

ANSWERS = frozenset(["no", "maybe", "yes", "skip", "0", "1"])
"""What the answers to questions mostly are, in any case."""
_MOST_QUESTIONS = 100
_FEW = 20  # classes that a matrix of labels is recognised by
_REPEATED = 0.9  # below this share of different tasks and workers, rows repeat in earnest


def question_column(file: File, task: str, worker: str, label: str) -> str | None:
    """Return the column with few values that tells rows of one task and worker apart, None where there is none.

    Judged by the first rows of the file.
    """
    if file.format in TOOLS:
        return None
    rows = pa.Table.from_batches([first_rows(file)])
    names = [name for name in rows.column_names if name not in (task, worker, label)]
    if not {task, worker} <= set(rows.column_names) or _n_distinct(rows, task, worker) > _REPEATED * rows.num_rows:
        return None
    found = {name: _n_distinct(rows, name) for name in names if _n_distinct(rows, task, worker, name) == rows.num_rows}
    few = {name: n for name, n in found.items() if 1 < n <= min(_MOST_QUESTIONS, rows.num_rows // 2)}
    return min(few, key=lambda name: few[name], default=None)


def advice_on_repeats(file: File, task: str, worker: str, label: str) -> str:
    """Return what to do where rows repeat because they are about several questions; nothing where they are not."""
    column = question_column(file, task, worker, label)
    if column is None or not is_offered("question"):
        return ""
    if at_command_line():
        read = f"{argument('question', quote(column))} {argument('answer', quote(label))}"
    else:
        read = f"read_multilabel(..., {argument('question', column)}, {argument('answer', label)})"
    return f"Column {column!r} tells these rows apart: if it says which question was asked, read them with {read}."


def advised(file: File, wanted: Mapping[str, str], said: str) -> str:
    """Return an error about missing columns, with the fix if the table shows it."""
    present = column_names(file)
    advice = ""
    if file.format in DELIMITERS:
        advice = _advice_on_header(file, list(wanted.values()))
    if not advice and wanted["label"] not in present:
        if {wanted["task"], wanted["worker"]} <= set(present):
            advice = advice_on_wide(file, wanted["task"], wanted["worker"])
        elif wanted["worker"] not in present and _has_a_column_per_worker(file):
            advice = f"If it has a column for each worker, read it with {argument('format', 'matrix')}."
    first, _, name_them = said.partition(" Name ")
    if advice:
        return f"{first} {advice}"
    if file.codec == "xlsx":
        first += " Of a workbook the first visible sheet is read: is it the right one?"
    return f"{first} Name {name_them}"


def _advice_on_header(file: File, names: list[str]) -> str:
    """Return what to do where the names of the columns do not stand in the first row."""
    with text(file) as stream:
        start = stream.start(2**16, lines=2)
    skipped, rows = records(start, DELIMITERS[file.format])
    for number, row in enumerate(rows[1:], 2 + skipped):
        if {*names} <= {cell.strip() for cell in row}:
            return f"Row {number} has these names: delete what stands above and left of the table."
    for place, cell in enumerate(rows[0]):
        if cell and any(row[place : place + 1] == [cell] for row in rows[1:]):
            said = f"Its first row holds values, such as {show(cell)}, and no names: add a row of names above it"
            return f"{said}, such as {', '.join(names)}."
    return ""


def _has_a_column_per_worker(file: File) -> bool:
    """Return whether all columns but the first have the same few values."""
    columns = pa.Table.from_batches([first_rows(file)]).columns[1:]
    if len(columns) < 2 or any(not is_text(one.type) and not pa.types.is_integer(one.type) for one in columns):
        return False
    said = [set(one.cast(pa.string()).unique().to_pylist()) - {None, ""} for one in columns]
    every = set().union(*said)
    return len(every) <= _FEW and all(len(some) > 1 for some in said) and len(set.intersection(*said)) > 1


def advice_on_wide(file: File, task: str, worker: str) -> str:
    """Return how to read a table with one column per question; nothing where it is none."""
    rows = pa.Table.from_batches([first_rows(file)])
    names = [name for name in rows.column_names if name not in (task, worker)]
    asked = [name for name in names if _are_answers(rows.column(name))]
    if len(asked) < 2 or not is_offered("multiple"):
        return ""
    others = [name for name in names if name not in asked]
    if at_command_line():
        read = " ".join([argument("multiple", "questions"), *(argument("ignore", quote(name)) for name in others)])
    else:
        read = f"read_multilabel(...{f', ignore={others}' if others else ''})"
    return f"Columns {shorten(asked, 3)} hold answers: for one question per column read them with {read}."


def _are_answers(column: pa.ChunkedArray) -> bool:
    try:
        said = {text.casefold() for text in column.cast(pa.string()).unique().to_pylist() if text}
    except pa.ArrowException:
        return False
    return bool(said) and said <= ANSWERS


def _n_distinct(rows: pa.Table, *names: str) -> int:
    return int(rows.group_by(list(names)).aggregate([]).num_rows)
