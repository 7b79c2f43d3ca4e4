"""`--classes` and `--answers`: answers that are not classes on the command line."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from commands import Capture, json_of, output_of, refused, run
from pyarrow import parquet
from small_files import rows_of, written

import labelonce as lo
from labelonce import simulate
from labelonce.runs._record import LATER, Options

DECLARED = ["--classes", "no,yes", "--answers", "no, maybe,yes"]
SCALE = ["--classes", "no,yes", "--answers", "1,2,3,4,5"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with labels of workers who say maybe where it is yes, labels on a scale, and features."""
    made = tmp_path_factory.mktemp("answers")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y_true = (X[:, 0] > 0).astype(np.int32)
    maybe = np.tile([[0.1], [0.5]], (8, 1, 1))
    confusion = np.concatenate([(1 - maybe) * simulate.one_coin([0.85] * 8, 2), maybe], axis=2)
    assignment = simulate.assign(200, 8, 3, rng, replace=False)
    ann = simulate.annotate(y_true, confusion, assignment, rng)
    ids = {"task": ann.task, "worker": [f"w{w}" for w in ann.worker]}
    lo.write(pa.table(ids | {"label": np.array(["no", "yes", "maybe"])[ann.label]}), made / "labels.csv")
    rows = np.array([[[0.4, 0.3, 0.15, 0.1, 0.05], [0.05, 0.1, 0.15, 0.3, 0.4]]] * 8)
    scale = simulate.annotate(y_true, rows, assignment, rng, answers=list("abcde"))
    lo.write(pa.table(ids | {"label": scale.label + 1}), made / "scale.csv")
    lo.write(pa.table({"task": np.arange(200), "x": X[:, 0], "z": X[:, 1]}), made / "features.csv")
    lo.write(pa.table({"task": np.arange(200), "label": np.array(["no", "yes"])[y_true]}), made / "gold.csv")
    return made


def share_right(folder: Path, clean: Path) -> float:
    """Return the share of right labels in a file."""
    paths = (folder / "gold.csv", clean)
    gold, found = ({row["task"]: row["label"] for row in rows_of(path)} for path in paths)
    return float(np.mean([gold[task] == label for task, label in found.items()]))


def test_check_counts_other_answers_apart_and_advises_for_a_scale(
    folder: Path, capsys: Capture, tmp_path: Path
) -> None:
    shown = output_of(capsys, "check", folder / "labels.csv", *DECLARED)
    assert "8 workers, 2 classes" in shown
    assert "other answers: maybe " in shown
    assert "Next: labelonce aggregate" in shown
    assert "--classes no,yes --answers no,maybe,yes" in shown
    rows = [f"{task},w{(task + turn) % 30},{1 + (task + turn) % 5}" for task in range(60) for turn in range(3)]
    (tmp_path / "few.csv").write_text("\n".join(["task,worker,label", *rows]))
    run("check", tmp_path / "few.csv", *SCALE)
    shown = capsys.readouterr().out
    assert "scale: no answer is a class: they are taken as a scale, from 1 for 'no' to 5 for 'yes'." in shown
    assert "--method dawid-skene" in shown


def test_aggregate_learns_what_the_answers_tell(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    outputs = ["-o", tmp_path / "clean.csv", "--workers", tmp_path / "workers.csv", "--json"]
    assert run("aggregate", folder / "labels.csv", *DECLARED, *outputs) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["classes"], told["answers"]) == (["no", "yes"], ["no", "yes", "maybe"])
    assert share_right(folder, tmp_path / "clean.csv") > 0.9
    assert "other_answers" in (tmp_path / "workers.csv").read_text().splitlines()[0]


def test_aggregate_takes_a_scale_of_numbers_where_the_method_can(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    assert run("aggregate", folder / "scale.csv", *SCALE, "--method", "ibcc", "-o", tmp_path / "clean.csv") == 0
    assert share_right(folder, tmp_path / "clean.csv") > 0.85
    assert run("aggregate", folder / "scale.csv", *SCALE, "--method", "kos") == 2
    assert "KOS must have answers that are classes; got the scale [1, 2, 3, 4, 5]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "name"), [(["aggregate", "--method", "wawa"], "Wawa"), (["next", "-n", "5"], "next")]
)
def test_who_takes_classes_says_what_is_left(
    command: list[str], name: str, folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    assert run(command[0], folder / "labels.csv", *DECLARED, *command[1:], "-o", tmp_path / "out.csv") == 0
    assert f"{name} counts only answers that are classes" in capsys.readouterr().err.replace("\n", " ")


def test_compare_scores_all_answers(folder: Path, capsys: Capture) -> None:
    found = json_of(capsys, "compare", folder / "labels.csv", *DECLARED)
    assert found["recommended"] in ("DawidSkene", "IBCC", "SpectralDawidSkene")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--answers", "no,maybe,yes"], "answers must come with the classes they are about; got none. Give --classes"),
        (["--classes", "no,yes"], "got 'maybe' at row"),
        (["--classes", "no,yes", "--answers", "yes,maybe"], "every class or, as a scale, none; got 'yes' but not 'no'"),
        (["--classes", "a,b,c", "--answers", "1,2"], "at least as many answers as there are classes"),
    ],
)
def test_bad_options_are_one_sentence(folder: Path, options: list[str], message: str, capsys: Capture) -> None:
    told = refused(capsys, "aggregate", folder / "labels.csv", *options)
    assert message in told
    assert "Traceback" not in told


def trained(folder: Path, name: str, options: list[str], output: Path) -> Path:
    features = ["--features", folder / "features.csv", "--rounds", "2"]
    assert run("train", folder / name, *options, *features, "-o", output) == 0
    return output


def test_a_run_keeps_the_answers(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    made = trained(folder, "labels.csv", DECLARED, tmp_path / "run")
    record = json.loads((made / "run.json").read_text())
    assert (record["options"]["classes"], record["options"]["answers"]) == (["no", "yes"], ["no", "maybe", "yes"])
    assert "other_answers" in parquet.read_schema(made / "workers.parquet").names
    assert "maybe" in {name for row in parquet.read_table(made / "labels.parquet")["given"].to_pylist() for name in row}
    assert lo.load(made / "model.skops").confusion_.shape == (8, 2, 3)
    assert "more answers are no class" in (made / "report.html").read_text()
    capsys.readouterr()
    assert run("review", made, "--least", "0", "--json") == 0
    assert run("report", made, "--gold", folder / "gold.csv") == 0
    assert run("train", "--resume", "-o", made) == 0
    assert "nothing to resume" in capsys.readouterr().err


def test_a_run_on_a_scale_has_no_report_and_says_so(folder: Path, tmp_path: Path) -> None:
    made = trained(folder, "scale.csv", SCALE, tmp_path / "run")
    record = json.loads((made / "run.json").read_text())
    assert record["options"]["answers"] == [1, 2, 3, 4, 5]
    assert any("the answers are a scale" in sentence for sentence in record["warnings"])
    assert not (made / "report.html").exists()
    assert lo.load(made / "model.skops").answers_.tolist() == [1, 2, 3, 4, 5]


def test_a_run_without_answers_is_written_as_before_there_were_any(folder: Path, tmp_path: Path) -> None:
    plain = written(tmp_path / "plain.csv", (folder / "labels.csv").read_text().replace("maybe", "yes"))
    features = ["--features", folder / "features.csv", "--rounds", "2"]
    assert run("train", plain, *features, "-o", tmp_path / "run") == 0
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert not set(LATER) & set(record["options"])
    assert Options("labels.csv").source == {}
    assert run("show", tmp_path / "run") == 0
