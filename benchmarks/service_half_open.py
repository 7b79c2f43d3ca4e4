"""Two thousand half-open connections, opened again whenever they are closed, and how long honest people wait meanwhile.

Another process holds 2,000 connections from loopback, of which a third sends nothing, a third half of the headers and a
third half of a body, and opens each again as soon as the service closes it. Meanwhile 20 workers ask for tasks and
answer them about twice a second, over connections that they keep open, and a new connection asks for /health five
times a second. Measured without the attack, with it, and with it where the service may open 1,024 files only, so that
it has to close the oldest ones all the time. Everything is on loopback, bounded in number and time.

    python benchmarks/service_half_open.py
    python benchmarks/service_half_open.py --seconds 10
"""

import argparse
import asyncio
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from one_core import RESULTS, keep
from record import tabulated
from service_crowd import Log, Server, Wire
from service_load import LOAD, TIMES, at_work, in_ms, project_of, times, waited, with_refused

N_TASKS, N_WORKERS, PAUSE, EVERY = 20_000, 20, 0.5, 0.2
HALVES = [b"", b"GET /api/me HTTP/1.1\r\nX-a: ", b"POST /api/skips HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1"]


async def attack(port: int, n: int, seconds: float) -> int:
    """Hold `n` half-open connections for some seconds, and return how often one was opened."""
    until, opened = time.monotonic() + seconds, 0

    async def hold(number: int) -> None:
        nonlocal opened
        await asyncio.sleep(number / n)  # not all at the same moment
        while time.monotonic() < until:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                opened += 1
                writer.write(HALVES[number % len(HALVES)])
                async with asyncio.timeout(max(0.1, until - time.monotonic())):
                    await reader.read()
            except (OSError, TimeoutError):
                await asyncio.sleep(0.05)
            finally:
                if "writer" in locals():
                    writer.close()

    await asyncio.gather(*(hold(number) for number in range(n)))
    return opened


async def honest(server: Server, tokens: dict[str, str], seconds: float) -> dict[str, Any]:
    """Return how long honest people waited, over old connections and new ones."""
    log, until, new, failed = Log(), time.monotonic() + seconds, list[float](), 0
    going = at_work([server.port], tokens, lambda: time.monotonic() < until, log, PAUSE)
    while time.monotonic() < until:
        wire, started = Wire(server.port, ""), time.monotonic()
        try:
            await wire.ask("GET", "/health")
            new.append(time.monotonic() - started)
        except (OSError, asyncio.IncompleteReadError):
            failed += 1
        wire.close()
        await asyncio.sleep(EVERY)
    await asyncio.gather(*going)
    return waited(log, seconds) | {"new": in_ms(new), "failed": failed}


def measured(folder: Path, kind: str, seconds: float, n: int, files: int | None) -> dict[str, Any]:
    """Return what honest people see, with `n` half-open connections."""
    project = project_of(folder, N_TASKS, 1_000)
    tokens, log = project.add_workers([f"w{i}" for i in range(N_WORKERS)]), folder / "log"
    server = Server(project.folder, log=log, files=files)
    server.start()
    command = [
        sys.executable,
        __file__,
        "--attack",
        str(server.port),
        "--connections",
        str(n),
        "--seconds",
        str(seconds),
    ]
    attacker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True) if n else None
    time.sleep(2)  # until the attack is at its height
    try:
        row = asyncio.run(honest(server, tokens, seconds - 4))
        opened = int(attacker.communicate()[0]) if attacker else 0
    finally:
        server.kill(signal.SIGTERM)
    return row | {"kind": kind, "half_open": n, "opened": opened, "log_bytes": log.stat().st_size}


def table(rows: list[dict[str, Any]]) -> str:
    columns = {"": "{kind}", "half-open": "{half_open:,}", "opened in all": "{opened:,}", **TIMES}
    columns |= {"new connection, ms: median, p99, slowest": times("new"), "failed": "{failed}", "no 200": "{refused}"}
    columns |= {"bytes of log": "{log_bytes:,}", "load average": LOAD}
    return tabulated(map(with_refused, rows), columns)


def main() -> None:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=45.0)
    parser.add_argument("--connections", type=int, default=2_000)
    parser.add_argument("--attack", type=int, help=argparse.SUPPRESS)  # the port, in the process that attacks
    parser.add_argument("--out", type=Path, default=RESULTS / "service_half_open.json")
    options = parser.parse_args()
    if options.attack:
        print(asyncio.run(attack(options.attack, options.connections, options.seconds)))
        return
    started, rows = time.perf_counter(), list[dict[str, Any]]()
    settings = {"tasks": N_TASKS, "workers": N_WORKERS, "pause": PAUSE, "seconds": options.seconds}
    n = options.connections
    for kind, half_open, files in (("quiet", 0, None), ("attacked", n, None), ("attacked, 1,024 files", n, 1024)):
        folder = Path(tempfile.mkdtemp())
        rows.append(measured(folder, kind, options.seconds, half_open, files))
        shutil.rmtree(folder, ignore_errors=True)
        keep(options.out, rows, table, started, settings)


if __name__ == "__main__":
    main()
