"""EM over two hosts: the numbers of one process; where a host is killed, one sentence, and the run resumes."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import run
from crowds import crowd
from hosts import Hosts, two_hosts
from numpy.testing import assert_allclose

from labelonce import sharded

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    try:
        with two_hosts() as found:
            yield found
    except OSError as error:
        pytest.skip(f"no network namespaces here: {error}")


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    return sharded.prepare(crowd(n_tasks=2000)[0].to_frame(), tmp_path / "prepared", block=1000)


def fit(prepared: Path, output: Path) -> list[str]:
    given = ["--device", "cpu", "--dtype", "float64", "--tol", "1e-12", "--max-iter", "300"]
    return ["sharded", "fit", str(prepared), "-o", str(output), *given]


def objectives(output: Path) -> Any:
    return np.array(json.loads((output / "run.json").read_text())["log_likelihood"])


@pytest.fixture
def alone(prepared: Path, tmp_path: Path) -> Any:
    assert run(*fit(prepared, tmp_path / "one")) == 0
    return objectives(tmp_path / "one")


def test_two_hosts_give_what_one_process_gives(hosts: Hosts, prepared: Path, tmp_path: Path, alone: Any) -> None:
    hosts.run(["-m", "labelonce", *fit(prepared, tmp_path / "two")], tmp_path)
    assert json.loads((tmp_path / "two" / "run.json").read_text())["processes"] == 2
    assert_allclose(objectives(tmp_path / "two"), alone, rtol=1e-12)


TRAIN = """
import sys
import numpy as np, torch
import labelonce as lo
from labelonce import neural

torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
rng = np.random.default_rng(0)
y = np.arange(120) % 3
X = rng.normal(size=(120, 4)).astype(np.float32) + np.eye(3, 4, dtype=np.float32)[y]
mine = np.flatnonzero(np.arange(120) < 50 if rank == 0 else np.arange(120) >= 50)
task, worker = np.arange(len(mine), dtype=np.int32), (mine % 4).astype(np.int32)
ann = lo.Annotations(task, worker, y[mine].astype(np.int32), np.arange(len(mine)), np.arange(4), np.arange(3))
learner = neural.TorchLearner(neural.mlp, shared=True, epochs=2, batch_size=40, lr=0.05, device="cpu", random_state=0)
clf = lo.MBEM(learner, rounds=2).fit(X[mine], ann)
np.savez(f"{sys.argv[1]}/{rank}.npz", confusion=clf.confusion_, predictions=clf.predict_proba(X))
torch.distributed.destroy_process_group()
"""


def test_training_over_two_hosts_gives_what_two_processes_on_one_give(hosts: Hosts, tmp_path: Path) -> None:
    script, places = tmp_path / "train.py", [tmp_path / "hosts", tmp_path / "here"]
    script.write_text(TRAIN)
    for place in places:
        place.mkdir()
    hosts.run([str(script), str(places[0])], tmp_path)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    subprocess.run([*launch, str(places[1])], env=os.environ | {"OMP_NUM_THREADS": "1"}, check=True)
    for rank in (0, 1):
        over, here = (np.load(place / f"{rank}.npz") for place in places)
        for name in ("confusion", "predictions"):
            assert_allclose(over[name], here[name], atol=1e-6)


def test_a_killed_host_ends_the_run_and_it_resumes(hosts: Hosts, prepared: Path, tmp_path: Path, alone: Any) -> None:
    script, output = ["-m", "labelonce", *fit(prepared, tmp_path / "two")], tmp_path / "two"
    logs = [tmp_path / f"{number}.log" for number in (0, 1)]
    running = [hosts.start(number, script, log) for number, log in enumerate(logs)]
    while "iteration 3:" not in logs[0].read_text():
        assert running[0].poll() is None, logs[0].read_text()
        time.sleep(0.005)
    hosts.kill(1)
    assert running[0].wait(120) != 0
    running[1].wait(60)
    said = [line for line in logs[0].read_text().splitlines() if line.startswith("labelonce: ")]
    assert len(said) == 1
    assert "every process of the run must be reached" in said[0]
    assert not (output / "run.json").exists()
    hosts.run(script, tmp_path)
    assert_allclose(objectives(output), alone, rtol=1e-12)
