"""`labelonce predict`."""

from pathlib import Path
from typing import Any

from labelonce._types import TOOLS
from labelonce.cli._print import print_rows, print_status, warnings_as_notes
from labelonce.cli._source import check_outputs
from labelonce.formats import find_labels
from labelonce.io import detect_format, write
from labelonce.runs import QuestionOutcome, RunFolder, near, predict, read_run


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
