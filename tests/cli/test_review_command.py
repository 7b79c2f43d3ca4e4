"""`labelonce review` and `labelonce report --gold`: from a run folder alone to a list, and to a measured report."""

import json
import shutil
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
from labelonce import runs, simulate


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with labels, texts, true labels and a run on the texts, whose inputs are gone."""
    made = tmp_path_factory.mktemp("review")
    rng = np.random.default_rng(0)
    true = rng.integers(0, 2, 150)
    confusion = simulate.one_coin([0.95, 0.95, 0.9, 0.5], 2)
    ann = simulate.annotate(true, confusion, simulate.assign(150, 4, 2, rng, replace=False), rng)
    words = np.array([["good", "great", "fine"], ["bad", "poor", "weak"]])
    texts = np.array(
        [f"={words[k, rng.integers(3)]} film {words[k, rng.integers(3)]} {i % 7}" for i, k in enumerate(true)]
    )
    names = np.array(["yes", "no"])
    labels = {"task": ann.task, "worker": [f"w{w}" for w in ann.worker], "label": names[ann.label]}
    lo.write(pa.table(labels | {"text": texts[ann.task]}), made / "labels.csv")
    lo.write(pa.table({"task": np.arange(100), "label": names[true[:100]]}), made / "gold.csv")
    train = ["train", str(made / "labels.csv"), "--text", "text", "--rounds", "2", "-o", str(made / "run")]
    assert labelonce(*train) == 0
    (made / "labels.csv").rename(made / "moved.csv")
    return made


def test_the_list_needs_nothing_but_the_folder(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    output = tmp_path / "recheck.csv"
    assert labelonce("review", folder / "run", "-o", output) == 0
    rows = rows_of(output)
    assert list(rows[0]) == ["task", "text", "given", "worker", "label", "chance_wrong", "action"]
    chances = [float(row["chance_wrong"]) for row in rows]
    assert chances == sorted(chances, reverse=True)
    assert chances[-1] >= 0.2
    assert f"{len(rows)} labels: " in capsys.readouterr().err


def test_the_list_of_a_run_is_that_of_its_model_and_workers_have_flags(folder: Path) -> None:
    of_model = lo.load(folder / "run" / "model.skops").review(least=0.0)
    of_run = runs.review(folder / "run", least=0.0)
    assert of_run.drop_columns("text").to_pydict() == of_model.to_pydict()
    texts = {row["task"]: row["text"] for row in rows_of(folder / "moved.csv")}
    assert all(texts[str(row["task"])] == row["text"] for row in of_run.to_pylist())
    workers = parquet.read_table(folder / "run" / "workers.parquet").to_pylist()
    for row in workers:
        assert row["expected_wrong"] == pytest.approx(row["annotations"] * (1 - row["skill"]))
        assert isinstance(row["flags"], list)


def test_a_spreadsheet_finds_no_formula_but_programs_the_letter(folder: Path, tmp_path: Path) -> None:
    for name in ("list.csv", "list.jsonl"):
        assert labelonce("review", folder / "run", "-o", tmp_path / name, "--top", "3") == 0
    assert all(row["text"].startswith("'=") for row in rows_of(tmp_path / "list.csv"))
    lines = [json.loads(line) for line in (tmp_path / "list.jsonl").read_text().splitlines()]
    assert len(lines) == 3
    assert all(line["text"].startswith("=") for line in lines)


def test_gold_measures_what_was_estimated_in_the_report(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    run = tmp_path / "run"
    shutil.copytree(folder / "run", run)
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    told = output_of(capsys, "report", run, "--gold", folder / "gold.csv")
    gold = {int(row["task"]): row["label"] for row in rows_of(folder / "gold.csv")}
    labels = parquet.read_table(run / "labels.parquet").to_pylist()
    right = np.mean([row["label"] == gold[row["task"]] for row in labels if row["task"] in gold])
    assert f"measured: {right:.1%} of 100 known labels are right" in told
    assert "of the labels are right, by estimate" in told
    assert "On 100 tasks with known true labels" in (run / "report.html").read_text()
    after = {path.name: path.read_bytes() for path in run.iterdir()}
    assert {name for name in after if after[name] != before.get(name)} == {"report.html"}
    found = json_of(capsys, "report", run, "--gold", folder / "gold.csv")
    assert found["gold"] == 100
    assert found["measured_accuracy"]["low"] <= found["measured_accuracy"]["value"]
    assert found["estimated_accuracy"]["held_out"] is True


@pytest.mark.parametrize(
    ("gold", "said"), [("0,maybe\n", "gold must be among ['no', 'yes']; got 'maybe'"), ("777,yes\n", ""), ("", "")]
)
def test_gold_that_is_none_of_the_run_is_told_with_its_file_and_leaves_the_report(
    gold: str, said: str, folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "checked.csv").write_text(f"task,label\n{gold}")
    before = (folder / "run" / "report.html").read_bytes()
    error = refused(capsys, "report", folder / "run", "--gold", tmp_path / "checked.csv")
    assert error.startswith(f"labelonce: {tmp_path / 'checked.csv'}")
    assert said in error
    assert (folder / "run" / "report.html").read_bytes() == before


@pytest.mark.parametrize(
    ("command", "name"), [("review", "labels.parquet"), ("show", "workers.parquet"), ("report", "model.skops")]
)
@pytest.mark.parametrize("content", [None, b"x"])
def test_a_lost_or_damaged_file_of_the_run_is_named(
    command: str, name: str, content: bytes | None, folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    file = Path(shutil.copytree(folder / "run", tmp_path / "run")) / name
    file.unlink() if content is None else file.write_bytes(content)
    error = refused(capsys, command, tmp_path / "run")
    assert f"{file}" in error
    assert "must be" in error


@pytest.mark.parametrize("command", [["review"], ["predict", "new.csv"]])
def test_nothing_is_written_over_the_run(command: list[str], folder: Path, capsys: Capture) -> None:
    run = folder / "run"
    before = (run / "labels.parquet").read_bytes()
    assert labelonce(command[0], run, *command[1:], "-o", run / "labels.parquet") == 2
    assert "--output must not be a file that is read or written already" in capsys.readouterr().err
    assert (run / "labels.parquet").read_bytes() == before


def test_a_folder_of_an_older_version_is_told(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    run = tmp_path / "run"
    shutil.copytree(folder / "run", run)
    table = parquet.read_table(run / "labels.parquet")
    parquet.write_table(table.drop_columns("given"), run / "labels.parquet")
    assert "labels.parquet must have a column 'given'; got none. Train again" in refused(capsys, "review", run)


def test_a_run_that_held_nothing_out_says_so(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    run = tmp_path / "run"
    shutil.copytree(folder / "run", run)
    record: dict[str, Any] = json.loads((run / "run.json").read_text())
    record["result"]["estimated_accuracy"]["held_out"] = False
    (run / "run.json").write_text(json.dumps(record))
    assert "NOTHING WAS HELD OUT" in output_of(capsys, "show", run)
    assert labelonce("review", run) == 0
    assert "nothing was held out in this run" in capsys.readouterr().err
