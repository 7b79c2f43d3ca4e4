"""`labelonce train`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from labelonce import runs
from labelonce._messages import argument
from labelonce.cli._print import print_note, print_plain, print_status, warnings_as_notes
from labelonce.cli._progress import shown_progress
from labelonce.cli._show import summary_of
from labelonce.embed._models import absolute_model
from labelonce.files import absolute
from labelonce.formats import listed
from labelonce.runs import Options, Progress, RunFolder, RunRecord, changed_paths, near, train


def run_train(given: dict[str, Any], explicit: set[str], output: Path, *, resume: bool, as_json: bool) -> None:
    """Train or resume, and print the results; `explicit` names the options that were on the command line."""
    labels = [str(one) for one in listed(given["labels"])] if given["labels"] else []
    given = given | {"labels": labels[0] if len(labels) == 1 else tuple(labels) or None}
    try:
        with warnings_as_notes(), shown_progress(as_json=as_json) as progress:
            record = _resume(given, explicit, output, progress) if resume else _anew(given, output, progress)
    except KeyboardInterrupt:
        print_note(f"stopped; resume with: labelonce train --resume -o {output}")
        raise typer.Exit(130) from None
    except (OSError, MemoryError):
        if RunFolder(output).checkpoint() is not None:
            print_note(f"what was done is kept; resume with: labelonce train --resume -o {output}")
        raise
    for sentence in record.warnings:
        print_note(sentence)
    print_plain(json.dumps(record.to_dict()) if as_json else summary_of(record, output))


def _anew(given: dict[str, Any], output: Path, progress: Progress) -> RunRecord:
    if given["labels"] is None:
        raise ValueError("train must have LABELS; got none. To resume a stopped run, add --resume.")
    run = RunFolder(output)
    if run.is_unfinished:
        with run.locked():  # which says so where another train is at work there
            print_note(f"{output} held an unfinished run; starting over (--resume would have resumed it)")
    return train(Options(**given), output, progress=progress, tell=print_status)


def _resume(given: dict[str, Any], explicit: set[str], output: Path, progress: Progress) -> RunRecord:
    run = RunFolder(output)
    unfinished = run.unfinished()
    job = unfinished or run.finished()
    if job is None and given["labels"] is None:
        raise ValueError(f"{output} must hold a stopped run; got none. Check the folder that -o names.")
    if job is None:
        return _anew(given, output, progress)
    recorded = asdict(job.options.with_paths(near))
    asked = given | changed_paths(given, lambda path: near(absolute(path)))
    asked["embed"] = (
        recorded["embed"] if given["embed"] == "auto" else given["embed"] and absolute_model(given["embed"])
    )
    for name in sorted(explicit):
        if unfinished and asked[name] != recorded[name]:
            raise ValueError(
                f"{argument(name)} must be {recorded[name]!r}, as when the run in {output} began; got "
                f"{given[name]!r}. Leave it out, or start again without --resume."
            )
    if unfinished:
        return runs.resume(output, progress=progress)
    if isinstance(job, RunRecord) and all(asked[name] == recorded[name] for name in explicit):
        print_note(f"{output} is finished since {job.finished}; nothing to resume")
        return job
    return _anew(given, output, progress)
