"""A long project replayed: 500,000 answers on 200,000 tasks, sent over HTTP as fast as they are taken.

Ten classes, 20 features, 500 workers, one service on SQLite. Memory of the service is taken after every tenth of the
answers, and again after 20,000 more requests that change nothing. Then the service is stopped and started: seconds from
the start of the process to its first answer, without a fit and after one. The fit is made by another process, on one
core at the lowest priority; meanwhile a request is sent every tenth of a second.

    python benchmarks/service_replay.py
    python benchmarks/service_replay.py --tasks 20000 --answers 50000
    python benchmarks/service_replay.py --at-once   # the answers are put into the database: start and refit only
    python benchmarks/service_replay.py --at-once --out benchmarks/results/service_replay-start.json
"""

import argparse
import asyncio
import os
import shutil
import signal
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
from one_core import RESULTS, keep
from record import markdown
from service_crowd import Server, Wire
from service_load import CLASSES, in_ms, project_of

from labelonce.service import Project
from labelonce.service._store import Answer

N_WORKERS, CONNECTIONS, MORE = 500, 40, 20_000


def answers(n_tasks: int, n: int) -> list[tuple[int, int, str]]:
    """Return worker, task and label of `n` answers, of which no worker gives two to a task."""
    rng = np.random.default_rng(0)
    rounds = -(-n // n_tasks)
    task = np.concatenate([rng.permutation(n_tasks) for _ in range(rounds)])[:n]
    turn = np.repeat(np.arange(rounds), n_tasks)[:n]
    worker = (task * 7 + turn * 131 + rng.integers(N_WORKERS // 4, size=n) * 4) % N_WORKERS
    label = rng.integers(len(CLASSES), size=n)
    rows = dict.fromkeys(zip(worker.tolist(), task.tolist(), strict=True))
    return [(one, place, CLASSES[code]) for (one, place), code in zip(rows, label.tolist(), strict=False)]


def megabytes(server: Server) -> float:
    """Return the memory that a service has in use."""
    assert server.process is not None
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


async def replayed(server: Server, tokens: list[str], rows: list[tuple[int, int, str]]) -> list[dict[str, float]]:
    """Send the answers, and return memory and answers a second after every tenth of them."""
    found, size = [{"answers": 0, "megabytes": megabytes(server)}], -(-len(rows) // 10)
    wires = [[Wire(server.port, token) for token in tokens[first::CONNECTIONS]] for first in range(CONNECTIONS)]

    async def send(first: int, part: list[tuple[int, int, str]]) -> None:
        for worker, task, label in part:
            wire = wires[first][worker // CONNECTIONS]
            body = {"key": f"{task}", "task": f"{task}", "label": label}
            code, said = await wire.ask("POST", "/api/annotations", body)
            assert code == 200, said

    for start in range(0, len(rows), size):
        part, began = rows[start : start + size], time.monotonic()
        lists = [[row for row in part if row[0] % CONNECTIONS == first] for first in range(CONNECTIONS)]
        await asyncio.gather(*(send(first, one) for first, one in enumerate(lists)))
        per_second = len(part) / (time.monotonic() - began)
        found.append({"answers": start + len(part), "megabytes": megabytes(server), "per_second": per_second})
        print(found[-1], flush=True)
    for one in wires:
        for wire in one:
            wire.close()
    return found


async def asked(server: Server, tokens: list[str], n: int) -> None:
    """Ask for tasks, which changes nothing."""
    wires = [Wire(server.port, token) for token in tokens[:20]]
    for turn in range(n):
        await wires[turn % len(wires)].ask("GET", "/api/next")
    for wire in wires:
        wire.close()


async def fitted(server: Server, token: str, admin: str) -> dict[str, Any]:
    """Let the service fit, and return the seconds that took and how long requests took meanwhile."""
    wire, own = Wire(server.port, admin), Wire(server.port, token)
    await wire.ask("POST", "/api/refit")
    started, seconds = time.monotonic(), list[float]()
    while True:
        await asyncio.sleep(0.1)
        asked_at = time.monotonic()
        await own.ask("GET", "/api/next")
        seconds.append(time.monotonic() - asked_at)
        _, progress = await wire.ask("GET", "/api/progress")
        if not progress["fitting"]:
            break
    assert progress["fit"], progress["trouble"]
    wire.close()
    own.close()
    return {"refit_seconds": time.monotonic() - started, "next_meanwhile": in_ms(seconds)}


def restarted(server: Server, name: str) -> dict[str, float]:
    """Stop a service and start it again, and return the seconds until it answers, on the clock and of the processor."""
    server.kill(signal.SIGTERM)
    started = time.monotonic()
    server.start()  # returns when it listens, which is before it answers
    urllib.request.urlopen(f"http://127.0.0.1:{server.port}/health", timeout=600).close()
    seconds = time.monotonic() - started
    assert server.process is not None
    ticks = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return {name: seconds, f"{name}_cpu": sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")}


def fill(project: Project, names: list[str], rows: list[tuple[int, int, str]]) -> None:
    """Put answers into the database."""
    store = project.store()
    for start in range(0, len(rows), 10_000):
        part = rows[start : start + 10_000]
        store.write([Answer(names[worker], f"{task}", f"{task}", label, seconds=1.0) for worker, task, label in part])
    store.close()


def table(rows: list[dict[str, Any]]) -> str:
    """Return what was measured as two tables."""
    (row,) = rows
    head = ["answers", "memory of the service, MB", "answers per second"]
    lines = [
        [f"{one['answers']:,}", f"{one['megabytes']:.0f}", f"{one['per_second']:.0f}" if "per_second" in one else ""]
        for one in row.get("memory", ())
    ]
    named = {"start": "start, no fit", "start_cpu": "of the processor", "start_with_fit": "start, with a fit"}
    named |= {"start_with_fit_cpu": "of the processor, too", "refit_seconds": "refit"}
    seconds = {f"{said}, s": f"{row[name]:.1f}" for name, said in named.items() if name in row}
    more = {"answers": f"{row['answers']:,}", "MB": f"{row['megabytes_started']:.0f}"}
    more[f"MB after {MORE:,} more requests"] = f"{row['megabytes_after_more']:.0f}"
    if "next_meanwhile" in row:
        times = ", ".join(f"{value:.0f}" for value in row["next_meanwhile"].values())
        more["next during the refit, ms: median, p99, slowest"] = times
    more["load average"] = f"{row['load_average']:.1f} on {os.cpu_count()} cores"
    found = seconds | more
    tables = [markdown(head, lines)] if lines else []
    return "\n".join([*tables, markdown(list(found), [list(found.values())])])


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=200_000)
    parser.add_argument("--answers", type=int, default=500_000)
    parser.add_argument("--at-once", action="store_true")
    parser.add_argument("--no-refit", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS / "service_replay.json")
    options = parser.parse_args()
    began, folder = time.perf_counter(), Path(tempfile.mkdtemp())
    project = project_of(folder, options.tasks, 0, requests_per_second=10_000.0)
    names, settings = [f"w{i}" for i in range(N_WORKERS)], {"workers": N_WORKERS, "classes": len(CLASSES)}
    tokens, admin = list(project.add_workers(names).values()), project.add_admin()
    server = Server(project.folder)
    try:
        rows = answers(options.tasks, options.answers)
        row: dict[str, Any] = {"tasks": options.tasks, "answers": len(rows)}
        if options.at_once:
            fill(project, names, rows)
            server.start()
        else:
            server.start()
            row["memory"] = asyncio.run(replayed(server, tokens, rows))
        row |= restarted(server, "start")
        before = megabytes(server)
        asyncio.run(asked(server, tokens, MORE))
        row |= {"megabytes_started": before, "megabytes_after_more": megabytes(server)}
        row["load_average"] = os.getloadavg()[0]
        keep(options.out, [row], table, began, settings)  # on a busy machine the fit may take long
        if options.no_refit:
            return
        row |= asyncio.run(fitted(server, tokens[0], admin))
        row |= restarted(server, "start_with_fit") | {"load_average": os.getloadavg()[0]}
    finally:
        server.kill(signal.SIGTERM)
        shutil.rmtree(folder, ignore_errors=True)
    keep(options.out, [row], table, began, settings)


if __name__ == "__main__":
    main()
