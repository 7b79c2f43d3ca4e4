"""`labelonce check`, `aggregate --json`, other tools' formats on the command line, and shell completion."""

import ast
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import typer
from broken_files import GOOD
from commands import Capture, Patch, json_of, output_of, refused, run
from small_files import written

import labelonce as lo
from labelonce.cli._app import app

SAMPLES = Path(__file__).parents[1] / "formats" / "samples"
STUDIO = SAMPLES / "label-studio.json"
TRUTHS = STUDIO.with_name("label-studio-ground-truth.json")


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    (tmp_path / "labels.csv").write_text(GOOD)
    return tmp_path / "labels.csv"


def test_check_says_what_is_there_and_what_to_run(labels: Path, capsys: Capture) -> None:
    shown = output_of(capsys, "check", labels)
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


def test_the_command_that_check_names_runs(labels: Path, capsys: Capture, monkeypatch: Patch) -> None:
    labels.write_text(GOOD + GOOD.partition("\n")[2])
    monkeypatch.chdir(labels.parent)
    assert run("check", labels) == 1
    command = capsys.readouterr().out.partition("Next: labelonce ")[2].split()
    assert run(*command) == 0
    assert (labels.parent / "workers.csv").exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("task,worker,label\n1,a,x\n2,b,y\n", "labels.csv --features features.parquet -o run\n"),
        ("task,worker,label,hue\n1,a,x,dark red\n2,b,y,blue\n", "labels.csv --features features.parquet -o run\n"),
        ("task,worker,label,said,id\n1,a,x,so it goes on,i j k\n2,b,y,and on,l\n", "labels.csv --text said -o run\n"),
        ("task,worker,label\n1,a,x\n2,b,x\n", "Next: get labels of a second class"),
    ],
)
def test_check_knows_when_to_train_and_when_to_stop(text: str, says: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "labels.csv").write_text(text)
    run("check", tmp_path / "labels.csv")
    assert says in capsys.readouterr().out


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "tsv", "jsonl", "parquet", "arrow"])
def test_the_training_that_check_names_runs(suffix: str, tmp_path: Path, capsys: Capture, monkeypatch: Patch) -> None:
    rows = {"task": list(range(20)), "who did": ["a", "b"] * 10, "label": ["cat", "cat", "dog", "dog"] * 5}
    said = ["it is a cat", "so it is a cat", "here is a dog", "a dog it is"] * 5
    lo.write(pa.table(rows | {"it said": said}), tmp_path / f"labels.{suffix}")
    monkeypatch.chdir(tmp_path)
    assert run("check", f"labels.{suffix}", "--worker-column", "who did") == 0
    command = shlex.split(capsys.readouterr().out.partition("Next: labelonce ")[2])
    assert command[-4:] == ["--text", "it said", "-o", "run"]
    assert run(*command, "--rounds", "1") == 0
    assert (tmp_path / "run" / "model.skops").exists()


