"""Run folders from strangers: a thousand with one spoilt file each."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from forged_crowd import crowd
from forging import opened, spoilt_folders

import labelonce as lo
from labelonce import runs

pytestmark = [pytest.mark.usefixtures("skops"), pytest.mark.filterwarnings("ignore")]  # of so few labels


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, (X, annotations) = tmp_path_factory.mktemp("run"), crowd()
    lo.write(annotations, folder / "labels.csv")
    names = ["task", *(f"x{place}" for place in range(4))]
    rows = ["\t".join(map(str, (task, *row))) for task, row in zip(annotations.tasks.tolist(), X.tolist(), strict=True)]
    (folder / "features.tsv").write_text("\n".join(["\t".join(names), *rows]) + "\n")
    options = runs.Options(str(folder / "labels.csv"), str(folder / "features.tsv"), rounds=1)
    runs.train(options, folder / "run")
    return folder


OPEN_RUN = """
import contextlib, io
from pathlib import Path
from labelonce import runs
from labelonce.cli._show import run_show
def open_it(path):
    last = None
    for use in (
        lambda: run_show(path, n_workers=10, as_json=False),
        lambda: run_show(path, n_workers=10, as_json=True),
        lambda: runs.review(path),
        lambda: runs.predict(path, Path(FEATURES), proba=True),
        lambda: runs.report(path),
    ):
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                use()
        except (ValueError, TypeError, OSError) as error:
            last = error
    if last:
        raise last
"""


@pytest.mark.slow
def test_forged_run_folders(run_folder: Path, tmp_path: Path) -> None:
    names = ["run.json", "workers.parquet", "labels.parquet", "model.skops"]
    code = f"FEATURES = {str(run_folder / 'features.tsv')!r}\n{OPEN_RUN}"
    assert opened(spoilt_folders(run_folder / "run", tmp_path, names, 1_000), code) == []


def test_a_model_of_another_kind_in_a_run_folder_is_one_sentence(run_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(run_folder / "run", tmp_path / "run")
    lo.save(lo.DawidSkene().fit(crowd()[1]), tmp_path / "run" / "model.skops")
    with pytest.raises(
        ValueError, match=r"run must be a run folder as train wrote it; got AttributeError.*predict_proba"
    ):
        runs.predict(tmp_path / "run", run_folder / "features.tsv")
