"""Argilla's webhooks and Prodigy's task router, on recorded payloads."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from service_projects import kept, serving, text_project

from labelonce.routing import Information, Router
from labelonce.service import ProdigyRouter, Project

SAMPLES = Path(__file__).parents[1] / "formats" / "samples"
KEY = b"a secret of argilla"
SECRET = base64.b64encode(KEY).decode()


class Argilla:
    """A served project, and events as Argilla would sign them."""

    def __init__(self, project: Project, http: Any) -> None:
        self.project, self._http = project, http

    def send(self, kind: str, *, key: bytes = KEY, **changes: Any) -> int:
        event = {"type": kind, "version": 1, "timestamp": "2026-01-01T00:00:00Z", "data": data(**changes)}
        body = json.dumps(event).encode()
        return self.post(body, str(int(time.time())), key)

    def post(self, body: bytes, said: str, key: bytes = KEY) -> int:
        signed = hmac.new(key, f"msg_1.{said}.".encode() + body, hashlib.sha256).digest()
        headers = {"webhook-id": "msg_1", "webhook-timestamp": said, "Content-Type": "application/json"}
        headers["webhook-signature"] = "v1," + base64.b64encode(signed).decode()
        return int(self._http.post("/argilla/webhook", content=body, headers=headers).status_code)

    def labels(self) -> dict[str, str | None]:
        return {f"{row.worker} {row.task}": row.label for row in kept(self.project)}


def data(**changes: Any) -> dict[str, Any]:
    """Return a response as Argilla 2.8 sends it, without what it says of the data set."""
    return {
        "id": "38e4d537-c768-4ced-916e-31b74b220c36",
        "values": {"pet": {"value": "cat"}},
        "status": "submitted",
        "record": {"id": "54b137ae-68a4-4aa4-ab2f-ef350ca96a6b", "status": "pending", "external_id": "a"},
        "user": {"id": "df114042-958d-42c6-9f03-ab49bd451c6c", "username": "kim", "role": "annotator"},
        "inserted_at": "2026-01-01T00:00:00.000000",
        "updated_at": "2026-01-01T00:00:00.000000",
    } | changes


@pytest.fixture
def argilla(tmp_path: Path) -> Iterator[Argilla]:
    pytest.importorskip("fastapi", reason="no FastAPI: pip install 'labelonce[service]'")
    project = text_project(tmp_path)
    with serving(project, argilla=(SECRET, "pet")) as http:
        yield Argilla(project, http)


def test_responses_become_labels_and_follow_changes(argilla: Argilla) -> None:
    assert argilla.send("response.created") == 200
    assert argilla.send("response.created") == 200
    assert argilla.labels() == {"argilla kim a": "cat"}
    later = "2026-01-02T00:00:00.000000"
    argilla.send("response.updated", values={"pet": {"value": "dog"}}, updated_at=later)
    assert argilla.labels() == {"argilla kim a": "dog"}
    argilla.send("response.updated", status="discarded", updated_at="2026-01-03T00:00:00.000000")
    assert argilla.labels() == {"argilla kim a": None}
    argilla.send("response.deleted")
    assert argilla.labels() == {}


HOSTILE: list[Any] = [None, [], "x" * 10_000, 2**70, {"value": "cat"}, {"a": []}, "a\0b", "\ud800"]


@pytest.mark.parametrize("name", ["id", "values", "status", "record", "user", "updated_at"])
def test_no_event_makes_it_fail(argilla: Argilla, name: str) -> None:
    codes = {argilla.send("response.created", **{name: odd}) for odd in HOSTILE}
    codes |= {argilla.send("response.created", user={"username": odd}) for odd in HOSTILE}
    assert codes <= {200, 422}
    assert all(len(pair) < 120 for pair in argilla.labels())


@pytest.mark.parametrize("body", [b"[]", b"\xff", b"[" * 100_000, b"{", b"1" * 5_000])
def test_no_body_makes_it_fail(argilla: Argilla, body: bytes) -> None:
    assert argilla.post(body, "1") == 401  # a time long ago
    assert argilla.post(body, "9" * 5_000) == 401
    assert argilla.post(body, str(int(time.time()))) in (200, 422)
    assert argilla.post(body * (2_000_000 // len(body)), "1") == 413


def test_what_argilla_did_not_sign_is_refused(argilla: Argilla) -> None:
    assert argilla.send("response.created", key=b"another secret") == 401
    assert argilla.labels() == {}


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("dataset.created", {}),
        ("record.completed", {}),
        ("response.created", {"values": {"other": {"value": "cat"}}}),
        ("response.created", {"values": {"pet": {"value": "bird"}}}),
        ("response.created", {"record": {"id": "x", "external_id": "no task of ours"}}),
        ("response.created", {"status": "draft"}),
    ],
)
def test_other_events_are_accepted_and_change_nothing(argilla: Argilla, kind: str, changes: dict[str, Any]) -> None:
    assert argilla.send(kind, **changes) == 200
    assert argilla.labels() == {}


def prodigy() -> tuple[ProdigyRouter, Any]:
    lines = (SAMPLES / "prodigy-choice.jsonl").read_text().splitlines()
    answers = [json.loads(line) for line in lines]
    router = Router(sorted({one["_task_hash"] for one in answers}), ["MUSIC", "SPORT"], strategy=Information(risk=0.25))
    return ProdigyRouter(router, task="_task_hash"), answers


CTRL = SimpleNamespace(session_ids=["news-kim", "news-zoe", "news-lee"])


def test_recorded_answers_are_taken_once_and_only_single_choices() -> None:
    tool, answers = prodigy()
    tool.update(answers)
    tool.update(answers)
    single = [one for one in answers if one["answer"] == "accept" and len(one.get("accept", [])) == 1]
    pairs = {(one["_task_hash"], one["_session_id"]) for one in single}
    assert len(tool.router.state.answers) == len(pairs) > 0


def test_a_task_goes_to_one_session_and_a_settled_or_unknown_one_to_nobody() -> None:
    tool, answers = prodigy()
    item = {"_task_hash": answers[0]["_task_hash"], "text": "..."}
    asked = []
    while tool.wants_more(item):
        (session,) = tool.task_router(CTRL, "news-kim", item)
        asked.append(session)
        tool.update([item | {"accept": ["MUSIC"], "answer": "accept", "_session_id": session}])
    assert 1 <= len(asked) == len(set(asked)) <= len(CTRL.session_ids)
    assert tool.task_router(CTRL, "news-kim", item) == []
    tool, _ = prodigy()
    assert tool.task_router(CTRL, "news-kim", {"_task_hash": 123456}) == []
