"""Check boxes and wide tables as rows of task, question, worker and answer; and how much of a yes an answer is."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from labelonce._messages import argument, is_offered, shorten, show
from labelonce._types import Codes, Floats, Ids
from labelonce._validate import check_columns
from labelonce.data import _ids, key

Columns = tuple[Any, Any, Any, Any]
WORDS: dict[str, float | None] = {"no": 0.0, "maybe": 0.5, "yes": 1.0, "skip": None}
"""Words that need no declaration; None: the answer says neither yes nor no by itself."""


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
    names = _ids.columns_of(frame)[0] if questions is None else list(questions)
    names = [name for name in names if questions is not None or name not in (task, worker)]
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
    given = np.concatenate([_ids.column_of(one, "answer") for one in answers if len(one)])
    return (tasks[row], ids[column], workers[row], given), ids, row.astype(np.int32)


def _present(column: Any) -> tuple[pa.Array, Any]:
    """Return the values of a column that are there, and where."""
    array = column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column, from_pandas=True)
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    array = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    asked = pc.invert(array.is_null(nan_is_null=pa.types.is_floating(array.type)))
    return array.filter(asked), asked.to_numpy(zero_copy_only=False)


def declare(answers: Any) -> tuple[Ids, Floats]:
    """Return the answers and how much of a yes each is, NaN where it says neither.

    A mapping gives the value of each answer; a sequence runs from no to yes in even steps.

    >>> declare(["no", "maybe", "yes"])
    (array(['no', 'maybe', 'yes'], dtype=object), array([0. , 0.5, 1. ]))
    >>> declare({"no": 0, "yes": 1, "skip": None})
    (array(['no', 'yes', 'skip'], dtype=object), array([ 0.,  1., nan]))
    """
    if isinstance(answers, Mapping):
        values = [np.nan if value is None else value for value in answers.values()]
        return check_answers(_ids.table_of(list(answers), "answers"), values)
    ids = _ids.table_of(answers, "answers")
    return check_answers(ids, np.linspace(0.0, 1.0, len(ids)))


def check_answers(ids: Ids, values: Any) -> tuple[Ids, Floats]:
    """Return answers with their values, each in [0, 1] or NaN, one below a half and one above."""
    try:
        shares = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"the value of an answer must be a number or None; got {show(values)}.") from error
    if shares.shape != (len(ids),):
        raise ValueError(f"every one of the {len(ids)} answers must have one value; got shape {shares.shape}.")
    outside = np.flatnonzero((shares < 0) | (shares > 1))
    if len(outside):
        first = outside[0]
        raise ValueError(
            f"the value of an answer must be in [0, 1], from no to yes; got {shares[first]} for {show(ids[first])}."
        )
    if not ((shares < 0.5).any() and (shares > 0.5).any()):
        raise ValueError(
            f"answers must hold one that means no and one that means yes; got {shorten(ids)}. "
            f"Declare them from no to yes with {argument('answers')}"
        )
    return ids, shares


def encode_answers(answer: Any, answers: Any) -> tuple[Codes, Ids, Floats]:
    """Return the code of every answer, the answers and their values; by default 0 and 1, or the known words."""
    if answers is not None:
        ids, values = declare(answers)
        return _ids.encode(answer, "answer", ids)[0], ids, values
    codes, seen = _ids.encode(answer, "answer")
    ids, values = _known(seen)
    return _ids.lookup(seen, ids)[codes], ids, values


def _known(seen: Ids) -> tuple[Ids, Floats]:
    if seen.dtype != object and np.isin(seen, (0, 1)).all():
        return np.array([0, 1]), np.array([0.0, 1.0])
    unknown = [value for value in seen.tolist() if value not in WORDS]
    if unknown:
        odd = [value for value in unknown if value not in (0, 1)] or unknown
        spelled = isinstance(odd[0], str) and key(odd[0]) in WORDS and is_offered("normalise")
        fix = f"Give them one spelling with {argument('normalise')}, or declare them" if spelled else "Declare them"
        raise ValueError(
            f"answers must be 0 and 1, or the words {', '.join(WORDS)}, where they are not declared; got "
            f"{show(odd[0])} ({len(odd)} in total). {fix} from no to yes with "
            f"{argument('answers')}"
        )
    return declare({word: value for word, value in WORDS.items() if word in ("no", "yes") or word in seen})
