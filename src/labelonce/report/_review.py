"""The tasks most worth another look, and the lists of labels and workers to act on, as CSV."""

import io
from typing import Any

import numpy as np
import pyarrow as pa

from labelonce._rules import RULES
from labelonce._types import Codes, Floats
from labelonce.data import _ids, _rows
from labelonce.files import write_table
from labelonce.learning._review import review_table
from labelonce.report._facts import Facts
from labelonce.report._media import of_task, short_text, shown_of
from labelonce.report._work import WorkFigures, known_figures
from labelonce.report._workers import WorkerTable

MOST = 15
_LABELS_SHOWN = 6
MOST_ROWS = 5_000  # of a list inside the page
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")


def least_sure(facts: Facts) -> Codes:
    """Return the labelled tasks whose label is least probable, first the least sure, those below 0.8."""
    right = facts.posterior[np.arange(len(facts.label)), facts.label]
    return _ranked(np.where(facts.labelled & (right < RULES.review_keep), 1 - right, -1.0))


def overruled(facts: Facts) -> Codes:
    """Return the labelled tasks whose label is not among those given most often, first the most probable."""
    rows = np.arange(len(facts.label))
    against = facts.labelled & (facts.votes[rows, facts.label] < facts.votes.max(axis=1))
    return _ranked(np.where(against, facts.posterior[rows, facts.label], -1.0))


def _ranked(score: Floats) -> Codes:
    order = np.argsort(-score, kind="stable")
    return order[score[order] > 0].astype(np.int32)


def review_rows(facts: Facts, tasks: Codes, texts: Any, images: Any) -> list[dict[str, Any]]:
    """Return what the report shows of some tasks."""
    ann = facts.annotations
    start = _rows.first_rows(ann.task, ann.n_tasks)
    rows = []
    for task in tasks.tolist():
        posterior = facts.posterior[task]
        others = [k for k in np.argsort(-posterior, kind="stable").tolist() if k != facts.label[task]]
        second = others[0] if others else None
        given = range(int(start[task]), int(start[task + 1]))
        shown = given[:_LABELS_SHOWN]
        rows.append(
            shown_of(task, ann.tasks, texts, images)
            | {
                "task": str(ann.tasks[task]),
                "label": str(ann.classes[facts.label[task]]),
                "confidence": float(posterior[facts.label[task]]),
                "second": None if second is None else str(ann.classes[second]),
                "second_confidence": 0.0 if second is None else float(posterior[second]),
                "undecided": facts.is_undecided(task),
                "model": _model_view(facts, task),
                "given": [(str(ann.workers[ann.worker[row]]), str(ann.classes[ann.label[row]])) for row in shown],
                "more": len(given) - len(shown),
            }
        )
    return rows


def _model_view(facts: Facts, task: int) -> tuple[str, float] | None:
    if facts.predictions is None:
        return None
    pick = int(facts.predictions[task].argmax())
    return str(facts.annotations.classes[pick]), float(facts.predictions[task, pick])


def labels_list(facts: Facts, texts: Any) -> pa.Table:
    """Return the given labels worth checking, the most likely wrong first."""
    tasks = facts.annotations.tasks
    table = review_table(facts.annotations, facts.posterior, facts.label)
    place = table.column_names.index("chance_wrong")
    table = table.set_column(place, "chance_wrong", pa.array(np.round(table["chance_wrong"].to_numpy(), 4)))
    if texts is None:
        return table
    codes = _ids.lookup(table["task"][:MOST_ROWS], tasks).tolist()
    shown = [of_task(texts, one, tasks, "texts") for one in codes] + [None] * (table.num_rows - len(codes))
    texts_of = [None if text is None else short_text(text) for text in shown]
    return table.add_column(1, "text", pa.array(texts_of, type=pa.string()))


def workers_list(facts: Facts, table: WorkerTable, work: WorkFigures | None = None) -> pa.Table:
    """Return the workers, those first who probably gave the most wrong labels."""
    order = np.argsort(-table.wrong, kind="stable")
    numbers = {"skill": table.skill, "skill_low": table.low, "skill_high": table.high, "guessing": table.chance}
    return pa.table(
        {"worker": pa.array(facts.annotations.workers[order]), "labels": table.labels[order]}
        | {"expected_wrong": np.round(table.wrong[order], 1)}
        | {name: np.round(values[order], 4) for name, values in numbers.items()}
        | ({} if facts.others is None else {"other_answers": np.round(facts.others.rate[order], 4)})
        | {name: pa.array(values[order], from_pandas=True) for name, values in known_figures(work).items()}
        | {"flags": [", ".join(table.names(one)) for one in order.tolist()]}
    )


def as_csv(table: pa.Table) -> str:
    """Return a table as CSV, its first rows where there are many."""
    sink = io.BytesIO()
    write_table(safe_cells(table.slice(0, MOST_ROWS)), sink, "csv")
    return sink.getvalue().decode()


def safe_cells(table: pa.Table) -> pa.Table:
    """Return a table in which no text is a formula to a spreadsheet: such texts get an apostrophe in front.

    >>> safe_cells(pa.table({"task": ["=1+1", "a"], "n": [-1, 2]}))["task"].to_pylist()
    ["'=1+1", 'a']
    """
    for place, field in enumerate(table.schema):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if _ids.is_text(kind):
            values = [
                f"'{text}" if text is not None and text.startswith(_FORMULAS) else text
                for text in table[field.name].to_pylist()
            ]
            table = table.set_column(place, field.name, pa.array(values, type=pa.string()))
    return table
