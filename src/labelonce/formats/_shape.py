"""What a table looks like that does not hold one label per row: questions, in long form or one column for each."""

from __future__ import annotations

from shlex import quote

import pyarrow as pa

from labelonce._messages import argument, at_command_line, is_offered, shorten
from labelonce._types import TOOLS
from labelonce.files import File, first_rows

ANSWERS = frozenset(["no", "maybe", "yes", "skip", "0", "1"])
"""What the answers to questions mostly are, in any case."""
_MOST_QUESTIONS = 100
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
