"""A real Label Studio: what we write it imports, what it exports we read, and predictions go back to its tasks.

Runs only where LABELONCE_LABELSTUDIO names one: see label_studio_server.py.
"""

import json
from pathlib import Path

import pytest
from label_studio_server import Server, needs_label_studio, new_email

import labelonce as lo
from labelonce.formats import LeftOutWarning

pytestmark = needs_label_studio
CONFIG = """<View>
  <Text name="task" value="$task"/>
  <Choices name="label" toName="task" choice="single"><Choice value="cat"/><Choice value="dog"/></Choices>
  <Choices name="seen" toName="task" choice="multiple"><Choice value="left"/><Choice value="right"/></Choices>
  <Rating name="stars" toName="task"/>
</View>"""


@pytest.fixture(scope="module")
def server(label_studio: Server) -> Server:
    return label_studio


@pytest.fixture(scope="module")
def users(server: Server) -> list[int]:
    made = [server.call("/api/users/", {"email": one, "username": one}) for one in map(new_email, ("kim", "zoe"))]
    return [user["id"] for user in made]


@pytest.fixture(scope="module")
def sent(users: list[int]) -> lo.Annotations:
    kim, zoe = users
    labels = ["cat", "cat", "dog", "cat", "dog"]
    return lo.Annotations.from_arrays(["a", "a", "b", "b", "c"], [kim, zoe, kim, zoe, zoe], labels)


@pytest.fixture(scope="module")
def export(server: Server, sent: lo.Annotations, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Path]:
    """Return a project with our annotations and some that people would leave, and the server's export of it."""
    folder = tmp_path_factory.mktemp("export")
    lo.write(sent, folder / "import.json", format="label-studio")
    project = server.call("/api/projects", {"title": "round trip", "label_config": CONFIG})["id"]
    content = [*json.loads((folder / "import.json").read_text()), {"data": {"task": "nobody labelled this"}}]
    assert server.call(f"/api/projects/{project}/import", content)["annotation_count"] == 5
    found = server.call(f"/api/tasks?project={project}&fields=all")["tasks"]
    task = {entry["data"]["task"]: entry["id"] for entry in found}
    seen = {"from_name": "seen", "to_name": "task", "type": "choices", "value": {"choices": ["left", "right"]}}
    stars = {"from_name": "stars", "to_name": "task", "type": "rating", "value": {"rating": 4}}
    label = {"from_name": "label", "to_name": "task", "type": "choices", "value": {"choices": ["cat"]}}
    for name, body in (
        ("a", {"result": [seen, stars]}),
        ("b", {"result": [label], "was_cancelled": True}),
        ("c", {"result": [], "was_cancelled": True}),
    ):
        server.call(f"/api/tasks/{task[name]}/annotations/", body)
    path = folder / "export.json"
    everything = server.call(f"/api/projects/{project}/export?exportType=JSON&download_all_tasks=true")
    path.write_text(json.dumps(everything))
    return project, path


def test_our_annotations_come_back_from_the_server(export: tuple[int, Path], sent: lo.Annotations) -> None:
    with pytest.warns(LeftOutWarning) as caught:
        ann = lo.read_annotations(export[1], task="task", label="label")
    print(caught[0].message)  # noqa: T201  # the transcript
    assert ann == sent
    assert isinstance(caught[0].message, LeftOutWarning)
    counts = {"cancelled or skipped": 2, "without an answer": 1, "tasks without annotations": 1}
    assert caught[0].message.counts == counts


def test_the_other_controls_are_there_too(export: tuple[int, Path]) -> None:
    with pytest.raises(ValueError, match=r"'label' \(choices, 6 answers\), .*Name one with label="):
        lo.read_annotations(export[1])
    with pytest.warns(LeftOutWarning):
        stars = lo.read_annotations(export[1], label="stars")
    with pytest.warns(LeftOutWarning):
        seen = lo.read_annotations(export[1], label="seen", multiple="join")
    assert (stars.classes.tolist(), seen.classes.tolist()) == ([4], ["left|right"])


def test_predictions_go_back_to_their_tasks(export: tuple[int, Path], server: Server, tmp_path: Path) -> None:
    project, path = export
    with pytest.warns(LeftOutWarning):
        model = lo.OneCoin(random_state=0).fit(lo.read_annotations(path, label="label"))
    lo.write(model, tmp_path / "predictions.json", format="label-studio", like=path, label="label")
    tasks = json.loads((tmp_path / "predictions.json").read_text())
    made = [prediction for task in tasks for prediction in task["predictions"]]
    assert server.call(f"/api/projects/{project}/import/predictions", made)["created"] == 3
    stored = {task["id"]: task for task in server.call(f"/api/tasks?project={project}&fields=all")["tasks"]}
    for task, label, posterior in zip(model.tasks_, model.labels_, model.posterior_, strict=True):
        prediction = stored[task]["predictions"][0]
        print(f"task {task}: {label} with score {prediction['score']:.4f} in {prediction['model_version']}")  # noqa: T201  # the transcript
        assert prediction["score"] == pytest.approx(posterior.max())
        assert prediction["result"][0]["value"] == {"choices": [label]}


def test_labels_without_an_export_become_new_tasks_with_predictions(server: Server, tmp_path: Path) -> None:
    project = server.call("/api/projects", {"title": "new tasks", "label_config": CONFIG})["id"]
    model = lo.MajorityVote().fit(lo.Annotations.from_arrays(["a", "b"], ["kim", "zoe"], ["cat", "dog"]))
    lo.write(model, tmp_path / "out.json", format="label-studio")
    done = server.call(f"/api/projects/{project}/import", json.loads((tmp_path / "out.json").read_text()))
    assert (done["task_count"], done["prediction_count"]) == (2, 2)
