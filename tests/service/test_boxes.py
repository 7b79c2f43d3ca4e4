"""Projects with check boxes: what is stored, who gets which task, the fit, and the HTTP interface."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose
from service_projects import BOXES, Client, boxes_project, fitted_now, given, kept, serving, text_project

import labelonce as lo
from labelonce import multilabel, runs
from labelonce.service import LabelStudio, Project, create_app
from labelonce.service._boxes import stored, ticked
from labelonce.service._live_boxes import LiveBoxes
from labelonce.service._settings import Settings
from labelonce.service._store import Answer, AnswerRow

CLASSES = list(BOXES)


def answered(number: int, worker: str, task: str, *boxes: str) -> AnswerRow:
    return AnswerRow(number, worker, f"k{number}", task, stored(boxes, CLASSES), None, None, None, 0.0, None)


@pytest.fixture
def live(tmp_path: Path) -> LiveBoxes:
    return LiveBoxes(boxes_project(tmp_path), [], None)


def test_equal_ticks_are_stored_alike() -> None:
    assert stored(["sea", "dog", "sea"], CLASSES) == stored(["dog", "sea"], CLASSES) == '["dog", "sea"]'
    assert ticked(stored([], CLASSES)) == []


def test_nobody_gets_a_task_twice_and_a_skipped_one_goes_to_others(live: LiveBoxes) -> None:
    seen = []
    for number in range(4):
        task = live.next("ann")
        assert task is not None
        assert live.next("ann") == task  # the same until it is answered
        seen.append(task)
        live.take(answered(number, "ann", task)._replace(label=None, reason="blurred"))
    assert sorted(seen) == ["a", "b", "c", "d"]
    assert live.next("ann") is None
    assert live.next("bob") in seen
    assert (live.progress()["skips"], live.n_labels) == (4, 0)


def test_an_answer_counts_as_its_worker_is_worth_and_undo_takes_it_out_exactly(live: LiveBoxes) -> None:
    row = answered(1, "ann", "b", "sea")
    live.take(row)
    assert list(live.labels(1, 2)[0]["probabilities"].values()) == pytest.approx([0.25, 0.75, 0.25])
    assert live.labels(1, 2)[0]["label"] == ["sea"]
    assert live.labels(1, 2)[0]["confidence"] == pytest.approx(0.75)
    assert live.expected_accuracy == pytest.approx((3 * 3 * 0.5 + 3 * 0.75) / 12)
    live.undo(row)
    live.offer_again(row)
    assert_allclose(live.router.belief.posterior(), 0.5, atol=1e-12)
    assert live.next("ann") == "b"


def test_a_task_is_settled_when_every_box_is_sure(tmp_path: Path) -> None:
    live = LiveBoxes(boxes_project(tmp_path, settled_risk=0.04), [], None)
    for number, worker in enumerate("uvw"):
        live.take(answered(number, worker, "a", "dog"))  # three times three to one: 27 to 1
        assert live.labels(0, 1)[0]["settled"] == (worker == "w")
    assert live.n_settled == 1


@pytest.mark.parametrize(("settings", "why"), [({"budget": 2}, "budget"), ({"max_risk": 0.45}, "risk")])
def test_the_project_stops_by_itself(tmp_path: Path, settings: dict[str, Any], why: str) -> None:
    live = LiveBoxes(boxes_project(tmp_path, **settings), [], None)
    live.take(answered(1, "ann", "a"))
    assert (live.stop, live.next("bob") is None) == ((None, False) if why == "budget" else (why, True))
    live.take(answered(2, "bob", "b"))
    assert live.stop == why
    assert live.next("eve") is None


def walks(folder: Path, learn_from: str) -> tuple[Project, Any]:
    """Return a project whose features tell the classes, labelled once by good workers and by guessers."""
    rng = np.random.default_rng(0)
    n = 240
    X = rng.normal(size=(n, 4))
    y = (X[:, :3] > 0.3).astype(int)
    columns = {"task": np.arange(n)} | {f"x{place}": X[:, place] for place in range(4)}
    lo.write(pa.table(columns), folder / "tasks.parquet")
    settings: dict[str, Any] = {"multilabel": True, "learn_from": learn_from, "settled_risk": 0.1}
    project = Project.make(folder / "walks", folder / "tasks.parquet", CLASSES, **settings)
    wishes = []
    for task in range(n):
        for worker in rng.choice(6, size=1 if learn_from == "features" else 3, replace=False).tolist():
            said = np.where(rng.random(3) < 0.95, y[task], 1 - y[task]) if worker < 4 else rng.integers(2, size=3)
            boxes = stored([one for one, on in zip(CLASSES, said, strict=True) if on], CLASSES)
            wishes.append(Answer(f"w{worker}", f"{task}", f"{task}", boxes))
    given(project, wishes)
    return project, y


@pytest.mark.parametrize("learn_from", ["features", "nothing"])
def test_a_fit_finds_the_labels_and_the_workers(tmp_path: Path, learn_from: str) -> None:
    project, y = walks(tmp_path, learn_from)
    found = fitted_now(project)
    right = np.mean(found.fit.posterior.argmax(axis=1) == y.ravel())
    assert right > 0.9
    skill = {worker: row["skill"] for worker, row in found.about["workers"].items()}
    assert min(skill[f"w{place}"] for place in range(4)) > max(skill["w4"], skill["w5"])
    assert all(row["low"] <= row["skill"] <= row["high"] for row in found.about["workers"].values())
    assert "spammer" in found.about["workers"]["w4"]["flags"]
    assert found.about["accuracy"]["low"] < right + 0.05
    shares = [step["accuracy"] for step in found.about["outlook"]]
    assert shares[1] > shares[0]
    run = project.fits / "000001" / "run"
    assert run.exists() == (learn_from == "features")  # as of one label per task
    if run.exists():
        result: Any = runs.read_run(run).result
        assert result.questions == list(CLASSES)


def test_a_fit_that_is_taken_over_while_answers_arrive_and_go_is_believed_as_at_a_start(tmp_path: Path) -> None:
    project, _ = walks(tmp_path, "nothing")
    first = kept(project)
    found = fitted_now(project)
    later = answered(10_001, "w9", "7", "dog"), answered(10_002, "w8", "7", "sea"), answered(10_003, "w0", "300", "sea")
    live = LiveBoxes(project, first, None)
    live.take(later[0])
    job = live.adoption(found)
    live.take(later[1])
    job.compute()
    live.take(later[2])
    live.undo(first[5])
    assert not job.finish()  # an answer was taken back: once more
    job = live.adoption(found)
    job.compute()
    assert job.finish()
    again = LiveBoxes(project, [*first[:5], *first[6:], *later], found)
    assert_allclose(live.router.belief.posterior(), again.router.belief.posterior(), rtol=1e-9)
    assert_allclose(live.expected_accuracy, again.expected_accuracy)
    assert again.router.state.answers.n_fitted == len(first) - 1


def test_labels_are_sent_listed_undone_and_exported(tmp_path: Path) -> None:
    project = boxes_project(tmp_path)
    tokens = project.add_workers(["ann", "bob"])
    with serving(project) as http:
        ann, bob, admin = (Client(http, token) for token in (*tokens.values(), project.add_admin()))
        assert ann.get("/api/me").json()["multilabel"]
        kept = ann.post("/api/annotations", {"key": "1", "task": "a", "labels": ["sea", "dog"]}).json()
        same = ann.post("/api/annotations", {"key": "1", "task": "a", "labels": ["dog", "sea"]}).json()
        assert (kept["new"], same["new"], same["id"]) == (True, False, kept["id"])
        assert ann.post("/api/annotations", {"key": "1", "task": "a", "labels": ["dog"]}).status_code == 409
        nothing = bob.post("/api/annotations", {"key": "1", "task": "b", "labels": []}).json()
        rows = admin.get("/api/labels").json()["rows"]
        found = [(row["task"], row["label"], row["labels"]) for row in rows[:2]]
        assert found == [("a", ["dog", "sea"], 1), ("b", [], 1)]
        assert rows[0]["probabilities"][CLASSES[2]] == pytest.approx(0.25)
        for format in ("csv", "parquet"):
            (tmp_path / f"out.{format}").write_bytes(admin.get(f"/api/export?format={format}").content)
            read = multilabel.read_multilabel(tmp_path / f"out.{format}", questions=CLASSES)
            ticks: list[set[str]] = [{"dog", "sea"}, set()]
            expected = lo.MultiLabelAnnotations.from_ticked(["a", "b"], ["ann", "bob"], ticks, questions=CLASSES)
            assert read == expected
        lines = [json.loads(line) for line in admin.get("/api/export?what=labels&format=jsonl").text.splitlines()]
        assert [(one["question"], one["label"]) for one in lines[:3]] == [("dog", 1), ("sea", 1), (CLASSES[2], 0)]
        back = bob.delete(f"/api/annotations/{nothing['id']}").json()
        assert (back["labels"], back["label"], back["task"]) == ([], None, "b")
        assert admin.get("/api/progress").json()["labels"] == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"label": "dog"}, "must have labels"),
        ({"label": "dog", "labels": ["dog"]}, "must have labels"),
        ({}, "must have labels"),
        ({"labels": ["dog", "bird"]}, "dog, sea, <i>road</i>; got"),
        ({"labels": "dog"}, "valid list"),
    ],
)
def test_what_is_no_set_of_classes_is_refused(tmp_path: Path, body: dict[str, Any], said: str) -> None:
    project = boxes_project(tmp_path)
    with serving(project) as http:
        ann = Client(http, project.add_workers(["ann"])["ann"])
        answer = ann.post("/api/annotations", {"key": "k", "task": "a"} | body)
        assert answer.status_code == 422
        assert said in answer.text


def test_check_boxes_are_refused_where_one_label_is_asked_for(tmp_path: Path) -> None:
    project = text_project(tmp_path)
    with serving(project) as http:
        ann = Client(http, project.add_workers(["ann"])["ann"])
        answer = ann.post("/api/annotations", {"key": "k", "task": "a", "labels": ["dog"]})
        assert (answer.status_code, "must have label," in answer.text) == (422, True)


def test_settings_and_tools_that_do_not_go_with_check_boxes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no '\|' in them; got 'a\|b'"):
        Settings("Walks", ("a|b", "c"), multilabel=True)
    with pytest.raises(ValueError, match=r"strategy of check boxes must be one of 'Information'.*got 'ActiveLab'"):
        Settings("Walks", ("a", "b"), multilabel=True, strategy="ActiveLab")
    project = boxes_project(tmp_path)
    studio = LabelStudio("http://127.0.0.1:1", "token", 1)
    for options in ({"argilla": ("secret", "label")}, {"label_studio": studio}):
        with pytest.raises(ValueError, match="another tool must have one label per task; got multilabel"):
            create_app(project, **options)
