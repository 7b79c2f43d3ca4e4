"""The commands of the guides, run as they are written."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from service_crowd import free_port

from labelonce.service import Project

ROOT = Path(__file__).parents[1]


def commands(guide: str) -> list[str]:
    """Return the commands in a guide."""
    text = (ROOT / "docs" / "guides" / guide).read_text()
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line[:2] == "$ "]


def shell(command: str, folder: Path, **variables: str) -> str:
    """Run a command of the guide and return what it printed."""
    known = environment(folder) | variables
    done = subprocess.run(command, shell=True, cwd=folder, env=known, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def served(command: str, folder: Path, **variables: str) -> Iterator[str]:
    """Run the guide's service on a free port, and yield its address once it answers."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    known = environment(folder) | variables
    service = subprocess.Popen([*command.split(), "--port", str(port)], cwd=folder, env=known)
    try:
        for _ in range(1200):
            assert service.poll() is None, "the service did not start"
            try:
                ask(f"{url}/health", "")
            except OSError:
                time.sleep(0.1)
            else:
                break
        yield url
    finally:
        service.send_signal(signal.SIGINT)
        service.wait(60)


def environment(folder: Path) -> dict[str, str]:
    """Return an environment in which `labelonce` is this source, whether it is installed or not."""
    tool = folder / "bin" / "labelonce"
    if not tool.exists():
        tool.parent.mkdir()
        tool.write_text(f"#!{sys.executable}\nfrom labelonce.cli import main\nmain()\n")
        tool.chmod(0o755)
    paths = os.pathsep.join(path for path in sys.path if path)
    return os.environ | {"PATH": f"{tool.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": paths}


def ask(url: str, token: str, body: Any = None) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    while True:
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            if error.code != 429:  # faster than people label: the service says how long to wait
                raise
            time.sleep(int(error.headers["Retry-After"]))


def labelled_there(address: str, number: int, key: str, folder: Path, annotate: Callable[[], int]) -> list[str]:
    """Run the commands of the guide "With Label Studio", annotate a task there, and return the labels in the folder."""
    _, *both = commands("with-label-studio.md")
    guide = "--label-studio http://127.0.0.1:8090 --label-studio-project 1"
    assert all(command.endswith(guide) for command in both)
    ours = f"--label-studio {address} --label-studio-project {number}"
    project, serve = (command.replace(guide, ours) for command in both)
    shell(project, folder, LABEL_STUDIO_API_KEY=key)
    with served(serve, folder, LABEL_STUDIO_API_KEY=key):
        origin = f"label-studio {annotate()}"
        store = Project(folder / "pets").store()
        for _ in range(600):
            if store.from_origin(origin):
                break
            time.sleep(0.1)
        found = [str(row.label) for row in store.from_origin(origin)]
        store.close()
    return found
