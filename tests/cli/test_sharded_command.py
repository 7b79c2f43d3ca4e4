"""`labelonce sharded`: prepare and fit from the shell, alone and under torchrun."""

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Capture, Patch, refused, run
from crowds import crowd
from numpy.testing import assert_allclose

from labelonce import sharded, write
from labelonce.aggregation._registry import COMMANDS, aggregators
from labelonce.cli._sharded import Streamed

pytest.importorskip("torch")
pytestmark = pytest.mark.neural


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    write(crowd()[0], tmp_path / "labels.parquet")
    assert run("sharded", "prepare", tmp_path / "labels.parquet", "-o", tmp_path / "p") == 0
    return tmp_path / "p"


def test_prepare_says_what_it_wrote(tmp_path: Path, capsys: Capture) -> None:
    ann, _ = crowd()
    write(ann, tmp_path / "labels.parquet")
    arguments = ["sharded", "prepare", str(tmp_path / "labels.parquet"), "-o", str(tmp_path / "p"), "--json"]
    assert run(*arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["annotations"], found["tasks"], found["workers"]) == (len(ann), ann.n_tasks, ann.n_workers)
    assert (found["classes"], found["output"]) == ([0, 1, 2], str(tmp_path / "p"))


def test_messages_speak_of_the_options_of_the_shell(tmp_path: Path, capsys: Capture) -> None:
    write(pa.table({"task": [1], "who": ["a"], "label": [0]}), tmp_path / "labels.parquet")
    assert run("sharded", "prepare", tmp_path / "labels.parquet", "-o", tmp_path / "p") == 2
    assert "Name it with --worker-column" in capsys.readouterr().err


@pytest.mark.parametrize("method", get_args(Streamed))
def test_fit_writes_labels_workers_and_the_run(method: str, prepared: Path, tmp_path: Path, capsys: Capture) -> None:
    output = tmp_path / "clean"
    fit = ["sharded", "fit", str(prepared), "-o", str(output), "--method", method, "--device", "cpu", "--tol", "1e-4"]
    assert run(*fit, "--json") == 0
    shown = capsys.readouterr()
    assert "iteration 2: objective" in shown.err
    assert json.loads(shown.out) == json.loads((output / "run.json").read_text()) | {"output": str(output)}
    assert pq.read_metadata(output / "labels" / "part-00000.parquet").num_rows == 200
    assert pq.read_metadata(output / "workers.parquet").num_rows == 12
    assert "must not hold a finished run" in refused(capsys, *fit)


def test_the_methods_are_those_that_can_be_streamed(prepared: Path, tmp_path: Path) -> None:
    for name, kind in aggregators().items():
        able = COMMANDS[name] in get_args(Streamed)
        with nullcontext() if able else pytest.raises(TypeError, match=f"got {name}."):
            sharded.fit(kind(device="cpu") if able else kind(), prepared, tmp_path / name)


def test_two_processes_under_torchrun_give_what_one_gives(prepared: Path, tmp_path: Path) -> None:
    fit = ["sharded", "fit", str(prepared), "--device", "cpu", "--dtype", "float64", "--tol", "1e-5", "-o"]
    assert run(*fit, tmp_path / "one") == 0
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d"]
    command = [*launch, "--rdzv-endpoint", "localhost:0", "-m", "labelonce", *fit, str(tmp_path / "two")]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("iteration 2: objective") == 1
    one, two = (json.loads((tmp_path / name / "run.json").read_text()) for name in ("one", "two"))
    assert (one["processes"], two["processes"]) == (1, 2)
    assert_allclose(two["log_likelihood"], one["log_likelihood"], rtol=1e-12)


def test_a_process_that_is_started_again_after_the_end_is_done(
    prepared: Path, tmp_path: Path, monkeypatch: Patch, capsys: Capture
) -> None:
    arguments = ["sharded", "fit", str(prepared), "-o", str(tmp_path / "out")]
    assert run(*arguments) == 0
    assert run(*arguments) == 2  # by hand: name another folder
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    capsys.readouterr()
    assert run(*arguments) == 0
    assert "was finished before torchrun started" in capsys.readouterr().err
    os.utime(tmp_path / "out" / "run.json", (0, 0))  # of an earlier launch
    assert run(*arguments) == 2
