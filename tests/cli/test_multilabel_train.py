"""`train`, `predict`, `show` and `report` on files of questions, as a person runs them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from commands import Capture, json_of, output_of, refused
from commands import run as labelonce
from pyarrow import parquet
from small_files import rows_of

import labelonce as lo

NAMES = ["dog", "sea", "night"]
WORDS = {"dog": "a barking hound", "sea": "waves and sand", "night": "stars in the dark"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with ticked labels of 150 tasks, features, texts, known answers, new rows and a run."""
    made = tmp_path_factory.mktemp("questions")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 3))
    true = X > [0.0, 0.3, 0.8]
    worker = rng.integers(6, size=160)
    said = np.where((worker < 4)[:, None], true, rng.random(true.shape) < 0.5)
    ticked = ["|".join(name for name, on in zip(NAMES, row, strict=True) if on) for row in said]
    texts = ["things: " + " ".join(WORDS[n] for n, on in zip(NAMES, row, strict=True) if on) for row in true]
    who = [f"w{one}" for one in worker]
    labels = {"task": np.arange(150), "worker": who[:150], "ticked": ticked[:150], "text": texts[:150]}
    lo.write(pa.table(labels), made / "ticked.csv")
    table = pa.table({"task": np.arange(160)} | {f"x{place}": X[:, place] for place in range(3)})
    lo.write(table, made / "features.csv")
    lo.write(table.slice(150), made / "new.csv")
    known = np.where(true[:20], "yes", "no").ravel()
    gold = pa.table({"task": np.repeat(np.arange(20), 3), "question": NAMES * 20, "answer": known})
    lo.write(gold, made / "gold.csv")
    np.save(made / "true.npy", true)
    train = ["train", str(made / "ticked.csv"), "--features", str(made / "features.csv"), "--rounds", "2"]
    assert labelonce(*train, "-o", made / "run") == 0
    export(made, said, who, texts)
    return made


def export(made: Path, said: Any, who: list[str], texts: list[str]) -> None:
    """Write check boxes of 100 tasks, and ten tasks that nobody labelled, as Label Studio does."""
    tasks: list[dict[str, Any]] = []
    for task in range(110):
        chosen = [name for name, on in zip(NAMES, said[task], strict=True) if on]
        box = {"from_name": "tags", "to_name": "txt", "type": "choices", "value": {"choices": chosen}}
        answer = {"completed_by": int(who[task][1:]), "result": [box] if chosen else []}
        tasks.append({"id": 500 + task, "data": {"text": texts[task]}, "annotations": [answer] if task < 100 else []})
    (made / "export.json").write_text(json.dumps(tasks[:100]))
    (made / "new.json").write_text(json.dumps(tasks[100:]))


def test_a_run_on_questions_holds_labels_workers_model_and_record(folder: Path) -> None:
    run = folder / "run"
    names = {path.name for path in run.iterdir()}
    assert names == {"run.json", "labels.parquet", "workers.parquet", "model.skops", "report.html"}
    labels = parquet.read_table(run / "labels.parquet")
    assert labels.column_names == ["task", "question", "label", "probability", "given", "workers"]
    assert labels.num_rows == 160 * 3
    assert [len(given) for given in labels["given"].to_pylist()] == [1] * 450 + [0] * 30
    workers = parquet.read_table(run / "workers.parquet")
    columns = ["worker", "annotations", "yes_share", "strictness", "skill", "skill_low", "skill_high"]
    assert workers.column_names == columns
    record = json.loads((run / "run.json").read_text())
    assert record["result"]["questions"] == sorted(NAMES)
    assert (record["data"]["tasks"], record["data"]["labelled_tasks"], record["recipe"]["rounds"]) == (160, 150, 2)
    assert len(record["rounds"]) == 2


