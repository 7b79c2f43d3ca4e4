"""What people do to a service, on purpose or not: odd requests, lost tokens, edited files, fits that fail."""

import asyncio
import csv
import io
import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from commands import Patch
from service_projects import Client, boxes_project, fitted_now, given, labelled, serving, text_project

from labelonce.service import LabelStudio, Project
from labelonce.service import _fit as fits
from labelonce.service import _service as service_module
from labelonce.service import _store as store_module
from labelonce.service._instructions import read_instructions
from labelonce.service._live import Live
from labelonce.service._live_boxes import LiveBoxes
from labelonce.service._refits import Refits
from labelonce.service._service import Service
from labelonce.service._store import Answer, DatabaseTrouble, Store
from labelonce.service._writer import Writer

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'labelonce[service]'")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return text_project(tmp_path)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ('{"key": "k", "task": "a", "label": "dog", "seconds": NaN}', 422),
        ('{"key": "k", "task": "a", "label": "dog", "seconds": 1e999}', 422),
        ('{"key": "k", "task": "a", "label": "dog", "more": NaN}', 422),
        ('{"key": "k\\u0000", "task": "a", "label": "dog"}', 422),
        ('{"key": "\\ud800", "task": "a", "label": "dog"}', 422),
        ('{"key": "k", "task": "\\u0000", "label": "dog"}', 404),
        ("[" * 60_000, 400),
        ("\xff", 400),
        (" " * 70_000, 413),
    ],
)
def test_odd_bodies_are_refused_and_nothing_fails(project: Project, body: str, status: int) -> None:
    with serving(project) as http:
        token = project.add_workers(["ann"])["ann"]
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        found = http.post("/api/annotations", content=body.encode("latin-1"), headers=headers)
        assert found.status_code == status
        assert "detail" in found.json()
        assert Client(http, token).label("a", "dog").status_code == 200  # still there


def test_large_bodies_redirects_and_guessed_secrets_lead_nowhere(project: Project) -> None:
    with serving(project) as http:
        answer = http.get("/api/export/", headers={"Host": "evil.example"}, follow_redirects=False)
        assert (answer.status_code, "evil.example" in str(answer.headers)) == (404, False)
    token = project.add_workers(["ann"])["ann"]
    with serving(project) as http:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        answer = http.post("/api/annotations", content=(b" " * 10_000 for _ in range(10)), headers=headers)
        assert (answer.status_code, "at most 65536 bytes" in answer.text) == (413, True)
    with serving(project) as http:
        assert http.post("/label-studio/guessed/webhook", content=b" " * 100_000).status_code == 413


@pytest.mark.parametrize("seconds", ["true", '"1"', "-1", "1e7"])
def test_seconds_are_a_number(project: Project, seconds: str) -> None:
    token = project.add_workers(["ann"])["ann"]
    with serving(project) as http:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        body = f'{{"key": "k", "task": "a", "label": "dog", "seconds": {seconds}}}'
        assert http.post("/api/annotations", content=body, headers=headers).status_code == 422


