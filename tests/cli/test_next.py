"""`labelonce next`: who should label what, as a file."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from commands import run

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


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_it_writes_pairs_that_are_not_labelled_yet_and_leaves_the_spammer_out(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    labels, features = files
    output = tmp_path / "assignments.csv"
    assert run("next", labels, "--features", features, "-n", "20", "-o", output) == 0
    done = {(row["task"], row["worker"]) for row in rows_of(labels)}
    asked = {(row["task"], row["worker"]) for row in rows_of(output)}
    assert len(asked) == 20
    assert not asked & done
    assert {worker for _, worker in asked} == {"ann", "bob"}


def test_without_features_it_works_on_the_labels_alone(
    files: tuple[Path, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    labels, _ = files
    text = labels.read_text().splitlines()
    labels.write_text("\n".join([*text[:-3], text[-1]]) + "\n")  # the last task has a label of the spammer alone
    assert run("next", labels, "-n", "5", "--json") == 0
    found = json.loads(capfd.readouterr().out)
    assert {pair["task"] for pair in found["next"]} == {"t59"}
    assert found["workers_asked"] == 1


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
        ("a", "got 'a' at row 2 (text). Leave it out with --ignore x2. Texts must be"),
    ],
)
def test_what_is_wrong_with_features_is_said_without_options_of_other_commands(
    cell: str, fix: str, files: tuple[Path, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    labels, features = files
    head, first, *rest = features.read_text().splitlines()
    features.write_text("\n".join([head, f"{first.rpartition(',')[0]},{cell}", *rest]))
    assert run("next", labels, "--features", features) == 2
    assert fix in capfd.readouterr().err


def test_it_does_not_write_over_what_it_reads(files: tuple[Path, Path], capfd: pytest.CaptureFixture[str]) -> None:
    labels, _ = files
    assert run("next", labels, "-o", labels) == 2
    assert "--output must not be a file that is read" in capfd.readouterr().err
