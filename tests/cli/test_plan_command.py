"""`labelonce plan` as a person runs it: from assumptions, from a run folder, as JSON, and its errors."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from commands import Capture, json_of, refused
from commands import run as labelonce

import labelonce as lo
from labelonce import simulate


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run folder on 200 tasks, 120 of them labelled."""
    folder = tmp_path_factory.mktemp("plan")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    confusion = simulate.one_coin([0.9, 0.8, 0.7, 0.6], 2)
    assignment = simulate.assign(120, 4, 2, rng, replace=False)
    ann = simulate.annotate((X[:120, 0] > 0).astype(int), confusion, assignment, rng)
    lo.write(ann, folder / "labels.csv")
    lo.write(pa.table({"task": np.arange(200), "a": X[:, 0], "b": X[:, 1]}), folder / "features.csv")
    train = ["train", str(folder / "labels.csv"), "--features", str(folder / "features.csv"), "--rounds", "2"]
    assert labelonce(*train, "-o", folder / "run") == 0
    return folder / "run"


def test_assumptions_print_the_plan_its_curve_and_a_picture(capsys: Capture, run: Path, tmp_path: Path) -> None:
    assert labelonce("plan", "--assume", "skill=0.8", "--budget", "3000", "--task-price", "5") == 0
    out, err = capsys.readouterr()
    assert "For a model: buy 1,125 labels, 3 for each of 375 tasks" in out
    assert "labels per task\ttasks\tlabels\tcost\tworth\tlabels right\tone more point" in out
    assert "note: The budget has no test set" in err
    pytest.importorskip("matplotlib")
    assert labelonce("plan", run, "--fits", "0", "--picture", tmp_path / "plan.svg") == 0
    assert (tmp_path / "plan.svg").exists()


def test_a_run_folder_is_enough_and_json_holds_the_whole_plan(run: Path, capsys: Capture) -> None:
    assert labelonce("plan", run) == 0
    out, err = capsys.readouterr()
    assert "of 2,400." in out  # ten times the 240 labels of the pilot
    assert "of new tasks" in out
    assert "small fits" in err
    found = json_of(capsys, "plan", run, "--budget", "1000", "--task-price", "4", "--fits", "0")
    assert found["budget"] == 1000
    assert [row["redundancy"] for row in found["rows"]] == [1, 2, 3, 4]
    assert found["accuracy"] is None


def test_a_run_knows_its_tasks_and_amounts_are_read_as_people_type_them(run: Path, capsys: Capture) -> None:
    prices = ["--budget", "$2,000", "--label-price", "$0.05", "--fee", "20%", "--goal", "labels", "--fits", "0"]
    found = json_of(capsys, "plan", str(run), *prices)
    assert (found["budget"], found["label_price"], found["fee"], found["pool"]) == (2000, 0.05, 0.2, 200)
    assert "The run has 200 tasks; say how many there are with --tasks." in found["guards"]
    assert found["tasks"] == 200
    assert "got 'much'" in refused(capsys, "plan", str(run), "--budget", "much")


def test_the_price_is_what_the_files_of_the_run_say(run: Path, capsys: Capture) -> None:
    labels = run.parent / "labels.csv"
    before = labels.read_text()
    lines = before.splitlines()
    labels.write_text("\n".join([f"{lines[0]},pay", *(f"{line},$0.04" for line in lines[1:])]) + "\n")
    try:
        assert labelonce("plan", str(run), "--budget", "100", "--fits", "0", "--json") == 0
    finally:
        labels.write_text(before)
    found = json.loads(capsys.readouterr().out)
    assert found["label_price"] == pytest.approx(0.04)
    assert any("mean pay per worker" in sentence for sentence in found["guards"])


def test_without_its_inputs_a_run_is_planned_by_information(run: Path, capsys: Capture) -> None:
    features = run.parent / "features.csv"
    moved = features.rename(run.parent / "moved.csv")
    try:
        assert labelonce("plan", run) == 0
    finally:
        moved.rename(features)
    out, err = capsys.readouterr()
    assert "buy" in out
    assert "Nothing was simulated, since the inputs of the run cannot be read" in err


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ([], "plan must have a run folder or --assume; got neither."),
        (["run", "--assume", "skill=0.8"], "got both."),
        (["run", "--classes", "3"], "--classes must go with --assume"),
        (["--assume", "skill"], "got 'skill'."),
        (["--assume", "talent=0.8"], "got 'talent=0.8'."),
        (["--assume", "skill=0.8,0.9"], "got 'skill=0.8,0.9'."),
        (["--assume", "skill=0.8"], "budget must be given"),
        (["missing"], "missing must hold a finished run"),
    ],
)
def test_errors_are_one_sentence(arguments: list[str], value: str, capsys: Capture) -> None:
    err = refused(capsys, "plan", *arguments)
    assert value in err
    assert err.count("\n") == 1
