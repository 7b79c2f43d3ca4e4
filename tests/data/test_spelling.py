"""Ids that look alike or like nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelonce.data import _spelling
from labelonce.data._spelling import alike, blank_twins, look_missing, spellings


def ids(*names: str) -> np.ndarray:
    return np.array(names, dtype=object)


@pytest.mark.parametrize("other", ["Cat", "cat ", " CAT", "cat\u00a0", "\uff43at"])
def test_capitals_blanks_and_forms_make_labels_alike_however_frequent(other: str) -> None:
    assert alike({"cat": 10, other: 10}) == [("cat", other)]


@pytest.mark.parametrize(("one", "other"), [("off topic", "off-topic"), ("off_topic", "Off  topic")])
def test_hyphens_make_labels_alike(one: str, other: str) -> None:
    assert alike({one: 3, other: 9}) == [(one, other)]


@pytest.mark.parametrize("slip", ["cta", "ca", "cats", "bat", "act", "xcat"])
def test_a_rare_slip_of_a_frequent_label_is_alike(slip: str) -> None:
    if len(slip) < 3:
        assert alike({"cat": 40, slip: 1}) == []
    else:
        assert alike({"cat": 40, slip: 2}) == [(slip, "cat")]
        assert alike({"cat": 40, slip: 3}) == []


@pytest.mark.parametrize(
    "labels", [["cat", "dog"], ["class1", "class2"], ["C", "C++"], ["cat", "tac"], ["a", "b"], ["+", "-"]]
)
def test_labels_that_mean_different_things_are_left_alone(labels: list[str]) -> None:
    assert alike({labels[0]: 1000, labels[1]: 1}) == []


@pytest.mark.parametrize("other", ["1.0", "01", "+1", "1.", " 1 ", "\uff11"])
def test_numbers_of_equal_value_are_alike(other: str) -> None:
    assert alike({other: 10, "1": 20}) == [(other, "1")]


@pytest.mark.parametrize("labels", [["1", "-1"], ["1", "10"], ["1.5", "15"], ["2", "2.01"], ["9" * 40, "9" * 39 + "8"]])
def test_numbers_of_other_values_are_left_alone(labels: list[str]) -> None:
    assert alike({labels[0]: 1000, labels[1]: 1}) == []


def test_labels_of_megabytes_are_compared_without_their_slips() -> None:
    long = "x" * 3_000_000
    assert alike({long: 40, long[:-1] + "y": 1, "X" + long[1:]: 30}) == [("X" + long[1:], long)]


def test_integers_have_no_spelling() -> None:
    assert alike({1: 1000, 11: 1}) == []


@given(st.text("abc", min_size=3, max_size=6), st.text("abc", min_size=3, max_size=6))
def test_a_slip_is_one_edit_or_one_swap(one: str, other: str) -> None:
    found = _spelling._one_slip([one, other]) != []
    assert found == (one != other and other in _edits(one))


def _edits(word: str) -> set[str]:
    """Return every word one letter or one swap away, by brute force."""
    cuts = [(word[:i], word[i:]) for i in range(len(word) + 1)]
    gone = {a + b[1:] for a, b in cuts if b}
    swapped = {a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1}
    wrong = {a + c + b[1:] for a, b in cuts if b for c in "abc"}
    more = {a + c + b for a, b in cuts for c in "abc"}
    return gone | swapped | wrong | more


def test_words_for_nothing_are_found() -> None:
    assert look_missing(ids("kim", " ", "NaN", "None", "null")) == [" ", "NaN", "None", "null"]
    assert look_missing(ids("None", "nan"), strict=True) == ["nan"]
    assert look_missing(np.array([1, 2])) == []


def test_ids_that_differ_in_blanks_are_twins() -> None:
    assert blank_twins(ids("kim", "Kim", "kim "), case=False) == [("kim ", "kim")]
    assert blank_twins(ids("kim", "Kim", "kim "), case=True) == [("Kim", "kim"), ("kim ", "kim")]
    assert blank_twins(np.array([1, 2]), case=True) == []


@pytest.mark.parametrize("other", ["Book", " book", "book.", "\u201cbook\u201d", "BOOK!"])
def test_case_blanks_and_punctuation_around_are_spellings_of_one_label(other: str) -> None:
    assert spellings({"book": 9, other: 3, "film": 5}) == {other: "book"}


def test_the_spelling_that_was_declared_stands_even_if_it_is_rare() -> None:
    assert spellings({"book": 9, "Book": 1}, declared=["Book", "Film"]) == {"book": "Book"}


def test_a_slip_of_the_keyboard_is_left_to_a_person() -> None:
    assert spellings({"book": 90, "bok": 1, "C": 3, "C++": 3, "+": 1, "-": 1, "?": 1}) == {}


def test_a_single_label_loses_the_blanks_around_it() -> None:
    assert spellings({"book ": 9, "1.0": 3, "1": 1, "01": 3}) == {"book ": "book", "1": "1.0", "01": "1.0"}
