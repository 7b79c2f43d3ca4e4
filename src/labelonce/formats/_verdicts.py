"""Verdicts of language models, as evaluation tools write them: one row per verdict, whatever the columns are called."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from labelonce._messages import argument, shorten, show
from labelonce._types import Duplicates, Ids, Missing
from labelonce.data import SPREAD, Annotations, _ids, floats
from labelonce.files import File, id_column, naming, read_table

COLUMNS = {
    "task": ("task", "item", "item_id", "question_id", "example_id", "sample_id", "doc_id", "id"),
    "worker": ("worker", "annotator", "rater"),
    "model": ("model", "judge", "judge_model", "evaluator", "grader"),
    "prompt": ("prompt", "prompt_name", "prompt_id", "template"),
    "label": ("label", "answer", "verdict", "judgment", "judgement", "winner", "choice", "preference", "rating"),
    "probability": ("probability", "prob", "confidence"),
    "logprob": ("logprob", "log_prob"),
    "order": ("order", "swapped", "position"),
    "weight": ("weight",),
    "family": ("family",),
}
NO_ANSWER = "no answer"
_REFUSALS = {NO_ANSWER, "refusal", "refused", "error", "invalid", "unparsable", "unparseable", "parse error", "n/a"}
_PAIRWISE = ("g1_winner", "g2_winner")  # of FastChat: the verdicts on both orders, swapped back
_LONG_PROMPT = 60  # letters; a longer one is a text and no name


def read_verdict_files(
    files: Sequence[File],
    *,
    classes: Any = None,
    swap: Sequence[Any] | None = None,
    duplicates: Duplicates = "keep",
    missing: Missing = "error",
    **named: str | None,
) -> Annotations:
    """Return the verdicts in files as annotations; see `io.read_verdicts`."""
    tables = [_read(file, named) for file in files]
    names = list(dict.fromkeys(name for table in tables for name in table.column_names))
    columns = {name: _joined([table, name] for table in tables) for name in names}
    if swap is not None:
        columns["label"] = _swapped(columns["label"], columns.get("order"), swap)
    columns["label"] = _answered(columns["label"])
    kinds = _classes_and_answers(columns["label"], classes)
    return Annotations.from_frame(pa.table(columns), **kinds, duplicates=duplicates, missing=missing)


def _read(file: File, named: Mapping[str, str | None]) -> pa.Table:
    """Return the verdicts of a file with the columns task, worker, label, and the optional ones that there are."""
    with naming(file):
        table = read_table(file)
        if set(_PAIRWISE) <= set(table.column_names):
            return _pairwise(table)
        found = {role: _place(table, role, named.get(role)) for role in COLUMNS}
        lacking = [role for role in ("task", "label") if found[role] is None]
        lacking += ["worker"] if found["worker"] is None and found["model"] is None else []
        if lacking:
            raise ValueError(
                f"a column must hold the {lacking[0]} of each verdict, such as "
                f"{', '.join(map(repr, COLUMNS['model' if lacking[0] == 'worker' else lacking[0]][:4]))}; got "
                f"{shorten(table.column_names, 20)}. Name it with {argument(lacking[0])}"
            )
        return _canonical({role: id_column(table, name, file) for role, name in found.items() if name}, table)


def _place(table: pa.Table, role: str, name: str | None) -> str | None:
    if name is not None and name not in table.column_names:
        raise ValueError(f"the {role} column must be one of {shorten(table.column_names, 20)}; got {name!r}.")
    return name or next((one for one in COLUMNS[role] if one in table.column_names), None)


def _canonical(columns: dict[str, Any], table: pa.Table) -> pa.Table:
    """Return columns by role as those of annotations: the worker is model/prompt, its family the model."""
    n = table.num_rows
    as_they_are = ("task", "worker", "label", "weight", "order", "family")
    found: dict[str, Any] = {role: columns[role] for role in as_they_are if role in columns}
    model = columns.get("model")
    if "worker" not in columns:
        prompt = _prompts(columns["prompt"], columns["task"]) if "prompt" in columns else None
        found["worker"] = model if prompt is None else _ids_joined(model, prompt)
    if model is not None and "family" not in columns:
        found["family"] = model
    if "order" in found and pa.types.is_boolean(found["order"].type):
        found["order"] = found["order"].cast(pa.int8())
    if "logprob" in columns:
        found["probability"] = pa.array(np.minimum(np.exp(floats(columns["logprob"], "logprob", n)), 1.0))
    elif "probability" in columns:
        found["probability"] = pa.array(floats(columns["probability"], "probability", n))
    spread = {name: table.column(name) for name in table.column_names if name.startswith(SPREAD)}
    return pa.table(found | ({} if "probability" in found else spread))


def _prompts(prompt: Any, task: Any) -> list[str | None] | None:
    """Return a short name of each prompt; None where the column holds the filled-in text of every single task."""
    codes, texts = _ids.encode(pc.fill_null(_ids.plain(prompt).cast(pa.string()), ""), "prompt")
    if len(texts) > max(2, len(_ids.encode(task, "task")[1]) / 2):
        return None
    short = max(map(len, texts)) <= _LONG_PROMPT
    names = texts.tolist() if short else [f"prompt {number + 1}" for number in range(len(texts))]
    return [names[code] or None for code in codes]


def _ids_joined(model: Any, prompt: list[str | None]) -> pa.Array:
    models = _ids.plain(model).cast(pa.string()).to_pylist()
    return pa.array([one if more is None else f"{one}/{more}" for one, more in zip(models, prompt, strict=True)])


def _pairwise(table: pa.Table) -> pa.Table:
    """Return FastChat's judgments of pairs of models, one row per order; the worker is the judge with its prompt."""
    rows = table.to_pylist()
    judges = [row["judge"] if isinstance(row["judge"], list) else [row["judge"]] for row in rows]
    about = [name for name in ("question_id", "model_1", "model_2", "turn") if name in table.column_names]
    task = ["/".join(str(row[name]) for name in about) for row in rows]
    both: dict[str, list[Any]] = {
        "task": task * 2,
        "worker": ["/".join(map(str, one[:2])) for one in judges] * 2,
        "family": [str(one[0]) for one in judges] * 2,
        "order": [0] * len(rows) + [1] * len(rows),
        "label": [row[name] for name in _PAIRWISE for row in rows],
    }
    return pa.table(both)


