"""Several services on one PostgreSQL are equal, and a service that is killed loses no answer."""

import asyncio
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from postgres_server import SECRET, Postgres
from service_crowd import Log, Server, work
from service_projects import Client, boxes_project, kept, labelled, serving, text_project

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'labelonce[service]'")

from labelonce.service import Project, _refits
from labelonce.service import _fit as fits
from labelonce.service._service import Service
from labelonce.service._store import DatabaseTrouble

TASKS = "abcdef"


@pytest.fixture
def project(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setattr(_refits, "_FIT", _refits._FIT.replace("os.nice(19)", ""))  # these tests wait for fits
    return text_project(tmp_path, database=database)


@pytest.fixture
def both(project: Project, tmp_path: Path) -> Iterator[tuple[Any, Any]]:
    """Two services, each with a folder of its own, as on two machines."""
    shutil.copytree(project.folder, tmp_path / "copy")
    with serving(project) as one, serving(Project(tmp_path / "copy")) as other:
        yield one, other


def people(project: Project, http: Any, *names: str) -> list[Client]:
    tokens = project.add_workers(list(names))
    return [Client(http, tokens[name]) for name in names]


def through(client: Client, http: Any) -> Client:
    """Return the same person at another service."""
    return Client(http, client._headers["Authorization"].removeprefix("Bearer "))


def soon(true: Callable[[], Any]) -> None:
    for _ in range(6_000):  # a fit may take minutes on a busy machine
        if true():
            return
        time.sleep(0.05)
    raise AssertionError


def test_a_worker_may_change_services_with_every_request(project: Project, both: tuple[Any, Any]) -> None:
    (ann,) = people(project, both[0], "ann")
    seen = []
    for turn in range(len(TASKS)):
        here, there = through(ann, both[turn % 2]), through(ann, both[1 - turn % 2])
        task = here.get("/api/next").json()["task"]
        assert there.get("/api/next").json()["task"] == task
        assert there.label(task, "cat").json()["new"]
        assert not here.label(task, "cat").json()["new"]
        seen.append(task)
    assert sorted(seen) == list(TASKS)
    assert through(ann, both[0]).get("/api/next").json()["task"] is None


def test_no_task_is_out_twice(project: Project, both: tuple[Any, Any]) -> None:
    everybody = people(project, both[0], *TASKS)
    tasks = [through(one, both[turn % 2]).get("/api/next").json()["task"] for turn, one in enumerate(everybody)]
    assert sorted(tasks) == list(TASKS)
    (late,) = people(project, both[1], "late")
    assert late.get("/api/next").json()["task"] is None


def test_what_is_undone_at_one_is_open_at_the_other(project: Project, both: tuple[Any, Any]) -> None:
    (ann,) = people(project, both[0], "ann")
    kept = ann.label("a", "cat").json()
    back = through(ann, both[1]).delete(f"/api/annotations/{kept['id']}").json()
    assert (back["task"], ann.get("/api/next").json()["task"]) == ("a", "a")
    admin = Client(both[0], project.add_admin())
    assert admin.get("/api/progress").json()["labels"] == 0
    assert through(ann, both[1]).label("a", "dog", "again").json()["new"]


def test_both_count_the_budget(tmp_path: Path, database: str) -> None:
    project = text_project(tmp_path, database=database, budget=2)
    with serving(project) as one, serving(project) as other:
        ann, bob = people(project, one, "ann", "bob")
        ann.label("a", "cat")
        through(bob, other).label("b", "cat")
        assert {through(ann, http).get("/api/next").json()["why"] for http in (one, other)} == {"budget"}


def test_second_labels_and_known_tasks_are_shared(tmp_path: Path, database: str) -> None:
    (tmp_path / "known.csv").write_text("task,label\na,cat\n")
    project = text_project(tmp_path, database=database, overlap=1.0, max_labels=1, known=tmp_path / "known.csv")
    with serving(project) as one, serving(project) as other:
        seen: dict[str, list[str]] = {"ann": [], "bob": []}
        everybody = people(project, one, *seen)
        for turn in range(len(TASKS)):
            for name, client in zip(seen, everybody, strict=True):
                client = through(client, (one, other)[turn % 2])
                seen[name].append(client.get("/api/next").json()["task"])
                assert client.label(seen[name][-1], "cat").json()["new"]
        assert sorted(seen["ann"]) == sorted(seen["bob"]) == list(TASKS)


@pytest.mark.usefixtures("skops")
def test_a_fit_of_one_is_believed_by_all(project: Project, both: tuple[Any, Any]) -> None:
    labelled(project)
    one, other = (Client(http, project.add_admin()) for http in both)
    soon(lambda: one.get("/api/progress").json()["labels"] == 12)
    assert one.post("/api/refit").json()["started"]
    soon(lambda: other.get("/api/progress").json()["fitting"])
    assert not other.post("/api/refit").json()["started"]
    soon(lambda: all(admin.get("/api/progress").json()["fit"] == 1 for admin in (one, other)))
    pages = [admin.get("/api/labels").json() for admin in (one, other)]
    assert pages[0] == pages[1]
    assert one.get("/api/progress").json()["history"] == other.get("/api/progress").json()["history"]
    soon(lambda: not other.get("/api/progress").json()["fitting"])
    assert other.post("/api/refit").json()["started"]
    soon(lambda: one.get("/api/progress").json()["fit"] == 2)


def test_a_service_that_begins_later_believes_the_newest_fit(project: Project, tmp_path: Path) -> None:
    labelled(project)
    shutil.copytree(project.folder, tmp_path / "copy")
    assert fits.main(project.folder) == 0
    copy = Project(tmp_path / "copy")
    assert fits.history(copy) == fits.history(project) != []
    found, here = fits.newest(copy), fits.newest(project)
    assert found is not None
    assert here is not None
    assert (found.about, found.fit.posterior.tolist()) == (here.about, here.fit.posterior.tolist())


def test_a_fit_that_fails_is_told_by_all(project: Project, both: tuple[Any, Any]) -> None:
    labelled(project)
    (project.folder / "tasks.csv").unlink()
    one, other = (Client(http, project.add_admin()) for http in both)
    assert one.post("/api/refit").json()["started"]
    soon(lambda: "tasks.csv" in str(other.get("/api/progress").json()["trouble"]))


def test_all_serve_the_same_tasks(project: Project, both: tuple[Any, Any], tmp_path: Path) -> None:  # noqa: ARG001  # served
    other = text_project(tmp_path / "copy", database=project.settings.database, refit_every=9)
    path = other.folder / "tasks.csv"
    path.write_text(path.read_text("utf-8") + "g,one more\n", "utf-8")
    with pytest.raises(DatabaseTrouble, match="must be served for one project; got other tasks or classes"):
        asyncio.run(Service(Project(other.folder)).start())


def test_check_boxes_are_shared_too(tmp_path: Path, database: str) -> None:
    project = boxes_project(tmp_path, database=database)
    with serving(project) as one, serving(project) as other:
        ann, bob = people(project, one, "ann", "bob")
        first = ann.get("/api/next").json()["task"]
        bob = through(bob, other)
        assert bob.get("/api/next").json()["task"] != first
        body = {"key": "k", "task": first, "labels": ["sea"]}
        assert through(ann, other).post("/api/annotations", body).json()["new"]
        assert not ann.post("/api/annotations", body).json()["new"]


def test_while_the_server_is_away_everybody_is_told_to_ask_again(
    tmp_path: Path, postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    project = text_project(tmp_path, database=postgres.empty())
    with ExitStack() as stack:
        both = [stack.enter_context(serving(project)) for _ in range(2)]
        (ann,) = people(project, both[0], "ann")
        task = ann.get("/api/next").json()["task"]
        admin = Client(both[1], project.add_admin())
        postgres.stop(signal.SIGQUIT)
        answers = [ann.label(task, "cat"), ann.get("/api/next"), admin.post("/api/workers", {"worker": "eve"})]
        answers += [admin.delete("/api/tokens?worker=eve"), Client(both[0], "x").get("/api/me")] * 20
        assert {(one.status_code, one.headers["retry-after"]) for one in answers} == {(503, "2")}
        assert both[0].get("/health").status_code == 200
        postgres.start()
        assert admin.post("/api/workers", {"worker": "eve"}).status_code == 201
        assert Client(both[0], "x").get("/api/me").status_code == 401
        assert through(ann, both[1]).get("/api/next").json()["task"] == task  # the lease is still there
        assert ann.label(task, "cat").json()["new"]
        soon(lambda: admin.get("/api/progress").json()["labels"] == 1)
    said = caplog.messages
    assert len([one for one in said if "must answer; got: " in one]) == 2  # once for each service
    assert len([one for one in said if "is there again" in one]) == 2
    assert (len(said), SECRET in caplog.text) == (4, False)


KILLS = 3


def numbered_project(folder: Path, n: int) -> Project:
    (folder / "many.csv").write_text("task\n" + "\n".join(str(i) for i in range(n)) + "\n")
    settings = {"learn_from": "nothing", "refit_every": 20, "requests_per_second": 10_000.0}
    return Project.make(folder / "many", folder / "many.csv", ["cat", "dog"], **settings)  # type: ignore[arg-type]


@pytest.mark.slow
def test_every_acknowledged_answer_survives_a_kill_and_none_is_there_twice(tmp_path: Path) -> None:
    project = numbered_project(tmp_path, 2_000)
    tokens = project.add_workers([f"w{i}" for i in range(8)])
    server, log = Server(project.folder), Log()
    server.start()

    async def shift() -> None:
        killed = 0
        options = {"pause": 0.02, "classes": ["cat", "dog"]}
        workers = [
            asyncio.create_task(work(server.port, worker, token, lambda: killed < KILLS, log, **options))  # type: ignore[arg-type]
            for worker, token in tokens.items()
        ]
        for _ in range(KILLS):
            before = len(log.kept)
            while len(log.kept) < before + 20:
                await asyncio.sleep(0.01)
            server.kill()
            await asyncio.to_thread(server.start)
            killed += 1
        await asyncio.gather(*workers)

    asyncio.run(shift())
    server.kill()
    rows = kept(project)
    found = {f"{row.worker} {row.key}": (row.worker, row.task, row.label) for row in rows}
    assert len(log.kept) >= 20 * KILLS
    assert log.kept.items() <= found.items()
    assert len(found) == len(rows) == len({(row.worker, row.task) for row in rows})
    assert max(log.codes) < 500
