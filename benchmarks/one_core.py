"""What all benchmarks share: where results go, and rows measured in processes of their own on one core.

Importing this puts experiments/, where record.py and draws.py lie, and tests/, where the simulated workers are, on the
path.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results"
CROWD_KIT = str(HERE.parent / ".venv-crowdkit" / "bin" / "python")
PEERS = {"labelonce": [sys.executable, "peer_labelonce.py"], "crowd-kit": [CROWD_KIT, "peer_crowdkit.py"]}
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
REPEATS = 3
sys.path += [str(HERE.parent / "experiments"), str(HERE.parent / "tests")]


def keep(
    path: Path, rows: list[Any], table: Callable[[Any], str], since: float, settings: Mapping[str, Any] | None = None
) -> None:
    """Write rows and their table, made since a time of `perf_counter`, and print the table."""
    from record import write, write_text

    write(path, rows, settings=settings, seconds=time.perf_counter() - since)
    write_text(path.with_suffix(".md"), table(rows))
    print(table(rows), flush=True)


def printed_by(*command: str) -> list[dict[str, Any]]:
    """Return the JSON lines that a script of this folder prints, run on one core."""
    pinned, environment = ["taskset", "-c", "0", *command], os.environ | ONE_THREAD
    done = subprocess.run(pinned, cwd=HERE, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def best_of(n: int, peer: str, *arguments: Any) -> dict[str, Any]:
    """Return the cheapest of n runs, the same for both peers: other work on the machine only adds to a run."""
    command = [*PEERS[peer], *map(str, arguments)]
    return min((printed_by(*command)[-1] for _ in range(n)), key=lambda row: float(row["cpu_s"]))
