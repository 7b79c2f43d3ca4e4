"""The service under load: 200 simulated workers, 100k tasks, a refit all the while; then twenty times kill -9.

Load: every worker asks for a task and answers it about every 0.8 seconds, so 500 requests a second in all, over
connections that stay open. The project has 100k tasks with 20 features and ten classes, and 20k labels from before; a
refit is started first and again whenever it ends. Milliseconds are those that the workers wait, from this process, on
the same machine, so they hold what this process itself is late: that is measured by a clock next to the workers, which
wakes up every ten milliseconds. The share of a core that this process, the service and the refits use is in the table,
too. Kill: 50 workers without a pause; what is not acknowledged is sent again with the same key. Counted
are acknowledged answers that are not in the database, and answers that are there twice.

    python benchmarks/service_load.py
    python benchmarks/service_load.py --seconds 20 --kills 3
"""

import argparse
import asyncio
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from one_core import RESULTS, keep
from record import tabulated
from service_crowd import Log, Server, Wire, work

import labelonce as lo
from labelonce.service import Project
from labelonce.service._store import Answer

N_TASKS, N_CLASSES, N_WORKERS, N_BEFORE = 100_000, 10, 200, 20_000
PAUSE = 0.8
CLASSES = [str(one) for one in range(N_CLASSES)]


def project_of(folder: Path, n_tasks: int, n_before: int, **settings: Any) -> Project:
    """Return a project whose features tell much of the class, with labels from before."""
    rng = np.random.default_rng(0)
    y = rng.integers(N_CLASSES, size=n_tasks)
    X = rng.normal(size=(n_tasks, 20)) + 2 * rng.normal(size=(N_CLASSES, 20))[y]
    lo.write(pa.table({"task": np.arange(n_tasks)} | {f"x{i}": X[:, i] for i in range(20)}), folder / "tasks.parquet")
    project = Project.make(folder / "project", folder / "tasks.parquet", CLASSES, **{"refit_every": 10**9} | settings)
    store = project.store()
    given = np.where(rng.random(n_before) < 0.8, y[:n_before], rng.integers(N_CLASSES, size=n_before))
    store.write([Answer(f"old {i % 50}", f"{i}", f"{i}", str(label)) for i, label in enumerate(given.tolist())])
    store.close()
    return project


def at_work(
    ports: list[int], tokens: dict[str, str], going: Callable[[], bool], log: Log, pause: float
) -> list[asyncio.Task[None]]:
    """Let everybody begin to label, each request at any of the services."""
    options: dict[str, Any] = {"pause": pause, "classes": CLASSES}
    return [asyncio.create_task(work(ports, worker, token, going, log, **options)) for worker, token in tokens.items()]


async def lateness(going: Callable[[], bool]) -> list[float]:
    """Return how late this process is, in seconds, every ten milliseconds: what a worker waits for nothing."""
    found, step = [], 0.01
    while going():
        asked = time.monotonic()
        await asyncio.sleep(step)
        found.append(time.monotonic() - asked - step)
    return found


def cpu_seconds(process: int) -> tuple[float, float]:
    """Return the processor time of a process, and of its children."""
    children = 0.0
    for task in Path(f"/proc/{process}/task").iterdir():
        for child in (task / "children").read_text().split():
            children += sum(_times(int(child)))
    own = _times(process)
    return own[0], own[1] + children


