"""Model files and run folders from strangers: thousands that are spoilt, bombs, and estimators that nobody checks."""

import shutil
from pathlib import Path

import pytest
from forged_crowd import crowd
from forging import bomb, odd_archive, opened, spoilt, spoilt_folders
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import labelonce as lo
from labelonce import runs
from labelonce.routing import Router

pytestmark = [pytest.mark.usefixtures("skops"), pytest.mark.filterwarnings("ignore")]  # of so few labels


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder, (X, annotations) = tmp_path_factory.mktemp("models"), crowd()
    texts = [" ".join(f"word{int(value > 0)}{place}" for place, value in enumerate(row)) for row in X]
    ticked = [["dog"] if i % 3 else ["sea", "dog"] for i in range(60)]
    boxes = lo.MultiLabelAnnotations.from_ticked(range(60), ["ann", "bob"] * 30, ticked, questions=["dog", "sea"])
    kept = [
        lo.DawidSkene().fit(annotations),
        lo.MBEM(lo.SoftmaxRegression(), rounds=2).fit(X, annotations),
        lo.MBEM(LogisticRegression(), rounds=1).fit(X, annotations),
        lo.MBEM(make_pipeline(lo.learning.TextFeatures(), lo.SoftmaxRegression()), rounds=1).fit(texts, annotations),
        lo.MultiLabelMBEM(lo.multilabel.SigmoidRegression(), rounds=1).fit(X, boxes),
    ]
    for number, model in enumerate(kept):
        lo.save(model, folder / f"{number}.skops")
    return sorted(folder.iterdir())


OPEN_MODEL = """
import numpy as np, labelonce as lo
from labelonce.runs._folder import as_train_wrote
def open_it(path):
    model = lo.load(path)
    with as_train_wrote(path):
        n = min(getattr(model, "n_features_in_", 4), 1_000)  # a forged one may be larger than memory
        X = ["word01 word13 other"] * 3 if "TextFeatures" in str(getattr(model, "learner", "")) else np.ones((3, 4))
        model.predict_proba(X) if hasattr(model, "predict_proba") else model.labels_
"""


@pytest.mark.slow
def test_forged_model_files(models: list[Path], tmp_path: Path) -> None:
    paths = list(spoilt(models, tmp_path, 1_000, odd_archive))
    assert opened(paths, OPEN_MODEL) == []


@pytest.mark.slow
def test_bombs_are_refused_before_they_are_unpacked(tmp_path: Path) -> None:
    for name in ("model.skops", "router.npz"):
        (tmp_path / name).write_bytes(bomb(3 * 2**30))
    for name, load in (("model.skops", lo.load), ("router.npz", Router.load)):
        with pytest.raises(ValueError, match=rf"{name} must not unpack to more than 100 times its size; got 3,221"):
            load(tmp_path / name)


def test_a_support_vector_machine_is_refused_unless_it_is_trusted(tmp_path: Path) -> None:
    X, annotations = crowd()
    path = tmp_path / "model.skops"
    lo.save(lo.MBEM(SVC(probability=True, random_state=0), rounds=1).fit(X, annotations), path)
    with pytest.raises(ValueError, match=r"got \['sklearn\.svm\._classes\.SVC'\]. Nothing was loaded"):
        lo.load(path)
    assert lo.load(path, trusted=["sklearn.svm._classes.SVC"]).predict(X).shape == (60,)


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