@pytest.mark.parametrize(
    ("file", "options"),
    [("labels.txt", ["--format", "csv", "--duplicates", "first"]), ("export.json", ["--label-column", "sentiment"])],
)
def test_the_training_that_check_names_for_other_sources_runs(
    file: str, options: list[str], tmp_path: Path, capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [(task, "abc"[task % 3], "yes" if task % 2 else "no") for task in range(12)]
    Path("labels.txt").write_text("task,worker,label\n" + "".join(f"{t},{w},{y}\n" for t, w, y in rows))
    Path("export.json").write_text(json.dumps([studio_task(*row) for row in rows]))
    lo.write(pa.table({"task": range(12), "x": [i % 2 for i in range(12)]}), "features.parquet")
    command = shlex.split(output_of(capsys, "check", file, *options).partition("Next: labelonce ")[2])
    assert command == ["train", file, *options, "--features", "features.parquet", "-o", "run"]
    assert run(*command, "--rounds", "1") == 0


def studio_task(task: int, worker: str, label: str, *, truth: bool = False, text: str = "") -> dict[str, Any]:
    result = {"from_name": "sentiment", "to_name": "text", "type": "choices", "value": {"choices": [label]}}
    annotation = {"completed_by": {"id": worker}, "ground_truth": truth, "result": [result]}
    return {"id": task, "data": {"text": text}, "annotations": [annotation]}


@pytest.mark.parametrize("told", [True, False])
def test_train_reads_labels_texts_and_gold_of_an_export(told: bool, tmp_path: Path, capsys: Capture) -> None:
    export, run_folder = tmp_path / "export.json", tmp_path / "run"
    rows = [(task, "abc"[task % 3], ("good", "bad")[task % 2], task < 4) for task in range(24)]
    words = {"good": "a fine thing", "bad": "an awful mess"}
    tasks = [studio_task(t, w, y, truth=truth, text=f"{words[y]} {t}") for t, w, y, truth in rows]
    export.write_text(json.dumps(tasks))
    gold = ["--gold", export] if told else []
    assert run("train", export, "--text", "text", *gold, "--rounds", "1", "-o", run_folder, "--json") == 0
    out, err = capsys.readouterr()
    record = json.loads(out)
    assert (record["data"]["gold"], record["data"]["labelled_tasks"]) == (4, 20)
    assert "its true labels of 4 tasks are used as gold" in err
    assert run("train", export, "--text", "title", "-o", tmp_path / "other") == 2
    assert "must have the field 'title'" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["check", "aggregate", "compare"])
def test_ground_truths_of_an_export_are_gold_and_it_is_said(command: str, tmp_path: Path, capsys: Capture) -> None:
    output: list[str | Path] = [] if command == "check" else ["-o", tmp_path / "out.csv"]
    assert run(command, TRUTHS, *output) == 0
    out, err = capsys.readouterr()
    assert f"{TRUTHS}: its true labels of 4 tasks are used as gold." in err
    assert "ground truths, which are gold 5" in out + err


def test_aggregate_answers_with_the_ground_truths_unless_gold_is_named(capsys: Capture, tmp_path: Path) -> None:
    assert run("aggregate", TRUTHS, "--method", "majority-vote", "--json") == 0
    found = {row["task"]: (row["label"], row["confidence"]) for row in json.loads(capsys.readouterr().out)["labels"]}
    assert found[202] == ("negative", 1.0)  # two of three votes say positive
    assert found[203] == ("neutral", 1.0)  # nobody voted
    assert len(found) == 6
    gold = written(tmp_path / "gold.csv", "task,label\n202,positive\n")
    assert run("aggregate", TRUTHS, "--method", "majority-vote", "--gold", gold, "--json") == 0
    out, err = capsys.readouterr()
    assert {row["task"]: row["label"] for row in json.loads(out)["labels"]}[202] == "positive"
    assert f"{TRUTHS}: its true labels of 4 tasks are not used, since --gold names others." in err


def test_every_command_that_reads_labels_takes_the_same_options() -> None:
    group = typer.main.get_group(app)
    shared = {"format", "task", "worker", "label", "duplicates", "rejected", "multiple"}
    for name in ("check", "aggregate", "compare", "train"):
        assert shared <= {one.name for one in group.commands[name].params}


def test_messages_name_options_only_on_the_command_line(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "labels.csv").write_text("task,who,label\n1,a,x\n1,a,y\n")
    assert run("aggregate", tmp_path / "labels.csv") == 2
    assert capsys.readouterr().err.endswith("got 'worker'. Name it with --worker-column who.\n")
    assert run("aggregate", tmp_path / "labels.csv", "--worker-column", "who") == 2
    assert capsys.readouterr().err.endswith("Choose what to keep with --duplicates first, last or keep.\n")
    with pytest.raises(ValueError, match=r'Name it with worker="who"$'):
        lo.read_annotations(tmp_path / "labels.csv")
    with pytest.raises(ValueError, match=r'Choose what to keep with duplicates="first", "last" or "keep"\.$'):
        lo.read_annotations(tmp_path / "labels.csv", worker="who")


