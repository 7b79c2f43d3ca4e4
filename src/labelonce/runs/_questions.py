"""A run on questions, several labels at once: how its files are read, what is fitted, and what is kept of it."""

import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from labelonce._messages import argument, described
from labelonce._types import TOOLS, Floats
from labelonce.data import _ids
from labelonce.files import File, column_names
from labelonce.formats import SEPARATOR
from labelonce.learning import MBEM
from labelonce.multilabel import (
    MultiLabelAnnotations,
    MultiLabelMBEM,
    is_multilabel,
    read_multilabel,
    read_multilabel_gold,
    yes_shares,
)
from labelonce.runs._inputs import Rows
from labelonce.runs._record import DataSize, EstimatedAccuracy, QuestionOutcome, UsedRecipe

QUESTIONS = "questions"  # of `multiple`: check boxes of an export, or the columns of a wide table, as questions
_READ = ("task", "worker", "question", "answer", "answers", "ignore", "duplicates", "missing", "relabel", "normalise")
Known = dict[tuple[Any, Any], int] | None


def has_questions(files: Sequence[File], source: dict[str, Any]) -> bool:
    """Return whether files are to be read as questions: by their columns, or as options say."""
    named = source.get("multiple") == QUESTIONS or "question" in source or "answer" in source
    return named or any(map(is_multilabel, files))


def read_questions(files: Sequence[File], source: dict[str, Any], **more: Any) -> MultiLabelAnnotations:
    """Return the questions in files, read as the options of a source say.

    The column of labels is that of ticked labels, of answers, or in an export the control.
    """
    for name in ("classes", "spellings"):
        if source.get(name):
            got = source[name] if isinstance(source[name], str) else ",".join(map(str, source[name]))
            raise ValueError(f"{argument(name)} must be left out for questions; got {got}.")
    kept: dict[str, Any] = {name: source[name] for name in (*_READ, "rejected") if name in source}
    if "label" in source:
        in_tool = files[0].format in TOOLS
        ticks = not in_tool and "question" not in source and "answer" not in column_names(files[0])
        role = "question" if in_tool else "ticked" if ticks else "answer" if "question" in source else "question"
        kept.setdefault(role, source["label"])
    return read_multilabel(files, **(more | kept))


def choose_question_gold(
    labels: Sequence[File], gold: str | os.PathLike[str] | None, annotations: MultiLabelAnnotations, **source: Any
) -> Known:
    """Return the known answers in a file, else those in the exports that the labels came from, with a warning."""
    columns = {"task": source.get("task"), "question": source.get("question", source.get("label"))}
    if gold is not None:
        return read_multilabel_gold(gold, annotations, answer=source.get("answer"), **columns)
    own: dict[tuple[Any, Any], int] = {}
    for file in labels:
        own |= read_multilabel_gold(file, annotations, **columns) if file.format in TOOLS else {}
    if own:
        n = len({task for task, _ in own})
        files = ", ".join(str(file) for file in labels if file.format in TOOLS)
        warnings.warn(f"{files}: its true labels of {n:,} task{'s' if n > 1 else ''} are used as gold.", stacklevel=2)
    return own or None


def used_recipe(clf: MBEM) -> UsedRecipe:
    recipe = clf.recipe_
    workers = described(recipe["worker_model"])
    return UsedRecipe(described(recipe["learner"]), clf.n_rounds_, recipe["predictions"], workers)


def question_parts(clf: MultiLabelMBEM, annotations: MultiLabelAnnotations, gold: Known) -> dict[str, Any]:
    """Return the parts of the record that are about the questions: data, recipe and result."""
    shares = yes_shares(annotations, "question")
    return {
        "data": DataSize.of(annotations, gold),
        "recipe": used_recipe(clf),
        "result": QuestionOutcome(
            questions=annotations.questions.tolist(),
            given=[None if np.isnan(share) else float(share) for share in shares],
            shares=clf.labels_.mean(axis=0).tolist(),
            agreement=clf.history_[-1]["agreement"],
            estimated_accuracy=EstimatedAccuracy.of(clf),
        ),
    }


def labels_of_questions(clf: MultiLabelMBEM, annotations: MultiLabelAnnotations, **shown: list[str]) -> pa.Table:
    """Return `clf.to_frame()` with the given answers and their workers as lists, and what is `shown` of every task."""
    n = annotations.n_tasks * annotations.n_questions
    place = annotations.task.astype(np.int64) * annotations.n_questions + annotations.question
    ends = pa.array(np.searchsorted(place, np.arange(n + 1)), type=pa.int32())
    said, who = annotations.answers[annotations.answer], annotations.workers[annotations.worker]
    table = clf.to_frame()
    for name, values in (("given", said), ("workers", who)):
        table = table.append_column(name, pa.ListArray.from_arrays(ends, pa.array(values)))
    for name, texts in shown.items():
        number = np.repeat(np.arange(annotations.n_tasks, dtype=np.int32), annotations.n_questions)
        table = table.append_column(name, pa.DictionaryArray.from_arrays(pa.array(number), pa.array(texts)))
    return table


def predict_questions(clf: MultiLabelMBEM, rows: Rows, *, proba: bool, joined: bool) -> pa.Table:
    """Return one row per task and one column per question, with `proba` one more for its probability.

    If `joined`, the table that `ticked_table` makes instead.
    """
    probability = clf.predict_proba(rows.X)
    labels = (probability > clf.thresholds_).astype(np.int64)
    if joined:
        return ticked_table(rows.tasks, clf.questions_, labels, probability)
    said = clf._yes_no[labels]
    columns: dict[str, Any] = {"task": pa.array(rows.tasks)}
    columns |= {str(name): pa.array(said[:, k]) for k, name in enumerate(clf.questions_)}
    if proba:
        columns |= {f"probability_{name}": probability[:, k] for k, name in enumerate(clf.questions_)}
    return pa.table(columns)


def ticked_table(tasks: Any, questions: Any, labels: Any, probability: Floats) -> pa.Table:
    """Return one row per labelled task: its labels joined, and the confidence of the least certain of them.

    Tasks without a label are left out, since an export has no prediction for "none".
    """
    some = np.flatnonzero((labels == 1).any(axis=1))
    names = questions.astype(str)
    joined = [SEPARATOR.join(names[labels[task] == 1]) for task in some]
    sure = [float(probability[task][labels[task] == 1].min()) for task in some]
    return pa.table({"task": _ids.decode(some.astype(np.int32), tasks), "label": joined, "confidence": sure})
