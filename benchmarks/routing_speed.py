"""A router answers in milliseconds: 100k and 1M tasks, 1,000 workers, ten classes, by the default strategy.

Beliefs and workers are drawn as a refit might leave them: a refit is as slow as its learner. Then 5,000 times a random
worker asks for a task and answers it; everything counts, the renewal of the shortlist included. CPU milliseconds on
one thread: median, the 99th percentile, and the slowest call. Memory is what the whole process holds.

    python benchmarks/routing_speed.py
"""

import os
import time
from typing import Any

from one_core import ONE_THREAD, RESULTS, keep

os.environ |= ONE_THREAD
import numpy as np
from measure import peak_mb
from record import tabulated

import labelonce as lo

SIZES = {"100k": 100_000, "1M": 1_000_000}
N_WORKERS, N_CLASSES, N_CALLS, N_BATCHES = 1000, 10, 5000, 20


def router_of(n_tasks: int, *, may_decline: bool) -> lo.routing.Router:
    """Return a router that knows a thousand workers and believes something of every task."""
    rng = np.random.default_rng(0)
    limits = lo.routing.Limits(may_decline=may_decline)
    router = lo.routing.Router(range(n_tasks), range(N_CLASSES), limits=limits)
    for worker in range(N_WORKERS):
        for task in rng.integers(n_tasks, size=5):
            router.add(int(task), worker, int(rng.integers(N_CLASSES)))
    confusion = lo.simulate.class_wise_hammer_spammer(N_WORKERS, N_CLASSES, 0.3, rng)
    confusion = 0.9 * confusion + 0.1 / N_CLASSES
    chances = np.exp(rng.normal(scale=3.0, size=(n_tasks, N_CLASSES)))
    posterior = chances / chances.sum(axis=1, keepdims=True)
    router.adopt(lo.routing.Fit(posterior, confusion, range(N_WORKERS), router.answers))
    return router


def trial(name: str, n_tasks: int, *, may_decline: bool) -> dict[str, Any]:
    """Return the times of one size."""
    router, rng = router_of(n_tasks, may_decline=may_decline), np.random.default_rng(1)
    times: dict[str, list[float]] = {"next": [], "add": [], "batch of 100": []}

    def timed(kind: str, job: Any) -> Any:
        started = time.thread_time()
        result = job()
        times[kind].append(1000 * (time.thread_time() - started))
        return result

    router.next(0)  # draws the first shortlist, which belongs to the refit
    for _ in range(N_CALLS):
        worker, label = (int(rng.integers(n)) for n in (N_WORKERS, N_CLASSES))
        task = timed("next", lambda worker=worker: router.next(worker))
        if task is not None:
            timed("add", lambda task=task, worker=worker, label=label: router.add(task, worker, label))
    for _ in range(N_BATCHES):
        for task, worker in timed("batch of 100", lambda: router.next_batch(100)):
            router.add(task, worker, int(rng.integers(N_CLASSES)))
    row: dict[str, Any] = {"tasks": name, "may decline": may_decline, "peak_mb": peak_mb()}
    for kind, found in times.items():
        row[kind] = {"median": float(np.median(found)), "p99": float(np.percentile(found, 99)), "most": max(found)}
    return row


def table(rows: list[dict[str, Any]]) -> str:
    columns = {"tasks": "{tasks}", "may decline": "{declines}"}
    for kind in ("next", "add", "batch of 100"):
        times = (f"{{{kind}[{part}]:.2f}}" for part in ("median", "p99", "most"))
        columns[f"{kind}, ms: median, p99, slowest"] = ", ".join(times)
    rows = [row | {"declines": "yes" if row["may decline"] else "no"} for row in rows]
    return tabulated(rows, columns | {"memory, MB": "{peak_mb:.0f}"})


def main() -> None:
    """Measure all sizes and write the results."""
    started = time.perf_counter()
    rows = [
        trial(name, n_tasks, may_decline=may_decline)
        for name, n_tasks in SIZES.items()
        for may_decline in (False, True)
    ]
    path = RESULTS / "routing_speed.json"
    keep(path, rows, table, started, {"calls": N_CALLS})


if __name__ == "__main__":
    main()
