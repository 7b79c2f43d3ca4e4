"""CPU seconds and memory of one piece of work in one process; runs in every peer's environment."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def peak_mb() -> float:
    """Return the largest resident memory of this process so far, in MB (getrusage would count its parent's)."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def report(job: Callable[[], Any], score: Callable[[Any], float], **about: Any) -> None:
    """Run the job once and print what it took as one JSON line."""
    before, cpu, wall = peak_mb(), time.process_time(), time.perf_counter()
    result = job()
    cpu, wall, peak = time.process_time() - cpu, time.perf_counter() - wall, peak_mb()
    row = {"cpu_s": cpu, "wall_s": wall, "before_mb": before, "peak_mb": peak, "accuracy": score(result)}
    print(json.dumps(about | row))
