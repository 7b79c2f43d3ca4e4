"""`labelonce project` and `labelonce serve`, as a person runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from commands import labelonce_cli
from service_crowd import free_port

from labelonce.service import Project

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'labelonce[service]'")


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.csv"
    path.write_text("task,text\na,a dog\nb,a cat\n")
    return path


def test_a_project_is_made_and_served(tmp_path: Path, tasks: Path) -> None:
    port = free_port()
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
        for other, said in ((port, f"port {port} of 127.0.0.1 must be free"), (free_port(), "must be served once")):
            again = labelonce_cli("serve", tmp_path / "pets", "--port", str(other))
            assert (again.returncode, again.stderr.count("\n")) == (2, 2)  # what it serves, and what is wrong
            assert said in again.stderr
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) in (0, 130)


def test_workers_are_added_to_a_project(tmp_path: Path, tasks: Path) -> None:
    labelonce_cli("project", tmp_path / "pets", "--tasks", tasks, "--classes", "cat,dog", "--text", "text")
    added = labelonce_cli("project", tmp_path / "pets", "--workers", "eve")
    assert added.stdout.startswith("eve: http://127.0.0.1:8080/#token=")
    assert "dashboard" not in added.stdout


@pytest.mark.parametrize("option", [["--title", "Dogs"], ["--text", "text"], ["--multilabel"], ["--classes", "a,b"]])
def test_what_a_project_has_in_its_file_is_not_taken_again(tmp_path: Path, tasks: Path, option: list[str]) -> None:
    Project.make(tmp_path / "pets", tasks, ["cat", "dog"], text="text")
    run = labelonce_cli("project", tmp_path / "pets", "--workers", "eve", *option)
    assert run.returncode == 2
    assert f"must be a new folder to take {option[0]}; got a project. Edit its project.toml" in run.stderr


def test_a_link_is_made_worthless(tmp_path: Path, tasks: Path) -> None:
    options = ["--classes", "cat,dog", "--text", "text", "--workers", "ann,bob"]
    labelonce_cli("project", tmp_path / "pets", "--tasks", tasks, *options)
    assert "bob work no longer" in labelonce_cli("project", tmp_path / "pets", "--revoke", "bob").stderr
    store = Project(tmp_path / "pets").store()
    assert sorted(worker for _, worker in store.tokens().values()) == ["", "ann"]
    store.close()
    again = labelonce_cli("project", tmp_path / "pets", "--revoke", "bob")
    assert (again.returncode, "got 'bob', who has none" in again.stderr) == (2, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--revoke", "ann,eve"], "must name workers with a link; got 'eve', who has none"),
        (["--revoke", ","], "must name workers with a link; got nobody"),
        (["--revoke", "ann", "--workers", "eve"], "--revoke must go without other options"),
    ],
)
def test_links_are_made_worthless_all_or_none(tmp_path: Path, tasks: Path, options: list[str], said: str) -> None:
    project = Project.make(tmp_path / "pets", tasks, ["cat", "dog"], text="text")
    project.add_workers(["ann"])
    run = labelonce_cli("project", tmp_path / "pets", *options)
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert said in run.stderr
    assert project.workers() == ["ann"]


def test_a_project_with_check_boxes_is_made(tmp_path: Path, tasks: Path) -> None:
    options = ["--classes", "cat,dog", "--text", "text", "--multilabel"]
    labelonce_cli("project", tmp_path / "pets", "--tasks", tasks, *options)
    assert Project(tmp_path / "pets").settings.multilabel


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["project", "new"], "must have --tasks and --classes"),
        (["project", "new", "--tasks", "missing.csv", "--classes", "a,b"], "missing.csv"),
        (["project", __file__, "--tasks", __file__, "--classes", "a,b"], "must be a folder; got a file. Name another"),
        (["serve", "missing"], "missing must hold a project.toml"),
    ],
)
def test_what_is_missing_is_one_sentence(arguments: list[str], said: str) -> None:
    run = labelonce_cli(*arguments)
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert said in run.stderr
