"""The forms of X and y: what is taken for what, and what is refused."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from labelonce import (
    MBEM,
    Annotations,
    DawidSkene,
    OracleConfusion,
    OracleCorrect,
    SoftmaxRegression,
    TrainOnAggregate,
)
from labelonce.data import OtherAnswersWarning
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


def answered() -> tuple[Any, Annotations]:
    """Return six tasks, of two classes that are their features, and answers of which 2 is no class."""
    rows = (np.repeat(np.arange(6), 2), np.tile([0, 1], 6), [0, 0, 1, 2, 0, 0, 1, 1, 2, 0, 1, 1])
    return np.array([0.0, 1, 0, 1, 0, 1])[:, None], Annotations.from_arrays(*rows, classes=[0, 1], answers=[0, 1, 2])


def test_learners_for_classes_leave_other_answers_out() -> None:
    features, ann = answered()
    with pytest.warns(OtherAnswersWarning, match="OracleCorrect counts only .*; 2 of 12 annotations, such as 2,"):
        clf = OracleCorrect([0, 1, 0, 1, 0, 1], SoftmaxRegression()).fit(features, ann)
    assert clf.predict(features).tolist() == [0, 1, 0, 1, 0, 1]


def test_a_model_trained_on_an_aggregate_takes_the_answers_that_its_aggregator_takes() -> None:
    features, ann = answered()
    clf = TrainOnAggregate(DawidSkene(), SoftmaxRegression()).fit(features, ann)
    assert clf.confusion_.shape == (2, 2, 3)
    assert clf.predict(features).tolist() == [0, 1, 0, 1, 0, 1]
    assert -1.5 < clf.score(features, ann) < -0.1
    with pytest.raises(ValueError, match=r"must have the answers of the fit, \[0, 1, 2\]; got \[0, 1\]"):
        clf.score(features, ann.only_classes())


def test_known_workers_may_give_other_answers() -> None:
    features, ann = answered()
    confusion = np.tile([[0.8, 0.1, 0.1], [0.1, 0.5, 0.4]], (2, 1, 1))
    clf = OracleConfusion(confusion, SoftmaxRegression()).fit(features, ann)
    said = confusion[0, :, 1] * confusion[0, :, 2]  # of task 1
    np.testing.assert_allclose(clf.posterior_[1], said / said.sum())