def _joined(parts: Any) -> pa.Array:
    """Return a column of several files, missing where one does not have it, as text unless all have numbers."""
    columns = [(table.column(name) if name in table.column_names else pa.nulls(len(table))) for table, name in parts]
    columns = [_ids.as_arrow(column, "column") if len(column) else column for column in columns]
    if len(columns) == 1:
        return columns[0]
    plain = [_ids.plain(column) for column in columns]
    kinds = {one.type for one in plain if not pa.types.is_null(one.type)}
    kind = kinds.pop() if len(kinds) == 1 else pa.large_string()
    return pa.chunked_array([one.cast(kind) for one in plain]).combine_chunks()


def _swapped(label: Any, order: Any, swap: Sequence[Any]) -> pa.Array:
    """Return labels that name the choice shown in a place as the choice itself: two trade places in other orders."""
    if order is None:
        raise ValueError(f"{argument('swap')} needs a column that says how the choices were shown; got none.")
    if len(swap) != 2 or swap[0] == swap[1]:
        raise ValueError(f"swap must be two answers, such as A and B; got {shorten(list(swap))}.")
    orders = _ids.plain(order).to_pylist()
    first = min(one for one in orders if one is not None)
    labels = _ids.plain(label).to_pylist()
    absent = [one for one in swap if one not in labels]
    if absent:
        raise ValueError(f"swap must name two answers that were given; got {show(absent[0])}, which nobody gave.")
    other = dict(zip(swap, reversed(swap), strict=True))
    pairs = zip(labels, orders, strict=True)
    return pa.array([one if at in (None, first) else other.get(one, one) for one, at in pairs])


def _answered(label: Any) -> Any:
    """Return labels in which a missing value is a separate answer: the model said nothing that could be read."""
    column = _ids.as_arrow(label, "label")
    absent = _ids.missing_in(column)
    return column if absent is None else pc.fill_null(_ids.plain(column).cast(pa.string()), NO_ANSWER)


def _classes_and_answers(label: Any, classes: Any) -> dict[str, Any]:
    """Return the classes and, where some labels are none, the answers: refusals and what could not be read."""
    seen: Ids = _ids.encode(label, "label")[1]
    if classes is None:
        words = [one for one in seen.tolist() if not (isinstance(one, str) and one.strip().casefold() in _REFUSALS)]
        return {} if len(words) in (0, len(seen)) else {"classes": words, "answers": seen}
    text = seen.dtype == object
    known = [str(one) if text else one for one in classes]
    others = [one for one in seen.tolist() if one not in known]
    return {"classes": known, "answers": [*known, *others] if others else None}
