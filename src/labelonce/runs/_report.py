"""The report of a finished run, written again, also with gold that came later."""

from __future__ import annotations

from collections.abc import Sized
from pathlib import Path
from typing import Any

from labelonce.data import check_gold
from labelonce.io import read_gold
from labelonce.multilabel import MultiLabelMBEM, read_multilabel_gold
from labelonce.report import Accuracy, measured_accuracy, questions_accuracy, read_facts, write_report
from labelonce.runs._folder import RunFolder, as_train_wrote
from labelonce.runs._labels import work_in
from labelonce.runs._model_file import load
from labelonce.runs._predict import read_run
from labelonce.runs._record import near
from labelonce.runs._results import MEDIA


def report(folder: Path, *, gold: Path | None = None) -> Accuracy | None:
    """Write the report of a finished run again; with `gold` it measures what was estimated, and this returns it."""
    record, run = read_run(folder), RunFolder(folder)
    columns: dict[str, Any] = {"task": record.options.task}
    with run.locked(), as_train_wrote(folder):
        clf: Any = load(run.file("model.skops"))
        annotations = clf.annotations_
        measured, known = None, None
        if isinstance(clf, MultiLabelMBEM):
            if gold is not None:
                known = read_multilabel_gold(gold, annotations, question=record.options.label, **columns)
                _check_any(known, gold)
                measured = questions_accuracy(clf, annotations, known)
        elif gold is not None:
            known = read_gold(gold, label=record.options.label, annotations=annotations, **columns)
            _check_any(known, gold)
            measured = measured_accuracy(read_facts(clf, annotations), check_gold(known, annotations))
        shown = _media(run)
        options = record.options.with_paths(near)
        if not isinstance(clf, MultiLabelMBEM):
            shown["work"] = work_in(options.label_files, options.source, len(annotations))
        write_report(
            run.file("report.html"), clf, annotations, run=record.with_paths(near).to_dict(), gold=known, **shown
        )
    return measured


def _check_any(known: Sized, gold: Path) -> None:
    if not len(known):
        raise ValueError(f"{gold} must hold a true label at least; got none.")


def _media(run: RunFolder) -> dict[str, Any]:
    """Return the texts of the tasks, or the paths of their images that are still there."""
    table = run.table("labels.parquet", ["task", *MEDIA])
    names = [name for name in MEDIA if name in table.column_names]
    found = dict(zip(table["task"].to_pylist(), table[names[0]].to_pylist(), strict=True)) if names else {}
    if "image" in names:
        return {"images": {task: name for task, name in found.items() if Path(name).is_file()}}
    return {"texts": found} if names else {}