def test_no_sentence_of_the_library_speaks_of_options() -> None:
    package = Path(lo.__file__).parent
    for path in package.rglob("*.py"):
        if "cli" in path.parts or "sharded" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Raise):
                said = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
                assert not [text for text in said if isinstance(text, str) and re.search("--[a-z]", text)], path


def test_check_as_json_has_all_of_it_and_tells_what_was_left_out_and_asked(capsys: Capture) -> None:
    found = json_of(capsys, "check", STUDIO, "--label-column", "stars")
    assert found["format"] == "label-studio"
    assert found["left_out"]["cancelled or skipped"] == 2
    assert found["bytes"] == STUDIO.stat().st_size
    assert found["next"].startswith("labelonce aggregate")
    assert found["problems"] == []
    run("check", SAMPLES / "mturk.csv", "--label-column", "animal", "--multiple", "join")
    assert "left out: rejected 1, without an answer 1" in capsys.readouterr().out
    error = refused(capsys, "check", STUDIO)
    assert "'stars' (rating, 4 answers)" in error
    assert error.endswith("Name one with --label-column.\n")


def test_check_clips_what_is_long_and_escapes_what_is_odd(tmp_path: Path, capsys: Capture) -> None:
    rows = "".join(f"{i},w{i % 9},class number {'x' * i}\n" for i in range(40)) + "41,w1,a\x1b[31mb\n"
    (tmp_path / "labels.csv").write_text("task,worker,label\n" + rows)
    run("check", tmp_path / "labels.csv")
    shown = capsys.readouterr().out
    assert "and 29 more" in shown
    assert "\x1b" not in shown


def test_aggregate_as_json_is_one_object_or_names_files(labels: Path, capsys: Capture) -> None:
    assert run("aggregate", labels, "--json") == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert (found["method"], found["tasks"], found["classes"]) == ("dawid-skene", 30, ["cat", "dog"])
    assert found["labels"][0]["label"] == "dog"
    assert shown.err == ""
    output = labels.parent / "clean.parquet"
    assert run("aggregate", labels, "--json", "-o", output) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["output"] == str(output)
    assert "labels" not in found
    assert output.exists()


def test_aggregate_sends_predictions_back_to_label_studio(tmp_path: Path, capsys: Capture) -> None:
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


def test_second_labels_are_recommended_where_nearly_every_task_has_one(tmp_path: Path, capsys: Capture) -> None:
    rows = [f"t{task},w{task % 5},{'yes' if task % 3 else 'no'}" for task in range(1000)]
    labels = written(tmp_path / "labels.csv", "\n".join(["task,worker,label", *rows]))
    assert run("check", labels) == 0
    said = "overlap: 50 second labels of random tasks would show how right the labels are"
    assert said in capsys.readouterr().out
    labels.write_text("\n".join(["task,worker,label", *rows, *(f"t{task},w9,yes" for task in range(100))]))
    run("check", labels)
    assert "overlap:" not in capsys.readouterr().out


def test_seconds_and_pay_are_shown_where_the_file_has_them(tmp_path: Path, capsys: Capture) -> None:
    rows = [f"h{i},w{i % 3},$0.05,{10 + i},{i}.jpg,{'cat' if i % 2 else 'dog'}" for i in range(9)]
    header = "HITId,WorkerId,Reward,WorkTimeInSeconds,Input.url,Answer.kind"
    (tmp_path / "batch.csv").write_text("\n".join([header, *rows]) + "\n")
    run("check", tmp_path / "batch.csv")
    shown = "14 seconds per label (median), 0.035 hours in all; pay of 0.05 per label (mean), 0.45 in all"
    assert f"  work: {shown}" in capsys.readouterr().out.splitlines()
    run("check", tmp_path / "batch.csv", "--json")
    work = json.loads(capsys.readouterr().out)["work"]
    assert work == pytest.approx({"seconds_per_label": 14.0, "seconds": 126.0, "pay_per_label": 0.05, "pay": 0.45})
