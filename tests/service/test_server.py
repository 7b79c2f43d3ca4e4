"""The process that serves."""

from __future__ import annotations

import socket

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'labelonce[service]'")
from labelonce.service import _server


def test_asyncio_will_not_hold_back_the_second_part_of_an_answer() -> None:
    with _server._listening("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.proto == socket.IPPROTO_TCP  # by which asyncio decides


def test_a_port_that_is_taken_is_told() -> None:
    with _server._listening("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"port {port} of 127.0.0.1 must be free"):
            _server._listening("127.0.0.1", port)
