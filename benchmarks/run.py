"""Time labelonce beside crowd-kit: each row in its own process on one core. `make bench` runs this.

CPU seconds and peak memory of the work alone; reading the file is counted only in "read parquet". Both peers
read the same Parquet files. Results go to results/foundation.json, the table to results/foundation.md.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from crowd import SIZES, write_crowd

HERE = Path(__file__).parent
PYTHON = {"labelonce": sys.executable, "crowd-kit": str(HERE.parent / ".venv-crowdkit" / "bin" / "python")}
SCRIPT = {"labelonce": "peer_labelonce.py", "crowd-kit": "peer_crowdkit.py"}
ROWS = [
    ("labelonce", "majority vote", "1M", 0),
    ("crowd-kit", "majority vote", "1M", 0),
    ("labelonce", "majority vote", "10M", 0),
    ("crowd-kit", "majority vote", "10M", 0),
    ("labelonce", "dawid-skene", "100k", 20),
    ("crowd-kit", "dawid-skene", "100k", 20),
    ("labelonce", "dawid-skene", "1M", 20),
    ("labelonce", "dawid-skene float32", "1M", 20),
    ("crowd-kit", "dawid-skene", "1M", 20),
    ("labelonce", "dawid-skene", "10M", 20),
    ("labelonce", "dawid-skene float32", "10M", 20),
    ("crowd-kit", "dawid-skene", "10M", 2),
    ("labelonce", "read parquet", "1M", 0),
    ("labelonce", "read parquet", "10M", 0),
]
REPEATS = 3
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def best_of(n: int, *arguments: Any) -> dict[str, Any]:
    """Return the cheapest of n runs, the same for both peers: other work on the machine only adds to a run."""
    return min((measure(*arguments) for _ in range(n)), key=lambda row: float(row["cpu_s"]))


def measure(peer: str, work: str, size: str, iterations: int, folder: str) -> dict[str, Any]:
    """Return the row that one process on one core prints."""
    command = [PYTHON[peer], SCRIPT[peer], work, size, str(iterations), folder]
    pinned = ["taskset", "-c", "0", *command]
    done = subprocess.run(pinned, cwd=HERE, env=os.environ | ONE_THREAD, stdout=subprocess.PIPE, text=True, check=True)
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a table."""
    lines = [
        "| work | annotations | peer | iterations | CPU s | CPU s / iteration | peak MB | accuracy |",
        "|---" * 8 + "|",
    ]
    for row in rows:
        cpu, iterations = row["cpu_s"], row["iterations"]
        each = f"{cpu / iterations:.3f}" if iterations else ""
        accuracy = "" if row["work"] == "read parquet" else f"{row['accuracy']:.4f}"
        cells = [row["work"], row["size"], f"{row['peer']} {row['version']}", iterations or "", f"{cpu:.2f}", each]
        lines.append("| " + " | ".join(map(str, [*cells, f"{row['peak_mb']:.0f}", accuracy])) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Make the crowds, run every row, write the results."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            write_crowd(size, Path(folder), strings=False)
            write_crowd(size, Path(folder), strings=True)
        for peer, work, size, iterations in ROWS:
            rows.append(best_of(REPEATS, peer, work, size, iterations, folder))
            print(json.dumps(rows[-1]), flush=True)
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    about = {
        "command": "make bench",
        "python": platform.python_version(),
        "machine": cpu_name(),
        "cores used": 1,
        "best of": REPEATS,
    }
    (results / "foundation.json").write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")
    (results / "foundation.md").write_text(markdown(rows))
    print(markdown(rows))


def cpu_name() -> str:
    """Return what the processor calls itself."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


if __name__ == "__main__":
    main()
