"""`labelonce project` and `labelonce serve`, as a person runs them."""

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
from small_files import written

from labelonce.service import Project
from labelonce.service._store import Answer, Store

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'labelonce[service]'")


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return written(tmp_path / "tasks.csv", "task,text\na,a dog\nb,a cat\n")


def test_a_project_is_made_and_served(tmp_path: Path, tasks: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    options = ["--tasks", str(tasks), "--classes", "cat,dog", "--text", "text", "--workers", "ann, bob", "--url", url]
    made = json.loads(labelonce_cli("project", tmp_path / "pets", *options, "--json").stdout)
    assert set(made["workers"]) == {"ann", "bob"}
    command = [sys.executable, "-c", "from labelonce.cli import main; main()", "serve", str(tmp_path / "pets")]
    process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": ":".join(sys.path)})
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
            *before, last = again.stderr.splitlines()
            assert (again.returncode, len(before)) == (2, 1 if other == port else 2)  # what it serves, where links lead
            assert said in last
            assert (f"lead to {url}, and this listens at port {other}" in again.stderr) == (other != port)
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) in (0, 130)


@pytest.mark.parametrize(
    ("more", "address"),
    [([], "http://127.0.0.1:8080"), (["--multilabel", "--url", "https://labels.example/"], "https://labels.example")],
)
def test_workers_are_added_with_links_for_the_address(
    tmp_path: Path, tasks: Path, more: list[str], address: str
) -> None:
    options = ["--classes", "cat,dog", "--text", "text", *more]
    labelonce_cli("project", tmp_path / "pets", "--tasks", tasks, *options)
    added = labelonce_cli("project", tmp_path / "pets", "--workers", "eve")
    assert added.stdout.startswith(f"eve: {address}/#token=")
    assert "dashboard" not in added.stdout
    assert Project(tmp_path / "pets").settings.multilabel == bool(more)


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


def test_a_backup_holds_every_answer(tmp_path: Path, tasks: Path) -> None:
    project = Project.make(tmp_path / "pets", tasks, ["cat", "dog"], text="text")
    serving = project.store()
    serving.write([Answer("ann", "k", "a", "cat")])
    run = labelonce_cli("project", tmp_path / "pets", "--backup", tmp_path / "copy.db")
    assert (run.returncode, run.stderr) == (0, f"all answers and tokens -> {tmp_path / 'copy.db'}\n")
    assert [row.label for row in Store(str(tmp_path / "copy.db")).answers()] == ["cat"]
    again = labelonce_cli("project", tmp_path / "pets", "--backup", tmp_path / "pets" / "annotations.db")
    assert (again.returncode, "must be another file" in again.stderr) == (2, True)
    lost = labelonce_cli("project", tmp_path / "pets", "--backup", tmp_path / "nowhere" / "copy.db")
    assert (lost.returncode, "must lie in a folder that is there" in lost.stderr) == (2, True)
    both = labelonce_cli("project", tmp_path / "pets", "--backup", tmp_path / "copy.db", "--workers", "eve")
    assert "--backup must go without other options" in both.stderr
    serving.close()


def test_what_is_left_out_is_listed(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="no Pillow: pip install 'labelonce[images]'")
    (tmp_path / "photos").mkdir()
    image.new("L", (9, 9)).save(tmp_path / "photos" / "a.png")
    for number in range(25):
        (tmp_path / "photos" / f"bad{number:02d}.png").write_bytes(b"")
    options = ["--tasks", str(tmp_path / "photos"), "--classes", "cat,dog", "--workers", "ann"]
    made = labelonce_cli("project", tmp_path / "pets", *options)
    assert "note: left out: bad00.png: it is no image" in made.stderr
    assert "note: left out: 5 more" in made.stderr
    assert f"tasks: 1 image of {tmp_path / 'photos'} (a.png)" in made.stderr
    made = labelonce_cli("project", tmp_path / "other", *options, "--json")
    assert len(json.loads(made.stdout)["left_out"]) == 25


COMMANDS = [["project", "--workers", "eve"], ["serve", "--port", "50999"], ["project", "--revoke", "a"]]


@pytest.mark.parametrize("arguments", COMMANDS)
@pytest.mark.parametrize("broken", ["damaged", "away"])
def test_a_database_that_does_not_answer_is_one_sentence(
    tmp_path: Path, tasks: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], broken: str
) -> None:
    project = Project.make(tmp_path / "pets", tasks, ["cat", "dog"], text="text")
    if broken == "damaged":
        (project.folder / "annotations.db").write_bytes(b"\0" * 5000)
    else:
        pytest.importorskip("psycopg", reason="no psycopg: pip install 'labelonce[postgres]'")
        monkeypatch.setenv("LABELONCE_DATABASE", "postgresql://ann:hunter2@127.0.0.1:1/x?connect_timeout=1")
    command, *options = arguments
    run = labelonce_cli(command, project.folder, *options)
    said = run.stderr.splitlines()[-1]
    assert (run.returncode, "Traceback" in run.stderr, "hunter2" in run.stderr) == (2, False, False)
    assert ("must be a whole SQLite database" if broken == "damaged" else "at 127.0.0.1 must answer") in said


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
