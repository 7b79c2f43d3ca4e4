"""`labelonce report`."""

from pathlib import Path

from labelonce.cli._print import print_json, print_plain, warnings_as_notes
from labelonce.runs import QuestionOutcome, RunFolder, read_run, report


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
