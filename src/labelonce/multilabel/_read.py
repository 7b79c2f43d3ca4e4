"""Files of multi-label annotations: long and wide tables, sets of ticked labels, and exports with check boxes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from labelonce._messages import argument, shorten, show
from labelonce._types import TOOLS, Duplicates
from labelonce.data import _ids
from labelonce.data._gold import check_once
from labelonce.files._open import File, naming
from labelonce.files._table_reader import column_names, find_columns, id_column, read_columns, read_table
from labelonce.formats import _registry as tools
from labelonce.formats._answers import SEPARATOR, Answers, Fields, LeftOutWarning
from labelonce.multilabel._annotations import MultiLabelAnnotations
from labelonce.multilabel._base import pair_gold

_OTHER_SEPARATORS = ";,/"


def read_multilabel(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    task: str | None = None,
    question: str | None = None,
    worker: str | None = None,
    answer: str | None = None,
    ticked: str | None = None,
    questions: Any = None,
    answers: Any = None,
    ignore: Sequence[str] = (),
    duplicates: Duplicates = "error",
    rejected: str | None = None,
) -> MultiLabelAnnotations:
    r"""Return the multi-label annotations in a file.

    Four layouts are told apart by their columns: one answer per row (task, question, worker, answer); one row per
    worker and task with the labels that were ticked (task, worker, ticked: a list, or text with "|" between them);
    a wide table (task, worker, and a column for each question, empty where it was not asked); and the export of a
    labelling tool with check boxes, where every label that anybody ticked is a question that everybody was asked.

    Parameters
    ----------
    path, format, rejected
        As in `read_annotations`.
    task, question, worker, answer, ticked : str, optional
        The names of the columns, by default these words; in a tool's export `question` names the control.
    questions, answers, duplicates
        As in `MultiLabelAnnotations.from_arrays`; `questions` selects the columns of a wide table.
    ignore : sequence of str
        Columns of a wide table that are no questions, such as a text.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "ticked.csv")
    ...     _ = path.write_text("task,worker,ticked\n1,ann,dog|beach\n1,bob,dog\n2,bob,\n")
    ...     read_multilabel(path)
    MultiLabelAnnotations(6 answers: 2 tasks x 2 questions by 2 workers, 3 yes, redundancy 1.5)
    """
    file = tools.find_labels(path, format)
    names = {"task": task, "question": question, "worker": worker, "answer": answer, "ticked": ticked}
    role = {key: name or key for key, name in names.items()}
    with naming(file):
        if file.format in TOOLS:
            found = tools.read(file, Fields(task, worker, question), rejected)
            return _from_export(found, str(file.path), questions, duplicates)
        present = column_names(file)
        wanted = {key: role[key] for key in ("task", "question", "worker", "answer")}
        if question or answer or {role["question"], role["answer"]} <= set(present):
            columns = read_columns(file, wanted)
            options = {"questions": questions, "answers": answers, "duplicates": duplicates}
            return MultiLabelAnnotations.from_arrays(*columns, **options)
        find_columns(present, {"task": role["task"], "worker": role["worker"]})
        if ticked or role["ticked"] in present:
            return _from_ticked(file, role, questions, duplicates)
        return _from_wide(file, role, questions, answers, ignore, duplicates)


def read_multilabel_gold(
    path: str | os.PathLike[str],
    annotations: MultiLabelAnnotations,
    *,
    format: str | None = None,
    task: str | None = None,
    question: str | None = None,
    answer: str | None = None,
) -> dict[tuple[Any, Any], int]:
    r"""Return the known answers in a file, 1 yes and 0 no by task and question, for the `gold` of a model.

    Parameters
    ----------
    path, format, task, question, answer
        As in `read_multilabel`: a table with one answer per row, or a tool's export, whose true labels are known for
        all questions about their tasks.
    annotations : MultiLabelAnnotations
        Those that the gold is for; a task, question or answer that they do not have is an error.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> ann = MultiLabelAnnotations.from_ticked([1, 2], ["ann", "bob"], [["dog"], ["sea"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "gold.csv")
    ...     _ = path.write_text("task,question,answer\n1,dog,yes\n1,sea,no\n")
    ...     read_multilabel_gold(path, ann)
    {(1, 'dog'): 1, (1, 'sea'): 0}
    """
    file = tools.find_labels(path, format, hint=False)
    with naming(file):
        if file.format in TOOLS:
            known = tools.read(file, Fields(task, None, question)).gold
            names = annotations.questions.tolist()
            gold = {(one, name): int(name in labels) for one, labels in known.items() for name in names}
        else:
            wanted = {"task": task or "task", "question": question or "question", "answer": answer or "answer"}
            columns = read_columns(file, wanted)
            tasks, asked, said = (_ids.column_of(*pair).tolist() for pair in zip(columns, wanted, strict=True))
            value = _yes_or_no(annotations)
            odd = next((row for row, one in enumerate(said) if one not in value), None)
            if odd is not None:
                raise ValueError(
                    f"a known answer must be one of {shorten(list(value))}; got {show(said[odd])} at row {odd}."
                )
            check_once(list(zip(tasks, asked, strict=True)))
            gold = {(one, name): value[a] for one, name, a in zip(tasks, asked, said, strict=True)}
        pair_gold(gold, annotations)
    return gold


def _yes_or_no(annotations: MultiLabelAnnotations) -> dict[Any, int]:
    """Return the answers that say yes or no for sure, by what they say."""
    sure = zip(annotations.answers.tolist(), annotations.values.tolist(), strict=True)
    return {answer: int(value) for answer, value in sure if value in (0.0, 1.0)}


def is_multilabel(path: str | os.PathLike[str], format: str | None = None) -> bool:
    """Return whether a table has the columns of multi-label annotations: question and answer, or ticked."""
    file = tools.find_labels(path, format)
    if file.format in TOOLS:
        return False
    try:
        present = set(column_names(file))
    except (ValueError, OSError, pa.ArrowException):  # whoever reads the labels says what is wrong
        return False
    return {"question", "answer"} <= present or ("ticked" in present and "label" not in present)


def _from_ticked(file: File, role: dict[str, str], questions: Any, duplicates: Duplicates) -> MultiLabelAnnotations:
    table = read_table(file)
    find_columns(table.column_names, {"ticked": role["ticked"]})
    task, worker = (id_column(table, role[key], file) for key in ("task", "worker"))
    ticked = [_labels(cell, row) for row, cell in enumerate(table.column(role["ticked"]).to_pylist())]
    _check_separator(ticked)
    return MultiLabelAnnotations.from_ticked(task, worker, ticked, questions=questions, duplicates=duplicates)


def _check_separator(ticked: list[list[Any]]) -> None:
    """Raise where a label is made of others: another separator would make questions of combinations."""
    names = {label for labels in ticked for label in labels if isinstance(label, str)}
    for row, labels in enumerate(ticked):
        for label in labels:
            for other in _OTHER_SEPARATORS:
                parts = [part.strip() for part in str(label).split(other)]
                if len(parts) > 1 and names.issuperset(parts):
                    raise ValueError(
                        f"ticked labels must have {SEPARATOR!r} between them; got {show(label)} at row {row}, which is "
                        f"made of other labels. Replace {other!r} by {SEPARATOR!r}."
                    )


def _labels(cell: Any, row: int) -> list[Any]:
    if cell is None or cell == "":
        return []
    if isinstance(cell, str):
        return [label.strip() for label in cell.split(SEPARATOR)]
    if isinstance(cell, Iterable):
        return list(cell)
    raise ValueError(
        f"ticked must be a list of labels, or text with {SEPARATOR!r} between them; got {show(cell)} at row {row}."
    )


def _from_wide(
    file: File, role: dict[str, str], questions: Any, answers: Any, ignore: Sequence[str], duplicates: Duplicates
) -> MultiLabelAnnotations:
    table = read_table(file)
    keys = (role["task"], role["worker"])
    others = [name for name in table.column_names if name not in (*keys, *ignore)]
    names = others if questions is None else list(questions)
    if not names:
        raise ValueError(
            f"the table must have a column per question beside {keys[0]!r} and {keys[1]!r}; got none. For one answer "
            f"per row name its columns with {argument('question')} and {argument('answer')}"
        )
    find_columns(table.column_names, {f"question {name}": name for name in names})
    columns = {name: id_column(table, name, file) for name in (*keys, *names)}
    options = {"task": keys[0], "worker": keys[1], "questions": names, "answers": answers}
    return MultiLabelAnnotations.from_wide(pa.table(columns), **options, duplicates=duplicates)


def _from_export(found: Answers, name: str, questions: Any, duplicates: Duplicates) -> MultiLabelAnnotations:
    """Return the check boxes of a tool's export; an answer that ticked nothing is a no to every question."""
    rows = found.rows + found.empty
    if not found.rows and questions is None:
        raise ValueError("the file must hold a ticked label; got none.")
    ticked = [row.labels if questions is None else [x for x in row.labels if x in set(questions)] for row in rows]
    task, worker = [row.task for row in rows], [row.worker for row in rows]
    made = MultiLabelAnnotations.from_ticked(task, worker, ticked, questions=questions, duplicates=duplicates)
    left_out = {reason: n for reason, n in found.left_out.items() if reason != found.NO_ANSWER}
    if left_out:
        reasons = ", ".join(f"{reason} {n:,}" for reason, n in left_out.items())
        sentence = f"{name}: {len(rows):,} judgements are read, others left out ({reasons})."
        warnings.warn(LeftOutWarning(sentence, left_out), stacklevel=3)
    return made
