"""A run killed by SIGKILL at any moment: the earlier result stays, and resuming ends with the same numbers."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from commands import refused
from commands import run as labelonce
from crowds import crowd_with_features

import labelonce as lo
from labelonce.runs import Options, _train, resume, train
from labelonce.runs._folder import commit, located, settle
from labelonce.workers import Counted

RESULT = ["labels.parquet", "model.skops", "run.json", "workers.parquet"]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("inputs")
    X, ann, *_ = crowd_with_features(80)
    lo.write(ann, folder / "labels.csv")
    columns = {"task": np.arange(80)} | {f"x{place}": X[:, place] for place in range(3)}
    lo.write(pa.table(columns), folder / "features.csv")
    return folder / "labels.csv", folder / "features.csv"


@pytest.mark.slow
def test_killed_before_any_change_it_keeps_the_old_or_holds_the_new(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    script = Path(__file__).with_name("kill_and_resume.py")
    command = [sys.executable, str(script), *map(str, inputs), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert [line["killed"] for line in lines] == [-signal.SIGKILL] * (len(lines) - 1) + [0]
    assert len(lines) > 15
    assert all(line["intact"] and line["ended"] == 0 and all(line["same"]) for line in lines), done.stdout
    assert all([name for name in line["files"] if name != "report.html"] == RESULT for line in lines), done.stdout
    rounds = [line["rounds"] for line in lines]
    assert rounds == sorted(rounds)  # the old result until one moment, the new one from then on
    assert set(rounds) == {1, 2}


@pytest.mark.slow
def test_the_command_killed_in_the_middle_resumes(
    inputs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    labels, features = inputs
    run, whole = tmp_path / "run", tmp_path / "whole"
    train = ["train", str(labels), "--features", str(features), "--model", "boost", "--rounds", "3"]
    assert labelonce(*train, "-o", whole) == 0
    code = "from labelonce.cli import main; main()"
    process = subprocess.Popen([sys.executable, "-c", code, *train, "-o", str(run)], stderr=subprocess.DEVNULL)
    while not (run / ".work" / "checkpoint.skops").exists() and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert f"labelonce train --resume -o {run}" in refused(capsys, "show", run)
    monkeypatch.delattr(lo.MBEM, "_settle")  # the choice was made before the kill
    assert labelonce("train", "--resume", "-o", run) == 0
    for name in ("labels.parquet", "workers.parquet"):
        assert (run / name).read_bytes() == (whole / name).read_bytes()
    new, again = (json.loads((folder / "run.json").read_text()) for folder in (run, whole))
    assert new["rounds"] == again["rounds"]
    assert not (run / ".work").exists()


@pytest.mark.parametrize("stop", [0, 1, 2, 3])
def test_a_stopped_run_ends_with_the_warnings_of_one_that_was_not(
    stop: int, inputs: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hasty(options: Options, inputs: object) -> lo.MBEM:  # noqa: ARG001
        learners = [lo.SoftmaxRegression(C=C, max_iter=2) for C in (0.1, 1.0)]  # each fit warns with its own number
        fixed: dict[str, Any] = {"worker_model": Counted()}
        return lo.MBEM(learners, rounds=options.rounds, random_state=0, **fixed)

    def stopping(stage: str, done: int, total: int) -> None:  # noqa: ARG001
        if (stage, done) == ("round", stop):
            raise KeyboardInterrupt

    monkeypatch.setattr(_train, "_estimator", hasty)
    options = Options(str(inputs[0]), str(inputs[1]), rounds=3)
    whole = train(options, tmp_path / "whole")
    assert len(whole.warnings) > 3
    with pytest.raises(KeyboardInterrupt):
        train(options, tmp_path / "run", progress=stopping)
    assert resume(tmp_path / "run").warnings == whole.warnings


NAMES = ("a", "b", "c")


def fill(folder: Path, names: str, content: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text(content)
    return folder


def seen(folder: Path) -> dict[str, str]:
    return {name: located(folder, name).read_text() for name in NAMES if located(folder, name).exists()}


class Stop(Exception):
    """Stands for a kill."""


def stop_at(patch: pytest.MonkeyPatch, moment: int) -> list[str]:
    """Let the moment-th change of the file system fail, and all after it, as if the process were gone."""
    calls: list[str] = []
    for name in ("replace", "rename", "unlink", "rmdir"):
        real = getattr(os, name)

        def change(*args: Any, _real: Any = real, _name: str = name, **options: Any) -> Any:
            calls.append(_name)
            if len(calls) > moment:
                raise Stop
            return _real(*args, **options)

        patch.setattr(os, name, change)
    return calls


@pytest.mark.parametrize("moment", range(12))
def test_a_commit_is_all_or_nothing_wherever_it_stops(moment: int, tmp_path: Path) -> None:
    folder, staged = fill(tmp_path / "run", "abc", "old"), fill(tmp_path / "staged", "ab", "new")
    with pytest.MonkeyPatch.context() as patch:
        calls = stop_at(patch, moment)
        with suppress(Stop):
            commit(staged, folder, NAMES)
    if "rename" not in calls[:moment]:
        assert seen(folder) == dict.fromkeys("abc", "old")
        return
    assert {name: seen(folder)[name] for name in "ab"} == {"a": "new", "b": "new"}
    settle(folder, NAMES)
    assert seen(folder) == {"a": "new", "b": "new"}
    assert sorted(entry.name for entry in folder.iterdir()) == ["a", "b"]


def test_a_whole_commit_leaves_only_the_new_files(tmp_path: Path) -> None:
    folder, staged = fill(tmp_path / "run", "abc", "old"), fill(tmp_path / "staged", "ab", "new")
    commit(staged, folder, NAMES)
    assert sorted(entry.name for entry in folder.iterdir()) == ["a", "b"]
    assert not staged.exists()