def test_predict_writes_a_column_per_question(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "predicted.csv"
    assert labelonce("predict", folder / "run", folder / "new.csv", "--proba", "-o", out) == 0
    rows = rows_of(out)
    assert list(rows[0]) == ["task", *sorted(NAMES), *(f"probability_{name}" for name in sorted(NAMES))]
    assert all((row["dog"] == "yes") == (float(row["probability_dog"]) > 0.5) for row in rows)
    true = np.load(folder / "true.npy")[150:]
    given = np.array([[row[name] == "yes" for name in NAMES] for row in rows])
    assert (given == true).mean() > 0.8


def test_show_prints_questions_and_the_strictness_of_workers(folder: Path, capsys: Capture) -> None:
    printed = output_of(capsys, "show", folder / "run")
    assert "450 answers to 3 questions about 150 tasks by 6 workers" in printed
    assert "Workers, strictest first" in printed
    rows = printed.split("# Questions\n")[1].splitlines()[1:4]
    assert [line.split("\t")[0] for line in rows] == ["dog", "sea", "night"]
    assert len(json_of(capsys, "show", folder / "run")["workers"]) == 6


def test_report_measures_known_answers(folder: Path, capsys: Capture) -> None:
    assert "of 60 known labels are right" in output_of(capsys, "report", folder / "run", "--gold", folder / "gold.csv")
    assert "Right labels, measured" in (folder / "run" / "report.html").read_text()


@pytest.mark.parametrize("command", ["review", "plan"])
def test_commands_for_classes_say_that_the_run_is_on_questions(folder: Path, command: str, capsys: Capture) -> None:
    assert "must be of labels that are classes; got one of 3 questions" in refused(capsys, command, folder / "run")


def test_texts_in_the_file_of_labels_train_heads(folder: Path, tmp_path: Path) -> None:
    run, out = tmp_path / "run", tmp_path / "out.csv"
    train = ["train", str(folder / "ticked.csv"), "--text", "text", "--rounds", "2", "-o", str(run)]
    assert labelonce(*train) == 0
    assert "text" in parquet.read_schema(run / "labels.parquet").names
    (tmp_path / "new.csv").write_text("text\nwaves and sand\na barking hound\n")
    assert labelonce("predict", run, tmp_path / "new.csv", "-o", out) == 0
    rows = rows_of(out)
    assert [(row["sea"], row["dog"]) for row in rows] == [("yes", "no"), ("no", "yes")]
    assert (run / "report.html").exists()


def test_a_wide_table_with_a_text_is_read_as_questions(folder: Path, tmp_path: Path) -> None:
    table = parquet.read_table(folder / "run" / "labels.parquet")
    answers = np.array(table["given"].to_pylist()[:450]).reshape(150, 3)
    who = [row[0] for row in table["workers"].to_pylist()[:450:3]]
    wide = {"task": np.arange(150), "worker": who, "text": ["a dog"] * 75 + ["the sea"] * 75}
    lo.write(pa.table(wide | {name: answers[:, k] for k, name in enumerate(sorted(NAMES))}), tmp_path / "wide.csv")
    command = ["train", str(tmp_path / "wide.csv"), "--multiple", "questions", "--text", "text", "--rounds", "1"]
    assert labelonce(*command, "-o", tmp_path / "run") == 0
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["result"]["questions"] == sorted(NAMES)


def test_check_boxes_of_label_studio_in_and_predictions_back(folder: Path, tmp_path: Path) -> None:
    run, out = tmp_path / "run", tmp_path / "predictions.json"
    train = ["train", str(folder / "export.json"), "--multiple", "questions", "--text", "text", "--rounds", "2"]
    assert labelonce(*train, "-o", run) == 0
    back = ["-o", str(out), "--output-format", "label-studio"]
    assert labelonce("predict", run, folder / "new.json", *back) == 0
    tasks = json.loads(out.read_text())
    assert {task["id"] for task in tasks} <= set(range(600, 610))
    assert tasks[0]["data"]["text"].startswith("things:")
    (result,) = tasks[0]["predictions"][0]["result"]
    assert (result["from_name"], result["to_name"], result["type"]) == ("tags", "txt", "choices")
    assert set(result["value"]["choices"]) <= set(NAMES)


def test_gold_is_kept_and_groups_and_other_answers_are_refused(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    train = ["train", str(folder / "ticked.csv"), "--features", str(folder / "features.csv"), "--rounds", "1"]
    told = [*train, "--gold", str(folder / "gold.csv"), "-o", str(tmp_path / "run")]
    assert labelonce(*told) == 0
    labels = parquet.read_table(tmp_path / "run" / "labels.parquet").slice(0, 60)
    true = np.load(folder / "true.npy")[:20][:, [NAMES.index(name) for name in sorted(NAMES)]]
    assert [one == "yes" for one in labels["label"].to_pylist()] == true.ravel().tolist()
    capsys.readouterr()
    assert labelonce(*train, "--groups", "auto", "-o", tmp_path / "other") == 2
    assert "--groups must be left out for questions; got auto" in capsys.readouterr().err
    (tmp_path / "gold.csv").write_text("task,question,answer\n1,dog,perhaps\n")
    train = ["train", str(folder / "ticked.csv"), "--features", str(folder / "features.csv")]
    assert labelonce(*train, "--gold", tmp_path / "gold.csv", "-o", tmp_path / "run") == 2
    assert "must be one of ['no', 'yes']; got 'perhaps' at row 2" in capsys.readouterr().err
