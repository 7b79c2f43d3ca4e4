"""The forms of X and y: what is taken for what, and what is refused."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from labelonce import MBEM, Annotations
from labelonce.learning._inputs import check_features, is_matrix, match_rows

X = np.zeros((3, 2))
MATRIX = np.array([[0, -1], [1, 1], [-1, 0]])


def test_matrices_of_any_kind_are_the_same_annotations() -> None:
    expected = Annotations.from_matrix(MATRIX)
    stored = sparse.coo_array(([0, 1, 1, 0], ([0, 1, 1, 2], [0, 0, 1, 1])), shape=(3, 2))
    for form in (MATRIX, MATRIX.tolist(), np.where(MATRIX < 0, np.nan, MATRIX), stored, expected):
        assert match_rows(X, form)[1] == expected


def test_plain_labels_are_one_workers() -> None:
    ann = match_rows(X, ["b", "a", "b"])[1]
    assert (ann.n_workers, ann.classes.tolist(), ann.label.tolist()) == (1, ["a", "b"], [1, 0, 1])


def test_the_classes_of_a_fit_keep_their_places() -> None:
    assert match_rows(X, [2, 2, 1], classes=np.array([0, 1, 2]))[1].label.tolist() == [2, 2, 1]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (Annotations.from_matrix(MATRIX[:2]), r"each of the 2 tasks of the annotations; got 3 rows. Give tasks="),
        (MATRIX[:2], "same number of rows; got 3 and 2"),
        ([0, 1], "same number of rows; got 3 and 2"),
        (None, "the target y is None"),
        (np.zeros((3, 2, 1)), r"got shape \(3, 2, 1\)"),
        (5, r"got shape \(\)"),
        (np.full((3, 2), -1), "annotations must have at least one row; got 0"),
        ([0.5, 1.2, 3.3], "Unknown label type: continuous"),
        ([0.0, 1.0, np.nan], "Input y contains NaN"),
    ],
)
def test_what_fits_no_form_is_refused(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        match_rows(X, y)[1]


@pytest.mark.parametrize(
    ("y", "expected"),
    [(MATRIX, True), (MATRIX.tolist(), True), (sparse.csr_array(MATRIX), True), ([0, 1], False), (MATRIX[0], False)],
)
def test_a_matrix_is_told_from_labels(y: Any, expected: bool) -> None:
    assert is_matrix(y) is expected
    assert is_matrix(Annotations.from_matrix(MATRIX))


def test_one_row_of_numbers_is_refused_and_a_list_of_texts_is_not() -> None:
    with pytest.raises(ValueError, match=r"got shape \(3,\). Reshape your data"):
        check_features(MBEM(), np.zeros(3), reset=True)
    check_features(MBEM(), ["some", "texts"], reset=True)


def test_the_number_of_features_is_remembered() -> None:
    model = MBEM()
    check_features(model, X, reset=True)
    with pytest.raises(ValueError, match="X has 1 features, but MBEM is expecting 2"):
        check_features(model, X[:, :1], reset=False)


@pytest.mark.parametrize("missing", [np.nan, None, -1])
def test_text_labels_may_be_missing(missing: Any) -> None:
    ann = match_rows(np.zeros((2, 1)), [["a", missing], ["b", "a"]])[1]
    assert ann.classes.tolist() == ["a", "b"]
    assert len(ann) == 3


def test_masked_labels_are_missing() -> None:
    matrix = np.ma.masked_array([[0, 1, 1], [1, 0, 0]], [[False, False, True]] * 2)
    assert match_rows(np.zeros((2, 1)), matrix)[1].n_workers == 3
    assert len(match_rows(np.zeros((2, 1)), matrix)[1]) == 4
    assert len(match_rows(np.zeros((3, 1)), np.ma.masked_array([0, 1, 1], [False, False, True]))[1]) == 2
