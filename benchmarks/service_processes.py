"""Several services on one PostgreSQL: requests a second with a refit running, and thirty random kills of any of them.

Each service has a folder of its own, as on several machines, and every request of a worker goes to any of them, as
behind a load balancer. Paced: 200 workers who ask for a task and answer it about every 0.8 seconds. As fast as it goes:
32 workers without a pause. Workers, services, refit and PostgreSQL (fsync on) share the machine. Kills: one of the
services (`kill -9`) or PostgreSQL (as by a crash, or a fast restart) is stopped at random and started again while 40
workers label without a pause; what is not acknowledged is sent again with the same key. Counted are acknowledged
answers that are not in the database, answers that are there twice, and tasks that somebody got while somebody else had
them. With `--sqlite` one service on SQLite is measured, too, for comparison.

    python benchmarks/service_processes.py --sqlite
    python benchmarks/service_processes.py --processes 4 --seconds 10 --kills 5
"""

import argparse
import asyncio
import random
import shutil
import signal
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from one_core import RESULTS, keep
from postgres_server import Postgres
from record import tabulated
from service_crowd import Log, Server, Wire, held_twice
from service_load import LOAD, PAUSE, TIMES, at_work, kill_row, project_of, refitting, waited, with_refused

from labelonce.service import Project

N_TASKS, N_BEFORE, N_WORKERS = 100_000, 20_000, 200
FAST_WORKERS, KILL_WORKERS = 32, 40


def services(project: Project, n: int, stack: ExitStack) -> list[Server]:
    """Start services, each in a folder of its own, and stop them at the end."""
    found = []
    for number in range(n):
        folder = project.folder if number == 0 else project.folder.with_name(f"copy-{number}")
        if not folder.exists():
            shutil.copytree(project.folder, folder, ignore=shutil.ignore_patterns("fits", ".service.lock"))
        found.append(Server(folder))
        found[-1].start()
        stack.callback(found[-1].kill, signal.SIGTERM)
    return found


async def under_load(servers: list[Server], tokens: dict[str, str], admin: str, seconds: float, pause: float) -> Any:
    """Return requests a second and how long they took while a refit was running."""
    log, wire, ports = Log(), Wire(servers[0].port, admin), [one.port for one in servers]
    await wire.ask("POST", "/api/refit")
    until = time.monotonic() + seconds + 3
    going = at_work(ports, tokens, lambda: time.monotonic() < until, log, pause)
    await asyncio.sleep(3)  # until everybody is at work
    log.seconds, log.codes = {"next": [], "post": []}, {}
    started = time.monotonic()
    fitting = await refitting(wire, until - 0.5, 0.5)
    row = {"fitting": fitting} | waited(log, time.monotonic() - started)
    await asyncio.gather(*going)
    wire.close()
    return row | {"codes": {str(code): n for code, n in log.codes.items()}, "held_twice": held_twice(log)}


async def with_kills(servers: list[Server], postgres: Postgres, tokens: dict[str, str], n_kills: int) -> Any:
    """Stop one of them after the other at random, and return what the workers saw and what was stopped."""
    rng, log, killed, names = random.Random(0), Log(), 0, list(tokens)[:KILL_WORKERS]
    everybody = {name: tokens[name] for name in names}
    going = at_work([one.port for one in servers], everybody, lambda: killed < n_kills, log, 0.02)
    stopped: dict[str, int] = {}
    for _ in range(n_kills):
        before = len(log.kept)
        while len(log.kept) < before + 100:
            await asyncio.sleep(0.01)
        await asyncio.sleep(rng.random())
        place = rng.randrange(len(servers) + 1)
        if place < len(servers):
            servers[place].kill()
            await asyncio.to_thread(servers[place].start)
        else:
            how = rng.choice((signal.SIGQUIT, signal.SIGINT))
            await asyncio.to_thread(postgres.stop, how)
            await asyncio.sleep(2 * rng.random())
            await asyncio.to_thread(postgres.start)
        name = f"service {place + 1}" if place < len(servers) else "PostgreSQL"
        stopped[name] = stopped.get(name, 0) + 1
        killed += 1
    await asyncio.gather(*going)
    return log, stopped


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as two tables."""
    said = {"paced": "paced", "fast": "as fast as it goes"}
    loads = [with_refused(row) | {"pace": said[row["kind"]]} for row in rows if row["kind"] != "kill"]
    columns = {"services": "{services}", "workers": "{pace}", "requests per second": "{requests_per_second:.0f}"}
    columns |= {**TIMES, "time with a refit running": "{fitting:.0%}", "answers that were no 200": "{refused}"}
    tables = [tabulated(loads, columns | {"tasks out twice": "{held_twice}", "load average of the machine": LOAD})]
    if kills := [row for row in rows if row["kind"] == "kill"]:
        named = [", ".join(f"{name} {n} times" for name, n in sorted(row["stopped"].items())) for row in kills]
        columns = {"services": "{services}", "stopped": "{named}", "acknowledged answers": "{acknowledged}"}
        columns |= {"lost": "{lost}", "there twice": "{twice}", "tasks out twice": "{held_twice}"}
        tables.append(tabulated([row | {"named": name} for row, name in zip(kills, named, strict=True)], columns))
    return "\n".join(tables)


def measured(project: Project, n: int, seconds: float, name: str) -> list[dict[str, Any]]:
    """Return what `n` services do under both loads."""
    tokens, admin = project.add_workers([f"w{i}" for i in range(N_WORKERS)]), project.add_admin()
    found = []
    with ExitStack() as stack:
        servers = services(project, n, stack)
        for kind, pause, who in (("paced", PAUSE, tokens), ("fast", 0.0, dict(list(tokens.items())[:FAST_WORKERS]))):
            row = asyncio.run(under_load(servers, who, admin, seconds, pause))
            found.append({"kind": kind, "services": name, "seconds": seconds} | row)
    return found


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--tasks", type=int, default=N_TASKS)
    parser.add_argument("--sqlite", action="store_true", help="also one service on SQLite")
    parser.add_argument("--out", type=Path, default=RESULTS / "service_processes.json")
    options = parser.parse_args()
    started, rows = time.perf_counter(), list[dict[str, Any]]()
    settings = {"tasks": options.tasks, "labels_before": N_BEFORE, "pause": PAUSE, "seconds": options.seconds}

    def note(found: list[dict[str, Any]]) -> None:
        rows.extend(found)
        keep(options.out, rows, table, started, settings)

    postgres = Postgres()
    try:
        kinds = [("1, on SQLite", 1, "annotations.db")] if options.sqlite else []
        kinds += [(str(n), n, postgres.url) for n in options.processes]
        for name, n, database in kinds:
            postgres.empty()
            folder = Path(tempfile.mkdtemp())
            options_of_all = {"database": database, "requests_per_second": 10_000.0}
            project = project_of(folder, options.tasks, min(N_BEFORE, options.tasks), **options_of_all)
            note(measured(project, n, options.seconds, name))
            if options.kills and n == max(options.processes) and "://" in database:
                tokens = project.add_workers([f"w{i}" for i in range(KILL_WORKERS)])
                with ExitStack() as stack:
                    servers = services(project, n, stack)
                    log, stopped = asyncio.run(with_kills(servers, postgres, tokens, options.kills))
                row = {"services": name, "stopped": stopped, "held_twice": held_twice(log)}
                note([kill_row(project, log, options.kills) | row])
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        postgres.close()


if __name__ == "__main__":
    main()
