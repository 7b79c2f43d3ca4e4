"""Prepared annotations, streamed: the same as in memory, also by several processes and after one was killed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from crowds import crowd
from numpy.testing import assert_allclose, assert_array_equal

from labelonce import EBCC, IBCC, MACE, Annotations, DawidSkene, MajorityVote, OneCoin, sharded, write
from labelonce._kernels import BlockSums
from labelonce._kernels._processes import Processes
from labelonce._sklearn import ConvergenceWarning
from labelonce.aggregation import RedundancyWarning
from labelonce.baselines import SpectralDawidSkene
from labelonce.sharded._shards import open_shards
from labelonce.workers import Grouped


def write_shuffled(ann: Annotations, folder: Path, n_files: int = 2) -> list[Path]:
    rows = ann.to_frame().take(np.random.default_rng(0).permutation(len(ann)))
    parts = np.array_split(np.arange(len(rows)), n_files)
    paths = [folder / f"labels-{number}.parquet" for number in range(n_files)]
    for path, part in zip(paths, parts, strict=True):
        write(rows.take(part), path)
    return paths


def ten_classes() -> Annotations:
    return crowd(n_tasks=400, n_classes=10)[0]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sharded")
    return sharded.prepare(write_shuffled(ten_classes(), folder), folder / "prepared", block=300)


def labels_in(folder: Path) -> pa.Table:
    return pa.concat_tables(pq.read_table(path) for path in sorted(folder.glob("labels/*.parquet"))).sort_by("task")


def posterior_in(folder: Path) -> Any:
    table = labels_in(folder)
    return np.column_stack([table[name] for name in table.column_names if name.startswith("posterior_")])


def test_blocks_hold_every_task_once_and_every_annotation(prepared: Path) -> None:
    ann, shards = ten_classes(), open_shards(prepared)
    assert shards.n_blocks > 3
    tasks = np.concatenate([shards.tasks(number) for number in range(shards.n_blocks)])
    assert_array_equal(np.sort(tasks), ann.tasks)
    assert sum(len(shards.block(number).row) for number in range(shards.n_blocks)) == len(ann)
    assert_array_equal(shards.annotations_of_worker, np.bincount(ann.worker))


@pytest.mark.parametrize("model", [DawidSkene, OneCoin, IBCC])
@pytest.mark.parametrize(("dtype", "atol"), [("float64", 1e-9), ("float32", 1e-4)])
def test_streaming_gives_what_memory_gives(prepared: Path, tmp_path: Path, model: Any, dtype: str, atol: float) -> None:
    tol = 2e-5  # 20 % away from the change of every iteration: rounding does not move the last one
    whole = model(dtype=dtype, tol=tol).fit(ten_classes())
    streamed = sharded.fit(model(dtype=dtype, tol=tol, device="cpu"), prepared, tmp_path / "out")
    assert streamed.n_iter_ == whole.n_iter_
    assert_allclose(streamed.confusion_, whole.confusion_, atol=atol)
    assert_allclose(posterior_in(tmp_path / "out"), whole.posterior_, atol=atol)
    assert labels_in(tmp_path / "out").column_names == whole.to_frame().column_names


def test_string_ids_and_declared_classes_come_through(tmp_path: Path) -> None:
    task, worker = [f"t{i // 3}" for i in range(90)], [f"w{i % 3}" for i in range(90)]
    label = ["cat" if (i // 3) % 2 else "dog" for i in range(90)]
    ann = Annotations.from_arrays(task, worker, label, classes=["dog", "cat", "eel"])
    folder = sharded.prepare(write_shuffled(ann, tmp_path), tmp_path / "p", classes=["dog", "cat", "eel"], block=20)
    model = sharded.fit(DawidSkene(device="cpu"), folder, tmp_path / "out")
    expected = DawidSkene().fit(ann)
    assert model.classes_.tolist() == ["dog", "cat", "eel"]
    table = labels_in(tmp_path / "out")
    assert table.num_rows == ann.n_tasks
    found = dict(zip(table["task"].to_pylist(), table["label"].to_pylist(), strict=True))
    assert found == dict(zip(expected.tasks_, expected.labels_, strict=True))


class Stop(Exception):
    """Stands for the power cut."""


def stop(*_: Any) -> None:
    raise Stop


def test_a_stopped_fit_goes_on_and_gives_the_same_bits(prepared: Path, tmp_path: Path) -> None:
    seen: list[int] = []

    def cut(iteration: int, objective: float) -> None:  # noqa: ARG001
        if iteration == 4:
            raise Stop

    with pytest.raises(Stop):
        sharded.fit(DawidSkene(tol=1e-5, device="cpu"), prepared, tmp_path / "cut", callback=cut)
    model = DawidSkene(tol=1e-5, device="cpu")
    resumed = sharded.fit(model, prepared, tmp_path / "cut", callback=lambda number, _: seen.append(number))
    straight = sharded.fit(DawidSkene(tol=1e-5, device="cpu"), prepared, tmp_path / "straight")
    assert seen[0] == 5
    assert_array_equal(resumed.log_likelihood_, straight.log_likelihood_)
    assert_array_equal(resumed.confusion_, straight.confusion_)
    assert_array_equal(posterior_in(tmp_path / "cut"), posterior_in(tmp_path / "straight"))
    assert {path.name for path in (tmp_path / "cut").iterdir()} == {"labels", "workers.parquet", "run.json"}
    assert len(list((tmp_path / "cut" / "labels").iterdir())) == open_shards(prepared).n_blocks


def test_a_fit_killed_while_it_writes_labels_ends_the_same(prepared: Path, tmp_path: Path) -> None:
    model = DawidSkene(tol=1e-5, device="cpu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("labelonce.sharded._fit.labels_frame", stop)
        with pytest.raises(Stop):
            sharded.fit(model, prepared, tmp_path / "cut")
    resumed = sharded.fit(DawidSkene(tol=1e-5, device="cpu"), prepared, tmp_path / "cut")
    straight = sharded.fit(DawidSkene(tol=1e-5, device="cpu"), prepared, tmp_path / "straight")
    assert_array_equal(resumed.confusion_, straight.confusion_)


KILLED = """
import os, signal, sys
from labelonce import DawidSkene, sharded

