"""Answers that are no classes, and questions, where they are not taken: one clear sentence."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from questions import crowd

import labelonce as lo
from labelonce import data, learning, planning, sharded
from labelonce.multilabel import MultiLabelMBEM, SigmoidRegression
from labelonce.routing import Router

TASK = np.repeat(np.arange(12), 2)
SAID = np.array(["no", "yes", "maybe"] * 8, dtype=object)
MAYBE: dict[str, Any] = {"classes": ["no", "yes"], "answers": ["no", "maybe", "yes"]}


def unsure() -> lo.Annotations:
    return lo.Annotations.from_arrays(TASK, np.tile(["a", "b"], 12), SAID, **MAYBE)


def test_blocks_on_disk_take_classes_alone(tmp_path: Path) -> None:
    lo.write(unsure(), tmp_path / "labels.parquet")
    with pytest.raises(ValueError, match=r"one of the declared \['no', 'yes'\]; got 'maybe'"):
        sharded.prepare(tmp_path / "labels.parquet", tmp_path / "blocks", classes=["no", "yes"])


def test_a_router_takes_classes_alone() -> None:
    with pytest.raises(ValueError, match=r"label must be among \['no', 'yes'\]; got 'maybe'"):
        Router([1, 2], ["no", "yes"]).add(1, "ann", "maybe")


def test_a_plan_takes_fits_to_classes_alone() -> None:
    with pytest.raises(ValueError, match=r"got 3 answers for 2 classes. Fit to annotations.only_classes\(\) to plan"):
        planning.plan(lo.DawidSkene().fit(unsure()))


@pytest.mark.neural
def test_a_network_with_a_crowd_layer_says_how_many_it_leaves_out() -> None:
    from labelonce import baselines, neural

    layer = baselines.CrowdLayer(neural.TorchLearner(epochs=1, device="cpu"))
    with pytest.warns(data.OtherAnswersWarning, match="8 of 24 annotations, such as 'maybe', count for no class"):
        layer.fit(np.random.default_rng(0).normal(size=(12, 2)).astype(np.float32), unsure())


def test_questions_are_sent_to_the_models_of_questions() -> None:
    questions, X = crowd(n_tasks=10, n_questions=2, redundancy=1).annotations, np.zeros((10, 1))
    with pytest.raises(TypeError, match=r"got MultiLabelAnnotations\(20 answers.*Use MultiLabelMBEM"):
        lo.MBEM(lo.SoftmaxRegression()).fit(X, questions)
    with pytest.raises(TypeError, match="annotations must be Annotations; got MultiLabelAnnotations"):
        lo.DawidSkene().fit(questions)  # type: ignore[arg-type]
    with pytest.warns(learning.DoubtWarning, match="drift"):
        clf = MultiLabelMBEM(SigmoidRegression(), rounds=1, folds=1).fit(X, questions)
    with pytest.raises(TypeError, match=r"workers must be a fitted MBEM.*got MultiLabelMBEM"):
        planning.plan(clf)


def test_a_report_is_of_the_annotations_that_were_fitted(tmp_path: Path) -> None:
    questions = crowd(n_tasks=10, n_questions=2, redundancy=3).annotations
    with pytest.raises(TypeError, match="where annotations are of questions; got DawidSkene"):
        lo.write_report(tmp_path / "report.html", lo.DawidSkene().fit(questions.of_question("q0")), questions)