def _times(process: int) -> tuple[float, float]:
    """Return the processor time of a process, and of its children that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(") ", 1)[1].split()
    user, system, ended_user, ended_system = (int(one) / os.sysconf("SC_CLK_TCK") for one in fields[11:15])
    return user + system, ended_user + ended_system


def in_ms(seconds: list[float]) -> dict[str, float]:
    """Return the median, the 99th percentile and the largest of times."""
    ms = 1000 * np.array(seconds)
    return {"median": float(np.median(ms)), "p99": float(np.percentile(ms, 99)), "most": float(ms.max())}


async def refitting(wire: Wire, until: float, every: float) -> float:
    """Refit whenever no refit runs, until some time, and return the share of looks at the service that found one."""
    looks = fitting = 0
    while time.monotonic() < until:
        await asyncio.sleep(every)
        _, progress = await wire.ask("GET", "/api/progress")
        looks, fitting = looks + 1, fitting + progress["fitting"]
        if not progress["fitting"]:
            await wire.ask("POST", "/api/refit")
    return fitting / looks


def waited(log: Log, seconds: float) -> dict[str, Any]:
    """Return requests a second, how long they took and how they were answered."""
    found: dict[str, Any] = {"requests_per_second": sum(map(len, log.seconds.values())) / seconds}
    found |= {name: in_ms(taken) for name, taken in log.seconds.items()}
    return found | {"codes": {str(code): n for code, n in log.codes.items()}, "load_average": os.getloadavg()[0]}


async def under_load(server: Server, tokens: dict[str, str], admin: str, seconds: float) -> dict[str, Any]:
    """Return how long requests took while a refit was running."""
    log, wire = Log(), Wire(server.port, admin)
    await wire.ask("POST", "/api/refit")
    until = time.monotonic() + seconds + 5
    going = at_work([server.port], tokens, lambda: time.monotonic() < until, log, PAUSE)
    await asyncio.sleep(5)  # until everybody is at work
    log.seconds, log.codes = {"next": [], "post": []}, {}
    late = asyncio.create_task(lateness(lambda: time.monotonic() < until - 1))
    assert server.process is not None
    before, started = (time.process_time(), *cpu_seconds(server.process.pid)), time.monotonic()
    fitting = await refitting(wire, until - 1, 1)
    taken = time.monotonic() - started
    after = (time.process_time(), *cpu_seconds(server.process.pid))
    cores = [(then - now) / taken for now, then in zip(before, after, strict=True)]
    await asyncio.gather(*going)
    wire.close()
    row: dict[str, Any] = {"kind": "load", "seconds": taken, "fitting": fitting} | waited(log, taken)
    return row | {"late": in_ms(await late), "cores": dict(zip(("workers", "service", "refits"), cores, strict=True))}


async def with_kills(server: Server, tokens: dict[str, str], n_kills: int) -> Log:
    """Kill the service again and again, and return what was acknowledged."""
    log, killed = Log(), 0
    going = at_work([server.port], dict(list(tokens.items())[:50]), lambda: killed < n_kills, log, 0.01)
    for _ in range(n_kills):
        before = len(log.kept)
        while len(log.kept) < before + 100:
            await asyncio.sleep(0.01)
        server.kill()
        await asyncio.to_thread(server.start)
        killed += 1
    await asyncio.gather(*going)
    return log


def kill_row(project: Project, log: Log, n_kills: int) -> dict[str, Any]:
    """Return what the database has of what was acknowledged."""
    store = project.store()
    rows = store.answers()
    store.close()
    found = {f"{row.worker} {row.key}": (row.worker, row.task, row.label) for row in rows}
    lost = sum(1 for key, value in log.kept.items() if found.get(key) != value)
    twice = len(rows) - len({(row.worker, row.task) for row in rows})
    return {"kind": "kill", "kills": n_kills, "acknowledged": len(log.kept), "lost": lost, "twice": twice}


def times(kind: str) -> str:
    """Return the format of what `in_ms` returns."""
    return ", ".join(f"{{{kind}[{part}]:.0f}}" for part in ("median", "p99", "most"))


TIMES = {f"{kind}, ms: median, p99, slowest": times(kind) for kind in ("next", "post")}
LOAD = "{load_average:.1f} on " + f"{os.cpu_count()} cores"


def with_refused(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the number of answers that were no 200."""
    return row | {"refused": sum(n for code, n in row["codes"].items() if code != "200")}


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as two tables."""
    columns = {
        "requests per second": "{requests_per_second:.0f}",
        **TIMES,
        "of that the workers' own, ms": times("late"),
    }
    columns |= {"time with a refit running": "{fitting:.0%}"}
    columns["cores: workers, service, refits"] = "{cores[workers]:.2f}, {cores[service]:.2f}, {cores[refits]:.2f}"
    columns |= {"answers that were no 200": "{refused}", "load average of the machine": LOAD}
    tables = [tabulated([with_refused(row) for row in rows if row["kind"] == "load"], columns)]
    if kills := [row for row in rows if row["kind"] == "kill"]:
        columns = {"kill -9": "{kills}", "acknowledged answers": "{acknowledged}"}
        tables.append(tabulated(kills, columns | {"lost": "{lost}", "there twice": "{twice}"}))
    return "\n".join(tables)


def main() -> None:
    """Measure both and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--out", type=Path, default=RESULTS / "service.json")
    options = parser.parse_args()
    started, folder = time.perf_counter(), Path(tempfile.mkdtemp())
    settings = {"tasks": N_TASKS, "workers": N_WORKERS, "labels_before": N_BEFORE, "pause": PAUSE}

    def note(row: dict[str, Any]) -> None:
        rows.append(row)
        keep(options.out, rows, table, started, settings)

    rows: list[dict[str, Any]] = []
    project = project_of(folder, N_TASKS, N_BEFORE)
    tokens, admin = project.add_workers([f"w{i}" for i in range(N_WORKERS)]), project.add_admin()
    server = Server(project.folder)
    server.start()
    try:
        note(asyncio.run(under_load(server, tokens, admin, options.seconds)))
        if options.kills:
            note(kill_row(project, asyncio.run(with_kills(server, tokens, options.kills)), options.kills))
    finally:
        server.kill(signal.SIGTERM)  # which ends its refit, too
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
