"""New rows through the model of a run folder."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from labelonce._types import TABLES, TOOLS
from labelonce.data import _ids
from labelonce.files import column_names, find_columns, naming
from labelonce.formats import Fields, find_labels
from labelonce.multilabel import MultiLabelMBEM
from labelonce.runs._folder import RunFolder, as_train_wrote
from labelonce.runs._images import check_extras, flattened, read_new_images
from labelonce.runs._inputs import ARRAYS, Rows, read_features, read_texts
from labelonce.runs._model_file import load
from labelonce.runs._questions import predict_questions
from labelonce.runs._record import ImageInput, RunRecord, TextInput


def read_run(folder: Path) -> RunRecord:
    """Return the record of the finished run in a folder; without one it is an error."""
    run = RunFolder(folder)
    record = run.finished()
    if record is None:
        fix = f"Resume with: labelonce train --resume -o {folder}" if run.is_unfinished else "Was it written by train?"
        raise ValueError(f"{folder} must hold a finished run; got no run.json. {fix}")
    return record


def predict(
    folder: Path, path: Path, *, task: str | None = None, proba: bool = False, joined: bool = False
) -> pa.Table:
    """Return label and confidence of every row of a file or image of a folder; with `proba` also of every class.

    The task ids of the rows are in the column `task`, by default in that of the run, in one named task, or in the only
    column whose values all differ and that the model does not use.
    A run on questions gives one column for each of them instead, or if `joined` one label "cat|dog" for all that are
    answered yes, without the tasks that have none.
    """
    record = read_run(folder)
    rows = _read_rows(path, record, task)
    clf: Any = load(RunFolder(folder).file("model.skops"))
    with as_train_wrote(folder):
        if isinstance(clf, MultiLabelMBEM):
            return predict_questions(clf, rows, proba=proba, joined=joined)
        probabilities = clf.predict_proba(rows.X)
        labels = _ids.decode(probabilities.argmax(axis=1).astype("int32"), clf.classes_)
        columns = {"task": pa.array(rows.tasks), "label": labels, "confidence": probabilities.max(axis=1)}
        if proba:
            columns |= {f"probability_{name}": probabilities[:, k] for k, name in enumerate(clf.classes_)}
        return pa.table(columns)


def _read_rows(path: Path, record: RunRecord, task: str | None) -> Rows:
    """Return the rows with the columns that the run was trained on."""
    options, features = record.options, record.features
    if isinstance(features, ImageInput):
        check_extras(options)
        rows = read_new_images(path, features.size, features.named)
        return flattened(rows) if options.effort == "quick" else rows
    if task is not None and path.suffix not in ARRAYS and (file := find_labels(path, hint=False)).format in TABLES:
        with naming(file):
            find_columns(column_names(file), {"task": task})
    if isinstance(features, TextInput):
        file = find_labels(path, hint=False)
        texts = file if file.format in TOOLS else path
        return read_texts(texts, features.column, fields=Fields(task or options.task), new=True)
    missing = options.model == "boost"
    rows = read_features(path, task=task or options.task, columns=features.columns, missing=missing, new=True)
    if rows.X.shape[1] != features.number:
        raise ValueError(
            f"{path} must have the {features.number} features that the run was trained on; got {rows.X.shape[1]}."
        )
    return rows
