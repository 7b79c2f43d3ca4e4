"""Small projects to test with, and a client for each person."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from labelonce.service import Project, create_app
from labelonce.service import _fit as fits
from labelonce.service._store import Answer, AnswerRow

TEXTS = {
    "a": "a small dog",
    "b": "it purrs",
    "c": "<script>document.title='owned'</script>",
    "d": "<img src=x onerror=\"document.title='owned'\">",
    "e": "שלום, 猫",
    "f": "the last one",
}
BOXES = ("dog", "sea", "<i>road</i>")
QUIET: dict[str, Any] = {"learn_from": "nothing", "refit_every": 10_000, "requests_per_second": 10_000.0}


def text_project(folder: Path, **settings: Any) -> Project:
    rows = ['"' + name + '","' + text.replace('"', '""') + '"' for name, text in TEXTS.items()]
    (folder / "tasks.csv").write_text("\n".join(["task,text", *rows]) + "\n", "utf-8")
    chosen: dict[str, Any] = {"text": "text", "title": "Pets"} | QUIET | settings
    return Project.make(folder / "pets", folder / "tasks.csv", ["cat", "dog"], **chosen)


def boxes_project(folder: Path, **settings: Any) -> Project:
    """Return a project with check boxes."""
    (folder / "tasks.csv").write_text("task,text\n" + "".join(f"{name},text of {name}\n" for name in "abcd"))
    chosen: dict[str, Any] = {"text": "text", "title": "Walks", "multilabel": True} | QUIET | settings
    return Project.make(folder / "walks", folder / "tasks.csv", BOXES, **chosen)


def given(project: Project, answers: list[Answer]) -> None:
    """Write answers into the store of a project."""
    with closing(project.store()) as store:
        store.write(answers)


def labelled(project: Project) -> None:
    """Let three workers label four tasks, all right."""
    given(project, [Answer(w, t, t, "dog" if t < "c" else "cat") for w in ("ann", "bob", "eve") for t in "abcd"])


def kept(project: Project) -> list[AnswerRow]:
    """Return the answers in the store of a project."""
    with closing(project.store()) as store:
        return store.answers()


def newest(project: Project) -> fits.FinishedFit:
    """Return the newest fit of a project, which must be there."""
    found = fits.newest(project)
    assert found is not None
    return found


def fitted_now(project: Project) -> fits.FinishedFit:
    """Fit a project and return the fit."""
    assert fits.main(project.folder) == 0
    return newest(project)


@contextmanager
def serving(project: Project, *, port: int = 0, **options: Any) -> Iterator[Any]:
    """Serve a project in a thread, by default on a free port; give a client without a token that knows the app."""
    import httpx
    import uvicorn

    class Http(httpx.Client):
        app: Any = None

    app = create_app(project, **options)
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning", access_log=False))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the service did not start"
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        with Http(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            client.app = app
            yield client
    finally:
        server.should_exit = True
        thread.join()


class Client:
    """Requests of one person."""

    def __init__(self, http: Any, token: str) -> None:
        self._http, self._headers = http, {"Authorization": f"Bearer {token}"}

    def get(self, path: str, **options: Any) -> Any:
        return self._http.get(path, headers=self._headers, **options)

    def post(self, path: str, body: Any = None) -> Any:
        return self._http.post(path, json=body, headers=self._headers)

    def delete(self, path: str) -> Any:
        return self._http.delete(path, headers=self._headers)

    def label(self, task: str, label: str, key: str | None = None) -> Any:
        return self.post("/api/annotations", {"key": key or f"{task} {label}", "task": task, "label": label})