def test_a_file_that_another_process_has_locked_keeps_nobody_else_waiting(
    project: Project, monkeypatch: Patch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(store_module, "_BUSY_SECONDS", 2)
    token = project.add_workers(["ann"])["ann"]
    with serving(project) as http, ThreadPoolExecutor() as pool:
        ann, other = Client(http, token), sqlite3.connect(project.folder / "annotations.db")
        other.execute("BEGIN IMMEDIATE")
        posts = [pool.submit(ann.label, task, "dog") for task in "ab"]
        while http.app.state.service._writer._task is None:
            time.sleep(0.001)
        seen = 0
        while not any(post.done() for post in posts):
            answers = [http.get("/health"), ann.get("/api/me"), ann.get("/api/next")]
            assert [answer.status_code for answer in answers] == [200] * 3
            seen += 1
        assert seen > 3  # answered again and again while the posts waited
        assert {post.result().status_code for post in posts} == {503}
        other.rollback()
        other.close()
        assert ann.label("a", "dog").json()["new"]
    said = f"{project.folder}/annotations.db must be a whole SQLite database that can be read and written"
    assert [one.partition(";")[0] for one in caplog.messages if "SQLite" in one] == [said]
    assert "Traceback" not in caplog.text


def test_a_file_of_answers_is_served_from_one_folder(project: Project, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = text_project(tmp_path / "other", database="../../pets/annotations.db")
    with serving(project), pytest.raises(ValueError, match=r"annotations\.db must be served once"):
        asyncio.run(Service(other).start())


@pytest.mark.parametrize("make", [text_project, boxes_project])
def test_a_wall_clock_that_is_set_back_keeps_no_task_from_others(tmp_path: Path, monkeypatch: Patch, make: Any) -> None:
    project, now = make(tmp_path, lease_seconds=60.0), [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    live = (LiveBoxes if project.settings.multilabel else Live)(project, [], None)
    first = [live.next(worker) for worker in project.tasks.names]
    assert live.next("late") is None
    monkeypatch.setattr(time, "time", lambda: 0.0)
    now[0] += 61
    assert live.next("late") in first


def test_an_image_that_has_become_a_link_is_not_shown(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="no Pillow: pip install 'labelonce[images]'")
    (tmp_path / "photos").mkdir()
    for name in "ab":
        image.new("L", (9, 9)).save(tmp_path / "photos" / f"{name}.png")
    project = Project.make(tmp_path / "p", tmp_path / "photos", ["cat", "dog"])
    with serving(project) as http:
        ann = Client(http, project.add_workers(["ann"])["ann"])
        (project.folder / "images" / "a.png").unlink()
        (project.folder / "images" / "a.png").symlink_to("/etc/passwd")
        assert ann.get("/api/image?task=a.png").status_code == 404
        assert ann.get("/api/image?task=b.png").content[:4] == b"\x89PNG"


def test_an_export_for_a_spreadsheet_holds_no_formula(tmp_path: Path) -> None:
    project = text_project(tmp_path)
    ann, bob = "=cmd|' /C calc'!A0", "bob"
    given(project, [Answer(ann, "1", "a", "cat"), Answer(bob, "1", "b", "dog")])
    with serving(project) as http:
        admin = Client(http, project.add_admin())
        plain, safe = (admin.get(f"/api/export?spreadsheet={one}").text for one in ("false", "true"))
        assert [row["worker"] for row in csv.DictReader(io.StringIO(plain))] == [ann, bob]  # what can be read again
        assert [row["worker"] for row in csv.DictReader(io.StringIO(safe))] == [f"'{ann}", bob]


@pytest.mark.parametrize("path", ["/..%2fproject.toml", "/label.js/../annotations.db", "//etc/passwd", "/fits/"])
def test_no_path_leads_to_a_file_of_the_project(project: Project, path: str) -> None:
    with serving(project) as http:
        assert http.get(path).status_code == 404


def test_a_revoked_token_opens_nothing_and_the_labels_stay(project: Project, monkeypatch: Patch) -> None:
    monkeypatch.setattr(service_module, "_TOKENS_EVERY", 0.0)
    tokens = project.add_workers(["ann", "bob"])
    with serving(project) as http:
        ann, bob, admin = (Client(http, token) for token in (*tokens.values(), project.add_admin()))
        assert ann.label("a", "dog").status_code == bob.label("a", "dog").status_code == 200
        assert ann.post("/api/annotations").status_code != 403
        assert Client(http, tokens["bob"]).delete("/api/tokens?worker=ann").status_code == 403
        assert admin.delete("/api/tokens?worker=ann").json() == {"revoked": 1}
        assert ann.get("/api/next").status_code == 401
        assert project.revoke(["bob"]) == 1  # from outside, such as by the command
        assert 401 in [bob.get("/api/next").status_code for _ in range(100)]
        assert admin.get("/api/progress").json()["labels"] == 2


def test_the_task_of_a_revoked_worker_goes_to_others(tmp_path: Path) -> None:
    project = text_project(tmp_path, max_labels=1)
    tokens = project.add_workers(["ann", "bob"])
    with serving(project) as http:
        ann, bob, admin = (Client(http, token) for token in (*tokens.values(), project.add_admin()))
        out = ann.get("/api/next").json()["task"]
        admin.delete("/api/tokens?worker=ann")
        seen = []
        while (task := bob.get("/api/next").json()["task"]) is not None:
            seen.append(task)
            bob.label(task, "cat")
        assert out in seen


def test_a_wish_that_cannot_be_written_harms_no_other_one_of_its_group(tmp_path: Path) -> None:
    async def write() -> list[Any]:
        writer = Writer(Store(str(tmp_path / "answers.db")))
        wishes = [Answer("ann", key, key, "cat") for key in ("a", "\ud800", "c")]
        found = await asyncio.gather(*(writer.write(wish) for wish in wishes), return_exceptions=True)
        await writer.close()
        return found

    first, bad, last = asyncio.run(write())
    assert (first.changed, last.changed) == (True, True)
    assert isinstance(bad, UnicodeEncodeError)
    store = Store(str(tmp_path / "answers.db"))
    assert [row.task for row in store.answers()] == ["a", "c"]
    store.close()


class Full:
    """A connection whose disk is full once."""

    def __init__(self, connection: Any) -> None:
        self._connection, self.full = connection, True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def commit(self) -> None:
        if self.full:
            self.full = False
            raise sqlite3.OperationalError("database or disk is full")
        self._connection.commit()


def test_what_a_full_disk_refused_does_not_come_with_the_next_answer(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "answers.db"))
    store._connection = Full(store._connection)
    with pytest.raises(DatabaseTrouble, match="disk is full"):
        store.write([Answer("ann", "1", "a", "cat")])
    (second,) = store.write([Answer("ann", "2", "b", "cat")])
    assert second.changed
    assert [row.task for row in store.answers()] == ["b"]
    (again,) = store.write([Answer("ann", "1", "a", "cat")])
    assert again.changed  # so that the router hears of it
    store.close()


def test_a_fit_that_failed_is_begun_anew_with_the_answers_of_then(project: Project, monkeypatch: Patch) -> None:
    labelled(project)
    with monkeypatch.context() as patched:
        patched.setattr(fits, "_finish", lambda *_: (_ for _ in ()).throw(ValueError("no fit of these")))
        with pytest.raises(ValueError, match="no fit of these"):
            fits.main(project.folder)
    given(project, [Answer("kim", "e", "e", "cat")])
    found = fitted_now(project)
    assert found.about["labels"] == 13


@pytest.mark.parametrize("name", ["belief.npz", "annotations.parquet", "fit.json"])
@pytest.mark.parametrize("content", [b"", b"{}", b"[]"])
def test_a_damaged_fit_is_made_again(
    project: Project, caplog: pytest.LogCaptureFixture, name: str, content: bytes
) -> None:
    labelled(project)
    assert fits.main(project.folder) == 0
    (project.fits / "000001" / name).write_bytes(content)
    with serving(Project(project.folder)) as http:
        assert Client(http, project.add_admin()).get("/api/progress").json()["fit"] is None
    assert "000001 cannot be read, and is left out" in caplog.text
    assert fits.main(project.folder) == 0
    assert fits.newest(project) is not None


@pytest.mark.parametrize("how", ["named", "linked"])
def test_nothing_of_another_folder_is_shown(project: Project, tmp_path: Path, how: str) -> None:
    (tmp_path / "secret.csv").write_text("task,text\na,SECRET\n")
    if how == "named":
        settings = project.folder / "project.toml"
        settings.write_text(settings.read_text().replace('"tasks.csv"', '"../secret.csv"'))
    else:
        (project.folder / "tasks.csv").unlink()
        (project.folder / "tasks.csv").symlink_to(tmp_path / "secret.csv")
    with pytest.raises(ValueError, match="must hold its own tables; got one elsewhere"):
        Project(project.folder)
    (project.folder / "instructions.md").symlink_to(tmp_path / "secret.csv")
    assert read_instructions(project.folder) == []


def test_tasks_may_be_added_and_moved_between_two_services(project: Project) -> None:
    labelled(project)
    assert fits.main(project.folder) == 0
    path = project.folder / project.settings.tasks
    head, *rows = path.read_text("utf-8").splitlines()
    path.write_text("\n".join([head, "new,one more", *reversed(rows)]) + "\n", "utf-8")
    edited = Project(project.folder)
    assert fits.newest(edited) is None
    with serving(edited) as http:
        admin = Client(http, edited.add_admin())
        progress = admin.get("/api/progress").json()
        assert (progress["tasks"], progress["labels"], progress["fit"]) == (7, 12, None)
        found = {row["task"]: row["label"] for row in admin.get("/api/labels").json()["rows"] if row["labels"]}
        assert found == {"a": "dog", "b": "dog", "c": "cat", "d": "cat"}
    assert fits.main(edited.folder) == 0
    assert fits.newest(edited) is not None


def test_a_fit_that_cannot_be_taken_over_is_told(project: Project, monkeypatch: Patch) -> None:
    async def unable(_: fits.FinishedFit) -> None:
        raise ValueError("the posterior of a fit must have shape (6, 2)")

    async def fit(_: Refits) -> tuple[int, list[str]]:
        return 0, []

    labelled(project)
    assert fits.main(project.folder) == 0
    monkeypatch.setattr(Refits, "_fit", fit)

    async def run() -> str | None:
        writer = Writer(project.store())
        refits = Refits(project, unable, writer)
        assert refits.start(12)
        await refits.wait()
        await writer.close()
        return refits.trouble

    assert asyncio.run(run()) == "the posterior of a fit must have shape (6, 2)"


@contextmanager
def web(answer: Any) -> Iterator[tuple[str, list[Any]]]:
    """Run a server that keeps the headers of its requests."""
    seen: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers)
            answer(self)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", seen
        server.shutdown()


def said(handler: BaseHTTPRequestHandler) -> None:
    content = json.dumps("content").encode()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


def test_the_token_of_label_studio_is_sent_to_no_other_server() -> None:
    with web(said) as (stranger, seen):

        def elsewhere(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(302)
            handler.send_header("Location", f"{stranger}/stored.png")
            handler.end_headers()

        with web(elsewhere) as (own, asked):
            tool = LabelStudio(own, "token", 1)
            assert tool.content("/data/upload/1.png") == b'"content"'
            assert [headers["Authorization"] for headers in asked] == ["Token token"]
            assert [headers["Authorization"] for headers in seen] == [None]
            with pytest.raises(ValueError, match=r"http\(s\)://...; got '@127\.0\.0\.1/1\.png'"):
                tool.content("@127.0.0.1/1.png")
