"""The layouts of a file of questions: a row per answer, sets of ticked labels, a column per question, an export."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from labelonce._messages import argument, row, shorten, show
from labelonce._types import TOOLS
from labelonce.data import LeftOutWarning, _ids, key, present_rows
from labelonce.files import File, column_names, find_columns, id_column, read_columns, read_table
from labelonce.formats import ANSWERS, SEPARATOR, Fields, Part, question_column
from labelonce.formats import _registry as tools
from labelonce.multilabel import _tables

ROLES = ("task", "question", "worker", "answer")
_OTHER_SEPARATORS = ";,/"


@dataclass(frozen=True)
class Boxes:
    """The check boxes of one file: the labels that a worker ticked for a task, in every row."""

    file: File
    task: Any
    worker: Any
    ticked: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Layout:
    """How files of questions are read: the names of columns that were given, and the options of `read_multilabel`.

    Answers that get new names are `renamed`.
    """

    names: Mapping[str, str | None]
    questions: Any
    answers: Any
    renamed: Sequence[str]
    ignore: Sequence[str]
    missing: str
    rejected: str | None

    def role(self, name: str) -> str:
        """Return the name of the column that plays a role."""
        return self.names[name] or name

    def read(self, file: File) -> Part | Boxes:
        """Return the answers in a file, by the layout that its columns show."""
        if file.format in TOOLS:
            return self._export(file)
        present = column_names(file)
        named = self.names["question"] or self.names["answer"]
        if named or {self.role("question"), self.role("answer")} <= set(present):
            wanted = {role: self.role(role) for role in ROLES}
            columns = dict(zip(ROLES, read_columns(file, wanted), strict=True))
            found, kept = present_rows(self.missing, str(file.path), **columns)
            return Part(file, found, tuple(wanted.values()), kept)
        find_columns(present, {"task": self.role("task"), "worker": self.role("worker")})
        if self.names["ticked"] or self.role("ticked") in present:
            return self._ticked(file)
        return self._wide(file)

    def _export(self, file: File) -> Boxes:
        """Return the check boxes of a tool's export; an answer that ticked nothing is a no to every question."""
        fields = Fields(self.names["task"], self.names["worker"], self.names["question"])
        found = tools.read(file, fields, self.rejected)
        rows = found.rows + found.empty
        if not found.rows and self.questions is None:
            raise ValueError("the file must hold a ticked label; got none.")
        wanted = None if self.questions is None else set(self.questions)
        ticked = [row.labels if wanted is None else [x for x in row.labels if x in wanted] for row in rows]
        left_out = {reason: n for reason, n in found.left_out.items() if reason != found.NO_ANSWER}
        if left_out:
            reasons = ", ".join(f"{reason} {n:,}" for reason, n in left_out.items())
            sentence = f"{file.path}: {len(rows):,} judgements are read, others left out ({reasons})."
            warnings.warn(LeftOutWarning(sentence, left_out), stacklevel=4)
        return Boxes(file, [row.task for row in rows], [row.worker for row in rows], list(ticked))

    def _ticked(self, file: File) -> Boxes:
        table, name = read_table(file), self.role("ticked")
        find_columns(table.column_names, {"ticked": name})
        keys = {role: id_column(table, self.role(role), file) for role in ("task", "worker")}
        ticked = [_labels(cell, place) for place, cell in enumerate(table.column(name).to_pylist())]
        _check_separator(ticked)
        self._check_no_answers(file, name, ticked)
        (task, worker), kept = present_rows(self.missing, str(file.path), **keys)
        return Boxes(file, task, worker, ticked if kept is None else [ticked[place] for place in kept])

    def _check_no_answers(self, file: File, name: str, ticked: list[list[Any]]) -> None:
        """Raise an error if a column of ticked labels holds answers: yes and no would become questions."""
        said = {str(label) for labels in ticked for label in labels}
        if not said or any(len(labels) > 1 for labels in ticked):
            return
        column = question_column(file, self.role("task"), self.role("worker"), name)
        if column is not None or {word.casefold() for word in said} <= ANSWERS:
            fix = f"{argument('question', *([column] if column else []))} and {argument('answer', name)}"
            raise ValueError(
                f"column {name!r} must hold ticked labels; got {shorten(sorted(said), 3)}, which look like answers. "
                f"For one answer per row name the columns with {fix}"
            )

    def _wide(self, file: File) -> Part:
        table = read_table(file)
        keys = {role: self.role(role) for role in ("task", "worker")}
        others = [name for name in table.column_names if name not in (*keys.values(), *self.ignore)]
        names = others if self.questions is None else list(self.questions)
        if not names:
            raise ValueError(
                f"a column per question is needed besides {keys['task']!r} and {keys['worker']!r}; got none. "
                f"For one answer per row name its columns with {argument('question')} and {argument('answer')}"
            )
        find_columns(table.column_names, {f"question {name}": name for name in names})
        columns = {name: id_column(table, name, file) for name in (*keys.values(), *names)}
        if self.questions is None:
            columns = self._asked(file, columns, names)
        given = {role: columns[name] for role, name in keys.items()}
        task_worker, kept = present_rows(self.missing, str(file.path), **given)
        if kept is not None:
            columns = {name: column.take(pa.array(kept)) for name, column in columns.items()}
            columns |= dict(zip(keys.values(), task_worker, strict=True))
        asked = [name for name in names if name in columns]
        found, _, rows = _tables.wide_rows(pa.table(columns), keys["task"], keys["worker"], asked)
        return Part(file, list(found), ROLES, rows if kept is None else kept[rows])

    def _asked(self, file: File, columns: dict[str, Any], names: list[str]) -> dict[str, Any]:
        """Return the columns without empty ones, with a warning; a column that holds no answers is an error."""
        distinct = {name: _ids.plain(columns[name]).drop_null().unique().to_pylist() for name in names}
        said = {name: [str(one) for one in answers] for name, answers in distinct.items()}
        allowed = {key(str(one)) for one in (*(ANSWERS if self.answers is None else self.answers), *self.renamed)}
        odd = {name: [one for one in answers if key(one) not in allowed] for name, answers in said.items()}
        wrong = [name for name, values in odd.items() if values]
        if wrong and len(wrong) < sum(map(bool, said.values())):
            place = pc.index(_ids.plain(columns[wrong[0]]).cast(pa.large_string()), odd[wrong[0]][0]).as_py()
            raise ValueError(
                f"column {wrong[0]!r} must hold answers to a question; got {show(odd[wrong[0]][0])} at {row(place)}. "
                f"Leave it out with {argument('ignore', wrong[0])}, or declare such answers with {argument('answers')}"
            )
        empty = [name for name, answers in said.items() if not answers]
        if empty:
            sentence = f"{file.path}: {len(empty):,} empty columns are no questions, such as {empty[0]!r}."
            warnings.warn(LeftOutWarning(sentence, {"empty columns": len(empty)}), stacklevel=5)
        return {name: column for name, column in columns.items() if name not in empty}


def _labels(cell: Any, place: int) -> list[Any]:
    if cell is None or cell == "":
        return []
    if isinstance(cell, str):
        return [label.strip() for label in cell.split(SEPARATOR)]
    if isinstance(cell, Iterable):
        return list(cell)
    raise ValueError(
        f"ticked must be a list of labels, or text with {SEPARATOR!r} between them; got {show(cell)} at {row(place)}."
    )


def _check_separator(ticked: list[list[Any]]) -> None:
    """Raise an error if a label consists of other labels, as with a wrong separator."""
    names = {label for labels in ticked for label in labels if isinstance(label, str)}
    for place, labels in enumerate(ticked):
        for label in labels:
            for other in _OTHER_SEPARATORS:
                parts = [part.strip() for part in str(label).split(other)]
                if len(parts) > 1 and names.issuperset(parts):
                    raise ValueError(
                        f"ticked labels must have {SEPARATOR!r} between them; got {show(label)} at {row(place)}, which "
                        f"is made of other labels. Replace {other!r} by {SEPARATOR!r}."
                    )
