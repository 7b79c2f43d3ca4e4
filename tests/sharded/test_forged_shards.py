"""Folders of prepared annotations from strangers: a thousand with one spoilt file each."""

from pathlib import Path

import pytest
from forged_crowd import crowd
from forging import opened, spoilt_folders

import labelonce as lo
from labelonce import sharded

pytestmark = pytest.mark.filterwarnings("ignore")  # of so few labels


@pytest.mark.slow
def test_forged_shard_folders(tmp_path: Path) -> None:
    lo.write(crowd(200)[1], tmp_path / "labels.parquet")
    sharded.prepare(tmp_path / "labels.parquet", tmp_path / "shards", block=150)
    files = [path for path in (tmp_path / "shards").rglob("*") if path.is_file()]
    names = sorted(str(path.relative_to(tmp_path / "shards")) for path in files)
    names += ["shards.json"] * 4
    code = """
import tempfile, labelonce as lo
from labelonce import sharded
def open_it(path):
    with tempfile.TemporaryDirectory() as folder:
        sharded.fit(lo.DawidSkene(max_iter=2), path, folder)
"""
    assert opened(spoilt_folders(tmp_path / "shards", tmp_path / "forged", names, 1_000), code) == []
