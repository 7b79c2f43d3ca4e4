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

import labelonce as lo
from labelonce import Annotations
from labelonce.data import OtherAnswersWarning
from labelonce.data._answers import only_classes

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


def test_a_scale_holds_no_class_and_keeps_its_order() -> None:
    ann = Annotations.from_arrays([1, 2], [1, 1], [5, 1], classes=["no", "yes"], answers=[1, 2, 3, 4, 5])
    assert (ann.is_scale, ann.label.tolist(), ann.answers.tolist()) == (True, [4, 0], [1, 2, 3, 4, 5])


def test_leanings_of_a_scale_go_from_the_first_class_to_the_last() -> None:
    ann = Annotations.from_arrays([1], [1], ["c"], classes=[0, 1, 2], answers=list("abcde"))
    expected = [[1, 0, 0], [0.5, 0.5, 0], [0, 1, 0], [0, 0.5, 0.5], [0, 0, 1]]
    assert_array_equal(ann.leaning, expected)


def test_answers_equal_to_the_classes_are_the_same_as_none() -> None:
    plain = Annotations.from_arrays([1, 2], [1, 1], ["a", "b"])
    for answers in (["a", "b"], ["b", "a"]):
        ann = Annotations.from_arrays([1, 2], [1, 1], ["a", "b"], classes=["a", "b"], answers=answers)
        assert ann.is_square
        assert ann == plain
        assert pickle.dumps(ann) == pickle.dumps(plain)


def test_square_annotations_are_pickled_as_before_there_were_answers() -> None:
    ann = Annotations.from_arrays([1, 2], [1, 1], ["a", "b"])
    assert len(ann.__reduce__()[1]) == 6


@given(ann=annotations(other_answers=True))
def test_a_pickle_and_a_table_give_back_the_same(ann: Annotations) -> None:
    assert pickle.loads(pickle.dumps(ann)) == ann
    again = Annotations.from_frame(ann.to_frame(), classes=ann.classes, answers=ann.answers, duplicates="keep")
    assert_array_equal(again.answers[again.label], ann.answers[ann.label])


def test_select_align_sample_and_parts_keep_the_answers() -> None:
    ann = made()
    mask = np.array([True, False, True])
    for other in (ann.select(mask), ann.align([3, 2, 1]), ann.sample(random_state=0)):
        assert other.answers.tolist() == ann.answers.tolist()
    assert ann.select(mask).answers[ann.select(mask).label].tolist() == ["no", "maybe", "skip"]


def test_equal_needs_equal_answers() -> None:
    assert made() == made()
    assert made() != made(answers=["no", "skip", "yes", "maybe"])
    rows = (["a"], ["x"], ["no"])
    assert Annotations.from_arrays(*rows, classes=["no", "yes"]) != Annotations.from_arrays(
        *rows, classes=["no", "yes"], answers=["no", "yes", "skip"]
    )


def test_only_classes_leaves_the_other_answers_out() -> None:
    plain = made().only_classes()
    assert plain.is_square
    assert (plain.classes[plain.label].tolist(), plain.n_tasks, plain.n_workers) == (["no", "yes", "yes"], 3, 2)


def test_only_classes_of_none_is_an_error() -> None:
    ann = Annotations.from_arrays([1], ["x"], ["skip"], classes=["no", "yes"], answers=["no", "yes", "skip"])
    with pytest.raises(ValueError, match=r"some answers must be classes, .*; got none in 1 annotations, .*'skip'"):
        ann.only_classes()


def test_a_method_for_classes_says_how_many_answers_it_leaves_out() -> None:
    with pytest.warns(OtherAnswersWarning, match=r"Vote counts .*; 2 of 5 annotations, such as 'maybe'"):
        assert len(only_classes(made(), "Vote")) == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert only_classes(made().only_classes(), "Vote").is_square


def test_relabel_merges_and_renames_answers() -> None:
    merged = made().relabel({"skip": "maybe"})
    assert merged.answers.tolist() == ["no", "yes", "maybe"]
    assert merged.answers[merged.label].tolist() == ["no", "maybe", "yes", "yes", "maybe"]
    renamed = made().relabel({"yes": "Y"})
    assert (renamed.classes.tolist(), renamed.answers.tolist()) == (["no", "Y"], ["no", "Y", "maybe", "skip"])
    counted = made().relabel({"maybe": "no", "skip": "no"})
    assert counted.is_square
    with pytest.raises(ValueError, match=r"classes and answers \['no', 'yes', 'maybe', 'skip'\]; got 'perhaps'"):
        made().relabel({"perhaps": "no"})


def test_relabel_by_a_permutation_is_of_answers() -> None:
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


def test_a_label_outside_the_answers_is_named() -> None:
    with pytest.raises(ValueError, match=r"declared \['no', 'yes', 'maybe'\]; got 'skip' at row 4 .* in answers"):
        made(answers=["no", "maybe", "yes"])


def test_the_constructor_wants_the_classes_first() -> None:
    with pytest.raises(ValueError, match=r"must start with the classes in their order, \['no', 'yes', 'maybe'\]"):
        Annotations([0], [0], [0], [1], [1], np.array(["no", "yes"]), np.array(["no", "maybe", "yes"]))  # type: ignore[arg-type]


def test_matrices_take_answers() -> None:
    ann = Annotations.from_matrix([[0, 2], [1, -1]], classes=[0, 1], answers=[0, 1, 2])
    assert (ann.n_answers, ann.label.tolist()) == (3, [0, 2, 1])


def test_files_take_answers(tmp_path: Path) -> None:
    lo.write(made(), tmp_path / "labels.csv")
    again = lo.read_annotations(tmp_path / "labels.csv", classes=["no", "yes"], answers=["no", "maybe", "yes", "skip"])
    assert again == made()
