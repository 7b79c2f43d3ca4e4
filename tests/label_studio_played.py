"""A Label Studio played by a small server: as much of its interface as `labelonce serve --label-studio` asks for."""

import json
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CONFIG = """<View><Text name="text" value="$text"/>
<Choices name="label" toName="text"><Choice value="cat"/><Choice value="dog"/></Choices></View>"""
TASKS = [{"id": 7, "data": {"text": "it barks"}, "annotations": []}, {"id": 8, "data": {"text": "it purrs"}}]


class Played(ThreadingHTTPServer):
    """Keeps what it was asked, and tells its model of annotations."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.asked: list[str] = []
        self.keys: set[str | None] = set()
        self.connected = threading.Event()
        self.model = ""

    def annotate(self, label: str) -> int:
        """Let somebody label the first task, and return the number of the annotation."""
        assert self.connected.wait(60)
        choice = {"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": [label]}}
        annotation = {"id": 57, "task": 7, "completed_by": 3, "result": [choice], "was_cancelled": False}
        event = {"action": "ANNOTATION_CREATED", "annotation": annotation, "task": TASKS[0]}
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.model}/webhook", json.dumps(event).encode(), headers)
        urllib.request.urlopen(request, timeout=60).close()
        return 57

    def answer(self, method: str, path: str, body: Any) -> Any:
        """Return what Label Studio would."""
        self.asked.append(f"{method} {path}")
        if path == "/api/projects/1":
            return {"label_config": CONFIG}
        if path == "/api/projects/1/export":
            return TASKS
        if (method, path) == ("POST", "/api/ml"):
            self.model = body["url"]
            self.connected.set()
        return [] if method == "GET" else {}


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        played, length = self.server, int(self.headers.get("Content-Length") or 0)
        assert isinstance(played, Played)
        played.keys.add(self.headers["Authorization"])
        body = json.loads(self.rfile.read(length) or b"null")
        content = json.dumps(played.answer(self.command, self.path.split("?")[0], body)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_PATCH = do_GET

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def played() -> Iterator[Played]:
    """Run such a server."""
    with Played() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
