"""Check boxes and wide tables as rows of task, question, worker and answer."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from labelonce._messages import argument, shorten, show
from labelonce._types import Codes, Ids
from labelonce._validate import check_columns
from labelonce.data import _ids

Columns = tuple[Any, Any, Any, Any]


def ticked_rows(task: Any, worker: Any, ticked: Any, shown: Any, questions: Any) -> tuple[Columns, Ids]:
    """Return the columns of check boxes, "yes" for a ticked one and "no" for another that was shown."""
    columns = {"task": task, "worker": worker, "ticked": ticked} | ({} if shown is None else {"shown": shown})
    check_columns(**columns)
    given = [_labels(one, "ticked", row) for row, one in enumerate(ticked)]
    boxes = None if shown is None else [_labels(one, "shown", row) for row, one in enumerate(shown)]
    names = box_names(questions, given if boxes is None else given + boxes)
    place = {name: code for code, name in enumerate(names.tolist())}
    everything = range(len(names))
    row_of, question_of, said = [], [], []
    for row, labels in enumerate(given):
        yes = {_place(label, place, "ticked", row) for label in labels}
        asked = set(everything) if boxes is None else {_place(label, place, "shown", row) for label in boxes[row]}
        if not yes <= asked:
            hidden = show(names[min(yes - asked)])
            raise ValueError(f"a ticked label must be among those shown; got {hidden} at row {row}, which was not.")
        row_of += [row] * len(asked)
        question_of += sorted(asked)
        said += [code in yes for code in sorted(asked)]
    rows = np.array(row_of, dtype=np.int64)
    answers = np.where(np.array(said, dtype=bool), "yes", "no").astype(object)
    task_ids, worker_ids = _ids.column_of(task, "task"), _ids.column_of(worker, "worker")
    return (task_ids[rows], names[np.array(question_of, dtype=np.int64)], worker_ids[rows], answers), names


def _labels(one: Any, name: str, row: int) -> list[Any]:
    if isinstance(one, str | bytes) or not isinstance(one, Iterable):
        raise TypeError(f"{name} must hold a set of labels in every row; got {show(one)} at row {row}.")
    return list(one)


def box_names(questions: Any, seen: Sequence[Sequence[Any]]) -> Ids:
    """Return the labels that were there to be ticked: those declared, or all that were seen, sorted."""
    if questions is not None:
        return _ids.table_of(questions, "questions")
    found = list(dict.fromkeys(label for labels in seen for label in labels))
    if not found:
        raise ValueError(
            f"ticked must hold a label; got empty sets in all {len(seen)} rows. Name the boxes with "
            f"{argument('questions')}"
        )
    return np.sort(_ids.table_of(found, "questions"))


def _place(label: Any, place: dict[Any, int], name: str, row: int) -> int:
    if label not in place:
        raise ValueError(f"{name} labels must be among {shorten(list(place))}; got {show(label)} at row {row}.")
    return place[label]


def wide_rows(frame: Any, task: Hashable, worker: Hashable, questions: Any) -> tuple[Columns, Ids, Codes]:
    """Return the columns of a table with one column per question, the questions, and which row each answer stands in.

    Cells without a value are left out.
    """
    task_column, worker_column = _ids.frame_columns(frame, task=task, worker=worker)
    names = question_columns(frame, task, worker) if questions is None else list(questions)
    if not names:
        raise ValueError("a wide table must have a column per question; got none besides those of task and worker.")
    cells = [_ids.frame_columns(frame, question=name)[0] for name in names]
    tasks, workers = _ids.column_of(task_column, "task"), _ids.column_of(worker_column, "worker")
    rows, columns, answers = [], [], []
    for number, column in enumerate(cells):
        given, asked = _present(column)
        rows.append(np.flatnonzero(asked))
        columns.append(np.full(len(rows[-1]), number))
        answers.append(given)
    row, column = np.concatenate(rows), np.concatenate(columns)
    ids = _ids.table_of([str(name) for name in names], "questions")
    return (tasks[row], ids[column], workers[row], _joined(answers)), ids, row.astype(np.int32)


def question_columns(frame: Any, task: Hashable, worker: Hashable) -> list[Any]:
    """Return the names of all columns but those of task and worker."""
    names = getattr(frame, "column_names", None)
    names = list(frame.columns) if names is None else names
    return [name for name in names if name not in (task, worker)]


def _present(column: Any) -> tuple[pa.Array, Any]:
    """Return the values of a column that are there, and where."""
    array = column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column, from_pandas=True)
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    array = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    asked = pc.invert(array.is_null(nan_is_null=pa.types.is_floating(array.type)))
    return array.filter(asked), asked.to_numpy(zero_copy_only=False)


def _joined(answers: list[pa.Array]) -> Ids:
    return np.concatenate([_ids.column_of(one, "answer") for one in answers if len(one)])
