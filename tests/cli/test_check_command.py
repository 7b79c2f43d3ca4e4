"""`labelonce check`, `aggregate --json`, other tools' formats on the command line, and shell completion."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from broken_files import GOOD

from labelonce import cli

SAMPLES = Path(__file__).parents[1] / "formats" / "samples"
STUDIO = SAMPLES / "label-studio.json"


def run(*arguments: str | Path) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["labelonce", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
    return int(stopped.value.code or 0)


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    (tmp_path / "labels.csv").write_text(GOOD)
    return tmp_path / "labels.csv"


def test_check_says_what_is_there_and_what_to_run(labels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", labels) == 0
    shown = capsys.readouterr().out
    for words in (
        "csv, 90 annotations",
        "30 tasks, 3 workers, 2 classes",
        "classes: cat 66.7%, dog 33.3%",
        "30 with 3",
        "What looks wrong: nothing",
        "agree in 100% of cases, by chance 56%",
        f"Next: labelonce aggregate {labels} --method dawid-skene -o clean.csv --workers workers.csv",
    ):
        assert words in shown


def test_the_command_that_check_names_runs(
    labels: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    labels.write_text(GOOD + GOOD.partition("\n")[2])
    monkeypatch.chdir(labels.parent)
    assert run("check", labels) == 1
    command = capsys.readouterr().out.partition("Next: labelonce ")[2].split()
    assert run(*command) == 0
    assert (labels.parent / "workers.csv").exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("task,worker,label\n1,a,x\n2,b,y\n", "labels.csv --features features.csv -o run"),
        ("task,worker,label\n1,a,x\n2,b,x\n", "Next: get labels of a second class"),
    ],
)
def test_check_knows_when_to_train_and_when_to_stop(
    text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "labels.csv").write_text(text)
    run("check", tmp_path / "labels.csv")
    assert says in capsys.readouterr().out


def test_check_as_json_has_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", STUDIO, "--label-column", "stars", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["format"] == "label-studio"
    assert found["left_out"]["cancelled or skipped"] == 2
    assert found["bytes"] == STUDIO.stat().st_size
    assert found["next"].startswith("labelonce aggregate")
    assert found["problems"] == []


def test_check_tells_what_was_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    run("check", SAMPLES / "mturk.csv", "--label-column", "animal", "--multiple", "join")
    assert "left out: rejected 1, without an answer 1" in capsys.readouterr().out


def test_check_clips_what_is_long_and_escapes_what_is_odd(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"{i},w{i % 9},class number {'x' * i}\n" for i in range(40)) + "41,w1,a\x1b[31mb\n"
    (tmp_path / "labels.csv").write_text("task,worker,label\n" + rows)
    run("check", tmp_path / "labels.csv")
    shown = capsys.readouterr().out
    assert "and 29 more" in shown
    assert "\x1b" not in shown


def test_questions_are_listed_as_options_of_the_shell(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", STUDIO) == 2
    error = capsys.readouterr().err
    assert "'stars' (rating, 4 answers)" in error
    assert error.endswith("Name one with --label-column.\n")


def test_aggregate_as_json_is_one_object_on_stdout(labels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("aggregate", labels, "--json") == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert (found["method"], found["tasks"], found["classes"]) == ("dawid-skene", 30, ["cat", "dog"])
    assert found["labels"][0]["label"] == "dog"
    assert shown.err == ""


def test_aggregate_as_json_names_the_files(labels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = labels.parent / "clean.parquet"
    assert run("aggregate", labels, "--json", "-o", output) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["output"] == str(output)
    assert "labels" not in found
    assert output.exists()


def test_aggregate_sends_predictions_back_to_label_studio(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "predictions.json"
    assert run("aggregate", STUDIO, "--label-column", "stars", "-o", output) == 0
    tasks = json.loads(output.read_text())
    assert {task["data"]["url"] for task in tasks} == {"review-1", "review-2", "review-3"}
    assert tasks[0]["predictions"][0]["result"][0]["from_name"] == "stars"
    assert "note: " in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_is_printed(shell: str) -> None:
    assert "_LABELONCE_COMPLETE=complete_" in completion(f"source_{shell}")


def test_completion_knows_commands_and_choices() -> None:
    assert "check" in completion("complete_bash", COMP_WORDS="labelonce ch", COMP_CWORD="1").split()
    words = {"COMP_WORDS": "labelonce aggregate x.csv --method daw", "COMP_CWORD": "4"}
    assert completion("complete_bash", **words).split() == ["dawid-skene"]


def completion(instruction: str, **words: str) -> str:
    code = "import sys; sys.argv[0] = 'labelonce'; from labelonce.cli import main; main()"
    environment = {**os.environ, "_LABELONCE_COMPLETE": instruction, **words}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.stderr == ""
    return done.stdout
