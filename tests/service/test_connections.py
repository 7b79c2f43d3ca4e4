"""Connections that send nothing, or never the rest, keep nobody else from being served."""

import asyncio
import logging
import resource
import signal
import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from service_crowd import Server
from service_projects import text_project

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'labelonce[service]'")
import uvicorn

from labelonce.service import _connections
from labelonce.service._connections import Limits, RareMessages


class Fake:
    """A connection that can be closed."""

    def __init__(self) -> None:
        self.closed = False

    def abort(self) -> None:
        self.closed = True


def test_the_oldest_half_of_a_request_makes_room() -> None:
    limits, (first, second, third, idle) = Limits(2), (Fake() for _ in range(4))
    assert limits.admit(first, "1.1.1.1")
    limits.note(first, half=False, idle=False)
    assert limits.admit(second, "1.1.1.2")
    assert limits.admit(third, "1.1.1.3")
    assert (first.closed, second.closed, len(limits)) == (False, True, 2)
    limits.note(third, half=False, idle=False)
    assert not limits.admit(idle, "1.1.1.4")  # all are at work
    limits.note(first, half=False, idle=True)
    assert limits.admit(idle, "1.1.1.4")
    assert first.closed


def test_one_address_has_a_share_and_a_proxy_has_all() -> None:
    limits = Limits(10, most_from_one=2, proxies="10.0.0.0/8, proxy.example")
    one, *others = (Fake() for _ in range(3))
    assert all(limits.admit(each, "1.1.1.1") for each in (one, *others))
    assert (one.closed, len(limits)) == (True, 2)
    assert all(limits.admit(Fake(), "10.1.2.3") for _ in range(5))
    assert len(limits) == 7
    for each in others:
        limits.forget(each)
        limits.forget(each)
    assert len(limits) == 5


def test_a_message_that_repeats_is_written_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now, seldom = [0.0], RareMessages()
    monkeypatch.setattr(_connections, "monotonic", lambda: now[0])
    record = logging.LogRecord("a", logging.ERROR, "", 1, "gone", None, None)
    assert [seldom.filter(record) for _ in range(3)] == [True, False, False]
    now[0] = 61.0
    assert seldom.filter(record)
    assert record.msg == "gone (2 more like this were not written)"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    project = text_project(tmp_path)
    found = Server(project.folder)
    found.start()
    yield found
    found.kill(signal.SIGTERM)


def health(server: Server) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/health", timeout=20) as answer:
        status: int = answer.status
        return status


@pytest.mark.slow
@pytest.mark.parametrize(
    "sent", [b"", b"GET /api/me HTTP/1.1\r\nX-a: ", b"POST /x HTTP/1.1\r\nContent-Length: 9\r\n\r\n1"]
)
def test_more_half_open_connections_than_files_stop_nobody(tmp_path: Path, sent: bytes) -> None:
    project, log = text_project(tmp_path), tmp_path / "log"
    found = Server(project.folder, log=log, files=256)
    found.start()
    with ExitStack() as opened:
        for _ in range(400):
            one = opened.enter_context(socket.create_connection(("127.0.0.1", found.port), timeout=20))
            with suppress(OSError):
                one.sendall(sent)
        assert [health(found) for _ in range(5)] == [200] * 5
    found.kill(signal.SIGTERM)
    assert log.stat().st_size < 4_000


def test_who_reads_nothing_is_not_waited_for_and_who_reads_slowly_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_connections, "_READ_SECONDS", 0.5)
    limits, size = Limits(10), 20_000_000

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
        await send({"type": "http.response.body", "body": b"x" * size})

    async def ask(port: int, pause: float | None) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4096)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        read = 0
        while pause is not None and read < size and (part := await reader.read(100_000)):
            read += len(part)
            await asyncio.sleep(pause)
        while pause is None and len(limits):
            await asyncio.sleep(0.05)
        writer.close()
        return read

    async def run() -> list[int]:
        protocol: Any = partial(_connections.Connection, limits)
        server = uvicorn.Server(uvicorn.Config(app, http=protocol, port=0, lifespan="off", log_level="critical"))
        serving = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        found = [await asyncio.wait_for(ask(port, pause), 30) for pause in (None, 0.002)]
        server.should_exit = True
        await serving
        return found

    assert asyncio.run(run())[1] >= size


@pytest.mark.slow
def test_a_request_must_arrive_in_time(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as slow:
        slow.sendall(b"GET /health HTTP/1.1\r\n")
        with suppress(OSError):
            for _ in range(100):  # a header now and then does not help
                time.sleep(0.2)
                slow.sendall(b"X-a: b\r\n")
        with suppress(ConnectionResetError):
            assert slow.recv(10) == b""  # closed, and not waited for


def test_limits_follow_the_files_that_one_may_open() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert 16 <= _connections.room_for_connections() <= hard // 2


def test_a_port_that_is_taken_is_told_and_the_second_part_of_an_answer_not_held_back() -> None:
    with _connections._listening("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.proto == socket.IPPROTO_TCP  # by which asyncio decides
    with _connections._listening("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"port {port} of 127.0.0.1 must be free"):
            _connections._listening("127.0.0.1", port)
