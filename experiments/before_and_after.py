"""Test accuracy of MBEM's default now and in an earlier commit, on every cell that both have run.

The earlier results are read from the repository's history, so this needs a clone.

    python experiments/before_and_after.py                    # against 541c069, before the inference was written once
    python experiments/before_and_after.py --commit 216f044
"""

import argparse
import json
import subprocess
from collections.abc import Iterator
from statistics import fmean

from record import RESULTS, Trial, markdown, read, write_text

FILES = ("digits", "labelme_simulated", "mbem_on_real_crowds", "leaderboard")


def cells(file: str, trials: list[Trial]) -> Iterator[tuple[str, tuple[int, float]]]:
    """Yield the cell of every trial of MBEM, its draw and its test accuracy in %."""
    for row in trials:
        accuracy = row["accuracy"]
        if file == "leaderboard" and row["method"] == "MBEM":
            yield f"{row['data']}, {row['redundancy']} per task", (row["seed"], 100 * accuracy)
        elif file == "mbem_on_real_crowds":
            yield f"{row['name']}, {row['redundancy']} per task", (row["seed"], 100 * accuracy["MBEM"])
        elif file != "leaderboard":
            place = (
                f"{row['crowd']}, quality {row['quality']:g}, {row['redundancy']} per task, {row['n_tasks']:,} tasks"
            )
            yield place, (row["seed"], 100 * accuracy["MBEM"])


def means(file: str, trials: list[Trial], shared: set[tuple[str, int]]) -> dict[str, float]:
    """Return the mean accuracy of every cell over the draws that are shared."""
    found: dict[str, list[float]] = {}
    for place, (seed, accuracy) in cells(file, trials):
        if (place, seed) in shared:
            found.setdefault(place, []).append(accuracy)
    return {place: fmean(values) for place, values in found.items()}


def rows(commit: str) -> Iterator[list[str]]:
    """Yield a row of the table for every cell, and the mean of every file."""
    for file in FILES:
        path = f"{commit}:experiments/results/{file}.json"
        shown = subprocess.run(["git", "show", path], capture_output=True, check=True, cwd=RESULTS).stdout
        both = [json.loads(shown)["trials"], read(RESULTS / f"{file}.json")]
        drawn = [{(place, seed) for place, (seed, _) in cells(file, trials)} for trials in both]
        before, after = (means(file, trials, drawn[0] & drawn[1]) for trials in both)
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
