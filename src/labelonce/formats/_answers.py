"""The common result of all readers of tools' files: answers, and how many were left out and why."""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from labelonce._messages import argument, show
from labelonce.data import LeftOutWarning
from labelonce.files import File, read_table

SEPARATOR = "|"
_NOBODY = object()  # who gave the gold


class Fields(NamedTuple):
    """The fields of the three ids (None: the default of the format), and the text of a task to read."""

    task: str | None = None
    worker: str | None = None
    label: str | None = None
    text: str | None = None


class Answer(NamedTuple):
    """One worker's answer to one task: no label, one, or several."""

    task: Any
    worker: Any
    labels: tuple[Any, ...]


@dataclass
class Answers:
    """The answers in a file, the gold and the wanted texts of tasks that came with them, and what was left out.

    `empty` are those without a label: no annotations where one label is wanted, but a no to every check box. `gold` has
    the true labels of a task where the file knows them.
    """

    NO_ANSWER: ClassVar[str] = "without an answer"

    rows: list[Answer] = field(default_factory=list)
    empty: list[Answer] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    gold: dict[Any, tuple[Any, ...]] = field(default_factory=dict)
    texts: list[tuple[Any, Any]] = field(default_factory=list)

    def add(self, task: Any, worker: Any, labels: tuple[Any, ...]) -> None:
        """Keep an answer, or count why it is left out."""
        if labels:
            self.rows.append(Answer(task, worker, labels))
        else:
            self.empty.append(Answer(task, worker, ()))
            self.left_out[self.NO_ANSWER] += 1


def warn_left_out(found: Answers, n_annotations: int, name: str) -> None:
    """Warn with counts, and the file's name, where some answers are no annotations; if all are none, it is an error."""
    if not found.rows:
        raise ValueError(f"the file must hold an annotation; got none{_because(found.left_out)}.")
    if found.left_out:
        sentence = f"{name}: {n_annotations:,} annotations are read, others left out{_because(found.left_out)}."
        warnings.warn(LeftOutWarning(sentence, dict(found.left_out)), stacklevel=4)


def to_gold(answers: Answers, *, multiple: str = "error") -> dict[Any, Any]:
    """Return the true labels in a file by task; several of one task are treated like those of one answer."""
    return votes_and_gold(answers, multiple)[1]


def votes_and_gold(answers: Answers, multiple: str) -> tuple[list[tuple[Any, Any, Any]], dict[Any, Any]]:
    known = [Answer(task, _NOBODY, labels) for task, labels in answers.gold.items()]
    rows = _one_label_each([*answers.rows, *known], multiple)
    votes = [row for row in rows if row[1] is not _NOBODY]
    return votes, {task: label for task, worker, label in rows if worker is _NOBODY}


def _because(left_out: Counter[str]) -> str:
    counts = ", ".join(f"{reason} {count:,}" for reason, count in left_out.most_common())
    return f" ({counts})" if counts else ""


def _one_label_each(rows: list[Answer], multiple: str) -> list[tuple[Any, Any, Any]]:
    several = [row for row in rows if len(row.labels) > 1]
    if multiple == "split":
        return _yes_no(rows)
    if several and multiple == "error":
        row = several[0]
        by = "as gold" if row.worker is _NOBODY else f"by worker {show(row.worker)}"
        raise ValueError(
            f"an annotation must give one label; got {show(list(row.labels))} {by} on task "
            f"{show(row.task)} ({len(several)} in total). Take each set of labels as a class of its own with "
            f"{argument('multiple', 'join')}, or each label as a yes-no question with {argument('multiple', 'split')}."
        )
    if multiple == "join" and several:
        odd = next((label for row in rows for label in row.labels if SEPARATOR in str(label)), None)
        if odd is not None:
            raise ValueError(f"a label must be without {SEPARATOR!r} to be joined; got {show(odd)}.")
    if multiple == "join" and (several or any(isinstance(row.labels[0], str) for row in rows)):
        return [(row.task, row.worker, SEPARATOR.join(sorted(map(str, row.labels)))) for row in rows]
    return [(row.task, row.worker, row.labels[0]) for row in rows]


def _yes_no(rows: list[Answer]) -> list[tuple[Any, Any, Any]]:
    """Return one yes-no annotation for each answer and each label in the file."""
    seen = sorted({str(label) for row in rows for label in row.labels})
    made = []
    for row in rows:
        given = set(map(str, row.labels))
        made += [(f"{row.task}{SEPARATOR}{one}", row.worker, "yes" if one in given else "no") for one in seen]
    return made


def string_columns(file: File) -> dict[str, list[str]]:
    """Return the columns of a tool's CSV or TSV file by name; an empty cell is an empty string."""
    table = read_table(file)
    (most, times), *_ = Counter(table.column_names).most_common(1)
    if times > 1:
        raise ValueError(f"a column must be named once; got {most!r} {times} times. Rename the second one.")
    return {name: table.column(name).to_pylist() for name in table.column_names}


def integers_if_all(values: Sequence[str]) -> list[Any]:
    """Return integers if every string is how Python writes one of 64 bits, else the strings."""
    try:
        numbers = [int(value) for value in values]
    except ValueError:
        return list(values)
    same = all(str(number) == value and abs(number) < 2**63 for number, value in zip(numbers, values, strict=True))
    return numbers if same else list(values)


def same_kind(cells: Sequence[Sequence[str]]) -> list[tuple[Any, ...]]:
    """Return the labels in each cell, as integers if all of them in all cells are."""
    labels = iter(integers_if_all([label for cell in cells for label in cell]))
    return [tuple(next(labels) for _ in cell) for cell in cells]


def choose_field(name: str | None, found: Sequence[str], what: str, role: str) -> str:
    """Return the field that plays a role: the one named, or the only one there is."""
    listed = ", ".join(map(repr, found)) or "none"
    if name is not None:
        if name not in found:
            raise ValueError(f"{what} must be one of {listed}; got {name!r}. Name it with {argument(role)}")
        return name
    if len(found) != 1:
        fix = f"Name one with {argument(role)}" if found else "Is this the right file?"
        raise ValueError(f"{what} must be named where there is not exactly one; got {listed}. {fix}")
    return found[0]
