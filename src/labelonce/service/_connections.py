"""The process that serves: how many connections there may be, and how long a request may take to arrive."""

import asyncio
import gc
import ipaddress
import logging
import os
import socket
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any, Protocol

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_FROM_ONE_ADDRESS = 256  # people behind one router have a few each
_HEAD_SECONDS = 10.0  # from the first byte of a request, or the connection, to the end of its headers
_BODY_SECONDS = 60.0
_READ_SECONDS = 20.0  # in which whoever is sent something must read at least a part of it
_LOG_EVERY = 60.0
_MOST_MESSAGES = 1_000
_SWITCH = 0.0005  # seconds that a thread that computes in the background keeps the others waiting, at every turn
_KEEP_ALIVE = 75  # seconds: somebody who thinks about a task need not connect again
_WAITING = 2048  # connections
_AT_ONCE = 64  # connections that are taken before those taken are counted


class _Open(Protocol):
    """What can be closed."""

    def abort(self) -> None: ...


class Limits:
    """The open connections of a server. If there are too many, the least useful one is closed.

    That is the oldest on which a request has begun and has not arrived, or an answer is not read, then the oldest on
    which there is none. Only where all are at work a new one is refused. An address that may speak for others, a proxy,
    has no limit of its own.

    `proxies` are comma-separated addresses and networks, or "*", as FORWARDED_ALLOW_IPS names them.
    """

    def __init__(self, most: int, most_from_one: int = MOST_FROM_ONE_ADDRESS, proxies: str = "127.0.0.1") -> None:
        self.most, self.most_from_one = most, most_from_one
        self._all_may = proxies.strip() == "*"
        self._proxies: list[ipaddress.IPv4Network | ipaddress.IPv6Network] = []
        for one in proxies.split(","):
            with suppress(ValueError):  # a name, which uvicorn takes to the letter
                self._proxies.append(ipaddress.ip_network(one.strip(), strict=False))
        self._address: dict[_Open, str] = {}
        self._half: dict[_Open, None] = {}  # the oldest first
        self._idle: dict[_Open, None] = {}
        self._of: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._address)

    def admit(self, connection: _Open, address: str) -> bool:
        """Return whether a new connection may stay."""
        if self._of[address] >= self.most_from_one and not self._may_speak_for_others(address):
            fits = self._close_one(address)
        else:
            fits = len(self) < self.most or self._close_one(None)
        if fits:
            self._of[address] += 1
            self._address[connection] = address
            self.note(connection, half=True, idle=False)
        return fits

    def note(self, connection: _Open, *, half: bool, idle: bool) -> None:
        """Note the state of a connection: half of a request has arrived, or none, or one is being answered."""
        for place, it_is in ((self._half, half), (self._idle, idle)):
            if not it_is:
                place.pop(connection, None)
            elif connection in self._address:
                place.setdefault(connection)

    def forget(self, connection: _Open) -> None:
        self.note(connection, half=False, idle=False)
        address = self._address.pop(connection, None)
        if address is not None:
            self._of[address] -= 1
            if not self._of[address]:
                del self._of[address]

    def _close_one(self, address: str | None) -> bool:
        """Close the connection of least use, of an address or of all; False where all are at work."""
        for place in (self._half, self._idle):
            found = next((one for one in place if address in (None, self._address[one])), None)
            if found is not None:
                self.forget(found)
                found.abort()
                return True
        return False

    def _may_speak_for_others(self, address: str) -> bool:
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return True  # a socket of this machine
        return self._all_may or any(found in one for one in self._proxies)


