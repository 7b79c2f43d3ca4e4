"""A real Label Studio: LABELONCE_LABELSTUDIO names the virtual environment it is started from, or one that is running.

One that is running is named by its address and the admin's token: LABELONCE_LABELSTUDIO=http://127.0.0.1:8090#TOKEN.
"""

import http.cookiejar
import json
import os
import secrets
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

WHERE = os.environ.get("LABELONCE_LABELSTUDIO", "")
needs_label_studio = [
    pytest.mark.labelstudio,
    pytest.mark.skipif(not WHERE, reason="LABELONCE_LABELSTUDIO names neither an environment nor an address"),
]


class Server:
    """A running server and its HTTP interface."""

    def __init__(self, base: str, token: str) -> None:
        self.base, self.token = base, token

    def call(self, path: str, body: Any = None, *, method: str | None = None, token: str | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Token {token or self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.base + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            content = answer.read()
        print(f"{request.get_method()} {path} -> {len(content)} bytes")  # noqa: T201  # the transcript
        return json.loads(content) if content else None

    def sign_up(self, name: str) -> str:
        """Make a user with a new address and return its token."""
        email = new_email(name)
        jar = http.cookiejar.CookieJar()
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        page = f"{self.base}/user/signup"
        opener.open(page, timeout=120).close()
        secret = next(str(cookie.value) for cookie in jar if cookie.name == "csrftoken")
        form = {"csrfmiddlewaretoken": secret, "email": email, "password": secrets.token_hex(8)}
        form["allow_newsletters"] = "false"
        request = urllib.request.Request(page, urllib.parse.urlencode(form).encode(), {"Referer": page})
        opener.open(request, timeout=120).close()
        with opener.open(f"{self.base}/api/current-user/token", timeout=120) as answer:
            return str(json.loads(answer.read())["token"])


def new_email(name: str) -> str:
    """Return an address that no user has yet."""
    return f"{name}-{secrets.token_hex(4)}@example.com"


@contextmanager
def running(folder: Path) -> Iterator[Server]:
    """Start a server on a free local port, with its files in a folder, and stop it at the end; or use a running one."""
    if WHERE.startswith("http"):
        yield Server(*WHERE.split("#"))
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(20)
    settings = {
        "LABEL_STUDIO_BASE_DATA_DIR": str(folder),
        "DJANGO_DB": "sqlite",
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
        "COLLECT_ANALYTICS": "False",
        "LATEST_VERSION_CHECK": "false",
        "SSRF_PROTECTION_ENABLED": "false",  # webhooks and models on this machine
        "ML_BLOCK_LOCAL_IP": "false",
        "SENTRY_DSN": "",
    }
    command = [
        f"{WHERE}/bin/label-studio",
        "start",
        "--no-browser",
        "--internal-host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    command += ["--username", "admin@example.com", "--password", secrets.token_hex(8), "--user-token", token]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | settings
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=folder)
    try:
        found = Server(f"http://127.0.0.1:{port}", token)
        _wait(found, process, folder / "server.log")
        yield found
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(600):
        assert process.poll() is None, log.read_text()[-2000:]
        try:
            urllib.request.urlopen(f"{server.base}/health", timeout=5).close()
        except OSError:
            time.sleep(1)
        else:
            return
    raise AssertionError(log.read_text()[-2000:])
