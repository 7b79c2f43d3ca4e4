"""What the defaults reach now and in an earlier commit, in %, on every cell and draw that both have run.

Test accuracy of MBEM; for confidence the share of the labels shown that is right; for ImageNet-ReaL and the texts of
medical relations average precision; for medical relations without texts the accuracy for TREATS.

The earlier results are read from the repository's history, so this needs a clone.

    python experiments/before_and_after.py                    # against 541c069, before the inference was written once
    python experiments/before_and_after.py --commit 216f044
"""

import argparse
import json
import subprocess
from collections.abc import Callable, Iterator
from statistics import fmean

from record import RESULTS, Trial, markdown, read, write_text


def _medical(row: Trial) -> float | None:
    """Return average precision or accuracy, where trials were run again: with seven judgements or more."""
    figure = "TREATS AP" if row["method"].startswith("text") else "TREATS accuracy"
    return float(row[figure]) if row["judgements"] >= 7 else None


PER_TASK = "{redundancy} per task"
SIMULATED = "{crowd}, quality {quality:g}, " + PER_TASK + ", {n_tasks:,} tasks"
CELLS: dict[str, tuple[str, Callable[[Trial], float | None]]] = {  # by results file: a cell's name, and its value
    "digits": (SIMULATED, lambda row: row["accuracy"]["MBEM"]),
    "labelme_simulated": (SIMULATED, lambda row: row["accuracy"]["MBEM"]),
    "mbem_on_real_crowds": ("{name}, " + PER_TASK, lambda row: row["accuracy"]["MBEM"]),
    "leaderboard": ("{data}, " + PER_TASK, lambda row: row["accuracy"] if row["method"] == "MBEM" else None),
    "confidence": ("{name}, " + PER_TASK, lambda row: row["right"]),
    "medical_relations": ("{method}, {judgements} judgements", _medical),
    "imagenet_real": ("{method}, {votes} votes", lambda row: row["AP"]),
}


def cells(file: str, trials: list[Trial]) -> Iterator[tuple[str, tuple[int, float]]]:
    """Yield the cell of every trial, its draw and its value in %."""
    name, value = CELLS[file]
    for row in trials:
        found = value(row)
        if found is not None:
            yield name.format(**row).replace("99 judgements", "all judgements"), (row["seed"], 100 * found)


def means(file: str, trials: list[Trial], shared: set[tuple[str, int]]) -> dict[str, float]:
    """Return the mean accuracy of every cell over the draws that are shared."""
    found: dict[str, list[float]] = {}
    for place, (seed, accuracy) in cells(file, trials):
        if (place, seed) in shared:
            found.setdefault(place, []).append(accuracy)
    return {place: fmean(values) for place, values in found.items()}


def rows(commit: str) -> Iterator[list[str]]:
    """Yield a row of the table for every cell, and the mean of every file."""
    for file in CELLS:
        path = f"{commit}:experiments/results/{file}.json"
        shown = subprocess.run(["git", "show", path], capture_output=True, check=True, cwd=RESULTS).stdout
        both = [json.loads(shown)["trials"], read(RESULTS / f"{file}.json")]
        drawn = [{(place, seed) for place, (seed, _) in cells(file, trials)} for trials in both]
        before, after = (means(file, trials, drawn[0] & drawn[1]) for trials in both)
        before = {place: old for place, old in before.items() if place in after}
        for place, old in before.items():
            yield [file, place, f"{old:.1f}", f"{after[place]:.1f}", f"{after[place] - old:+.1f}"]
        change = [after[place] - old for place, old in before.items()]
        yield [f"**{file}**", f"**mean of {len(change)}**", "", "", f"**{fmean(change):+.2f}**"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commit", default="541c069", help="the earlier commit")
    table = markdown(["results", "cell", "before", "now", "change"], rows(parser.parse_args().commit))
    write_text(RESULTS / "before_and_after.md", table)
    print(table)
