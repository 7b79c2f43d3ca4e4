"""A run with more classes than arrays are made for: the folder is complete, and its parts agree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import labelonce as lo
from labelonce import runs
from labelonce.report._facts import read_facts
from labelonce.report._workers import worker_table
from labelonce.runs import Options

GROUPS = np.arange(60) // 5
NAMES = np.array([f"g{group}/c{code}" for code, group in enumerate(GROUPS)], dtype=object)


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


def trained(files: Path, folder: Path, groups: str | None) -> runs.RunRecord:
    options = Options(
        labels=str(files / "labels.parquet"), features=str(files / "features.parquet"), groups=groups, rounds=2
    )
    return runs.train(options, folder)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("large", [False, True])
def test_a_run_with_groups_writes_all_its_files(
    files: Path, tmp_path: Path, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if large:
        monkeypatch.setattr("labelonce._memory.MOST_NUMBERS", 0)
    record = trained(files, tmp_path / "run", str(files / "groups.parquet"))
    assert record.options.groups is not None
    assert (tmp_path / "run" / "report.html").exists() == (not large)
    assert any("60 classes are too many" in sentence for sentence in record.warnings) == large
    labels = parquet.read_table(tmp_path / "run" / "labels.parquet")
    gold = dict(lo.read_gold(files / "gold.parquet"))
    tasks, found = labels["task"].to_pylist(), labels["label"].to_pylist()
    right = [gold[task] == label for task, label in zip(tasks, found, strict=True)]
    assert np.mean(right) > 0.9
    assert labels.column_names[3:5] == ["class_1", "posterior_class_1"]
    workers = parquet.read_table(tmp_path / "run" / "workers.parquet")
    assert workers.num_rows == 20
    assert workers["skill"][0].as_py() > 0.8


@pytest.mark.filterwarnings("ignore")
def test_the_review_of_a_folder_is_that_of_its_model(files: Path, tmp_path: Path) -> None:
    trained(files, tmp_path / "run", "taxonomy")
    found = runs.review(tmp_path / "run")
    clf = lo.load(tmp_path / "run" / "model.skops")
    own = clf.review()
    chances = [dict(zip(one["task"].to_pylist(), one["chance_wrong"].to_pylist(), strict=True)) for one in (found, own)]
    assert chances[0].keys() == chances[1].keys()
    differences = [chances[0][task] - chances[1][task] for task in chances[0]]
    assert np.abs(differences).max() < 1 / 6  # the table holds the five best classes, and no sixth one has more
    assert clf.worker_model_.groups_.n_groups == 12


def test_workers_of_many_classes_are_judged_as_those_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 60, 2000)
    crowd = lo.simulate.one_coin([0.9] * 10 + [0.02] * 5, 60)
    ann = lo.simulate.annotate(y_true, crowd, lo.simulate.assign(2000, 15, 4, rng, replace=False), rng)
    few = worker_table(read_facts(lo.OneCoin().fit(ann), ann))
    monkeypatch.setattr("labelonce._memory.MOST_NUMBERS", 0)
    model = lo.OneCoin().fit(ann)
    many = worker_table(read_facts(model, ann))
    assert (many.flags[:, :2].any(axis=1) == few.flags[:, :2].any(axis=1)).all()
    np.testing.assert_allclose(many.chance, few.chance, rtol=1e-9)
    np.testing.assert_allclose(many.skill, few.skill, rtol=1e-9)
    with pytest.raises(ValueError, match=r"got 2,000 tasks and 15 workers with 60 classes\. Use to_frame"):
        lo.write_report("nowhere.html", model, ann)
