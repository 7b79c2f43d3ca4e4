"""`labelonce compare`."""

from functools import partial
from pathlib import Path
from typing import Any

from labelonce.aggregation import compare_aggregators
from labelonce.cli._print import cell, print_json, print_note, print_plain, print_status, print_table
from labelonce.cli._progress import shown_progress
from labelonce.cli._source import check_no_questions, check_outputs, read_comparable
from labelonce.io import write
from labelonce.runs import find_files

_COLUMNS = {"method": "method", "agreement": "agrees", "held_out": "held out", "seconds": "seconds"}
_GOLD_COLUMNS = {"accuracy": "accuracy", "log_loss": "log-loss"}  # with these no wider than 80 characters


def run_compare(
    paths: list[Path], source: dict[str, Any], gold: Path | None, seed: int, *, output: Path | None, as_json: bool
) -> None:
    """Print the table of methods and the recommended one; gold has the columns that `source` names."""
    check_outputs([*paths, gold], output=(output, None))
    labels = find_files(paths, source.get("format"))
    check_no_questions(labels, source, "compare")
    annotations, known = read_comparable(labels, source, gold)
    with shown_progress(as_json=as_json) as progress:
        say = partial(progress, "comparing")
        comparison = compare_aggregators(annotations, gold=known, random_state=seed, progress=say)
    rows = comparison.to_frame().to_pylist()
    if output is not None:
        write(comparison.to_frame(), output)
    if as_json:
        chosen = {"recommended": comparison.recommended, "reason": comparison.reason}
        print_json(chosen | {"methods": rows, "output": output and str(output)})
        return
    print_status(f"{annotations!r}")
    names = _COLUMNS | (_GOLD_COLUMNS if known else {})
    shown = [[cell(row[key]) for key in names] for row in rows]
    print_table("Aggregators, best prediction of held-out labels first", list(names.values()), shown)
    for note, methods in _notes(rows).items():
        print_note(f"{', '.join(methods)}: {note}")
    print_plain(f"Take {comparison.recommended or 'none'}: {comparison.reason}")


def _notes(rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Return each note once, with the methods that it is about."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row["note"]:
            found.setdefault(row["note"].replace(f"{row['method']} ", "each ", 1), []).append(row["method"])
    return found
