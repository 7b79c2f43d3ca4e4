"""The HTTP interface: tasks out, labels in, once each, and nobody sees what is not theirs."""

import csv
import io
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'labelonce[service]'")

import httpx
from service_projects import TEXTS, Client, boxes_project, serving, text_project

from labelonce.service import Project


@dataclass
class Running:
    """A served project and the people around it."""

    project: Project
    http: httpx.Client
    ann: Client
    bob: Client
    admin: Client


def running(project: Project) -> Iterator[Running]:
    tokens = project.add_workers(["ann", "bob"]) | {"": project.add_admin()}
    with serving(project) as http:
        yield Running(project, http, *(Client(http, tokens[name]) for name in ("ann", "bob", "")))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Running]:
    yield from running(text_project(tmp_path))


def test_a_task_stays_with_its_worker_until_it_is_labelled(served: Running) -> None:
    first = served.ann.get("/api/next").json()
    assert first["text"] == TEXTS[first["task"]]
    assert served.ann.get("/api/next").json() == first
    assert served.bob.get("/api/next").json()["task"] != first["task"]
    assert served.ann.label(first["task"], "cat").json()["new"]
    assert served.ann.get("/api/next").json()["task"] != first["task"]


def test_a_label_sent_twice_counts_once_and_nobody_undoes_anothers(served: Running) -> None:
    one, two = served.ann.label("a", "cat", "k"), served.ann.label("a", "cat", "k")
    assert (one.json()["new"], two.json()["new"], one.json()["id"] == two.json()["id"]) == (True, False, True)
    assert served.admin.get("/api/progress").json()["labels"] == 1
    assert served.bob.delete(f"/api/annotations/{one.json()['id']}").status_code == 404
    assert served.admin.get("/api/progress").json()["labels"] == 1


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"key": "k", "task": "a", "label": "dog"}, 409, "the key was used"),
        ({"key": "other", "task": "a", "label": "dog"}, 409, "labelled already"),
        ({"key": "z", "task": "zzz", "label": "dog"}, 404, "'zzz'"),
        ({"key": "z", "task": "b", "label": "bird"}, 422, "cat, dog; got 'bird'"),
        ({"key": "z", "task": "b"}, 422, "must have label"),
        ({"key": "", "task": "b", "label": "dog"}, 422, "at least 1 character"),
    ],
)
def test_what_does_not_fit_is_refused(served: Running, body: dict[str, str], status: int, said: str) -> None:
    served.ann.label("a", "cat", "k")
    answer = served.ann.post("/api/annotations", body)
    assert answer.status_code == status
    assert said in answer.text
    assert served.admin.get("/api/progress").json()["labels"] == 1


def test_undo_brings_the_task_back_and_forgets_the_label(served: Running) -> None:
    task = served.ann.get("/api/next").json()["task"]
    kept = served.ann.label(task, "cat").json()
    served.ann.get("/api/next")
    undone = served.ann.delete(f"/api/annotations/{kept['id']}")
    assert undone.json()["task"] == task
    assert served.ann.delete(f"/api/annotations/{kept['id']}").status_code == 200
    assert served.ann.get("/api/next").json()["task"] == task
    assert served.admin.get("/api/progress").json()["labels"] == 0
    assert served.ann.label(task, "dog", "second try").json()["new"]


def test_a_skipped_task_goes_to_somebody_else(served: Running) -> None:
    task = served.ann.get("/api/next").json()["task"]
    assert served.ann.post("/api/skips", {"key": "s", "task": task, "reason": "blurred"}).json()["new"]
    for _ in range(len(TEXTS) - 1):
        other = served.ann.get("/api/next").json()["task"]
        assert other != task
        served.ann.label(other, "cat")
    assert served.ann.get("/api/next").json()["why"] == "all"
    progress = served.admin.get("/api/progress").json()
    assert (progress["skips"], progress["labels"]) == (1, len(TEXTS) - 1)


