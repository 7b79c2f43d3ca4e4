"""Answers that are no classes, and scales."""

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checks import annotations
from hypothesis import given
from numpy.testing import assert_array_equal
from questions import crowd

import labelonce as lo
from labelonce import Annotations, data, learning, planning, sharded
from labelonce.data import OtherAnswersWarning
from labelonce.data._answers import only_classes
from labelonce.multilabel import MultiLabelMBEM, SigmoidRegression
from labelonce.routing import Router

TASKS, WORKERS, SAID = [1, 1, 2, 2, 3], list("xyxyx"), ["no", "maybe", "yes", "yes", "skip"]


def made(**options: Any) -> Annotations:
    declared = {"classes": ["no", "yes"], "answers": ["no", "maybe", "yes", "skip"]}
    return Annotations.from_arrays(TASKS, WORKERS, SAID, **(declared | options))


def test_the_classes_come_first_and_the_other_answers_as_given() -> None:
    ann = made()
    assert ann.answers.tolist() == ["no", "yes", "maybe", "skip"]
    assert ann.answers[ann.label].tolist() == SAID
    assert (ann.n_classes, ann.n_answers, ann.is_square, ann.is_scale) == (2, 4, False, False)
    assert repr(ann) == "Annotations(5 annotations: 3 tasks x 2 workers, 2 classes, 4 answers, redundancy 1.67)"


def test_a_scale_holds_no_class_and_leans_from_the_first_class_to_the_last() -> None:
    ann = Annotations.from_arrays([1, 2], [1, 1], [5, 1], classes=["no", "yes"], answers=[1, 2, 3, 4, 5])
    assert (ann.is_scale, ann.label.tolist(), ann.answers.tolist()) == (True, [4, 0], [1, 2, 3, 4, 5])
    ann = Annotations.from_arrays([1], [1], ["c"], classes=[0, 1, 2], answers=list("abcde"))
    expected = [[1, 0, 0], [0.5, 0.5, 0], [0, 1, 0], [0, 0.5, 0.5], [0, 0, 1]]
    assert_array_equal(ann.leaning, expected)


def test_answers_equal_to_the_classes_are_the_same_as_none_in_a_pickle_too() -> None:
    plain = Annotations.from_arrays([1, 2], [1, 1], ["a", "b"])
    for answers in (["a", "b"], ["b", "a"]):
        ann = Annotations.from_arrays([1, 2], [1, 1], ["a", "b"], classes=["a", "b"], answers=answers)
        assert ann.is_square
        assert ann == plain
        assert pickle.dumps(ann) == pickle.dumps(plain)
    ann = Annotations.from_arrays([1, 2], [1, 1], ["a", "b"])
    assert len(ann.__reduce__()[1]) == 6


@given(ann=annotations(other_answers=True))
def test_a_pickle_and_a_table_give_back_the_same(ann: Annotations) -> None:
    assert pickle.loads(pickle.dumps(ann)) == ann
    again = Annotations.from_frame(ann.to_frame(), classes=ann.classes, answers=ann.answers, duplicates="keep")
    assert_array_equal(again.answers[again.label], ann.answers[ann.label])


def test_select_align_sample_and_parts_keep_the_answers_and_equal_needs_them() -> None:
    ann = made()
    mask = np.array([True, False, True])
    for other in (ann.select(mask), ann.align([3, 2, 1]), ann.sample(random_state=0)):
        assert other.answers.tolist() == ann.answers.tolist()
    assert ann.select(mask).answers[ann.select(mask).label].tolist() == ["no", "maybe", "skip"]
    assert made() == made()
    assert made() != made(answers=["no", "skip", "yes", "maybe"])
    columns: Any = {"task": ["a"], "worker": ["x"], "label": ["no"], "classes": ["no", "yes"]}
    assert Annotations.from_arrays(**columns) != Annotations.from_arrays(**columns, answers=["no", "yes", "skip"])


def test_only_classes_leaves_the_other_answers_out_and_needs_some() -> None:
    plain = made().only_classes()
    assert plain.is_square
    assert (plain.classes[plain.label].tolist(), plain.n_tasks, plain.n_workers) == (["no", "yes", "yes"], 3, 2)
    ann = Annotations.from_arrays([1], ["x"], ["skip"], classes=["no", "yes"], answers=["no", "yes", "skip"])
    with pytest.raises(ValueError, match=r"some answers must be classes, .*; got none in 1 annotations, .*'skip'"):
        ann.only_classes()


