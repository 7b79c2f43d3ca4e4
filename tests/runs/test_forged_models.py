"""Model files from strangers: a thousand forged ones, bombs, and estimators that nobody checks."""

from __future__ import annotations

from pathlib import Path

import pytest
from forged_crowd import crowd
from forging import bomb, odd_archive, opened, spoilt
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import labelonce as lo
from labelonce.routing import Router

pytestmark = [pytest.mark.usefixtures("skops"), pytest.mark.filterwarnings("ignore")]  # of so few labels


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder, (X, annotations) = tmp_path_factory.mktemp("models"), crowd()
    texts = [" ".join(f"word{int(value > 0)}{place}" for place, value in enumerate(row)) for row in X]
    boxes = lo.MultiLabelAnnotations.from_ticked(
        range(60),
        ["ann", "bob"] * 30,
        [["dog"] if i % 3 else ["sea", "dog"] for i in range(60)],
        questions=["dog", "sea"],
    )
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
        n = model.n_features_in_ if hasattr(model, "n_features_in_") else 4
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
