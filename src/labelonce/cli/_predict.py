"""`labelonce embed`, `labelonce predict`, `labelonce review` and `labelonce report`."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from labelonce import embed
from labelonce._messages import argument, named
from labelonce._types import TOOLS
from labelonce.cli._print import print_json, print_note, print_plain, print_rows, print_status, warnings_as_notes
from labelonce.cli._progress import shown_progress
from labelonce.cli._source import check_outputs
from labelonce.data import _ids
from labelonce.files import DELIMITERS, pictures_in
from labelonce.formats import Fields, find_labels, integers_if_all
from labelonce.io import detect_format, write
from labelonce.report import safe_cells
from labelonce.runs import QuestionOutcome, RunFolder, near, predict, read_run, read_texts, report, review


def run_predict(
    folder: Path,
    file: Path,
    *,
    task: str | None,
    output: Path | None,
    output_format: str | None,
    proba: bool,
    as_json: bool,
) -> None:
    """Write the labels of new rows."""
    check_outputs([file, *RunFolder(folder).results], output=(output, output_format))
    to_tool = output is not None and detect_format(output, format=output_format, reading=False) in TOOLS
    with warnings_as_notes():
        table = predict(folder, file, task=task, proba=proba and not to_tool, joined=to_tool)
    if output is None:
        print_rows(table, "jsonl" if as_json else "csv")
    else:
        write(table, output, format=output_format, **(_origin(folder, file, output, output_format) if to_tool else {}))
        print_status(f"{table.num_rows:,} rows -> {output}")


def _origin(folder: Path, file: Path, output: Path, output_format: str | None) -> dict[str, Any]:
    """Return what Label Studio's predictions need: the tasks of the new file, and the control of the run's export."""
    if detect_format(output, format=output_format, reading=False) != "label-studio":
        return {}
    record = read_run(folder)
    options = record.options.with_paths(near)
    found: dict[str, Any] = {"task": options.task, "label": options.label}
    if isinstance(record.result, QuestionOutcome):
        found["multiple"] = "join"
    if file.is_file() and find_labels(file, hint=False).format == "label-studio":
        found["like"] = file
    exports = [path for path in options.label_files if Path(path).is_file()]
    found["control"] = next((one for one in exports if find_labels(one, options.format).format == "label-studio"), None)
    return {name: value for name, value in found.items() if value is not None}


def run_review(folder: Path, *, output: Path | None, least: float, top: int | None, as_json: bool) -> None:
    """Write the labels of a run that are worth checking."""
    check_outputs(RunFolder(folder).results, output=(output, None))
    if not read_run(folder).outcome.estimated_accuracy.held_out:
        print_note("nothing was held out in this run: the chances below are the model's own, and usually too low.")
    table = review(folder, least=least)
    found = table.num_rows
    table = table.slice(0, top)
    if output is None:
        print_rows(table if as_json else safe_cells(table), "jsonl" if as_json else "csv")
        return
    write(safe_cells(table) if detect_format(output, reading=False) in DELIMITERS else table, output)
    actions = table["action"].to_pylist()
    counts = ", ".join(f"{actions.count(one):,} to {one}" for one in ("replace", "check") if one in actions)
    more = f" (the first of {found:,})" if found > table.num_rows else ""
    print_status(f"{table.num_rows:,} labels{more}: {counts or 'nothing to do'} -> {output}")


def run_report(folder: Path, *, gold: Path | None, as_json: bool) -> None:
    """Write the report of a run again, and print what was measured next to what was estimated."""
    record = read_run(folder)
    on_questions = isinstance(record.result, QuestionOutcome)
    estimated = None if on_questions else record.outcome.estimated_accuracy
    with warnings_as_notes():
        measured = report(folder, gold=gold)
    path = RunFolder(folder).file("report.html")
    if as_json:
        found = None if measured is None else {"value": measured.value, "low": measured.low, "high": measured.high}
        known = 0 if measured is None else measured.n_gold
        said = None if estimated is None else vars(estimated)
        print_json({"report": str(path), "estimated_accuracy": said, "measured_accuracy": found, "gold": known})
        return
    if estimated is not None:
        print_plain(f"{estimated}")
    if measured is not None:
        print_plain(
            f"measured: {measured.value:.1%} of {measured.n_gold:,} known labels are right "
            f"({measured.low:.1%} to {measured.high:.1%})"
        )
        if measured.seen_by_fit:
            print_plain("but the run was trained with these true labels, so this measures nothing")
    print_plain(f"-> {path}")


def run_embed(
    source: Path, output: Path, *, model: str | None, text: str | None, task: str | None, suffix: bool, as_json: bool
) -> None:
    """Write one row of numbers per text or image."""
    check_outputs([source], output=(output, None))
    if source.is_dir() == (text is not None):
        got = f"a folder and {named('text')}" if text is not None else f"the file {source} alone"
        raise ValueError(f"embed must have a folder of images, or a table with {argument('text')}; got {got}.")
    with warnings_as_notes(), shown_progress(as_json=as_json) as progress:
        if text is None:
            paths = pictures_in(source, suffix=suffix)
            ids = integers_if_all(list(paths))
            found = embed.images(dict(zip(ids, paths.values(), strict=True)), model=model, progress=progress)
        else:
            rows = read_texts(source, text, fields=Fields(task))
            found = embed.texts(rows.X, model=model, progress=progress)._replace(ids=rows.tasks)
    columns = {f"{place}": found.X[:, place] for place in range(found.X.shape[1])}
    write(pa.table({"task": _ids.decode(np.arange(len(found.ids), dtype=np.int32), found.ids)} | columns), output)
    if as_json:
        print_json({"rows": len(found.ids), "numbers": found.X.shape[1], "model": found.model, "output": str(output)})
    else:
        print_status(f"{len(found.ids):,} rows of {found.X.shape[1]} numbers by {found.model} -> {output}")
