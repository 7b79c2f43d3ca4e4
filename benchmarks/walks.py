"""Three people's tasks, timed from the README: commands typed, seconds, and words of the pages that they read.

A file of labels to a report; a folder of photographs to links for a team; a tool's export to clean labels. The data are
made up. Words are those of the README and of the pages that the walk needs.

    python benchmarks/walks.py
"""

import contextlib
import json
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import labelonce as lo

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "walks.md"


@dataclass(frozen=True)
class Walk:
    """Who wants what, the pages read on the way, the commands typed, and the file that is wanted."""

    who: str
    pages: tuple[str, ...]
    commands: tuple[str, ...]
    wanted: str


WALKS = (
    Walk(
        "a file of labels to a report",
        ("README.md",),
        ("labelonce check labels.csv", "labelonce train labels.csv --features features.csv -o run"),
        "run/report.html",
    ),
    Walk(
        "a folder of photographs to links for a team of three",
        ("README.md", "docs/guides/label-with-your-team.md"),
        ("labelonce project pets --tasks photos --classes cat,dog --workers ann,bob,eve", "labelonce serve pets"),
        "pets/project.toml",
    ),
    Walk(
        "an export of MTurk to clean labels",
        ("README.md",),
        (
            "labelonce check Batch_1.csv",
            "labelonce aggregate Batch_1.csv --method dawid-skene -o clean.csv --workers workers.csv",
        ),
        "clean.csv",
    ),
)


def make_files(folder: Path) -> None:
    """Write what the three people have."""
    from PIL import Image

    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    y = X[:, :2].argmax(axis=1)
    crowd = lo.simulate.hammer_spammer(20, 2, 0.6, rng)
    lo.write(lo.simulate.annotate(y, crowd, lo.simulate.assign(600, 20, 1, rng), rng), folder / "labels.csv")
    rows = [",".join(map(str, [task, *row.round(4)])) for task, row in enumerate(X)]
    (folder / "features.csv").write_text("\n".join(["task,a,b,c,d,e", *rows]) + "\n")
    (folder / "photos").mkdir()
    for number in range(60):
        Image.fromarray(rng.integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(folder / "photos" / f"{number}.png")
    votes = lo.simulate.annotate(y[:200], crowd, lo.simulate.assign(200, 20, 3, rng, replace=False), rng)
    lo.write(votes, folder / "Batch_1.csv", format="mturk")


def walk(one: Walk, folder: Path) -> list[float]:
    """Return the seconds of every command; `serve` is stopped as soon as it says where it listens."""
    seconds = []
    for command in one.commands:
        words = [sys.executable, "-m", *shlex.split(command)]
        started = time.perf_counter()
        if "serve" in words:
            with subprocess.Popen([*words, "--port", "8391"], cwd=folder, stderr=subprocess.PIPE, text=True) as process:
                assert process.stderr is not None
                while "http://" not in process.stderr.readline():
                    assert process.poll() is None, command
                process.terminate()
                with contextlib.suppress(ValueError):
                    process.communicate(timeout=60)
        else:
            done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
            assert done.returncode in (0, 1), done.stderr
        seconds.append(time.perf_counter() - started)
    assert (folder / one.wanted).exists(), one.wanted
    return seconds


def main() -> None:
    lines = ["| walk | commands | seconds | words read | pages |", "|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as place:
        make_files(Path(place))
        for one in WALKS:
            took = walk(one, Path(place))
            words = sum(len((ROOT / page).read_text().split()) for page in one.pages)
            shown = " + ".join(f"{value:.0f}" for value in took)
            lines.append(f"| {one.who} | {len(one.commands)} | {shown} | {words:,} | {', '.join(one.pages)} |")
            print(lines[-1], flush=True)
    RESULTS.write_text("\n".join(lines) + "\n")
    print(json.dumps({"results": str(RESULTS)}))


if __name__ == "__main__":
    main()
