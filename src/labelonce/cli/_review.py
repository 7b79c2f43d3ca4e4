"""`labelonce review`."""

from pathlib import Path

from labelonce.cli._print import print_note, print_rows, print_status
from labelonce.cli._source import check_outputs
from labelonce.files import DELIMITERS
from labelonce.io import detect_format, write
from labelonce.report import safe_cells
from labelonce.runs import RunFolder, read_run, review


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
