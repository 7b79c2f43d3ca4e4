"""`labelonce next`: who should label what, as a file."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from commands import Capture, json_of, refused, run
from small_files import rows_of

import labelonce as lo
from labelonce._types import STRATEGIES
from labelonce.routing import _strategies

N_TASKS = 80


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Labels of the first sixty tasks by two careful workers and a spammer, and features of all."""
    rng = np.random.default_rng(0)
    y = np.arange(N_TASKS) % 2
    features, labels = tmp_path / "features.csv", tmp_path / "labels.csv"
    rows = [f"t{task},{value:.4f},{rng.normal():.4f}" for task, value in enumerate(y + 0.2 * rng.normal(size=N_TASKS))]
    features.write_text("\n".join(["task,x1,x2", *rows]) + "\n")
    lines = ["task,worker,label"]
    for task in range(60):
        for worker in ("ann", "bob"):
            lines.append(f"t{task},{worker},{'yes' if y[task] else 'no'}")
        lines.append(f"t{task},spam,{'yes' if rng.random() < 0.5 else 'no'}")
    labels.write_text("\n".join(lines) + "\n")
    return labels, features


def test_it_writes_pairs_not_labelled_yet_and_leaves_the_spammer_out(files: tuple[Path, Path], tmp_path: Path) -> None:
    labels, features = files
    output = tmp_path / "assignments.csv"
    assert run("next", labels, "--features", features, "-n", "20", "-o", output) == 0
    done = {(row["task"], row["worker"]) for row in rows_of(labels)}
    asked = {(row["task"], row["worker"]) for row in rows_of(output)}
    assert len(asked) == 20
    assert not asked & done
    assert {worker for _, worker in asked} == {"ann", "bob"}


def test_without_features_it_works_on_the_labels_alone(files: tuple[Path, Path], capfd: Capture) -> None:
    labels, _ = files
    text = labels.read_text().splitlines()
    labels.write_text("\n".join([*text[:-3], text[-1]]) + "\n")  # the last task has a label of the spammer alone
    found = json_of(capfd, "next", labels, "-n", "5")
    assert {pair["task"] for pair in found["next"]} == {"t59"}
    assert found["workers_asked"] == 1
    assert "--output must not be a file that is read" in refused(capfd, "next", labels, "-o", labels)


def test_the_options_of_the_command_line_are_the_strategies() -> None:
    assert set(STRATEGIES) == set(_strategies.STRATEGIES)


def test_each_and_max_labels_are_kept(files: tuple[Path, Path], tmp_path: Path) -> None:
    labels, features = files
    output = tmp_path / "assignments.csv"
    command = ["next", str(labels), "--features", str(features), "--each", "3", "--max-labels", "3", "-o", str(output)]
    assert run(*command) == 0
    found = rows_of(output)
    assert max([row["worker"] for row in found].count(worker) for worker in ("ann", "bob")) == 3
    assert {int(row["task"][1:]) for row in found} <= set(range(60, 80))


@pytest.mark.parametrize(
    ("cell", "fix"),
    [
        ("", "(1 in total). Fill them in.\n"),
        ("a", "got 'a' at row 2 (text). Leave it out with --ignore x2. For texts, train with --text x2."),
    ],
)
def test_what_is_wrong_with_features_is_said_without_options_of_other_commands(
    cell: str, fix: str, files: tuple[Path, Path], capfd: Capture
) -> None:
    labels, features = files
    head, first, *rest = features.read_text().splitlines()
    features.write_text("\n".join([head, f"{first.rpartition(',')[0]},{cell}", *rest]))
    assert fix in refused(capfd, "next", labels, "--features", features)


