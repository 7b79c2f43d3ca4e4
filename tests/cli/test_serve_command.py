"""`labelonce project` and `labelonce serve`, as a person runs them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from commands import labelonce_cli

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'labelonce[service]'")


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.csv"
    path.write_text("task,text\na,a dog\nb,a cat\n")
    return path


def test_a_project_is_made_and_served(tmp_path: Path, tasks: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    options = ["--tasks", str(tasks), "--classes", "cat,dog", "--text", "text", "--workers", "ann, bob", "--url", url]
    made = json.loads(labelonce_cli("project", tmp_path / "pets", *options, "--json").stdout)
    assert set(made["workers"]) == {"ann", "bob"}
    command = [sys.executable, "-c", "from labelonce.cli import main; main()", "serve", str(tmp_path / "pets")]
    process = subprocess.Popen([*command, "--port", str(port)], env=os.environ | {"PYTHONPATH": ":".join(sys.path)})
    try:
        for _ in range(600):
            assert process.poll() is None
            try:
                urllib.request.urlopen(f"{url}/health").close()
            except OSError:
                time.sleep(0.1)
            else:
                break
        token = made["workers"]["ann"].partition("#token=")[2]
        request = urllib.request.Request(f"{url}/api/next", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request) as answer:
            assert json.loads(answer.read())["task"] in ("a", "b")
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) in (0, 130)


def test_workers_are_added_to_a_project(tmp_path: Path, tasks: Path) -> None:
    labelonce_cli("project", tmp_path / "pets", "--tasks", tasks, "--classes", "cat,dog", "--text", "text")
    added = labelonce_cli("project", tmp_path / "pets", "--workers", "eve")
    assert added.stdout.startswith("eve: http://127.0.0.1:8080/#token=")
    assert "dashboard" not in added.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["project", "new"], "must have --tasks and --classes"),
        (["project", "new", "--tasks", "missing.csv", "--classes", "a,b"], "missing.csv"),
        (["serve", "missing"], "missing must hold a project.toml"),
    ],
)
def test_what_is_missing_is_one_sentence(arguments: list[str], said: str) -> None:
    run = labelonce_cli(*arguments)
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert said in run.stderr
