"""Two processes under `torchrun`, each with half of the tasks, find what one process finds with all."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crowds import crowd_with_features
from numpy.testing import assert_allclose

import labelonce as lo
from labelonce import neural

SCRIPT = """
import sys
from pathlib import Path
import numpy as np, torch
import labelonce as lo
from labelonce import neural

torch.distributed.init_process_group("gloo")
rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
data = np.load(sys.argv[1])
mine = np.arange(len(data["X"])) % 3 == 0  # unequal parts, in no order
mine = mine if rank == 0 else ~mine
number = np.cumsum(mine) - 1
kept = mine[data["task"]]
ann = lo.Annotations(
    number[data["task"][kept]].astype(np.int32), data["worker"][kept], data["label"][kept],
    np.arange(mine.sum()), np.arange(10), np.arange(3),
)
learner = neural.TorchLearner(neural.mlp, shared=True, **eval(sys.argv[3]))
clf = lo.MBEM(learner, worker_model=lo.workers.Counted(), rounds=3).fit(data["X"][mine], ann)
np.savez(
    f"{sys.argv[2]}/{rank}.npz", mine=mine, posterior=clf.posterior_, confusion=clf.confusion_,
    predictions=clf.predict_proba(data["X"]), changes=[row["posterior_change"] for row in clf.history_],
    agreement=[row["agreement"] for row in clf.history_],
)
torch.distributed.destroy_process_group()
names = [(thread / "comm").read_text().strip() for thread in Path("/proc/self/task").glob("*")]
Path(sys.argv[2], f"{rank}.threads").write_text("\\n".join(name for name in names if "gloo" in name))
"""
AGREE = """
import sys
import numpy as np, torch
from functools import partial
import labelonce as lo
from labelonce import neural
from labelonce._rules import RULES

torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
rng = np.random.default_rng(0)
y = np.arange(120) % 3
X = (rng.integers(0, 128, (120, 3, 12, 12)) + 40 * y[:, None, None, None]).astype(np.uint8)
mine = np.arange(120) < 50 if rank == 0 else np.arange(120) >= 50
ann = lo.Annotations.from_arrays(np.arange(mine.sum()), np.arange(120)[mine] % 4, y[mine])
ann = lo.Annotations(ann.task, ann.worker, ann.label, ann.tasks, np.arange(4), np.arange(3))
sizes, held = [], []


class Counting(neural.TorchLearner):
    def views(self, batch, generator):
        sizes.append(len(batch))
        return super().views(batch, generator)

    def _split(self, rows, seed, group):
        found = super()._split(rows, seed, group)
        held.append(len(found[1]))
        return found


few = {"batch_size": 30, "lr": 0.05, "device": "cpu", "pad": 1, "random_state": 0}
images = few | {"module_fn": partial(neural.fast_net, widths=(8, 8, 8))}
cases = {
    "images": (images | {"epochs": 3, "cutout": 2}, {"rounds": 2}),
    "mixup": (few | {"epochs": 3, "mixup": 0.5}, {"rounds": 2}),
    "held out": (images | {"epochs": 4, "holdout": 0.022, "patience": 1}, {"rounds": 1}),  # in one process only
    "one training": (images | {"epochs": 4, "epochs_by_round": (1,), "one_training": True, "ema": 0.5}, {"rounds": 4}),
    "stopped early": (few | {"epochs": 4, "epochs_by_round": (2,)}, {"rounds": 6}),
}
found = {}
for name, (learner, options) in cases.items():
    sizes.clear()
    object.__setattr__(RULES, "early_stop", 0.9 if name == "stopped early" else 0.0)
    clf = lo.MBEM(Counting(shared=True, **learner), **options).fit(X[mine], ann)
    found |= {f"{name}: sizes": list(sizes), f"{name}: predictions": clf.predict_proba(X)}
    found |= {f"{name}: confusion": clf.confusion_, f"{name}: rounds": clf.n_rounds_}
    found |= {f"{name}: losses": [entry["loss"] for entry in clf.model_.history_]}