def test_a_method_for_classes_says_how_many_answers_it_leaves_out() -> None:
    with pytest.warns(OtherAnswersWarning, match=r"Vote counts .*; 2 of 5 annotations, such as 'maybe'"):
        assert len(only_classes(made(), "Vote")) == 3
    with warnings.catch_warnings(action="error"):
        assert only_classes(made().only_classes(), "Vote").is_square


def test_relabel_merges_renames_and_permutes_answers() -> None:
    merged = made().relabel({"skip": "maybe"})
    assert merged.answers.tolist() == ["no", "yes", "maybe"]
    assert merged.answers[merged.label].tolist() == ["no", "maybe", "yes", "yes", "maybe"]
    renamed = made().relabel({"yes": "Y"})
    assert (renamed.classes.tolist(), renamed.answers.tolist()) == (["no", "Y"], ["no", "Y", "maybe", "skip"])
    counted = made().relabel({"maybe": "no", "skip": "no"})
    assert counted.is_square
    with pytest.raises(ValueError, match=r"classes and answers \['no', 'yes', 'maybe', 'skip'\]; got 'perhaps'"):
        made().relabel({"perhaps": "no"})
    ann = made().relabel([0, 1, 3, 2])
    assert ann.answers[ann.label].tolist() == ["no", "skip", "yes", "yes", "maybe"]


@pytest.mark.parametrize(
    ("classes", "answers", "message"),
    [
        (None, ["no", "yes"], "answers must come with the classes they are about; got none. Give classes="),
        (["no", "yes"], ["yes", "maybe"], "every class or, as a scale, none; got 'yes' but not 'no'"),
        (["a", "b", "c"], [1, 2], r"at least as many answers as there are classes.*got \[1, 2\] for"),
        (["no", "yes"], ["no", "yes", "no"], "answers must not repeat an id; got 'no' 2 times"),
        (["no", "yes"], [], "answers must hold at least one id"),
    ],
)
def test_bad_answers_are_refused(classes: Any, answers: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Annotations.from_arrays([1], [1], ["no"], classes=classes, answers=answers)


def test_labels_outside_the_answers_and_answers_before_the_classes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"declared \['no', 'yes', 'maybe'\]; got 'skip' at row 4 .* in answers"):
        made(answers=["no", "maybe", "yes"])
    with pytest.raises(ValueError, match=r"must start with the classes in their order, \['no', 'yes', 'maybe'\]"):
        Annotations([0], [0], [0], [1], [1], np.array(["no", "yes"]), np.array(["no", "maybe", "yes"]))  # type: ignore[arg-type]


def test_matrices_and_files_take_answers(tmp_path: Path) -> None:
    ann = Annotations.from_matrix([[0, 2], [1, -1]], classes=[0, 1], answers=[0, 1, 2])
    assert (ann.n_answers, ann.label.tolist()) == (3, [0, 2, 1])
    lo.write(made(), tmp_path / "labels.csv")
    again = lo.read_annotations(tmp_path / "labels.csv", classes=["no", "yes"], answers=["no", "maybe", "yes", "skip"])
    assert again == made()


MAYBE: dict[str, Any] = {"classes": ["no", "yes"], "answers": ["no", "maybe", "yes"]}


def unsure() -> lo.Annotations:
    said = np.array(["no", "yes", "maybe"] * 8, dtype=object)
    return lo.Annotations.from_arrays(np.repeat(np.arange(12), 2), np.tile(["a", "b"], 12), said, **MAYBE)


def test_blocks_on_disk_routers_plans_and_reports_take_classes_alone(tmp_path: Path) -> None:
    lo.write(unsure(), tmp_path / "labels.parquet")
    with pytest.raises(ValueError, match=r"one of the declared \['no', 'yes'\]; got 'maybe'"):
        sharded.prepare(tmp_path / "labels.parquet", tmp_path / "blocks", classes=["no", "yes"])
    with pytest.raises(ValueError, match=r"label must be among \['no', 'yes'\]; got 'maybe'"):
        Router([1, 2], ["no", "yes"]).add(1, "ann", "maybe")
    with pytest.raises(ValueError, match=r"got 3 answers for 2 classes. Fit to annotations.only_classes\(\) to plan"):
        planning.plan(lo.DawidSkene().fit(unsure()))
    questions = crowd(n_tasks=10, n_questions=2, redundancy=3).annotations
    with pytest.raises(TypeError, match="where annotations are of questions; got DawidSkene"):
        lo.write_report(tmp_path / "report.html", lo.DawidSkene().fit(questions.of_question("q0")), questions)


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
