"""The command line as a person runs it: output, files, exit codes."""

from pathlib import Path

import pytest
from commands import labelonce_cli, run_in_process

import labelonce
from labelonce import read_annotations
from labelonce.aggregation._compare import aggregators
from labelonce.cli._aggregate import AGGREGATORS
from labelonce.cli._app import Method


@pytest.fixture(scope="module")
def labels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "labels.csv"
    done = labelonce_cli(
        "simulate", "-o", path, "--tasks", "60", "--workers", "8", "--classes", "3", "--redundancy", "4"
    )
    assert done.returncode == 0, done.stderr
    return path


def test_simulate_writes_what_was_asked_for(labels: Path) -> None:
    ann = read_annotations(labels)
    assert (len(ann), ann.n_tasks, ann.redundancy) == (240, 60, 4.0)


def test_simulate_with_a_seed_is_repeatable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / name for name in ("a.csv", "b.csv", "c.csv")]
    for path, seed in zip(files, ("1", "1", "2"), strict=True):
        run_in_process(["simulate", "-o", str(path), "--seed", seed])
    first, again, other = (path.read_bytes() for path in files)
    assert first == again != other
    assert "1,000 annotations" in capsys.readouterr().err


def test_every_aggregator_has_a_name_on_the_command_line() -> None:
    assert {kind.__name__ for kind in AGGREGATORS.values()} == set(aggregators())
    assert list(AGGREGATORS) == [method.value for method in Method]


@pytest.mark.parametrize("method", AGGREGATORS)
def test_aggregate_writes_a_row_a_task(method: str, labels: Path, tmp_path: Path) -> None:
    output, workers = tmp_path / "clean.csv", tmp_path / "workers.csv"
    arguments = ["aggregate", str(labels), "--method", method, "-o", str(output), "--workers", str(workers)]
    assert run_in_process(arguments) == 0
    header, *rows = output.read_text().splitlines()
    assert header.replace('"', "") == "task,label,confidence,posterior_0,posterior_1,posterior_2"
    assert len(rows) == 60
    assert len(workers.read_text().splitlines()) == 9


def test_aggregate_without_output_pipes_csv(labels: Path) -> None:
    done = labelonce_cli("aggregate", labels)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 61)
    assert "240 annotations" in done.stderr


def test_aggregate_takes_other_column_names(tmp_path: Path) -> None:
    path = tmp_path / "answers.tsv"
    path.write_text("item\twho\tanswer\n1\ta\tyes\n1\tb\tyes\n2\ta\tno\n2\tb\tno\n")
    columns = ["--task-column", "item", "--worker-column", "who", "--label-column", "answer"]
    assert "yes" in labelonce_cli("aggregate", path, *columns).stdout


def test_one_label_per_task_is_noted_on_stderr(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("task,worker,label\n1,a,x\n2,a,y\n3,b,x\n")
    done = labelonce_cli("aggregate", path)
    assert done.returncode == 0
    assert "note: DawidSkene" in done.stderr
    assert "0 of 3 tasks" in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,worker,label\n1,a,x\n1,a,y\n", "worker 'a' on task 1 again"),
        ("task,worker\n1,a\n", "got 'label'"),
        ("task,worker,label\n1,a,\n", "missing value at row 0"),
        ("task,worker,label\n", "at least one row; got 0"),
    ],
)
def test_bad_input_is_one_sentence_exit_code_2_and_no_file(text: str, message: str, tmp_path: Path) -> None:
    path, output = tmp_path / "labels.csv", tmp_path / "out.csv"
    path.write_text(text)
    done = labelonce_cli("aggregate", path, "-o", output)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not output.exists()


def test_a_missing_file_is_named() -> None:
    done = labelonce_cli("aggregate", "no-such-file.csv")
    assert done.returncode == 2
    assert "no-such-file.csv" in done.stderr


def test_an_unknown_method_is_a_usage_error() -> None:
    done = labelonce_cli("aggregate", "x.csv", "--method", "magic")
    assert done.returncode == 2
    assert "magic" in done.stderr


def test_version_is_printed() -> None:
    assert labelonce_cli("--version").stdout == f"labelonce {labelonce.__version__}\n"


@pytest.mark.parametrize("command", ["aggregate", "check", "compare", "simulate", "demo", "train", "predict", "show"])
def test_help_teaches_by_example(command: str) -> None:
    assert f"labelonce {command}" in labelonce_cli(command, "--help").stdout


def test_demo_trains_a_model_and_shows_what_mbem_won(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    done = labelonce_cli("demo", "-o", folder)
    assert done.returncode == 0, done.stderr
    rows = {line.split("\t")[0]: line.split("\t")[1:] for line in done.stdout.splitlines() if "\t" in line}
    ours, vote = rows["MBEM, our default"], rows["majority vote, then train"]
    assert float(ours[0]) > float(rows["oracle: true confusion matrices"][0])
    assert ours[1] == f"{float(ours[0]) - float(vote[0]):+.1f}"
    assert "10 of its 10 best workers" in done.stdout
    assert (folder / "run" / "report.html").as_uri() in done.stdout
    assert "<h1>Handwritten digits" in (folder / "run" / "report.html").read_text()
    commands = [line.split() for line in done.stdout.splitlines() if line.startswith("  labelonce ")]
    assert [command[1] for command in commands] == ["show", "predict", "train"]
    assert run_in_process(commands[0][1:]) == 0
    assert run_in_process([*commands[1][1:-1], str(tmp_path / "predicted.csv")]) == 0
    assert len((tmp_path / "predicted.csv").read_text().splitlines()) == 501


def test_demo_leaves_other_peoples_folders_alone(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("mine")
    done = labelonce_cli("demo", "-o", tmp_path)
    assert done.returncode == 2
    assert "labels.csv" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["labels.csv"]


def test_compare_prints_every_method_and_recommends_one(labels: Path, tmp_path: Path) -> None:
    gold, output = tmp_path / "gold.csv", tmp_path / "methods.csv"
    again = ["simulate", "-o", str(tmp_path / "again.csv"), "--gold", str(gold), "--tasks", "60", "--workers", "8"]
    assert run_in_process([*again, "--classes", "3", "--redundancy", "4"]) == 0
    done = labelonce_cli("compare", labels, "--gold", gold, "-o", output)
    assert done.returncode == 0, done.stderr
    header, *rows = output.read_text().replace('"', "").splitlines()
    assert header.startswith("method,agreement,held_out,held_out_error,seconds,accuracy,log_loss")
    assert all(row.split(",")[0] in done.stdout for row in rows)
    assert f"Take {rows[0].split(',')[0]}: " in done.stdout.replace("\n", " ")


def test_gold_of_an_unknown_task_is_one_sentence(labels: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold.csv"
    gold.write_text("task,label\n9999,0\n")
    done = labelonce_cli("compare", labels, "--gold", gold)
    assert done.returncode == 2
    assert "got 9999" in done.stderr
    assert "Traceback" not in done.stderr
