"""Files of multi-label annotations: long and wide tables, sets of ticked labels, and exports with check boxes."""

import os
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from labelonce._messages import row, shorten, show
from labelonce._types import TOOLS, Duplicates, Missing
from labelonce.data import _ids, check_once, renamed_column, renaming
from labelonce.files import column_names, naming, read_columns
from labelonce.formats import Fields, Part, Paths, Relabel, Rows, joined, listed, new_names
from labelonce.formats import _registry as tools
from labelonce.multilabel._annotations import MultiLabelAnnotations
from labelonce.multilabel._base import pair_gold
from labelonce.multilabel._layouts import ROLES, Boxes, Layout
from labelonce.multilabel._tables import WORDS, box_names, ticked_rows


def read_multilabel(
    path: Paths,
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
    missing: Missing = "error",
    relabel: Relabel | None = None,
    normalise: bool = False,
    rejected: str | None = None,
) -> MultiLabelAnnotations:
    r"""Return the multi-label annotations in a file, or in several.

    Four layouts are told apart by their columns: one answer per row (task, question, worker, answer); one row per
    worker and task with the labels that were ticked (task, worker, ticked: a list, or text with "|" between them);
    a wide table (task, worker, and a column for each question, empty where it was not asked); and the export of a
    labelling tool with check boxes, where every label that anybody ticked is a question that everybody was asked.

    Parameters
    ----------
    path, format, missing, rejected
        As in `read_annotations`.
    task, question, worker, answer, ticked : str, optional
        The names of the columns, by default these words; in a tool's export `question` names the control.
    questions, answers, duplicates
        As in `MultiLabelAnnotations.from_arrays`; `questions` selects the columns of a wide table.
    ignore : sequence of str
        Columns of a wide table that are no questions, such as a text. Those that are empty are left out by themselves,
        with a warning.
    relabel, normalise
        New names of answers, as of labels in `read_annotations`; `normalise` gives one spelling to questions, too.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "ticked.csv")
    ...     _ = path.write_text("task,worker,ticked\n1,ann,dog|beach\n1,bob,dog\n2,bob,\n")
    ...     read_multilabel(path)
    MultiLabelAnnotations(6 answers: 2 tasks x 2 questions by 2 workers, 3 yes, redundancy 1.5)
    """
    files = [tools.find_labels(one, format) for one in listed(path)]
    called = {"task": task, "question": question, "worker": worker, "answer": answer, "ticked": ticked}
    renamed = () if relabel is None else tuple(map(str, new_names(relabel)))
    layout = Layout(called, questions, answers, renamed, tuple(ignore), missing, rejected)
    found = []
    for file in files:
        with naming(file):
            found.append(layout.read(file))
    boxes = [one for one in found if isinstance(one, Boxes)]
    parts = [one for one in found if isinstance(one, Part)]
    if boxes:  # a label that anybody ticked is a question that everybody saw
        names = box_names(questions, [labels for one in boxes for labels in one.ticked])
        for one in boxes:
            asked, _ = ticked_rows(one.task, one.worker, one.ticked, None, names)
            parts.append(Part(one.file, list(asked), ROLES))
        if len(boxes) == len(found):
            questions, answers = names, ["no", "yes"]
    rows = Rows(parts)
    with rows.named():
        columns = [joined(parts, place, role) for place, role in enumerate(ROLES)]
        columns, questions = _renamed(columns, rows, questions, answers, relabel, normalise)
        if len(parts) > 1:
            columns = rows.keep(columns, rows.counted_once(columns))
        options: dict[str, Any] = {"questions": questions, "answers": answers, "duplicates": duplicates}
        return MultiLabelAnnotations.from_arrays(*columns, **options)


def _renamed(
    columns: list[Any], rows: Rows, questions: Any, answers: Any, relabel: Relabel | None, normalise: bool
) -> tuple[list[Any], Any]:
    """Return the columns with other names for answers and one spelling for each question, and the questions."""
    names = None if relabel is None else new_names(relabel, [columns[3]])
    rename = renaming(names, columns[3], WORDS if answers is None else answers, normalise=normalise)
    if rename is not None:
        columns = rows.renamed(columns, 3, rename)
    if normalise:
        respell = renaming(None, columns[1], questions, normalise=True)
        assert respell is not None
        columns[1] = renamed_column(columns[1], respell)
        questions = questions if questions is None else list(dict.fromkeys(map(respell, questions)))
    return columns, questions


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
            sure = zip(annotations.answers.tolist(), annotations.values.tolist(), strict=True)
            value = {answer: int(yes) for answer, yes in sure if yes in (0.0, 1.0)}
            odd = next((place for place, one in enumerate(said) if one not in value), None)
            if odd is not None:
                raise ValueError(
                    f"a known answer must be one of {shorten(list(value))}; got {show(said[odd])} at {row(odd)}."
                )
            check_once(list(zip(tasks, asked, strict=True)))
            gold = {(one, name): value[a] for one, name, a in zip(tasks, asked, said, strict=True)}
        pair_gold(gold, annotations)
    return gold


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
