"""A run of many classes: its folder is complete, its parts agree, and no table has a column per class."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from commands import run
from numpy.testing import assert_allclose
from pyarrow import parquet

import labelonce as lo
from labelonce import runs
from labelonce._kernels import Beliefs
from labelonce.report._facts import read_facts
from labelonce.report._workers import worker_table
from labelonce.runs import Options

GROUPS = np.arange(60) // 5
NAMES = np.array([f"g{group}/c{code}" for code, group in enumerate(GROUPS)], dtype=object)
pytestmark = pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with labels, features, groups and gold of 60 classes, one label each."""
    folder, rng = tmp_path_factory.mktemp("many"), np.random.default_rng(0)
    y_true = rng.integers(0, 60, 1200)
    crowd = lo.simulate.grouped_hammer_spammer(20, GROUPS, 0.4, rng, exact=True)
    ann = lo.simulate.annotate(y_true, crowd, lo.simulate.assign(1200, 20, 1, rng), rng)
    X = 1.5 * rng.normal(size=(60, 12))[y_true] + rng.normal(size=(1200, 12))
    tables = {
        "labels": {"task": ann.task, "worker": ann.worker, "label": NAMES[ann.label]},
        "features": {"task": np.arange(1200)} | {f"x{j}": X[:, j] for j in range(12)},
        "groups": {"class": NAMES, "group": GROUPS},
        "gold": {"task": np.arange(1200), "label": NAMES[y_true]},
    }
    for name, columns in tables.items():
        lo.write(pa.table(columns), folder / f"{name}.parquet")
    return folder


@pytest.fixture(scope="module")
def folder(files: Path) -> Path:
    """Return the folder of a run on them by the command line."""
    path = files / "run"
    command = ["train", files / "labels.parquet", "--features", files / "features.parquet"]
    command += ["--groups", files / "groups.parquet", "--rounds", 2, "-o", path]
    assert run(*[str(part) for part in command]) == 0
    return path


def trained(files: Path, folder: Path, groups: str) -> runs.RunRecord:
    labels, features = str(files / "labels.parquet"), str(files / "features.parquet")
    return runs.train(Options(labels=labels, features=features, groups=groups, rounds=2), folder)


def test_labels_are_right_and_have_the_top_classes_of_each_task(files: Path, folder: Path) -> None:
    table = parquet.read_table(folder / "labels.parquet")
    gold = dict(lo.read_gold(files / "gold.parquet"))
    right = [gold[row["task"]] == row["label"] for row in table.select(["task", "label"]).to_pylist()]
    assert np.mean(right) > 0.9
    assert table.column_names[3:5] == ["class_1", "posterior_class_1"]
    assert table.num_columns < 20
    best = table["posterior_class_1"].to_numpy()
    assert (best >= table["posterior_class_2"].fill_null(0.0).to_numpy()).all()
    assert_allclose(table["confidence"].to_numpy(), best)
    assert (folder / "report.html").exists()


def test_workers_have_skills_and_the_model_is_loaded_again(folder: Path) -> None:
    table = parquet.read_table(folder / "workers.parquet")
    assert table["expected_wrong"].to_numpy().sum() > 50
    assert table.num_rows == 20
    assert table["skill"][0].as_py() > 0.8
    pytest.importorskip("skops")
    clf: Any = lo.load(folder / "model.skops")
    assert isinstance(clf.posterior_, Beliefs)
    assert clf.factors_.shape == (20, 60, 60)


def test_too_many_classes_for_a_report_leave_the_rest_of_the_folder(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labelonce.data._memory.MOST_NUMBERS", 0)
    record = trained(files, tmp_path / "run", str(files / "groups.parquet"))
    assert not (tmp_path / "run" / "report.html").exists()
    assert any("60 classes are too many" in sentence for sentence in record.warnings)
    assert parquet.read_table(tmp_path / "run" / "labels.parquet").num_rows == 1200


def test_the_review_of_a_folder_is_that_of_its_model(files: Path, tmp_path: Path) -> None:
    trained(files, tmp_path / "run", "taxonomy")
    found = runs.review(tmp_path / "run")
    clf = lo.load(tmp_path / "run" / "model.skops")
    own = clf.review()
    chances = [dict(zip(one["task"].to_pylist(), one["chance_wrong"].to_pylist(), strict=True)) for one in (found, own)]
    assert chances[0].keys() == chances[1].keys()
    assert len(chances[0]) > 20
    differences = [chances[0][task] - chances[1][task] for task in chances[0]]
    assert np.abs(differences).max() < 1 / 6  # the table holds the five best classes, and no sixth one has more
    assert clf.worker_model_.groups_.n_groups == 12


def test_workers_of_many_classes_are_judged_as_those_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 60, 2000)
    crowd = lo.simulate.one_coin([0.9] * 10 + [0.02] * 5, 60)
    ann = lo.simulate.annotate(y_true, crowd, lo.simulate.assign(2000, 15, 4, rng, replace=False), rng)
    few = worker_table(read_facts(lo.OneCoin().fit(ann), ann))
    monkeypatch.setattr("labelonce.data._memory.MOST_NUMBERS", 0)
    model = lo.OneCoin().fit(ann)
    many = worker_table(read_facts(model, ann))
    assert (many.flags[:, :2].any(axis=1) == few.flags[:, :2].any(axis=1)).all()
    assert_allclose(many.chance, few.chance, rtol=1e-9)
    assert_allclose(many.skill, few.skill, rtol=1e-9)
    with pytest.raises(ValueError, match=r"got 2,000 tasks and 15 workers with 60 classes\. Use to_frame"):
        lo.write_report("nowhere.html", model, ann)