def kill_one(iteration, objective):
    if iteration == 4 and os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        os.kill(os.getpid(), signal.SIGKILL)
    if os.environ["RANK"] == "0":
        print(os.environ["TORCHELASTIC_RESTART_COUNT"], iteration, file=open(sys.argv[3], "a"))

sharded.fit(DawidSkene(tol=1e-5, device="cpu"), sys.argv[1], sys.argv[2], callback=kill_one)
"""


@pytest.mark.slow
def test_two_processes_one_of_them_killed_give_what_one_gives(prepared: Path, tmp_path: Path) -> None:
    script, log = tmp_path / "fit.py", tmp_path / "log"
    script.write_text(KILLED)
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "1"]
    launch += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    command = [*launch, str(script), str(prepared), str(tmp_path / "two"), str(log)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    one = sharded.fit(DawidSkene(tol=1e-5, device="cpu"), prepared, tmp_path / "one")
    run = json.loads((tmp_path / "two" / "run.json").read_text())
    assert (run["processes"], run["iterations"]) == (2, one.n_iter_)
    assert_allclose(posterior_in(tmp_path / "two"), posterior_in(tmp_path / "one"), atol=1e-12)
    assert_allclose(run["log_likelihood"], one.log_likelihood_, rtol=1e-12)
    steps = [line.split() for line in log.read_text().splitlines()]
    assert {restart for restart, _ in steps} == {"0", "1"}
    assert int(next(step for restart, step in steps if restart == "1")) in (4, 5)


def test_a_worker_who_labelled_a_task_twice_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "labels.parquet"
    pq.write_table(pa.table({"task": [1, 1], "worker": ["ann", "ann"], "label": [0, 1]}), path)
    with pytest.raises(ValueError, match="got worker 'ann' on task 1 again"):
        sharded.prepare(path, tmp_path / "p")
    assert list(tmp_path.iterdir()) == [path]
    assert open_shards(sharded.prepare(path, tmp_path / "p", duplicates="last")).n_annotations == 1


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"task": [1], "worker": ["a"]}, "the label column must be one of"),
        ({"task": [1, None], "worker": ["a", "b"], "label": [0, 1]}, "labels.parquet: task must"),
        ({"task": pa.array([], pa.int64()), "worker": pa.array([], pa.string()), "label": pa.array([], pa.int64())},
         "at least one row; got 0"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_and_nothing_is_left(tmp_path: Path, columns: Any, message: str) -> None:
    path = tmp_path / "labels.parquet"
    pq.write_table(pa.table(columns), path)
    with pytest.raises(ValueError, match=message):
        sharded.prepare(path, tmp_path / "p")
    assert list(tmp_path.iterdir()) == [path]


def test_files_with_ids_of_two_kinds_are_refused(tmp_path: Path) -> None:
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for path, task in zip(paths, ([1], ["x"]), strict=True):
        pq.write_table(pa.table({"task": task, "worker": [1], "label": [0]}), path)
    with pytest.raises(ValueError, match=r"b\.parquet: task must be all integers or all strings"):
        sharded.prepare(paths, tmp_path / "p")


def test_matrices_that_do_not_fit_are_refused(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labelonce.data._memory.available_memory", lambda: 50_000.0)
    with pytest.raises(ValueError, match=r"OneCoin with 12 workers and 10 classes must fit .* got 75 KiB"):
        sharded.fit(OneCoin(), prepared, tmp_path / "out")
    with pytest.raises(ValueError, match=r"worker_model must be None for prepared annotations; got Grouped\(\)"):
        sharded.fit(DawidSkene(worker_model=Grouped()), prepared, tmp_path / "out")


def test_what_cannot_be_done_is_said(prepared: Path, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="got MajorityVote"):
        sharded.fit(MajorityVote(), prepared, tmp_path / "out")
    for model in (MACE(), EBCC(), SpectralDawidSkene()):
        with pytest.raises(TypeError, match=f"model must be DawidSkene, OneCoin or IBCC; got {type(model).__name__}"):
            sharded.fit(model, prepared, tmp_path / "out")
    with pytest.raises(FileNotFoundError, match=r"none must be a folder; got none\. Make it first"):
        sharded.prepare(write_shuffled(ten_classes(), tmp_path), tmp_path / "none" / "p")
    with pytest.raises(ValueError, match="n_init must be 1 for prepared annotations; got 3"):
        sharded.fit(DawidSkene(n_init=3), prepared, tmp_path / "out")
    with pytest.raises(ValueError, match="must be a folder that `prepare` wrote"):
        sharded.fit(DawidSkene(), tmp_path, tmp_path / "out")
    with pytest.raises(ValueError, match="must not exist yet"):
        sharded.prepare(write_shuffled(ten_classes(), tmp_path), prepared)
    with pytest.raises(FileNotFoundError, match=r"nowhere\.parquet: No such file"):
        sharded.prepare(tmp_path / "nowhere.parquet", tmp_path / "p")
    assert not (tmp_path / "out").exists()


def test_a_checkpoint_of_another_run_or_damaged_is_not_used(prepared: Path, tmp_path: Path) -> None:
    def cut(iteration: int, objective: float) -> None:  # noqa: ARG001
        if iteration == 3:
            raise Stop

    with pytest.raises(Stop):
        sharded.fit(DawidSkene(device="cpu"), prepared, tmp_path, callback=cut)
    with pytest.raises(ValueError, match="must come from the same model and annotations"):
        sharded.fit(DawidSkene(smoothing=2.0, device="cpu"), prepared, tmp_path)
    with pytest.raises(ValueError, match="max_iter must be above the 3 of"):
        sharded.fit(DawidSkene(max_iter=3, device="cpu"), prepared, tmp_path)
    (tmp_path / "checkpoint.npz").write_bytes(b"PK, but no more")
    with pytest.raises(ValueError, match=r"checkpoint\.npz must be a whole checkpoint; it is damaged\. Remove it"):
        sharded.fit(DawidSkene(device="cpu"), prepared, tmp_path)


@pytest.mark.parametrize("way", ["fit", "partial_fit"])
def test_nothing_of_an_earlier_fit_is_left(prepared: Path, tmp_path: Path, way: str) -> None:
    model = DawidSkene(tol=1e-3, device="cpu")
    getattr(model, way)(Annotations.from_arrays([1, 1], [1, 2], [0, 1]))
    sharded.fit(model, prepared, tmp_path)
    assert model.confusion_.shape[1:] == (10, 10)
    assert not hasattr(model, "posterior_")
    with pytest.raises(ValueError, match="partial_fit needs the annotations so far"):
        model.partial_fit(Annotations.from_arrays([99], [0], [1], classes=range(10)))


@pytest.mark.parametrize("kind", [DawidSkene, OneCoin, IBCC])
def test_a_streamed_model_has_only_what_a_model_of_its_kind_has(prepared: Path, tmp_path: Path, kind: Any) -> None:
    streamed = sharded.fit(kind(tol=1e-3, device="cpu"), prepared, tmp_path)
    in_memory = kind(tol=1e-3).fit(ten_classes())
    of_tasks = {"posterior_", "labels_", "tasks_", "confidence_", "estimated_accuracy_"}
    assert vars(in_memory).keys() - vars(streamed).keys() - {"_fitted_on"} == of_tasks
    assert vars(streamed).keys() <= vars(in_memory).keys()


def test_a_finished_run_is_not_overwritten(prepared: Path, tmp_path: Path) -> None:
    sharded.fit(DawidSkene(tol=1e-3, device="cpu"), prepared, tmp_path)
    with pytest.raises(ValueError, match="must not hold a finished run"):
        sharded.fit(DawidSkene(tol=1e-3, device="cpu"), prepared, tmp_path)


def test_too_few_iterations_and_too_few_labels_are_warned_about(tmp_path: Path) -> None:
    ann, _ = crowd(n_tasks=50, n_workers=4, redundancy=1)
    folder = sharded.prepare(write_shuffled(ann, tmp_path), tmp_path / "p")
    with (
        pytest.warns(RedundancyWarning, match="only 0 of 50"),
        pytest.warns(ConvergenceWarning, match="stopped after 2 iterations"),
    ):
        sharded.fit(DawidSkene(max_iter=2, tol=0.0, device="cpu"), folder, tmp_path / "out")


def test_a_process_without_blocks_still_adds_up() -> None:
    sums = BlockSums(2, 3, dtype="float64", device=torch.device("cpu"), processes=Processes())
    nobody = sums.sweep_votes([])
    assert nobody.tallies.values.shape == (2, 3, 3)
    assert not nobody.tallies.values.any()