try:
    lo.MBEM(Counting(shared=True, **few), rounds=2, folds=2).fit(X[mine], ann)
except ValueError as error:
    found["refused"] = str(error)
np.savez(f"{sys.argv[1]}/{rank}.npz", held=held, **found)
torch.distributed.destroy_process_group()
"""
FEW: dict[str, Any] = {"epochs": 2, "batch_size": 40, "lr": 0.05, "device": "cpu"}


def two_processes(code: str, folder: Path, *arguments: str) -> list[Any]:
    """Run code under `torchrun`, and return what each process saved."""
    script = folder / "fit.py"
    script.write_text(code)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    ended = subprocess.run([*launch, *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    return [np.load(folder / f"{rank}.npz") for rank in (0, 1)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")
def test_mbem_over_shards_of_tasks_is_mbem_over_all(tmp_path: Path) -> None:
    X, ann, *_ = crowd_with_features(240, 10, n_features=4, redundancy=2, hammers=0.4)
    np.savez(tmp_path / "data.npz", X=X, task=ann.task, worker=ann.worker, label=ann.label)
    parts = two_processes(SCRIPT, tmp_path, str(tmp_path / "data.npz"), str(tmp_path), repr(FEW))
    # Threads that outlive the group may touch a tensor while Python ends, which aborts the process now and then.
    assert [(tmp_path / f"{rank}.threads").read_text() for rank in (0, 1)] == ["", ""]
    # One process must see the tasks in the order that the two had them in: the first's, then the second's.
    order = np.concatenate([np.flatnonzero(part["mine"]) for part in parts])
    place = np.argsort(order)
    moved = lo.Annotations.from_arrays(place[ann.task], ann.worker, ann.label, duplicates="keep").align(np.arange(240))
    # Counted: no search, whose stop would blow the noise of sums up. In sample: as networks that processes share are.
    how: dict[str, Any] = {"worker_model": lo.workers.Counted(), "rounds": 3}
    one = lo.MBEM(neural.TorchLearner(neural.mlp, **FEW), **how, folds=1).fit(X[order], moved)
    assert_allclose(np.concatenate([part["posterior"] for part in parts]), one.posterior_, atol=1e-5)
    for part in parts:
        assert_allclose(part["confusion"], one.confusion_, atol=1e-5)
        assert_allclose(part["predictions"], one.predict_proba(X), atol=1e-5)
        assert_allclose(part["changes"][1:], [row["posterior_change"] for row in one.history_][1:], atol=1e-5)
        assert_allclose(part["agreement"], [row["agreement"] for row in one.history_], atol=1e-9)


@pytest.mark.slow
def test_processes_share_every_batch_and_end_with_one_model(tmp_path: Path) -> None:
    first, second = two_processes(AGREE, tmp_path, str(tmp_path))
    for name in ("images", "mixup", "held out", "one training", "stopped early"):
        for what in ("predictions", "confusion", "rounds", "losses"):
            assert_allclose(first[f"{name}: {what}"], second[f"{name}: {what}"], atol=1e-6)
        sizes = first[f"{name}: sizes"] + second[f"{name}: sizes"]
        assert (sizes == 30).all(), name
        assert first[f"{name}: sizes"].min() > 0
    n_held = [part["held"].max() for part in (first, second)]
    assert min(n_held) == 0 < max(n_held)
    assert 2 < first["stopped early: rounds"] < 6  # and the last of them has 4 epochs
    assert len(first["stopped early: losses"]) == 4
    assert "folds must be 1 with a learner that is shared by processes; got 2." in str(first["refused"])


def test_a_shared_learner_cannot_be_chosen() -> None:
    X, ann, *_ = crowd_with_features(240, 10, n_features=4, redundancy=2, hammers=0.4)
    learners = [neural.TorchLearner(neural.mlp, shared=True, **FEW) for _ in range(2)]
    with pytest.raises(
        ValueError, match="a learner that is shared by processes cannot be chosen from several: give one learner"
    ):
        lo.MBEM(learners, rounds=2).fit(X, ann)
