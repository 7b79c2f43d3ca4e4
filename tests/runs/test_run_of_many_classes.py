"""A run of many classes: its folder holds the top classes of each task, and no table has a column per class."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from commands import run_in_process
from numpy.testing import assert_allclose
from pyarrow import csv, parquet

import labelonce as lo
from labelonce import simulate
from labelonce._kernels import Candidates
from labelonce.runs._results import review

pytestmark = pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the run folder of 60 classes."""
    path = tmp_path_factory.mktemp("many")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 60, 900)
    X = rng.normal(size=(60, 8))[y] + 0.3 * rng.normal(size=(900, 8))
    true = simulate.grouped_hammer_spammer(12, np.arange(60) // 6, 0.5, rng=0)
    ann = simulate.annotate(y, true, simulate.assign(900, 12, 1, rng=0), rng=0)
    task, label = [f"t{code}" for code in ann.task], [f"c{code}" for code in ann.label]
    csv.write_csv(pa.table({"task": task, "worker": ann.worker, "label": label}), path / "labels.csv")
    columns = {"task": [f"t{task}" for task in range(900)]} | {f"f{k}": X[:, k] for k in range(8)}
    csv.write_csv(pa.table(columns), path / "features.csv")
    groups = {"class": [f"c{code}" for code in range(60)], "group": np.arange(60) // 6}
    csv.write_csv(pa.table(groups), path / "groups.csv")
    command = ["train", path / "labels.csv", "--features", path / "features.csv", "--groups", path / "groups.csv"]
    command += ["--rounds", 2, "-o", path / "run"]
    assert run_in_process([str(part) for part in command]) == 0
    return path / "run"


def test_labels_have_the_top_classes_of_each_task(folder: Path) -> None:
    table = parquet.read_table(folder / "labels.parquet")
    assert table.num_columns < 20
    best = table["posterior_class_1"].to_numpy()
    assert (best >= table["posterior_class_2"].fill_null(0.0).to_numpy()).all()
    same = table["label"].to_numpy() == table["class_1"].to_numpy()
    assert_allclose(table["confidence"].to_numpy()[same], best[same])


def test_workers_have_flags_and_expected_mistakes(folder: Path) -> None:
    table = parquet.read_table(folder / "workers.parquet")
    assert table["expected_wrong"].to_numpy().sum() > 50
    assert table.num_rows == 12


def test_labels_worth_checking_are_listed_from_the_folder(folder: Path) -> None:
    assert review(folder, least=0.5).num_rows > 20


def test_the_model_is_loaded_again(folder: Path) -> None:
    pytest.importorskip("skops")
    clf: Any = lo.load(folder / "model.skops")
    assert isinstance(clf.posterior_, Candidates)
    assert clf.factors_.shape == (12, 60, 60)
