"""Label Studio's backend interface, on payloads recorded from Label Studio 1.23.2, with its API played by a double."""

import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from label_studio_played import CONFIG
from service_projects import Client, given, kept, serving, text_project

from labelonce.service import LabelStudio, Project
from labelonce.service._label_studio import read_config
from labelonce.service._label_studio_bridge import secret_of
from labelonce.service._store import Answer

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'labelonce[service]'")

SAMPLES = json.loads((Path(__file__).parent / "label-studio-webhooks.json").read_text())


@dataclass
class Double(LabelStudio):
    """A Label Studio that keeps in memory what it is told."""

    annotations: dict[int, dict[str, Any]] = field(default_factory=dict)
    overlaps: dict[int, tuple[int, bool]] = field(default_factory=dict)
    predictions: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__("http://label-studio.example", "token", 1)

    def config(self) -> str:
        return CONFIG

    def tasks(self) -> list[dict[str, Any]]:
        found = [{"id": 10 + place, "data": {"task": name}} for place, name in enumerate("abcdef")]
        return [
            task | {"annotations": [one for one in self.annotations.values() if one["task"] == task["id"]]}
            for task in found
        ]

    def set_overlap(self, task: int, overlap: int, *, labelled: bool) -> None:
        self.overlaps[task] = (overlap, labelled)

    def add_predictions(self, predictions: list[dict[str, Any]], version: str) -> None:
        self.predictions = [*predictions, {"version": version}]

    def connect(self, url: str) -> None:
        self.url_of_us = url

    def add_tab(self) -> None:
        pass


@dataclass
class Connected:
    """A served project with the double, and what Label Studio would send."""

    project: Project
    double: Double
    http: Any

    def send(self, path: str, body: Any) -> Any:
        answer = self.http.post(f"/label-studio/{secret_of(self.double)}/{path}", json=body)
        assert answer.status_code == 200
        return answer.json()

    def labels(self) -> dict[str, str | None]:
        """Return the labels by task once all webhooks are carried out."""
        bridge = self.http.app.state.bridge
        while bridge._waiting._unfinished_tasks:
            time.sleep(0.01)
        return {row.task: row.label for row in kept(self.project)}


@pytest.fixture
def connected(tmp_path: Path) -> Iterator[Connected]:
    project, double = text_project(tmp_path), Double()
    double.annotations[5] = annotation(5, 10, "cat")
    with serving(project, label_studio=double, url="http://us.example") as http:
        yield Connected(project, double, http)


def annotation(number: int, task: int, label: str, **more: Any) -> dict[str, Any]:
    recorded: dict[str, Any] = SAMPLES["ANNOTATION_CREATED"]["annotation"]
    value = {"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": [label]}}
    changed = {"id": number, "task": task, "updated_at": f"2026-01-01T00:00:{number:02d}Z", "result": [value]}
    return recorded | changed | more


def event(action: str, one: dict[str, Any], name: str) -> dict[str, Any]:
    recorded: dict[str, Any] = SAMPLES["ANNOTATION_CREATED"]
    task = recorded["task"] | {"id": one["task"], "data": {"task": name}}
    return recorded | {"action": action, "annotation": one, "task": task}


def test_annotations_that_are_there_at_the_start_or_were_missed_are_taken_over(connected: Connected) -> None:
    assert connected.labels() == {"a": "cat"}
    del connected.double.annotations[5]
    connected.double.annotations[9] = annotation(9, 13, "dog")
    connected.send("webhook", {"action": "START_TRAINING", "project": {"id": 1}})
    assert connected.labels() == {"d": "dog"}


def test_health_setup_and_predictions_are_as_label_studio_asks(connected: Connected) -> None:
    secret = secret_of(connected.double)
    health = connected.http.get(f"/label-studio/{secret}/health").json()
    assert health == {"status": "UP", "model_class": "labelonce"}
    setup = connected.send("setup", {"project": "1.1700000000", "schema": CONFIG})
    assert setup == {"model_version": "labelonce 0"}
    tasks = [{"id": 10, "data": {"task": "a"}}, {"id": 99, "data": {}}, {"id": 11, "data": {"task": "b"}}]
    first, unknown, third = connected.send("predict", {"tasks": tasks, "label_config": CONFIG})["results"]
    value = {"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": ["cat"]}}
    assert (first["result"], first["model_version"]) == ([value], "labelonce 0")
    assert (unknown["result"], unknown["score"]) == ([], 0.0)
    assert first["score"] > third["score"] == 0.5


def test_without_the_secret_there_is_nothing_and_too_many_predictions_are_refused(connected: Connected) -> None:
    assert connected.http.get("/label-studio/guess/health").status_code == 404
    assert connected.http.post("/label-studio/guess/webhook", json={}).status_code == 404
    path = f"/label-studio/{secret_of(connected.double)}/predict"
    assert connected.http.post(path, json={"tasks": [{"id": 10}] * 10_001}).status_code == 422


def test_created_updated_and_deleted_annotations(connected: Connected) -> None:
    connected.send("webhook", event("ANNOTATION_CREATED", annotation(7, 11, "dog"), "b"))
    assert connected.labels() == {"a": "cat", "b": "dog"}
    changed = annotation(7, 11, "cat", updated_at="2026-01-02T00:00:00Z")
    connected.send("webhook", event("ANNOTATION_UPDATED", changed, "b"))
    assert connected.labels() == {"a": "cat", "b": "cat"}
    connected.send("webhook", SAMPLES["ANNOTATIONS_DELETED"] | {"annotations": [{"id": 7}, {"id": 5}]})
    assert connected.labels() == {}


