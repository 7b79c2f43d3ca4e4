"""`aggregate` and `check` take files of questions, and write check boxes back."""

import csv
import json
from pathlib import Path

import pytest
from commands import Capture, json_of, output_of, refused, run
from small_files import written

FIRST = [(1, "ann", "dog|sea"), (1, "bob", "dog"), (1, "eve", "dog|sea")]
ROWS = [*FIRST, (2, "ann", ""), (2, "bob", "sea"), (2, "eve", "")]


@pytest.fixture
def ticked(tmp_path: Path) -> Path:
    path = tmp_path / "ticked.csv"
    path.write_text("task,worker,ticked\n" + "".join(f"{task},{who},{labels}\n" for task, who, labels in ROWS))
    return path


def export(path: Path) -> Path:
    tasks: dict[int, list[object]] = {}
    for task, who, labels in ROWS:
        box = {"from_name": "tags", "to_name": "img", "type": "choices", "value": {"choices": labels.split("|")}}
        tasks.setdefault(task, []).append({"completed_by": who, "result": [box] if labels else []})
    made = [{"id": task, "data": {"image": f"{task}.jpg"}, "annotations": given} for task, given in tasks.items()]
    path.write_text(json.dumps(made))
    return path


@pytest.mark.parametrize("method", ["majority-vote", "dawid-skene"])
def test_aggregate_writes_a_row_per_task_and_question(ticked: Path, tmp_path: Path, method: str) -> None:
    out, workers = tmp_path / "clean.csv", tmp_path / "workers.csv"
    command = ["aggregate", str(ticked), "--method", method, "-o", str(out), "--workers", str(workers)]
    assert run(*command) == 0
    lines = [row[:3] for row in csv.reader(out.read_text().splitlines())]
    assert lines[0] == ["task", "question", "label"]
    assert ["1", "dog", "yes"] in lines
    assert ["2", "dog", "no"] in lines
    head = next(csv.reader(workers.read_text().splitlines()))
    assert head[:4] == ["worker", "annotations", "yes_share", "strictness"]


def test_what_questions_cannot_have_is_one_sentence(ticked: Path, capfd: Capture, tmp_path: Path) -> None:
    assert run("aggregate", ticked, "--method", "glad") == 2
    assert "--method must be majority-vote or dawid-skene for questions; got glad." in capfd.readouterr().err
    (tmp_path / "gold.csv").write_text("task,label\n1,dog\n")
    assert run("aggregate", ticked, "--gold", tmp_path / "gold.csv") == 2
    assert "got 'question' and 'answer'. Name them with --question-column, --answer-column." in capfd.readouterr().err
    path = written(tmp_path / "bad.csv", "task,question,worker,answer\n1,dog,ann,perhaps\n")
    error = refused(capfd, "check", path)
    assert "got 'perhaps'" in error
    assert "Traceback" not in error


@pytest.mark.parametrize("option", [("--groups", "auto"), ("--device", "cpu")])
def test_an_option_for_classes_is_refused(ticked: Path, option: tuple[str, str], capfd: Capture) -> None:
    assert run("aggregate", ticked, *option) == 2
    assert f"{option[0]} must be left out for questions; got {option[1]}." in capfd.readouterr().err


@pytest.mark.parametrize("command", ["compare", "next"])
def test_commands_for_one_label_say_who_takes_several(ticked: Path, command: str, capfd: Capture) -> None:
    error = refused(capfd, command, ticked)
    assert f"{ticked}: {command} must have one label per row; got questions" in error
    assert "Use labelonce aggregate or train." in error


def test_check_boxes_go_back_to_label_studio(tmp_path: Path) -> None:
    path, out = export(tmp_path / "export.json"), tmp_path / "predictions.json"
    command = ["aggregate", str(path), "--multiple", "questions", "-o", str(out), "--output-format", "label-studio"]
    assert run(*command) == 0
    (task,) = json.loads(out.read_text())
    assert task["data"] == {"image": "1.jpg"}
    assert task["predictions"][0]["result"][0]["value"] == {"choices": ["dog", "sea"]}


def test_check_says_what_is_in_the_questions_under_any_name(ticked: Path, capfd: Capture, tmp_path: Path) -> None:
    found = json_of(capfd, "check", ticked)
    assert (found["n_questions"], found["n_tasks"], found["answers"]) == (2, 2, {"no": 6, "yes": 6})
    assert "yes: dog 50.0%, sea 50.0%" in output_of(capfd, "check", ticked)
    path = written(tmp_path / "tags.csv", "photo,who,tags\n1,ann,dog|sea\n1,bob,dog\n2,bob,\n")
    names = ["--task-column", "photo", "--worker-column", "who", "--label-column", "tags"]
    assert json_of(capfd, "check", path, *names, "--multiple", "questions")["n_questions"] == 2
