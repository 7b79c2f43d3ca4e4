"""Write the index of all experiments and benchmarks, experiments/README.md, from their docstrings and results.

python experiments/index.py
"""

import ast
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from record import markdown, write_text

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "experiments" / "README.md"
NAMED_AFTER_SETS = {"quality_and_redundancy": ("digits", "labelme_simulated"), "service_load": ("service",)}
OF_A_TRIAL = ("seconds_in_all", "cpu_s", "total_s", "seconds")
TEXT = """# Experiments and benchmarks

Written by `python experiments/index.py`. One script per claim; its docstring says what is measured and how. Results lie
next to the scripts as JSON (trials with their seeds, settings, versions, machine and time) and as a Markdown table that
the docs include. `record.py` writes, resumes and tabulates them for both folders; every experiment takes `--table`
(make the table again), `--again` (start again instead of resuming), `--jobs`, `--minutes` (start no trial after so
long) and `--out` (another results file, as for comparing a rerun with what is committed). Seconds are the sum of what
the trials took, or the wall time that the results file notes where that is longer. Scripts marked * need a
[data folder](../docs/datasets.md).

## Experiments: how accurate

{experiments}
## Benchmarks: how fast and how small

`make bench` and `make bench-aggregators` set up the environments of both peers first.

{benchmarks}
Helpers: `experiments/{{record,data_sets,draws,curves,judge_panels,index}}.py`,
`benchmarks/{{crowd,measure,one_core,peer_labelonce,peer_crowdkit,mbem_overhead_work}}.py`.
"""


def scripts(folder: str) -> Iterator[tuple[Path, str, str]]:
    """Yield every script that has a command, its docstring and the command."""
    for path in sorted((ROOT / folder).glob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text())) or ""
        command = re.search(rf"^\s*((?:\.venv-[a-z-]+/bin/)?python {folder}/{path.name}[^#\n]*)", text, re.MULTILINE)
        if command and path != Path(__file__):
            yield path, text, command[1].strip()


def results_of(script: Path) -> list[Path]:
    """Return the result files of a script, one for each name, the table if there is one."""
    folder = script.parent / "results"
    names = NAMED_AFTER_SETS.get(script.stem, (script.stem,))
    found = sorted(path for path in folder.glob("*") if path.stem in names or path.stem.split("-")[0] in names)
    image = ROOT / "docs" / "images" / f"{script.stem}.png"
    tabled = {path.stem for path in found if path.suffix == ".md"}
    tables = [path for path in found if path.suffix == ".md" or path.stem not in tabled]
    return tables or ([image] if image.exists() else [])


def seconds_of(path: Path) -> float:
    """Return what the trials of a results file took, or the wall time that it notes where that is longer.

    Neither is enough: the wall time of a file that was resumed is that of its last run, and not all trials note theirs.
    """
    if not path.exists():
        return 0.0
    found = json.loads(path.read_text())
    sums = (_sum_of(name, found["trials"]) for name in OF_A_TRIAL)
    return max(float(found.get("seconds", 0.0)), next(filter(None, sums), 0.0))


def _sum_of(name: str, value: Any) -> float:
    if isinstance(value, dict):
        own = value.get(name)
        return float(own) if isinstance(own, int | float) else sum(_sum_of(name, one) for one in value.values())
    return sum(_sum_of(name, one) for one in value) if isinstance(value, list) else 0.0


def table(folder: str) -> str:
    """Return one line per script: claim, command, result file, seconds."""
    rows = []
    for script, text, command in scripts(folder):
        claim = " ".join(text.split("\n\n")[0].split()).removesuffix(".")
        claim += " *" if "data of datasets.md" in " ".join(text.split()) else ""
        results = results_of(script)
        places = [Path(os.path.relpath(path, PAGE.parent)).as_posix() for path in results]
        links = ", ".join(f"[{path.name}]({place})" for path, place in zip(results, places, strict=True))
        total = sum(seconds_of(path.with_suffix(".json")) for path in results)
        rows.append([claim, f"`{command}`", links, f"{total:,.0f}" if total else ""])
    return markdown(["claim", "command", "results", "seconds"], rows)


def page() -> str:
    return TEXT.format(experiments=table("experiments"), benchmarks=table("benchmarks"))


if __name__ == "__main__":
    write_text(PAGE, page())
