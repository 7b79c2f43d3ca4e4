"""The command line as a person runs it: output, files, exit codes."""

import json
import sys
from pathlib import Path

import pytest
from commands import Capture, Patch, json_of, labelonce_cli, output_of, refused, run
from small_files import written

import labelonce
from labelonce import read_annotations
from labelonce._kernels import _engine
from labelonce.aggregation._registry import COMMANDS
from labelonce.cli._aggregate import _aggregator


@pytest.fixture(scope="module")
def labels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "labels.csv"
    crowd = ["--tasks", "60", "--workers", "8", "--classes", "3", "--redundancy", "4"]
    done = labelonce_cli("simulate", "-o", path, *crowd)
    assert done.returncode == 0, done.stderr
    return path


def test_simulate_writes_what_was_asked_for_and_aggregate_pipes_csv(labels: Path) -> None:
    ann = read_annotations(labels)
    assert (len(ann), ann.n_tasks, ann.redundancy) == (240, 60, 4.0)
    done = labelonce_cli("aggregate", labels)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 61)
    assert "240 annotations" in done.stderr


def test_simulate_with_a_seed_is_repeatable(tmp_path: Path, capsys: Capture) -> None:
    files = [tmp_path / name for name in ("a.csv", "b.csv", "c.csv")]
    for path, seed in zip(files, ("1", "1", "2"), strict=True):
        run("simulate", "-o", path, "--seed", seed)
    first, again, other = (path.read_bytes() for path in files)
    assert first == again != other
    assert "1,000 annotations" in capsys.readouterr().err


@pytest.mark.parametrize("method", COMMANDS.values())
def test_aggregate_writes_a_row_a_task(method: str, labels: Path, tmp_path: Path) -> None:
    output, workers = tmp_path / "clean.csv", tmp_path / "workers.csv"
    arguments = ["aggregate", str(labels), "--method", method, "-o", str(output), "--workers", str(workers)]
    assert run(*arguments) == 0
    header, *rows = output.read_text().splitlines()
    assert header.replace('"', "") == "task,label,confidence,posterior_0,posterior_1,posterior_2"
    assert len(rows) == 60
    assert len(workers.read_text().splitlines()) == 9


def test_aggregate_says_how_many_labels_are_right(labels: Path, capfd: Capture) -> None:
    right = labelonce.OneCoin().fit(read_annotations(labels)).estimated_accuracy_
    found = json_of(capfd, "aggregate", labels, "--method", "one-coin")["estimated_accuracy"]
    assert found == pytest.approx(vars(right))
    assert run("aggregate", labels, "--method", "one-coin", "-o", labels.parent / "clean.csv") == 0
    assert f": {right.value:.1%} of the labels are right, by estimate" in capfd.readouterr().err


def test_aggregate_takes_other_column_names_and_notes_one_label_per_task(tmp_path: Path, capfd: Capture) -> None:
    path = written(tmp_path / "answers.tsv", "item\twho\tanswer\n1\ta\tyes\n1\tb\tyes\n2\ta\tno\n2\tb\tno\n")
    columns = ["--task-column", "item", "--worker-column", "who", "--label-column", "answer"]
    assert "yes" in output_of(capfd, "aggregate", path, *columns)
    path = written(tmp_path / "labels.csv", "task,worker,label\n1,a,x\n2,a,y\n3,b,x\n")
    assert run("aggregate", path) == 0
    error = capfd.readouterr().err
    assert "note: DawidSkene" in error
    assert "0 of 3 tasks" in error


def species(tmp_path: Path) -> Path:
    """Return a file of labels that are paths, three per task."""
    names = ["dog/beagle", "dog/poodle", "cat/tabby", "cat/siamese"]
    rows = [f"{task},w{worker},{names[(task % 4) ^ (worker == task % 3)]}" for task in range(40) for worker in range(3)]
    return written(tmp_path / "species.csv", "task,worker,label\n" + "\n".join(rows) + "\n")


@pytest.mark.parametrize("groups", ["taxonomy", "auto", "genera.csv"])
def test_aggregate_takes_groups_of_classes(groups: str, tmp_path: Path, capfd: Capture) -> None:
    labels, output = species(tmp_path), tmp_path / "clean.csv"
    rows = "dog/beagle,dog\ndog/poodle,dog\ncat/tabby,cat\ncat/siamese,cat\nbird/robin,bird\n"
    (tmp_path / "genera.csv").write_text(f"class,group\n{rows}")
    named = str(tmp_path / groups) if groups.endswith("csv") else groups
    assert run("aggregate", labels, "--groups", named, "-o", output) == 0
    assert output.read_text().splitlines()[0].replace('"', "").startswith("task,label,confidence,class_1,")
    said = "1 of 5 classes are left out, because nobody gave them, such as 'bird/robin'"
    assert (said in capfd.readouterr().err) == (groups == "genera.csv")


