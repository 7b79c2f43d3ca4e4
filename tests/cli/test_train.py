"""`labelonce train`, `predict` and `show` as a person runs them: output, files, exit codes."""

import errno
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from commands import Capture, json_of, output_of, refused
from commands import run as labelonce
from pyarrow import parquet
from small_files import written

import labelonce as lo
from labelonce import runs, simulate
from labelonce.cli._print import print_table
from labelonce.report import _write
from labelonce.runs import _train

RESULT = {"run.json", "labels.parquet", "workers.parquet", "model.skops"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with labels, features, texts, new rows and a run on the features."""
    made = tmp_path_factory.mktemp("train")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    true = X.argmax(axis=1)
    confusion = simulate.hammer_spammer(6, 3, 0.5, rng, exact=True)
    ann = simulate.annotate(true[:90], confusion, simulate.assign(90, 6, 1, rng), rng)
    texts = np.array(["a fine cat", "the old dog", "one red bird"])[true]
    labels = {"task": ann.task, "worker": [f"w{w}" for w in ann.worker]}
    labels |= {"label": np.array(["cat", "dog", "owl"])[ann.label], "text": texts[ann.task]}
    lo.write(pa.table(labels), made / "labels.csv")
    table = pa.table({"task": np.arange(100)} | {f"x{place}": X[:, place] for place in range(3)})
    lo.write(table, made / "features.csv")
    new = table.slice(90).select(["x2", "task", "x0", "x1"])
    lo.write(new.append_column("more", pa.array(["-"] * 10)), made / "new.csv")
    (made / "texts.csv").write_text("text\nanother cat\nmy dog\n")
    train = ["train", str(made / "labels.csv"), "--features", str(made / "features.csv"), "--rounds", "2"]
    assert labelonce(*train, "-o", made / "run") == 0
    return made


def trained(folder: Path, *more: object) -> int:
    """Train on the labels and features of a folder."""
    return labelonce("train", folder / "labels.csv", "--features", folder / "features.csv", *more)


def record_of(run: Path) -> dict[str, Any]:
    return dict(json.loads((run / "run.json").read_text()))


def test_a_run_folder_holds_labels_workers_model_and_what_was_run(folder: Path) -> None:
    run = folder / "run"
    assert {path.name for path in run.iterdir()} - {"report.html"} == RESULT
    labels, workers = (parquet.read_table(run / f"{name}.parquet") for name in ("labels", "workers"))
    posterior = ["posterior_cat", "posterior_dog", "posterior_owl"]
    assert labels.column_names == ["task", "label", "confidence", *posterior, "given", "workers"]
    assert (labels.num_rows, workers.num_rows) == (100, 6)
    assert workers.column_names[:5] == ["worker", "annotations", "skill", "skill_low", "skill_high"]
    assert workers.column_names[5:] == ["expected_wrong", "flags"]
    record = record_of(run)
    estimate = record["result"]["estimated_accuracy"]
    assert estimate["held_out"]
    assert estimate["value"] == pytest.approx(np.mean(labels["confidence"]))
    assert estimate["low"] <= estimate["value"] <= estimate["high"]
    assert record["inputs"]["labels"]["bytes"] == (folder / "labels.csv").stat().st_size
    assert len(record["inputs"]["features"]["sha256"]) == 64
    assert (record["options"]["seed"], record["recipe"]["rounds"], len(record["rounds"])) == (0, 2, 2)
    assert (record["data"]["tasks"], record["data"]["labelled_tasks"]) == (100, 90)
    assert {"numpy", "scikit-learn", "skops", "labelonce"} <= set(record["versions"])


def test_a_pipe_hears_of_the_plan_and_of_every_stage(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    assert trained(folder, "--rounds", "2", "-o", tmp_path / "run") == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "choosing a recipe"
    assert "of at most" in lines[1]
    assert lines[-2:] == ["fitting out-of-fold models, for the confidence", "writing the run folder"]


def test_the_saved_model_made_the_labels_and_resume_says_that_a_run_is_finished(folder: Path, capsys: Capture) -> None:
    clf = lo.load(folder / "run" / "model.skops")
    frame = clf.to_frame()
    stored = parquet.read_table(folder / "run" / "labels.parquet", columns=frame.column_names)
    assert frame.to_pydict() == stored.to_pydict()
    assert labelonce("train", "--resume", "-o", folder / "run") == 0
    assert "nothing to resume" in capsys.readouterr().err


def test_predict_finds_the_columns_by_name(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "predicted.parquet"
    assert labelonce("predict", folder / "run", folder / "new.csv", "-o", output, "--proba") == 0
    table = parquet.read_table(output)
    assert table.column_names[:3] == ["task", "label", "confidence"]
    assert table.column_names[3:] == ["probability_cat", "probability_dog", "probability_owl"]
    assert table["task"].to_pylist() == list(range(90, 100))
    rows = np.loadtxt(folder / "features.csv", delimiter=",", skiprows=1)[90:, 1:]
    expected = lo.load(folder / "run" / "model.skops").predict_proba(rows)
    assert np.column_stack([table[name] for name in table.column_names[3:]]) == pytest.approx(expected)


def test_predict_pipes_csv_or_json_lines(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    arguments = ["predict", str(folder / "run"), str(folder / "new.csv")]
    assert output_of(capfdbinary, *arguments).splitlines()[0] == b'"task","label","confidence"'
    assert labelonce(*arguments, "--json") == 0
    assert [json.loads(line)["task"] for line in capfdbinary.readouterr().out.splitlines()] == list(range(90, 100))


def test_texts_are_read_from_the_labels_and_predicted_by_name(folder: Path, tmp_path: Path, capfdbinary: Any) -> None:
    run = tmp_path / "run"
    arguments = ["train", str(folder / "labels.csv"), "--text", "text", "--rounds", "2", "-o", str(run), "--json"]
    assert labelonce(*arguments) == 0
    assert json.loads(capfdbinary.readouterr().out)["features"] == {"kind": "text", "column": "text"}
    rows = [line.split(b",") for line in output_of(capfdbinary, "predict", run, folder / "texts.csv").splitlines()]
    assert [row[:2] for row in rows[1:]] == [[b"0", b'"cat"'], [b"1", b'"dog"']]
    repeated = written(tmp_path / "repeated.csv", "task,text\n7,another cat\n7,another cat\n8,my dog\n")
    assert labelonce("predict", run, repeated, "-o", tmp_path / "out.csv") == 0
    assert [line.split(",")[0] for line in (tmp_path / "out.csv").read_text().splitlines()[1:]] == ["7", "7", "8"]


def test_show_prints_plain_text_when_piped_and_json_for_machines(folder: Path, capsys: Capture) -> None:
    text = output_of(capsys, "show", folder / "run", "--workers", "2")
    assert "90 labels of 90 tasks by 6 workers (redundancy 1), 10 more tasks without labels" in text
    assert "# The best and the worst of 6 workers\nworker\tlabels\tskill\t90 % interval\tflags\n" in text
    assert "│" not in text
    record = json_of(capsys, "show", folder / "run")
    assert len(record["workers"]) == 6
    assert record["rounds"][0]["posterior_change"] is None


def test_gold_is_kept(folder: Path, tmp_path: Path) -> None:
    gold, run = tmp_path / "gold.csv", tmp_path / "run"
    gold.write_text("task,label\n0,owl\n95,owl\n")
    assert trained(folder, "--gold", str(gold), "--rounds", "1", "-o", run) == 0
    labels = parquet.read_table(run / "labels.parquet")
    assert [labels["label"][row].as_py() for row in (0, 95)] == ["owl", "owl"]
    assert record_of(run)["inputs"]["gold"]["path"] == str(gold)


def test_boosted_trees_take_missing_numbers(folder: Path, tmp_path: Path) -> None:
    features, run = tmp_path / "features.csv", tmp_path / "run"
    features.write_text("task,x,name\n" + "".join(f"{i},{i if i % 7 else ''},n\n" for i in range(90)))
    arguments = ["train", str(folder / "labels.csv"), "--features", str(features), "--model", "boost", "--rounds", "1"]
    assert labelonce(*arguments, "--ignore", "name", "-o", run) == 0
    assert record_of(run)["features"]["columns"] == ["x"]
    assert labelonce("predict", run, features, "-o", tmp_path / "out.csv") == 0


def bad_inputs(folder: Path) -> dict[str, tuple[list[str], str]]:
    labels, features = str(folder / "labels.csv"), str(folder / "features.csv")
    return {
        "no features": ([labels], "--features, --text or --images; got none of them"),
        "no labels": (["--features", features], "train must have LABELS; got none"),
        "a directory": ([str(folder), "--features", features], "Is a directory. Name a file in it"),
        "no such file": ([labels, "--features", "no.csv"], "no.csv: No such file or directory"),
        "unknown column": ([labels, "--text", "review"], "must have a column 'review'; got none"),
        "no tasks": ([labels, "--features", f"{folder}/named.csv"], "'task'; got none among ['task_id', 'x']. Name"),
        "no tasks of texts": ([labels, "--features", f"{folder}/texts.csv", "--text", "text"], "column 'task'; got"),
        "text among numbers": ([labels, "--features", labels], "column 'worker' must hold numbers; got 'w"),
        "rounds": ([labels, "--features", features, "--rounds", "0"], "--rounds must be an integer of at least 1, or"),
        "a word for rounds": ([labels, "--features", features, "--rounds", "many"], "or auto; got 'many'"),
        "seed": ([labels, "--features", features, "--seed", "-1"], "--seed must be an integer of at least 0; got -1"),
        "no paths": ([labels, "--features", features, "--groups", "taxonomy"], "must be a path such as animal/dog/"),
        "gold elsewhere": ([labels, "--features", features, "--gold", str(folder / "other.csv")], "got 1000"),
        "text and trees": ([labels, "--text", "text", "--model", "boost"], "--text must go with --model softmax"),
        "nothing to resume": (["--resume"], "must hold a stopped run; got none. Check the folder that -o names"),
    }


@pytest.mark.parametrize("name", list(bad_inputs(Path())))
def test_bad_input_is_one_sentence_writing_nothing(name: str, folder: Path, tmp_path: Path, capsys: Capture) -> None:
    (folder / "other.csv").write_text("task,label\n1000,cat\n")
    (folder / "named.csv").write_text("task_id,x\n" + "".join(f"{i},{i}\n" for i in range(100)))
    arguments, message = bad_inputs(folder)[name]
    told = refused(capsys, "train", *arguments, "-o", tmp_path / "run")
    assert message in told
    assert len(told.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_features_that_say_nothing_are_told_without_arguments(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "noise.csv").write_text("task,x\n" + "".join(f"{task},1\n" for task in range(90)))
    arguments = ["train", str(folder / "labels.csv"), "--features", str(tmp_path / "noise.csv"), "--rounds", "1"]
    assert labelonce(*arguments, "-o", tmp_path / "run") == 0
    told = capsys.readouterr().err
    assert "Use better features, or label some tasks again." in told
    assert "=..." not in told


def test_a_failed_run_keeps_the_earlier_result(folder: Path, capsys: Capture) -> None:
    run = folder / "run"
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    assert trained(folder, "--rounds", "0", "-o", run) == 2
    assert "got 0" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


@pytest.mark.parametrize(
    ("name", "content", "output", "said"),
    [
        ("thesis.doc", "years of work", "", "got one with other files, such as 'thesis.doc'"),
        ("run.json", '{"name": "mine"}', "", "run.json must be the JSON that labelonce wrote"),
        ("run", "mine", "run", "run must be a folder; got a file. Name another one."),
    ],
)
def test_files_of_others_in_the_place_of_the_folder_are_left_alone(
    name: str, content: str, output: str, said: str, folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / name).write_text(content)
    assert trained(folder, "-o", tmp_path / output) == 2
    assert said in capsys.readouterr().err
    assert (tmp_path / name).read_text() == content


def test_groups_of_few_classes_are_taken(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "groups.csv").write_text("class,group\ncat,pet\ndog,pet\nowl,bird\n")
    for groups in (str(tmp_path / "groups.csv"), "auto"):
        assert trained(folder, "--rounds", "1", "--groups", groups, "-o", tmp_path / "run") == 0
        assert labelonce("show", tmp_path / "run") == 0


def test_a_disk_that_is_full_keeps_the_checkpoint(
    folder: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "report.html")

    run = tmp_path / "run"
    with monkeypatch.context() as patched:
        patched.setattr(_train, "_write_report", full)
        assert trained(folder, "--rounds", "2", "-o", run) == 2
    assert f"resume with: labelonce train --resume -o {run}" in capsys.readouterr().err
    assert labelonce("train", "--resume", "-o", run) == 0
    again, straight = (parquet.read_table(where / "labels.parquet") for where in (run, folder / "run"))
    assert again == straight


def test_no_file_takes_the_place_of_another(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    labels, new, out = (tmp_path / name for name in ("labels.csv", "new.csv", "out.csv"))
    labels.write_bytes((folder / "labels.csv").read_bytes())
    new.write_bytes((folder / "new.csv").read_bytes())
    (tmp_path / "other.csv").symlink_to(labels)
    for arguments, option, path in [
        (["aggregate", str(labels), "-o", str(labels)], "output", labels),
        (["aggregate", str(labels), "-o", str(tmp_path / "other.csv")], "output", tmp_path / "other.csv"),
        (["aggregate", str(labels), "-o", str(out), "--workers", str(out)], "workers", out),
        (["compare", str(labels), "-o", str(labels)], "output", labels),
        (["predict", str(folder / "run"), str(new), "-o", str(new)], "output", new),
        (["simulate", "-o", str(out), "--gold", str(out)], "gold", out),
    ]:
        assert labelonce(*arguments) == 2
        told = f"--{option} must not be a file that is read or written already; got {path}. Name another one."
        assert told in capsys.readouterr().err
    assert labelonce("aggregate", labels, "-o", out, "--workers", tmp_path / "w.json") == 2
    assert "--workers must be a table, such as workers.csv; got" in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"labels.csv", "new.csv", "other.csv"}
    assert labels.read_bytes() == (folder / "labels.csv").read_bytes()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,x0,x1\n1,2,3\n", "must have a column 'x2'; got none among ['task', 'x0', 'x1']"),
        ("task,x0,x1,x2\n1,2,3,\n", "got NaN in column 'x2' at row 2"),
        ("task,x0,x1,x2\n1,2,3,4\n1,2,3,4\n", "must not repeat an id; got 1 2 times"),
    ],
)
def test_predict_refuses_rows_of_others(text: str, message: str, folder: Path, tmp_path: Path, capsys: Capture) -> None:
    rows, output = tmp_path / "rows.csv", tmp_path / "out.csv"
    rows.write_text(text)
    assert message in refused(capsys, "predict", folder / "run", rows, "-o", output)
    assert not output.exists()


def test_arrays_must_have_as_many_features_and_names_cannot_draw(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    np.save(tmp_path / "rows.npy", np.zeros((2, 4)))
    assert labelonce("predict", folder / "run", tmp_path / "rows.npy") == 2
    assert "the 3 features that the run was trained on; got 4" in capsys.readouterr().err
    print_table("Workers", ["worker"], [["\x1b[31mred\x07\n\t[bold]"]])
    assert capsys.readouterr().out == "\n# Workers\nworker\n\\x1b[31mred\\x07\\n\\t[bold]\n"


@pytest.mark.parametrize("command", [["show"], ["predict", "rows.csv"], ["review"], ["report"]])
def test_a_folder_without_a_run_is_told(command: list[str], tmp_path: Path, capsys: Capture) -> None:
    assert "must hold a finished run; got no run.json" in refused(capsys, command[0], tmp_path, *command[1:])


def stopped(folder: Path, run: Path) -> None:
    """Leave an unfinished run, as a kill before the first checkpoint does."""
    assert trained(folder, "--rounds", "2", "-o", run) == 0
    record = record_of(run)
    job = {key: record[key] for key in ("format", "options", "inputs", "versions", "started")}
    (run / ".work").mkdir()
    (run / ".work" / "job.json").write_text(json.dumps(job))


def test_resume_refuses_other_options_and_changed_files(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    run = tmp_path / "run"
    stopped(folder, run)
    assert labelonce("train", "--resume", "--seed", "7", "-o", run) == 2
    assert f"--seed must be 0, as when the run in {run} began; got 7" in capsys.readouterr().err
    job = json.loads((run / ".work" / "job.json").read_text())
    job["inputs"]["labels"]["sha256"] = "0"
    (run / ".work" / "job.json").write_text(json.dumps(job))
    assert "its content has changed. Train again without resuming" in refused(capsys, "train", "--resume", "-o", run)
    assert (run / ".work").exists()


def test_the_second_of_two_runs_says_nothing_of_starting_over(folder: Path, capsys: Capture) -> None:
    (folder / "run" / ".work").mkdir(parents=True)
    (folder / "run" / ".work" / "job.json").write_text("{}")
    with runs.RunFolder(folder / "run").locked():
        assert trained(folder, "--rounds", "1", "-o", folder / "run") == 2
    said = capsys.readouterr().err
    assert ("another labelonce train is at work there" in said, "starting over" in said) == (True, False)


def test_without_jinja2_a_run_is_complete_and_says_what_is_missing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    _write._template.cache_clear()
    files = [folder / "labels.csv", "--features", folder / "features.csv"]
    assert labelonce("train", *files, "--rounds", "1", "-o", tmp_path / "run") == 0
    assert "report.html was not written: the report needs Jinja2" in capsys.readouterr().err
    assert (tmp_path / "run" / "run.json").exists()
