"""Time every aggregator at 100k and 1M annotations, beside crowd-kit where it has the method.

As `run.py`: each row in its own process on one core, the cheapest of a few runs. Two classes for KOS, which crowd-kit
has only for two; ten for the rest. `make bench-aggregators` runs this; results go to results/aggregators.json and .md.
"""

import json
import platform
import tempfile
from pathlib import Path
from typing import Any

from crowd import write_crowd
from run import HERE, best_of, cpu_name

TWO_CLASSES = {"kos"}
ITERATIONS = {
    "wawa": 0,
    "one-coin": 20,
    "glad": 20,
    "mace": 20,
    "mace em": 20,
    "mean field": 20,
    "belief propagation": 20,
    "kos": 100,
    "eigen ratio": 0,
}
CROWD_KIT = {"wawa": 0, "one-coin": 20, "glad": 1, "mace": 20, "kos": 100}
REPEATS = 3


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return one line a method: ours at both sizes, the growth, and crowd-kit's factor at 100k."""
    lines = [
        "| method | iterations | CPU s at 100k | CPU s at 1M | growth | peak MB at 1M | accuracy at 1M "
        "| crowd-kit at 100k: iterations | CPU s | times ours |",
        "|---" * 10 + "|",
    ]
    found = {(row["peer"], row["work"], row["size"]): row for row in rows}
    for work, iterations in ITERATIONS.items():
        small, large = found["labelonce", work, "100k"], found["labelonce", work, "1M"]
        growth = large["cpu_s"] / small["cpu_s"]
        cells = [work, iterations or "", f"{small['cpu_s']:.3f}", f"{large['cpu_s']:.2f}", f"{growth:.0f}"]
        cells += [f"{large['peak_mb']:.0f}", f"{large['accuracy']:.4f}"]
        peer = found.get(("crowd-kit", work, "100k"))
        if peer:
            factor = peer["cpu_s"] / small["cpu_s"]
            cells += [peer["iterations"] or "", f"{peer['cpu_s']:.2f}", f"{factor:.0f}"]
        else:
            cells += ["", "", ""]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Make the crowds, run every row, write the results."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in ("100k", "1M"):
            for n_classes in (2, 10):
                (place := Path(folder, str(n_classes))).mkdir(exist_ok=True)
                write_crowd(size, place, strings=False, n_classes=n_classes)
        plan = [("labelonce", work, size, n) for work, n in ITERATIONS.items() for size in ("100k", "1M")]
        plan += [("crowd-kit", work, "100k", n) for work, n in CROWD_KIT.items()]
        for peer, work, size, iterations in plan:
            repeats = 1 if (peer, work) == ("crowd-kit", "glad") else REPEATS
            place = Path(folder, "2" if work in TWO_CLASSES else "10")
            rows.append(best_of(repeats, peer, work, size, iterations, str(place)))
            print(json.dumps(rows[-1]), flush=True)
    about = {
        "command": "make bench-aggregators",
        "python": platform.python_version(),
        "machine": cpu_name(),
        "cores used": 1,
        "best of": REPEATS,
        "crowd-kit's GLAD": "one run",
    }
    (HERE / "results" / "aggregators.json").write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")
    (HERE / "results" / "aggregators.md").write_text(markdown(rows))
    print(markdown(rows))


if __name__ == "__main__":
    main()
