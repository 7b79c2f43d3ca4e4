"""The process that serves: uvicorn, set up for many people who each ask now and then."""

from __future__ import annotations

import gc
import logging
import socket
import sys
from contextlib import suppress
from functools import partial
from typing import Any

import uvicorn

from labelonce.service._connections import Connection, Limits, RareMessages, proxies, room_for_connections

_SWITCH = 0.0005  # seconds that a thread that computes in the background keeps the others waiting, at every turn
_KEEP_ALIVE = 75  # seconds: somebody who thinks about a task need not connect again
_WAITING = 2048  # connections
_AT_ONCE = 64  # connections that are taken before those taken are counted


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
    """Return a socket that listens."""
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
