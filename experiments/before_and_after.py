"""What the defaults reach now and in an earlier commit, in %, on every cell and draw that both have run.

Test accuracy of MBEM; for confidence the share of the labels shown that is right; for ImageNet-ReaL and the texts of
medical relations average precision; for medical relations without texts the accuracy for TREATS; for routing the mean
test accuracy while the budget is spent; for Tiny ImageNet top-1 accuracy. Trials of the last two that still have the
seconds they had were not run again and are left out.

The earlier results are read from the repository's history, so this needs a clone.

    python experiments/before_and_after.py                    # against 541c069, before the inference was written once
    python experiments/before_and_after.py --commit 216f044
    python experiments/before_and_after.py --rerun /tmp/routing.json    # in place of experiments/results/routing.json
"""

import argparse
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean

from record import RESULTS, Trial, markdown, read, write_text


def _medical(row: Trial) -> float | None:
    """Return average precision or accuracy, where trials were run again: with seven judgements or more."""
    figure = "TREATS AP" if row["method"].startswith("text") else "TREATS accuracy"
    return float(row[figure]) if row["judgements"] >= 7 else None


def _routing(row: Trial) -> float:
    """Return the mean accuracy over the refits, which earlier results note as such, later ones as right test tasks."""
    return fmean(row["accuracy"] if "accuracy" in row else (right / row["tested"] for right in row["right"]))


PER_TASK = "{redundancy} per task"
SIMULATED = "{crowd}, quality {quality:g}, " + PER_TASK + ", {n_tasks:,} tasks"
TINY = "{crowd}, quality {quality:g}, {redundancy} per image, {method}"
OURS = ("groups given", "groups found", "true workers")
CELLS: dict[str, tuple[str, Callable[[Trial], float | None]]] = {  # by results file: a cell's name, and its value
    "digits": (SIMULATED, lambda row: row["accuracy"]["MBEM"]),
    "labelme_simulated": (SIMULATED, lambda row: row["accuracy"]["MBEM"]),
    "mbem_on_real_crowds": ("{name}, " + PER_TASK, lambda row: row["accuracy"]["MBEM"]),
    "leaderboard": ("{data}, " + PER_TASK, lambda row: row["accuracy"] if row["method"] == "MBEM" else None),
    "confidence": ("{name}, " + PER_TASK, lambda row: row["right"]),
    "medical_relations": ("{method}, {judgements} judgements", _medical),
    "imagenet_real": ("{method}, {votes} votes", lambda row: row["AP"]),
    "routing": ("{world}, {crowd}, {strategy}", _routing),
    "tiny_imagenet_figure2": (TINY, lambda row: row["top1"] / 100 if row["method"] in OURS else None),
}
IN_PART = {"routing": "cpu_s", "tiny_imagenet_figure2": "seconds"}  # seconds tell which trials were run again


def draws(file: str, trials: list[Trial]) -> dict[tuple[str, int], tuple[float, str]]:
    """Return the value in % of every cell and draw, and the seconds where they tell what was run again."""
    (name, value), found = CELLS[file], {}
    for row in trials:
        measured = value(row)
        if measured is not None:
            place = name.format(**row).replace("99 judgements", "all judgements")
            found[place, row["seed"]] = 100 * measured, f"{row[IN_PART[file]]:.5g}" if file in IN_PART else ""
    return found


def rows(commit: str, rerun: Path | None) -> Iterator[list[str]]:
    """Yield a row of the table for every cell that was run again, and the mean of every file."""
    for file in CELLS:
        path = f"{commit}:experiments/results/{file}.json"
        shown = subprocess.run(["git", "show", path], capture_output=True, check=True, cwd=RESULTS).stdout
        again = rerun if rerun is not None and rerun.stem == file else RESULTS / f"{file}.json"
        before, after = draws(file, json.loads(shown)["trials"]), draws(file, read(again))
        cells: dict[str, list[tuple[float, float]]] = {}
        for (place, seed), (old, seconds) in before.items():
            new, seconds_now = after.get((place, seed), (old, seconds))
            if (place, seed) in after and (file not in IN_PART or seconds != seconds_now):
                cells.setdefault(place, []).append((old, new))
        means = {place: [fmean(values) for values in zip(*pairs, strict=True)] for place, pairs in cells.items()}
        for place, (old, new) in means.items():
            yield [file, place, f"{old:.1f}", f"{new:.1f}", f"{new - old:+.1f}"]
        if means:
            change = fmean(new - old for old, new in means.values())
            yield [f"**{file}**", f"**mean of {len(means)}**", "", "", f"**{change:+.2f}**"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commit", default="541c069", help="the earlier commit")
    parser.add_argument("--rerun", type=Path, help="results read in place of those with the same name")
    options = parser.parse_args()
    table = markdown(["results", "cell", "before", "now", "change"], rows(options.commit, options.rerun))
    write_text(RESULTS / "before_and_after.md", table)
    print(table)
