"""What all HTTP requests share: a limit on the body, and security headers on the response."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]
_LARGEST = 64 * 1024


class BodyTooLarge(Exception):
    """A request body above the limit."""


class SafeApp:
    """An ASGI application behind a limit on bodies, with safe headers on every answer.

    `larger` has the largest body below some paths.
    """

    def __init__(self, app: App, larger: Mapping[str, int]) -> None:
        self._app, self._larger = app, larger

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        largest = next((most for path, most in self._larger.items() if scope["path"].startswith(path)), _LARGEST)
        seen, started = 0, False

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > largest:
                raise BodyTooLarge
            return message

        async def with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                present = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(one for one in _HEADERS if one[0] not in present)]
            await send(message)

        said = dict(scope["headers"]).get(b"content-length", b"0")
        if said.isdigit() and int(said) > largest:
            await _refuse(with_headers, largest)
            return

        async def unless_too_large(message: Message) -> None:
            if started or seen <= largest:
                await with_headers(message)

        with suppress(BodyTooLarge):
            await self._app(scope, counted, unless_too_large)
        if seen > largest and not started:  # whatever it was taken for meanwhile
            await _refuse(with_headers, largest)


async def _refuse(send: Send, largest: int) -> None:
    body = f'{{"detail":"a body must have at most {largest} bytes."}}'.encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body})
