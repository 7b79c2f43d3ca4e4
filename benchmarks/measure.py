"""CPU seconds and memory of one piece of work in one process; runs in every peer's environment."""

import json
import resource
import time
from collections.abc import Callable
from typing import Any


def peak_mb() -> float:
    """Return the largest resident memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report(work: Callable[[], Any], score: Callable[[Any], float], **about: Any) -> None:
    """Run the work once and print what it took as one JSON line."""
    before, cpu, wall = peak_mb(), time.process_time(), time.perf_counter()
    result = work()
    cpu, wall, peak = time.process_time() - cpu, time.perf_counter() - wall, peak_mb()
    row = {"cpu_s": cpu, "wall_s": wall, "before_mb": before, "peak_mb": peak, "accuracy": score(result)}
    print(json.dumps(about | row))