def test_several_at_once_find_their_tasks_and_one_sent_twice_counts_once(connected: Connected) -> None:
    for _ in range(2):
        connected.send("webhook", event("ANNOTATION_CREATED", annotation(7, 11, "dog"), "b"))
    assert connected.labels() == {"a": "cat", "b": "dog"}
    both = [annotation(7, 11, "dog"), annotation(8, 12, "cat", completed_by=4)]
    tasks = [{"id": 12, "data": {"task": "c"}}, {"id": 11, "data": {"task": "b"}}]
    connected.send("webhook", {"action": "ANNOTATIONS_CREATED", "annotation": both, "task": tasks})
    assert connected.labels() == {"a": "cat", "b": "dog", "c": "cat"}


def test_a_skipped_task_is_a_skip_and_an_empty_result_is_nothing(connected: Connected) -> None:
    connected.send("webhook", event("ANNOTATION_CREATED", annotation(7, 11, "dog", was_cancelled=True), "b"))
    connected.send("webhook", event("ANNOTATION_CREATED", annotation(8, 12, "dog", result=[]), "c"))
    assert connected.labels() == {"a": "cat", "b": None}


@pytest.mark.parametrize(
    "body",
    [
        {"action": "TASKS_CREATED", "tasks": [{"id": 1}]},
        {"action": "PROJECT_UPDATED", "project": {"id": 1}},
        {"action": "LABEL_LINK_CREATED"},
        {"action": "ANNOTATION_CREATED"},
        {"action": "ANNOTATION_CREATED", "annotation": {"id": 1}, "task": {"id": 1}},
        {},
    ],
)
def test_whatever_else_arrives_is_accepted_and_changes_nothing(connected: Connected, body: dict[str, Any]) -> None:
    connected.send("webhook", body)
    assert connected.labels() == {"a": "cat"}
    connected.send("webhook", event("ANNOTATION_CREATED", annotation(7, 11, "dog"), "b"))
    assert connected.labels() == {"a": "cat", "b": "dog"}


ODD: list[Any] = [None, True, 0, -1, 2**70, 1.5, float("inf"), float("nan"), "", "7", "a\0b", "\ud800", "x" * 10_000]
ODD += [[], [[]], [None], {}, {"id": None}, {"id": "7"}, {"a": {"a": [1]}}]


def spoilt(body: Any, rng: random.Random) -> Any:
    """Return a copy of a payload with something odd, or nothing, in one or more places."""
    if rng.random() < 0.15:
        return rng.choice(ODD)
    if isinstance(body, dict):
        return {name: spoilt(one, rng) for name, one in body.items() if rng.random() > 0.05}
    return [spoilt(one, rng) for one in body] if isinstance(body, list) else body


def test_hostile_payloads_are_answered_and_change_nothing_for_others(
    connected: Connected, caplog: pytest.LogCaptureFixture
) -> None:
    rng, secret = random.Random(0), secret_of(connected.double)
    tasks = [{"id": 10 + place, "data": {"task": name}} for place, name in enumerate("abcdef")]
    sound = {
        "predict": {"tasks": tasks, "label_config": CONFIG},
        "webhook": event("ANNOTATION_CREATED", annotation(7, 11, "dog"), "b"),
        "setup": {"project": "1.1", "schema": CONFIG},
        "train": {"event": "START_TRAINING"},
    }
    sound["webhook"]["annotations"] = [{"id": 99}]
    codes = set()
    for turn in range(800):
        path = ("predict", "webhook", "webhook", "setup", "train")[turn % 5]
        body = spoilt(sound[path], rng)
        if path == "webhook" and isinstance(body, dict) and turn % 3:
            body["action"] = ("ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATIONS_DELETED")[turn % 2]
        content = json.dumps(body).encode("utf-8", "surrogatepass")
        headers = {"Content-Type": "application/json"}
        answer = connected.http.post(f"/label-studio/{secret}/{path}", content=content, headers=headers)
        codes.add(answer.status_code)
    assert codes <= {200, 422}
    connected.labels()  # once all are carried out
    admin = Client(connected.http, connected.project.add_admin())
    for kind in ("jsonl", "csv", "parquet"):
        assert admin.get(f"/api/export?format={kind}").status_code == 200
    assert all(len(row["worker"]) <= 100 for row in admin.get("/api/workers").json())
    assert admin.get("/api/progress").status_code == 200
    assert "Traceback" not in caplog.text
    assert max(map(len, caplog.messages), default=0) < 1_000


def test_infinite_seconds_are_left_out(connected: Connected) -> None:
    content = json.dumps(event("ANNOTATION_CREATED", annotation(7, 11, "dog", lead_time=float("inf")), "b"))
    path = f"/label-studio/{secret_of(connected.double)}/webhook"
    connected.http.post(path, content=content, headers={"Content-Type": "application/json"})
    assert connected.labels() == {"a": "cat", "b": "dog"}
    given(connected.project, [Answer("eve", "k", "c", "dog", seconds=float("inf"))])  # as an earlier version kept it
    admin = Client(connected.http, connected.project.add_admin())
    rows = [json.loads(line) for line in admin.get("/api/export?format=jsonl").text.splitlines()]
    assert [(row["task"], row["seconds"]) for row in rows[1:]] == [("b", None), ("c", None)]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("<View/>", r"got \[\]"),
        ("<View>", "must be XML"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><View/>', "no DOCTYPE"),
        ('<View><Choices name="a" toName="t"/><Choices name="b" toName="t"/></View>', r"got \['a', 'b'\]"),
    ],
)
def test_an_interface_without_one_choice_is_refused(config: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_config(config)