@pytest.mark.parametrize(
    ("table", "options", "sentence"),
    [
        ("class,group\ndog/beagle,dog\n", [], "groups.csv: every class must have a group; got none for"),
        ("class,group\ndog/beagle,a\ndog/beagle,b\n", [], "in one group; got 'dog/beagle' in 'a' and 'b'"),
        (
            "class,genus\ndog/beagle,a\n",
            [],
            "the group column must be one of ['class', 'genus']; got 'group'. Rename it in the file.",
        ),
        ("a,b\n1,2\n", [], "must be among ['a', 'b']; got 'class' and 'group'. Rename them in the file."),
        ("class,group\n", ["--method", "wawa"], "--groups must go with --method dawid-skene; got wawa"),
    ],
)
def test_groups_that_are_no_groups_are_one_sentence(
    table: str, options: list[str], sentence: str, tmp_path: Path, capfd: Capture
) -> None:
    (tmp_path / "groups.csv").write_text(table)
    arguments = ["aggregate", str(species(tmp_path)), "--groups", str(tmp_path / "groups.csv"), *options]
    assert sentence in refused(capfd, *arguments)


def test_a_format_without_a_file_and_groups_as_output_are_refused(tmp_path: Path, capfd: Capture) -> None:
    assert run("aggregate", species(tmp_path), "--output-format", "label-studio") == 2
    assert "--output-format must go with --output; got label-studio and no file" in capfd.readouterr().err
    groups = written(tmp_path / "groups.csv", "class,group\ndog/beagle,dog\n")
    assert run("aggregate", species(tmp_path), "--groups", groups, "-o", groups) == 2
    assert "--output must not be a file that is read" in capfd.readouterr().err
    assert groups.read_text() == "class,group\ndog/beagle,dog\n"


def test_an_unknown_method_device_or_extra_is_refused(capsys: Capture, labels: Path, monkeypatch: Patch) -> None:
    assert "magic" in refused(capsys, "aggregate", "x.csv", "--method", "magic")
    error = refused(capsys, "aggregate", labels, "--method", "wawa", "--device", "cpu")
    assert "--device must go with --method dawid-skene, one-coin, ibcc" in error
    assert "got wawa" in error
    monkeypatch.setattr(_engine, "find_spec", lambda _: None)
    last = refused(capsys, "aggregate", labels, "--method", "dawid-skene", "--device", "cuda").strip().splitlines()[-1]
    assert last.startswith("labelonce: device='cuda' needs PyTorch; install it with: pip install 'labelonce[neural]'")


def test_version_is_printed() -> None:
    assert labelonce_cli("--version").stdout == f"labelonce {labelonce.__version__}\n"


@pytest.mark.parametrize(
    "command", ["aggregate", "check", "compare", "simulate", "demo", "train", "predict", "show", "next", "plan"]
)
def test_help_teaches_by_example(command: str) -> None:
    assert f"labelonce {command}" in labelonce_cli(command, "--help").stdout


