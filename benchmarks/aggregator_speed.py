"""How every aggregator's time grows with the annotations, and how much faster it is than crowd-kit's.

100k and 1M annotations; as in `beside_crowdkit.py`, each row runs in its own process on one core, the cheapest of a few
runs. Two classes for KOS, which crowd-kit has only for two; ten for the rest.

    python benchmarks/aggregator_speed.py    # what `make bench-aggregators` runs
"""

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from crowd import write_crowd
from one_core import REPEATS, RESULTS, best_of, keep
from record import markdown

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


def table(rows: list[dict[str, Any]]) -> str:
    """Return one line per method: ours at both sizes, the growth, and crowd-kit's factor at 100k."""
    head = ["method", "iterations", "CPU s at 100k", "CPU s at 1M", "growth", "peak MB at 1M", "accuracy at 1M"]
    head += ["crowd-kit at 100k: iterations", "CPU s", "times ours"]
    found = {(row["peer"], row["work"], row["size"]): row for row in rows}
    lines = []
    for work, iterations in ITERATIONS.items():
        small, large = found["labelonce", work, "100k"], found["labelonce", work, "1M"]
        growth = large["cpu_s"] / small["cpu_s"]
        cells = [work, iterations or "", f"{small['cpu_s']:.3f}", f"{large['cpu_s']:.2f}", f"{growth:.0f}"]
        cells += [f"{large['peak_mb']:.0f}", f"{large['accuracy']:.4f}"]
        peer = found.get(("crowd-kit", work, "100k"))
        if peer:
            cells += [peer["iterations"] or "", f"{peer['cpu_s']:.2f}", f"{peer['cpu_s'] / small['cpu_s']:.0f}"]
        else:
            cells += ["", "", ""]
        lines.append(cells)
    return markdown(head, lines)


def main() -> None:
    """Make the crowds, run every row, write the results."""
    rows, started = [], time.perf_counter()
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
            rows.append(best_of(repeats, peer, work, size, iterations, place))
            print(json.dumps(rows[-1]), flush=True)
    settings = {"cores used": 1, "best of": REPEATS, "crowd-kit's GLAD": "one run"}
    path = RESULTS / "aggregator_speed.json"
    keep(path, rows, table, started, settings)


if __name__ == "__main__":
    main()