PATHS = ["/api/me", "/api/next", "/api/progress", "/api/workers", "/api/labels", "/api/export", "/api/image?task=a"]
ADMIN = ["/api/progress", "/api/workers", "/api/labels", "/api/export", "/api/figures", "/api/task?task=a"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic YTpi"}])
def test_without_a_token_there_is_no_data(served: Running, path: str, header: dict[str, str]) -> None:
    answer = served.http.get(path, headers=header)
    assert answer.status_code == 401
    assert not any(text in answer.text for text in TEXTS.values())


@pytest.mark.parametrize("path", ADMIN)
def test_a_worker_cannot_read_others_labels_or_skills(served: Running, path: str) -> None:
    served.bob.label("a", "dog")
    answer = served.ann.get(path)
    assert answer.status_code == served.ann.post("/api/refit").status_code == 403
    assert served.ann.post("/api/workers", {"worker": "eve"}).status_code == 403
    assert "bob" not in answer.text
    assert "dog" not in answer.text


def test_tokens_are_not_kept_and_those_made_while_it_runs_work(served: Running) -> None:
    made = served.admin.post("/api/workers", {"worker": "eve"})
    token = made.json()["token"]
    assert made.status_code == 201
    content = b"".join(path.read_bytes() for path in served.project.folder.rglob("*") if path.is_file())
    assert token.encode() not in content
    assert Client(served.http, token).get("/api/me").json()["worker"] == "eve"
    (token,) = Project(served.project.folder).add_workers(["zoe"]).values()
    assert Client(served.http, token).get("/api/next").status_code == 200


def test_one_person_cannot_take_all_the_service(tmp_path: Path) -> None:
    for served in running(text_project(tmp_path, requests_per_second=1.0)):
        answers = [served.ann.get("/api/me") for _ in range(10)]
        assert [answer.status_code for answer in answers[:3]] == [200, 200, 200]
        assert answers[-1].status_code == 429
        assert int(answers[-1].headers["Retry-After"]) >= 1
        assert served.bob.get("/api/me").status_code == 200


def shown(served: Running) -> list[dict[str, Any]]:
    """Return progress and labels, with probabilities as far as their sums do not depend on the order."""
    rows = [served.admin.get("/api/progress").json(), *served.admin.get("/api/labels").json()["rows"]]
    return [{name: round(one, 9) if isinstance(one, float) else one for name, one in row.items()} for row in rows]


def test_a_restart_brings_everything_back(tmp_path: Path) -> None:
    project = text_project(tmp_path)
    for served in running(project):
        kept = served.ann.label("a", "cat").json()
        served.bob.label("a", "dog")
        served.ann.post("/api/skips", {"key": "s", "task": "b", "reason": "blurred"})
        served.ann.delete(f"/api/annotations/{kept['id']}")
        before = shown(served)
    for served in running(Project(project.folder)):
        assert shown(served) == before


def test_export_is_what_was_given_and_labels_come_with_confidence_by_pages(served: Running) -> None:
    served.ann.label("a", "cat")
    served.bob.label("e", "dog")
    rows = list(csv.DictReader(io.StringIO(served.admin.get("/api/export").text)))
    assert [(row["task"], row["worker"], row["label"]) for row in rows] == [("a", "ann", "cat"), ("e", "bob", "dog")]
    labels = served.admin.get("/api/export?what=labels&format=jsonl").text.splitlines()
    assert len(labels) == len(TEXTS)
    assert served.admin.get("/api/export?format=parquet").content[:4] == b"PAR1"
    served.ann.label("b", "dog")
    page = served.admin.get("/api/labels?offset=1&limit=2").json()
    assert (page["total"], [row["task"] for row in page["rows"]]) == (len(TEXTS), ["b", "c"])
    assert page["rows"][0]["label"] == "dog"
    assert page["rows"][0]["confidence"] > page["rows"][1]["confidence"] == 0.5


def test_pages_hold_no_data_and_wrong_tokens_are_slowed_down(served: Running) -> None:
    for path in ("/", "/dashboard"):
        answer = served.http.get(path)
        assert "script-src 'self'" in answer.headers["content-security-policy"]
        assert "Pets" not in answer.text
    codes = [served.http.get("/api/me", headers={"Authorization": f"Bearer {i}"}).status_code for i in range(30)]
    assert (codes[0], codes[-1]) == (401, 429)
    assert served.ann.get("/api/me").status_code == 200


def test_the_budget_stops_it(tmp_path: Path) -> None:
    for served in running(text_project(tmp_path, budget=2)):
        served.ann.label("a", "cat")
        served.bob.label("b", "cat")
        assert served.ann.get("/api/next").json()["why"] == "budget"
        assert served.admin.get("/api/progress").json()["stop"] == "budget"


@pytest.mark.slow
@pytest.mark.parametrize("role", ["worker", "admin"])
@pytest.mark.parametrize("make", [text_project, boxes_project], ids=["buttons", "boxes"])
def test_schemathesis_finds_nothing(tmp_path: Path, make: Callable[..., Project], role: str) -> None:
    pytest.importorskip("schemathesis", reason="no schemathesis: pip install 'labelonce[dev]'")
    project = make(tmp_path, requests_per_second=1e6)
    token = project.add_workers(["ann"])["ann"] if role == "worker" else project.add_admin()
    code = "from schemathesis.cli import schemathesis; schemathesis()"
    with serving(project) as http:
        command = [sys.executable, "-c", code, "run", f"{http.base_url}/openapi.json", "--checks", "all", "--no-color"]
        command += ["-H", f"Authorization: Bearer {token}", "--max-examples", "20", "--seed", "1"]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-5000:]
    assert "18 selected" in run.stdout
