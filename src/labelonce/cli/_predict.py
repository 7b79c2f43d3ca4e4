"""`labelonce predict`."""

from __future__ import annotations

from pathlib import Path

from labelonce.cli._print import print_rows, print_status
from labelonce.cli._source import check_outputs
from labelonce.io import write
from labelonce.runs import predict


def run_predict(folder: Path, file: Path, *, output: Path | None, proba: bool, as_json: bool) -> None:
    """Write the labels of new rows."""
    check_outputs([file], output=(output, None))
    table = predict(folder, file, proba=proba)
    if output is None:
        print_rows(table, "jsonl" if as_json else "csv")
    else:
        write(table, output)
        print_status(f"{table.num_rows:,} rows -> {output}")
