"""A row of a comparison, measured in a process of its own on one core: labelonce here, crowd-kit in its environment."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results"
CROWD_KIT = str(HERE.parent / ".venv-crowdkit" / "bin" / "python")
PEERS = {"labelonce": [sys.executable, "peer_labelonce.py"], "crowd-kit": [CROWD_KIT, "peer_crowdkit.py"]}
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
REPEATS = 3


def printed_by(*command: str) -> list[dict[str, Any]]:
    """Return the JSON lines that a script of this folder prints, run on one core."""
    pinned, environment = ["taskset", "-c", "0", *command], os.environ | ONE_THREAD
    done = subprocess.run(pinned, cwd=HERE, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def best_of(n: int, peer: str, *arguments: Any) -> dict[str, Any]:
    """Return the cheapest of n runs, the same for both peers: other work on the machine only adds to a run."""
    command = [*PEERS[peer], *map(str, arguments)]
    return min((printed_by(*command)[-1] for _ in range(n)), key=lambda row: float(row["cpu_s"]))
