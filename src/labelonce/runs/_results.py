"""The tables and the report of a run: what is known about every task and every worker."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from labelonce._kernels import Beliefs
from labelonce.data import Annotations, _ids, _rows, check_gold
from labelonce.io import read_gold
from labelonce.learning import MBEM
from labelonce.learning._review import review_table
from labelonce.multilabel import MultiLabelMBEM, read_multilabel_gold
from labelonce.report import (
    Accuracy,
    ClassFigures,
    class_figures,
    measured_accuracy,
    questions_accuracy,
    read_facts,
    worker_table,
    write_report,
)
from labelonce.runs._folder import RunFolder, as_train_wrote
from labelonce.runs._labels import work_in
from labelonce.runs._model_file import load
from labelonce.runs._predict import read_run
from labelonce.runs._record import near

MEDIA = ("text", "image")


def labels_of(clf: MBEM, annotations: Annotations, **shown: list[str]) -> pa.Table:
    """Return `clf.to_frame()` with the given labels and their workers as lists, and what is `shown` of every task."""
    ends = pa.array(_rows.first_rows(annotations.task, annotations.n_tasks), type=pa.int32())
    given = {"given": annotations.answers[annotations.label], "workers": annotations.workers[annotations.worker]}
    lists = {name: pa.ListArray.from_arrays(ends, pa.array(values)) for name, values in given.items()}
    table = clf.to_frame()
    for name, values in (lists | {name: pa.array(values) for name, values in shown.items()}).items():
        table = table.append_column(name, values)
    return table


def workers_of(clf: MBEM, annotations: Annotations) -> pa.Table:
    """Return `clf.workers_to_frame()` with the labels that each worker probably got wrong, and its flags."""
    table = clf.workers_to_frame()
    if annotations.is_scale:  # on which no label is right or wrong
        return table
    judged = worker_table(read_facts(clf, annotations))
    row = _ids.lookup(np.asarray(table["worker"].to_numpy(zero_copy_only=False)), annotations.workers)
    flags = pa.array([judged.names(one) for one in row.tolist()], type=pa.list_(pa.string()))
    return table.append_column("expected_wrong", pa.array(judged.wrong[row])).append_column("flags", flags)


def review(folder: Path, *, least: float | None = None) -> pa.Table:
    """Return the given labels of a finished run that are worth checking, as `MBEM.review` does, from the folder alone.

    The text or the path of the image of a task is in the table where the run has them.
    """
    outcome, run = read_run(folder).outcome, RunFolder(folder)
    with as_train_wrote(folder):
        table = run.table("labels.parquet")
        classes = _ids.column_of(outcome.classes, "classes")
        many = "posterior_class_1" in table.column_names
        shares = [] if many else [f"posterior_{name}" for name in classes]
        missing = [name for name in ("task", "label", "given", "workers", *shares) if name not in table.column_names]
        if missing:
            path = run.file("labels.parquet")
            raise ValueError(f"{path} must have a column {missing[0]!r}; got none. Train again with this version.")
        posterior: Any = _on_slots(table, classes) if many else _beside(table, shares)
        picks = _ids.lookup(_values(table["label"]), classes)
        shown = {name: table[name] for name in MEDIA if name in table.column_names}
        return review_table(given_annotations(table, classes), posterior, picks, least=least, shown=shown)


def class_figures_of(folder: Path) -> dict[Any, ClassFigures]:
    """Return the expected figures of the labels of every class of a finished run; {} with many classes."""
    outcome, run = read_run(folder).outcome, RunFolder(folder)
    with as_train_wrote(folder):
        table = run.table("labels.parquet")
        classes = _ids.column_of(outcome.classes, "classes")
        names = [f"posterior_{name}" for name in classes]
        if not {"label", "given", *names} <= set(table.column_names):
            return {}
        table = table.filter(pc.greater(pc.list_value_length(table["given"]), 0))
        labels = _ids.lookup(_values(table["label"]), classes)
        return dict(zip(outcome.classes, class_figures(_beside(table, names), labels), strict=True))


def _beside(table: pa.Table, names: list[str]) -> Any:
    return np.column_stack([table[name].to_numpy() for name in names])


def _on_slots(table: pa.Table, classes: Any) -> Beliefs:
    """Return the most probable classes that a table of many classes holds."""
    n = sum(name.startswith("posterior_class_") for name in table.column_names)
    codes, shares = [], []
    for place in range(1, n + 1):
        there = table[f"class_{place}"].is_valid().to_numpy()
        named = _values(table[f"class_{place}"].fill_null(classes[0]))
        codes.append(np.where(there, _ids.lookup(named, classes), -1))
        shares.append(table[f"posterior_class_{place}"].fill_null(0.0).to_numpy())
    probability = np.stack(shares, axis=1)
    rest = np.maximum(1 - probability.sum(axis=1), 0.0)
    return Beliefs(probability, len(classes), np.stack(codes, axis=1).astype(np.int32), rest)


def given_annotations(table: pa.Table, classes: Any) -> Annotations:
    """Return the annotations that the lists of given labels and workers hold, without answers that are no class."""
    given, workers = (table[name].combine_chunks() for name in ("given", "workers"))
    task = np.asarray(given.value_parent_indices())
    worker, table_of_workers = _ids.encode(_values(workers.flatten()), "worker")
    label = _ids.lookup(_values(given.flatten()), classes)
    kept = label >= 0  # other answers cannot be wrong
    rows = (task[kept].astype(np.int32), worker[kept], label[kept])
    return Annotations(*rows, _values(table["task"]), table_of_workers, classes)


def _values(column: Any) -> Any:
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    return _ids.to_numpy(values)


def report(folder: Path, *, gold: Path | None = None) -> Accuracy | None:
    """Write the report of a finished run again; with `gold` it measures what was estimated, and this returns it."""
    record, run = read_run(folder), RunFolder(folder)
    columns: dict[str, Any] = {"task": record.options.task}
    with run.locked(), as_train_wrote(folder):
        clf: Any = load(run.file("model.skops"))
        annotations = clf.annotations_
        asked, measured, known = isinstance(clf, MultiLabelMBEM), None, None
        if gold is not None and asked:
            known = read_multilabel_gold(gold, annotations, question=record.options.label, **columns)
        elif gold is not None:
            known = read_gold(gold, label=record.options.label, annotations=annotations, **columns)
        if known is not None:
            if not len(known):
                raise ValueError(f"{gold} must hold a true label at least; got none.")
            measured = (
                questions_accuracy(clf, annotations, known)
                if asked
                else measured_accuracy(read_facts(clf, annotations), check_gold(known, annotations))
            )
        options = record.options.with_paths(near)
        shown = _media(run) | {"run": record.with_paths(near).to_dict()}
        if not asked:
            shown["work"] = work_in(options.label_files, options.source, len(annotations))
        write_report(run.file("report.html"), clf, annotations, gold=known, **shown)
    return measured


def _media(run: RunFolder) -> dict[str, Any]:
    """Return the texts of the tasks, or the paths of their images that are still there."""
    table = run.table("labels.parquet", ["task", *MEDIA])
    names = [name for name in MEDIA if name in table.column_names]
    found = dict(zip(table["task"].to_pylist(), table[names[0]].to_pylist(), strict=True)) if names else {}
    if "image" in names:
        return {"images": {task: name for task, name in found.items() if Path(name).is_file()}}
    return {"texts": found} if names else {}