class Connection(H11Protocol):
    """A connection on which a request must arrive, and its answer be read, in time."""

    def __init__(self, limits: Limits, **options: Any) -> None:
        super().__init__(**options)
        self._limits = limits
        self._deadline: asyncio.TimerHandle | None = None
        self._in_body = False

    def connection_made(self, transport: Any) -> None:
        """Stay, unless there are too many."""
        super().connection_made(transport)
        if not self._limits.admit(self, self.client[0] if self.client else ""):
            transport.abort()
            return
        self._wait(_HEAD_SECONDS)

    def data_received(self, data: bytes) -> None:
        """Take the data that has arrived, and wait for the rest for a limited time."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Note that the next request may come."""
        super().on_response_complete()
        self._look(answered=True)

    def pause_writing(self) -> None:
        """Wait for the reader, and only so long."""
        super().pause_writing()
        self._limits.note(self, half=True, idle=False)
        self._wait_for_reader(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Go on: enough was read."""
        super().resume_writing()
        self._wait(None)
        self._limits.note(self, half=False, idle=False)

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room for another one."""
        super().connection_lost(exc)
        self._wait(None)
        self._limits.forget(self)

    def abort(self) -> None:
        self.transport.abort()

    def _look(self, *, answered: bool = False) -> None:
        """Note the state of the connection, and set its time limit."""
        if self.flow.write_paused:
            return
        state = self.conn.their_state
        in_body, in_head = state is h11.SEND_BODY, state is h11.IDLE and not answered
        self._limits.note(self, half=in_body or in_head, idle=state is h11.IDLE and answered)
        if in_body and not self._in_body:
            self._wait(_BODY_SECONDS)
        elif in_head and self._deadline is None:
            self._wait(_HEAD_SECONDS)
        elif not in_body and not in_head:
            self._wait(None)
        self._in_body = in_body

    def _wait_for_reader(self, unread: int) -> None:
        """End the connection unless the client reads some of the response in time; then check again."""

        def look() -> None:
            now_unread = self.transport.get_write_buffer_size()
            if now_unread < unread:
                self._wait_for_reader(now_unread)
            else:
                self.abort()

        self._wait(_READ_SECONDS, look)

    def _wait(self, seconds: float | None, then: Callable[[], None] | None = None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, then or self.abort)


class RareMessages(logging.Filter):
    """Lets one log message of a kind through per minute; the next one says how many were left out."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[tuple[Any, ...], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        kind = (record.name, str(record.msg)[:80], record.exc_info[0] if record.exc_info else None)
        then, left_out = self._last.get(kind, (-_LOG_EVERY, 0))
        if monotonic() - then < _LOG_EVERY:
            self._last[kind] = (then, left_out + 1)
            return False
        if len(self._last) >= _MOST_MESSAGES:
            self._last.clear()
        self._last[kind] = (monotonic(), 0)
        if left_out:
            record.msg = f"{record.msg} ({left_out} more like this were not written)"
        return True


def room_for_connections() -> int:
    """Raise the limit of open files as far as allowed, and return the number of connections it leaves room for."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(16, min(4_096, (wanted - 64) // 2))  # each may have an image open as well


def proxies() -> str:
    """Return the proxies whose statement of a client's address is trusted, as uvicorn reads it."""
    return os.environ.get("FORWARDED_ALLOW_IPS", "127.0.0.1,::1")


class Server(uvicorn.Server):
    """A server whose garbage collector ignores what was read at the start.

    That stays anyway, and to go through all of it takes a tenth of a second, again and again, while everybody waits.
    """

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then set aside what is there."""
        await super().startup(sockets)
        for one in sockets or []:
            one.listen(_WAITING)
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
        gc.collect()
        gc.freeze()


def run(app: Any, *, host: str, port: int) -> None:
    """Serve an application until the process is interrupted; what keeps it from starting is one sentence."""
    listening = _listening(host, port)
    limits = Limits(room_for_connections(), proxies=proxies())
    protocol: Any = partial(Connection, limits)
    # Before it has started, an error is told by the exception; later ones are logged.
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",  # a connection that is handed over to a websocket would never be counted as closed
        log_level="critical",
        access_log=False,
        timeout_keep_alive=_KEEP_ALIVE,
        backlog=_AT_ONCE,
        server_header=False,
    )
    server = Server(config)
    for name in ("labelonce", "uvicorn.error", "asyncio"):
        logging.getLogger(name).addFilter(RareMessages())
    sys.setswitchinterval(_SWITCH)
    with listening, suppress(KeyboardInterrupt, SystemExit):
        server.run(sockets=[listening])
    if not server.started:
        raise app.state.trouble or RuntimeError("the service must start; uvicorn gave up without a word.")


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named: only then asyncio sends every part of an answer at once, and nobody waits for the rest.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a killed service is started again at once
        found.bind((host, port))
        found.listen(_WAITING)
    except OSError as error:
        found.close()
        raise ValueError(f"port {port} of {host} must be free to listen at; got: {error}. Name another.") from error
    return found
