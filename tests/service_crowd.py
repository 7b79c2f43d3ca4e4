"""Simulated workers at a served project, who send again what was not acknowledged, and a server that can be killed."""

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


class Server:
    """`labelonce serve` in a process of its own: how many files it may open, and where its stderr goes."""

    def __init__(self, folder: Path, *, log: Path | None = None, files: int | None = None) -> None:
        self.folder, self.port, self.files = folder, free_port(), files
        self.log = log or Path(os.devnull)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        limit = f"resource.setrlimit(resource.RLIMIT_NOFILE, ({self.files}, {self.files})); " if self.files else ""
        code = f"import resource; {limit}from labelonce.cli import main; main()"
        command = [sys.executable, "-c", code, "serve", str(self.folder), "--port", str(self.port)]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=log)
        for _ in range(1200):
            assert self.process.poll() is None, "the service did not start"
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise AssertionError("the service did not start")

    def kill(self, how: int = signal.SIGKILL) -> None:
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait()


class Wire:
    """One HTTP connection that is kept open: small and quick, so that the load is the server's."""

    def __init__(self, port: int, token: str) -> None:
        self._port, self._token = port, token
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self._token}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        try:
            writer.write(head.encode() + content)
            lines = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
            length = next(int(line.split(b":")[1]) for line in lines if line.lower().startswith(b"content-length"))
            answer = json.loads(await reader.readexactly(length))
        except BaseException:
            self.close()
            raise
        return int(lines[0].split()[1]), answer

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


class Balanced:
    """One person behind a load balancer: every request goes to any of several services."""

    def __init__(self, ports: list[int], token: str, rng: random.Random) -> None:
        self._wires, self._rng = [Wire(port, token) for port in ports], rng

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        return await self._rng.choice(self._wires).ask(method, path, body)

    def close(self) -> None:
        for wire in self._wires:
            wire.close()


@dataclass
class Log:
    """What the workers saw: keys that were acknowledged, seconds of every request, and who had which task when."""

    kept: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    held: list[tuple[str, str, float, float]] = field(default_factory=list)
    seconds: dict[str, list[float]] = field(default_factory=lambda: {"next": [], "post": []})
    codes: dict[int, int] = field(default_factory=dict)


def held_twice(log: Log) -> int:
    """Return how many times a task came to somebody while somebody else had it and had not sent its answer yet."""
    until: dict[str, tuple[float, str]] = {}
    found = 0
    for task, worker, start, end in sorted(log.held, key=lambda one: one[2]):
        last, other = until.get(task, (0.0, worker))
        found += start < last and worker != other
        until[task] = max((last, other), (end, worker))
    return found


async def work(
    ports: int | list[int],
    worker: str,
    token: str,
    going: Callable[[], bool],
    log: Log,
    *,
    pause: float,
    classes: list[str],
) -> None:
    """Label as long as it is going; what was not acknowledged is sent again with the same key, as the page does."""
    rng, number, since = random.Random(worker), 0, 0.0
    wire = Balanced([ports] if isinstance(ports, int) else ports, token, rng)
    unsent: dict[str, Any] | None = None
    await asyncio.sleep(rng.random() * pause)
    while going():
        started = time.monotonic()
        try:
            if unsent is None:
                code, found = await _timed(wire, log, "next", "GET", "/api/next")
                if code != 200 or found["task"] is None:
                    await asyncio.sleep(pause)
                    continue
                number, since = number + 1, time.monotonic()
                key = f"{os.getpid()}-{started}-{number}"
                unsent = {"key": key, "task": found["task"], "label": rng.choice(classes)}
                await asyncio.sleep(pause * rng.random() / 2)  # to look at the task
                log.held.append((found["task"], worker, since, time.monotonic()))
            code, _ = await _timed(wire, log, "post", "POST", "/api/annotations", unsent)
            if code == 200:
                log.kept[f"{worker} {unsent['key']}"] = (worker, unsent["task"], unsent["label"])
            if code < 500 and code != 429:
                unsent = None
        except (OSError, asyncio.IncompleteReadError):
            await asyncio.sleep(0.02)
            continue
        await asyncio.sleep(max(0.0, pause * (0.5 + rng.random()) - (time.monotonic() - started)))
    wire.close()


async def _timed(wire: Balanced, log: Log, name: str, *request: Any) -> tuple[int, Any]:
    started = time.monotonic()
    code, found = await wire.ask(*request)
    log.seconds[name].append(time.monotonic() - started)
    log.codes[code] = log.codes.get(code, 0) + 1
    return code, found