def test_it_writes_the_input_file_of_a_tool_with_what_the_tool_shows(tmp_path: Path, capsys: Capture) -> None:
    rng = np.random.default_rng(0)
    header = ["HITId", "WorkerId", "AssignmentStatus", "Input.url", "Input.caption", "Answer.kind"]
    rows = []
    for task in range(40):
        for worker in rng.permutation(["ann", "bob", "eve"])[:2].tolist():
            label = ("cat", "dog")[(task + (rng.random() < 0.2)) % 2]
            rows.append([f"h{task}", worker, "Approved", f"{task}.jpg", f"a, b {task}", label])
    batch, out = tmp_path / "Batch_1.csv", tmp_path / "next.csv"
    with batch.open("w") as file:
        csv.writer(file).writerows([header, *rows])
    assert run("next", str(batch), "-n", "6", "--for", "mturk", "-o", str(out)) == 0
    found = rows_of(out)
    assert list(found[0]) == ["url", "caption", "worker"]
    assert len(found) == 6
    asked = {(row["url"], row["worker"]) for row in found}
    assert not asked & {(row[3], row[1]) for row in rows}
    assert all(row["caption"] == f"a, b {row['url'].removesuffix('.jpg')}" for row in found)
    assert "publish a batch for each worker" in capsys.readouterr().err
    for target, first in (("toloka", "INPUT:url\tINPUT:caption"), ("label-studio", "[")):
        assert run("next", str(batch), "-n", "6", "--for", target, "-o", str(out)) == 0
        assert out.read_text().splitlines()[0] == first
    task = json.loads(out.read_text())[0]
    assert set(task["data"]) == {"task", "url", "caption"}
    assert set(task["meta"]["workers"]) <= {"ann", "bob", "eve"}


def test_tasks_whose_inputs_nobody_knows_are_an_error_that_names_the_option(
    files: tuple[Path, Path], tmp_path: Path, capsys: Capture
) -> None:
    labels, features = files
    text = labels.read_text().splitlines()
    labels.write_text("\n".join([*text[:-3], text[-1]]) + "\n")  # the last task has a label of the spammer alone
    out = tmp_path / "next.csv"
    assert "--tasks tasks.csv" in refused(capsys, "next", str(labels), "-n", "3", "--for", "mturk", "-o", str(out))
    assert not out.exists()
    given = ["--for", "mturk", "--tasks", str(features), "-o", str(out)]
    assert run("next", str(labels), "-n", "3", *given) == 0
    assert list(rows_of(out)[0]) == ["task", "x1", "x2", "worker"]


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with labels of 240 tasks, one each, weak features, and a run on them."""
    folder = tmp_path_factory.mktemp("once")
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 240)
    X = rng.normal(size=(240, 5))
    X[:, :3] += 1.2 * np.eye(3)[y]
    crowd = lo.simulate.one_coin([0.9] * 6, 3)
    lo.write(lo.simulate.annotate(y, crowd, lo.simulate.assign(240, 6, 1, rng), rng), folder / "labels.csv")
    lo.write(pa.table({"task": np.arange(240)} | {f"x{j}": X[:, j] for j in range(5)}), folder / "features.csv")
    assert run("train", folder / "labels.csv", "--features", folder / "features.csv", "-o", folder / "run") == 0
    return folder


def test_next_says_the_number_of_train_for_files_and_for_the_run(once: Path, capfd: Capture) -> None:
    said = json.loads((once / "run" / "run.json").read_text())["result"]["estimated_accuracy"]
    of_files = ("next", once / "labels.csv", "--features", once / "features.csv")
    found = []
    for command in (of_files, ("next", once / "run")):
        found.append(json_of(capfd, *command, "-n", "120"))
    assert found[0] == found[1]
    assert found[0]["estimated_accuracy"] == {name: said[name] for name in ("value", "low", "high")}
    assert said["narrowing"].startswith(f"{found[0]['second_labels']} second labels would narrow")


def test_second_labels_of_random_tasks_come_first_where_they_narrow_the_range(once: Path, capfd: Capture) -> None:
    done = [(row["task"], row["worker"]) for row in rows_of(once / "labels.csv")]
    output = once / "next.csv"
    assert run("next", once / "run", "-n", "60", "--each", "15", "-o", output) == 0
    asked = [(row["task"], row["worker"]) for row in rows_of(output)]
    assert len({task for task, _ in asked}) == 60
    assert not set(asked) & set(done)
    assert {worker for _, worker in asked} == {worker for _, worker in done}
    err = capfd.readouterr().err
    assert "60 of them are second labels of random tasks" in err
    assert "(--overlap 0 leaves them out)" in err
    assert run("next", once / "run", "-n", "60", "--overlap", "0", "-o", output) == 0
    assert "second labels of random tasks" not in capfd.readouterr().err


def test_second_labels_need_no_features_nor_what_a_run_knows(once: Path, capfd: Capture) -> None:
    assert json_of(capfd, "next", once / "labels.csv", "-n", "50")["second_labels"] == 40
    assert run("next", once / "run", "--features", once / "features.csv") == 2
    assert "--features must be left out with a run folder" in capfd.readouterr().err