@pytest.mark.slow
def test_demo_trains_a_model_and_shows_what_mbem_won(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    done = labelonce_cli("demo", "-o", folder)
    assert done.returncode == 0, done.stderr
    rows = {line.split("\t")[0]: line.split("\t")[1:] for line in done.stdout.splitlines() if "\t" in line}
    ours, vote = rows["labelonce's MBEM"], rows["majority vote, then train"]
    assert float(ours[0]) > float(rows["oracle: true confusion matrices"][0])
    assert ours[1] == f"{float(ours[0]) - float(vote[0]):+.1f}"
    assert abs(float(rows["Dawid-Skene (EM), then train"][1])) < 5  # at one label per task EM is the vote, not worse
    assert "10 of the 10 workers that it ranks highest" in done.stdout
    assert (folder / "run" / "report.html").as_uri() in done.stdout
    assert "<h1>Handwritten digits" in (folder / "run" / "report.html").read_text()
    commands = [line.split() for line in done.stdout.splitlines() if line.startswith("  labelonce ")]
    assert [command[1] for command in commands] == ["show", "review", "predict", "train"]
    assert run(*commands[0][1:]) == 0
    for command, name in ((commands[1], "recheck.csv"), (commands[2], "predicted.csv")):
        output = command.index("-o")
        assert run(*command[1:output], "-o", tmp_path / name) == 0
    assert (tmp_path / "recheck.csv").exists()
    assert len((tmp_path / "predicted.csv").read_text().splitlines()) == 501


def test_demo_leaves_other_peoples_folders_and_files_alone(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "labels.csv").write_text("mine")
    done = labelonce_cli("demo", "-o", tmp_path)
    assert done.returncode == 2
    assert "labels.csv" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["labels.csv"]
    (tmp_path / "thesis.doc").write_text("mine")
    assert "thesis.doc must be a folder; got a file." in refused(capsys, "demo", "-o", tmp_path / "thesis.doc")
    assert (tmp_path / "thesis.doc").read_text() == "mine"


def test_compare_prints_every_method_and_recommends_one(labels: Path, tmp_path: Path) -> None:
    gold, output = tmp_path / "gold.csv", tmp_path / "methods.csv"
    again = ["simulate", "-o", str(tmp_path / "again.csv"), "--gold", str(gold), "--tasks", "60", "--workers", "8"]
    assert run(*again, "--classes", "3", "--redundancy", "4") == 0
    done = labelonce_cli("compare", labels, "--gold", gold, "-o", output)
    assert done.returncode == 0, done.stderr
    header, *rows = output.read_text().replace('"', "").splitlines()
    assert header.startswith("method,agreement,held_out,held_out_error,seconds,accuracy,log_loss")
    assert all(row.split(",")[0] in done.stdout for row in rows)
    assert f"Take {rows[0].split(',')[0]}: " in done.stdout.replace("\n", " ")


def test_compare_as_json_is_one_object_on_stdout(tmp_path: Path, capsys: Capture) -> None:
    path, gold = tmp_path / "answers.tsv", tmp_path / "gold.csv"
    rows = [f"{task}\t{who}\t{'yes' if task % 2 else 'no'}\n" for task in range(9) for who in "abc"]
    path.write_text("item\twho\tanswer\n" + "".join(rows))
    gold.write_text("item,answer\n1,yes\n")
    columns = ["--task-column", "item", "--worker-column", "who", "--label-column", "answer"]
    assert run("compare", path, *columns, "--gold", gold, "--json") == 0
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    assert found["recommended"] == found["methods"][0]["method"]
    assert {row["method"] for row in found["methods"]} == set(COMMANDS)
    assert found["methods"][0]["accuracy"] == 1.0
    assert shown.err == ""


def test_compare_reads_the_exports_of_tools(capsys: Capture) -> None:
    export = Path(__file__).parents[1] / "formats" / "samples" / "label-studio.json"
    assert "\nTake " in output_of(capsys, "compare", export, "--label-column", "stars", "--rejected", "drop")


def test_unknown_columns_and_tasks_of_gold_are_named_at_once(labels: Path, tmp_path: Path, capsys: Capture) -> None:
    gold = written(tmp_path / "gold.csv", "task,label\n9999,0\n")
    error = refused(capsys, "compare", labels, "--gold", gold)
    assert "got 9999" in error
    assert error.count("\n") == 1
    labels = written(tmp_path / "labels.csv", "item,who,label\n1,a,x\n")
    error = refused(capsys, "aggregate", labels)
    assert "the task and worker columns must be among ['item', 'who', 'label']; got 'task' and 'worker'." in error
    assert "Name them with --task-column item, --worker-column who" in error


def test_the_device_is_that_of_the_method(labels: Path, capsys: Capture) -> None:
    options = _aggregator("ibcc", "cuda", 3).get_params()
    assert (options["device"], options["random_state"]) == ("cuda", 3)
    assert run("aggregate", labels, "--method", "ibcc", "--device", "cpu", "--json") == 0
    assert json.loads(capsys.readouterr().out)["labels"]


def test_ids_cannot_draw_on_the_terminal_but_pass_a_pipe_unchanged(
    tmp_path: Path, monkeypatch: Patch, capfd: Capture
) -> None:
    path = tmp_path / "labels\x1b[2J.csv"
    path.write_text("task,worker,label\n" + "".join(f"\x1b[31m{i},{who},l{i % 2}\n" for i in range(4) for who in "ab"))
    assert output_of(capfd, "aggregate", path).count("\x1b[31m") == 4
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for arguments in (["aggregate", str(path)], ["check", str(path)], ["aggregate", str(path) + "x"]):
        run(*arguments)
        shown = "".join(capfd.readouterr())
        assert "\x1b" not in shown
        assert "\\x1b" in shown


def test_compare_recommends_nothing_where_no_task_is_labelled_twice(tmp_path: Path, capfd: Capture) -> None:
    path = tmp_path / "labels.csv"
    rows = [f"{i},w{i % 5},{'ab'[i % 3 % 2]}" for i in range(60)]
    path.write_text("\n".join(["task,worker,label", *rows]))
    assert run("compare", path) == 0
    shown = capfd.readouterr()
    assert "Take none: no task is labelled twice" in shown.out
    assert shown.err.count("redundancy 1), so nothing was learned") == 1
    assert json_of(capfd, "compare", path)["recommended"] is None


def test_gold_settles_its_tasks_in_aggregate(tmp_path: Path, capsys: Capture) -> None:
    labels, gold = tmp_path / "labels.csv", tmp_path / "gold.csv"
    labels.write_text("task,worker,label\n1,a,x\n1,b,x\n2,a,x\n2,b,y\n3,a,y\n3,b,y\n")
    gold.write_text("task,label\n1,y\n")
    assert json_of(capsys, "aggregate", labels, "--gold", gold)["labels"][0]["label"] == "y"
    gold.write_text("task,label\n1,bird\n")
    assert run("aggregate", labels, "--gold", gold) == 2
    assert f"labelonce: {gold}: gold must be among ['x', 'y']; got 'bird'" in capsys.readouterr().err
