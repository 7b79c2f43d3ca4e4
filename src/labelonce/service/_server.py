"""The process that serves: uvicorn, set up for many people who each ask now and then."""

from __future__ import annotations

import gc
import socket
import sys
from typing import Any

import uvicorn

_SWITCH = 0.0005  # seconds that a thread which computes beside keeps the others waiting, at every turn
_KEEP_ALIVE = 75  # seconds: somebody who thinks about a task need not connect again


class Server(uvicorn.Server):
    """A server whose collector of garbage leaves alone what was read at the start.

    That stays anyway, and to go through all of it takes a tenth of a second, again and again, while everybody waits.
    """

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then set aside what is there."""
        await super().startup(sockets)
        gc.collect()
        gc.freeze()


def run(app: Any, *, host: str, port: int) -> None:
    """Serve an application until the process is interrupted."""
    config = uvicorn.Config(
        app, host=host, port=port, log_level="warning", access_log=False, timeout_keep_alive=_KEEP_ALIVE
    )
    sys.setswitchinterval(_SWITCH)
    Server(config).run()
