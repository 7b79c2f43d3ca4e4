"""New rows through the model of a run folder."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from labelonce._types import TOOLS
from labelonce.data import _ids
from labelonce.formats._answers import Fields
from labelonce.formats._registry import find_labels
from labelonce.multilabel import MultiLabelMBEM
from labelonce.runs._folder import RunFolder
from labelonce.runs._images import check_extras, read_new_images
from labelonce.runs._inputs import Rows, read_features, read_texts
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


def predict(folder: Path, path: Path, *, proba: bool = False, joined: bool = False) -> pa.Table:
    """Return label and confidence of every row of a file or image of a folder; with `proba` also of every class.

    A run on questions gives one column for each of them instead, or if `joined` one label "cat|dog" for all that are
    answered yes, without the tasks that have none.
    """
    record = read_run(folder)
    rows = _read_rows(path, record)
    clf = load(RunFolder(folder).file("model.skops"))
    if isinstance(clf, MultiLabelMBEM):
        return predict_questions(clf, rows, proba=proba, joined=joined)
    probabilities = clf.predict_proba(rows.X)
    columns = {
        "task": pa.array(rows.tasks),
        "label": _ids.decode(probabilities.argmax(axis=1).astype("int32"), clf.classes_),
        "confidence": probabilities.max(axis=1),
    }
    if proba:
        columns |= {f"probability_{name}": probabilities[:, k] for k, name in enumerate(clf.classes_)}
    return pa.table(columns)


def _read_rows(path: Path, record: RunRecord) -> Rows:
    """Return the rows with the columns that the run was trained on."""
    options, features = record.options, record.features
    if isinstance(features, ImageInput):
        check_extras()
        return read_new_images(path, features.size, features.named)
    if isinstance(features, TextInput):
        file = find_labels(path, hint=False)
        return read_texts(
            file if file.format in TOOLS else path, features.column, fields=Fields(options.task), new=True
        )
    rows = read_features(
        path,
        task=options.task or "task",
        columns=features.columns,
        missing=options.model == "boost",
        new=True,
    )
    if rows.X.shape[1] != features.number:
        raise ValueError(
            f"{path} must have the {features.number} features that the run was trained on; got {rows.X.shape[1]}."
        )
    return rows
