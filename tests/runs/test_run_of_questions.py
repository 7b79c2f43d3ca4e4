"""Runs on questions: stopped anywhere they resume with the same numbers, and no pickle is in their files."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from pyarrow import parquet
from questions import crowd
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_files import reloaded

import labelonce as lo
from labelonce.learning import SoftmaxRegression
from labelonce.multilabel import MultiLabelDawidSkene, MultiLabelMBEM, MultiLabelVote, SigmoidRegression
from labelonce.runs import Options, RunFolder, _train, read_run, resume, train
from labelonce.workers import Full


class Stopped(Exception):
    """What a test stops a run with."""


@pytest.fixture
def options(tmp_path: Path) -> Options:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    made = crowd(y_true=X > 0.3, redundancy=1, n_workers=6)
    lo.write(made.annotations.to_frame(), tmp_path / "answers.csv")
    lo.write(pa.table({"task": np.arange(90)} | {f"x{k}": X[:, k] for k in range(3)}), tmp_path / "features.csv")
    return Options(str(tmp_path / "answers.csv"), str(tmp_path / "features.csv"), rounds=2)


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_a_stopped_run_ends_with_the_numbers_of_one_that_was_not(options: Options, tmp_path: Path, stage: int) -> None:
    train(options, tmp_path / "whole")
    save, seen = RunFolder.save_checkpoint, []

    def stop(self: RunFolder, content: bytes, warnings: list[str]) -> None:
        save(self, content, warnings)
        seen.append(content)
        if len(seen) == stage:
            raise Stopped

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "save_checkpoint", stop)
        with pytest.raises(Stopped):
            train(options, tmp_path / "run")
    resume(tmp_path / "run")
    for name in ("labels.parquet", "workers.parquet"):
        assert parquet.read_table(tmp_path / "run" / name) == parquet.read_table(tmp_path / "whole" / name)
    assert read_run(tmp_path / "run").rounds == read_run(tmp_path / "whole").rounds


def test_a_checkpoint_of_classes_is_not_resumed_for_questions(options: Options, tmp_path: Path) -> None:
    inputs = _train.read_inputs(options)
    path = tmp_path / "other.skops"
    lo.save(lo.MBEM(SoftmaxRegression(), rounds=1).fit(inputs.rows.X, inputs.rows.X[:, 0] > 0), path)
    with pytest.raises(ValueError, match="must hold an MultiLabelMBEM; got MBEM"):
        _train._checkpointed(path, inputs)


def models() -> dict[str, Any]:
    heads = SigmoidRegression(C=0.1)
    return {
        "vote": MultiLabelVote(),
        "Dawid-Skene": MultiLabelDawidSkene(),
        "pipeline": MultiLabelMBEM(make_pipeline(StandardScaler(), heads), rounds=2),
        "averaged": MultiLabelMBEM([heads, SigmoidRegression(C=0.11)], rounds=1),
        "per question": MultiLabelMBEM(SoftmaxRegression(C=0.1), rounds=1),
        "apart": MultiLabelMBEM(SoftmaxRegression(C=0.1), worker_model=Full(), rounds=1),
    }


@pytest.mark.parametrize("name", list(models()))
@pytest.mark.filterwarnings("ignore")
def test_every_multilabel_model_is_saved_without_pickle(name: str, tmp_path: Path) -> None:
    made, X = crowd(n_tasks=60, n_questions=3), np.random.default_rng(0).normal(size=(60, 3))
    model = models()[name]
    fitted = model.fit(X, made.annotations) if hasattr(model, "predict_proba") else model.fit(made.annotations)
    loaded = reloaded(fitted, tmp_path)
    assert_array_equal(loaded.posterior_, fitted.posterior_)
    assert loaded.to_frame() == fitted.to_frame()
    assert loaded.workers_to_frame() == fitted.workers_to_frame()
    if hasattr(model, "predict_proba"):
        assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
        assert loaded.annotations_ == made.annotations
    with zipfile.ZipFile(tmp_path / "model.skops") as archive:
        assert not [entry for entry in archive.namelist() if entry.endswith((".pkl", ".pickle"))]


@pytest.mark.parametrize(
    ("key", "sentence"), [("shares", r"no result\.shares"), ("predictions", r"no recipe\.predictions")]
)
def test_a_record_that_is_broken_says_where(options: Options, tmp_path: Path, key: str, sentence: str) -> None:
    train(options, tmp_path / "run")
    path = tmp_path / "run" / "run.json"
    path.write_text(path.read_text().replace(f'"{key}"', '"other"', 1))
    with pytest.raises(ValueError, match=sentence):
        read_run(tmp_path / "run")


def test_a_resumed_fit_must_have_its_annotations() -> None:
    made = crowd(n_tasks=40, n_questions=2, redundancy=1)
    X = np.random.default_rng(0).normal(size=(40, 2))
    clf = MultiLabelMBEM(SigmoidRegression(C=0.1), rounds=2)
    next(iter(clf.stages(X, made.annotations)))
    with pytest.raises(ValueError, match=r"needs the annotations of the fit, .*80 answers.*; got .*30 answers"):
        list(clf.stages(X[:15], made.annotations.select(np.arange(40) < 15), resume=True))
