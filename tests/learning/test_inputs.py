"""The forms of X and y: what is taken for what, and what is refused."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from labelonce import (
    MBEM,
    Annotations,
    BoostedTrees,
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
    assert clf.score(features, ann) > 0.5
    assert -1.5 < clf.score_annotations(features, ann) < -0.1
    with pytest.raises(ValueError, match=r"must have the answers of the fit, \[0, 1, 2\]; got \[0, 1\]"):
        clf.score_annotations(features, ann.only_classes())


def test_known_workers_may_give_other_answers() -> None:
    features, ann = answered()
    confusion = np.tile([[0.8, 0.1, 0.1], [0.1, 0.5, 0.4]], (2, 1, 1))
    clf = OracleConfusion(confusion, SoftmaxRegression()).fit(features, ann)
    said = confusion[0, :, 1] * confusion[0, :, 2]  # of task 1
    np.testing.assert_allclose(clf.posterior_[1], said / said.sum())


def numbered(n: int = 12) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return features and labels that one name of a column joins, in another order."""
    ids = np.arange(n) + 4320
    labels = pd.DataFrame({"Review ID": ids, "who": np.arange(n) % 3, "Rating": np.where(ids % 2, "good", "bad")})
    return pd.DataFrame({"Review ID": ids[::-1], "x": ids[::-1] % 2.0, "y": 1.0}), labels


def annotations(labels: pd.DataFrame) -> Annotations:
    return Annotations.from_frame(labels, task="Review ID", worker="who", label="Rating")


@pytest.mark.parametrize("form", [lambda X: X, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"])
def test_rows_are_matched_by_the_column_that_the_annotations_called_the_task(form: Any) -> None:
    features, labels = numbered()
    X, ann = match_rows(form(features), annotations(labels))
    assert ann.tasks.tolist() == features["Review ID"].tolist()
    assert list(getattr(X, "column_names", None) or X.columns) == ["x", "y"]


def test_a_column_of_task_ids_under_another_name_is_never_a_feature() -> None:
    features, labels = numbered()
    other = features.rename(columns={"Review ID": "number"})
    ids = features["Review ID"]
    for X, tasks in ((other, None), (other, ids), (features.assign(task=ids), None)):
        with pytest.raises(ValueError, match=r"column '(number|task)' of X must not be a feature: it holds the ids"):
            match_rows(X, annotations(labels), tasks)


def test_a_feature_that_only_resembles_ids_stays() -> None:
    features, labels = numbered()
    X = features.assign(rank=np.arange(12), twice=features["Review ID"] * 2, again=4320)
    assert match_rows(X, annotations(labels))[0].columns.tolist() == ["x", "y", "rank", "twice", "again"]


def test_predict_takes_the_features_by_name_and_leaves_ids_alone() -> None:
    features, labels = numbered(60)
    clf = MBEM(SoftmaxRegression(), rounds=1).fit(features, annotations(labels))
    wanted = clf.predict_proba(features[["x", "y"]])
    for X in (features, features.rename(columns={"Review ID": "id"}), features.assign(shop="a")):
        np.testing.assert_array_equal(clf.predict_proba(X), wanted)
    with pytest.raises(ValueError, match="Feature names seen at fit time, yet now missing"):
        clf.predict(features[["Review ID", "x"]])


@pytest.mark.parametrize("form", [lambda y: y, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"])
def test_labels_may_be_a_data_frame(form: Any) -> None:
    features, labels = numbered()
    frame = labels.set_axis(["task", "worker", "label"], axis=1)
    expected = match_rows(features, annotations(labels))[1]
    assert match_rows(features.rename(columns={"Review ID": "task"}), form(frame))[1] == expected


def test_a_data_frame_of_labels_under_other_names_is_refused_with_the_way_to_make_annotations() -> None:
    features, labels = numbered()
    texts = labels.astype(str)
    for frame in (labels, texts, labels.assign(Rating=1), pd.concat([labels, labels])):
        with pytest.raises(
            ValueError, match=r"columns \['Review ID', 'who', 'Rating'\]\. Make .* Annotations\.from_frame"
        ):
            match_rows(features, frame)


def test_a_data_frame_may_be_a_matrix_of_labels() -> None:
    frame = pd.DataFrame(MATRIX, columns=["ann", "bob"])
    assert len(match_rows(X, frame)[1]) == 4
    words = pd.DataFrame({"ann": ["cat", None, "dog"], "bob": ["dog", "cat", None]})
    assert match_rows(X, words)[1].classes.tolist() == ["cat", "dog"]


DATES = pd.date_range("2026-01-01", periods=12)
FAULTS = {
    "text": (
        ["de", *["at"] * 11],
        r"column 'odd' must hold numbers; got 'de' at row 0 \(text\)\. Drop it, X.drop\(columns=",
    ),
    "late": ([*range(11), "many"], r"column 'odd' must hold numbers; got 'many' at row 11 \(text\)\."),
    "category": (pd.Categorical(["de"] * 12), r"got 'de' at row 0 \(category\)\. .*OneHotEncoder"),
    "date": (DATES, r"got datetime.* at row 0 \(date\)\. Make a number of it, such as the days"),
    "missing": (
        [1.0] * 11 + [np.nan],
        r"finite numbers; got NaN in column 'odd' at row 11 \(1 in total\)\. Fill them in",
    ),
    "none": ([1.0, None] * 6, r"got NaN in column 'odd' at row 1 \(6 in total\)"),
    "infinite": ([1.0] * 11 + [-np.inf], r"got -inf in column 'odd' at row 11 \(1 in total\)\. Replace them"),
}


@pytest.mark.filterwarnings("ignore::labelonce.DoubtWarning")  # twelve tasks
@pytest.mark.parametrize(("column", "says"), FAULTS.values(), ids=FAULTS)
def test_what_is_no_feature_is_named_with_column_value_and_fix(column: Any, says: str) -> None:
    features, labels = numbered()
    X = features.assign(odd=column)
    with pytest.raises(ValueError, match=says):
        MBEM().fit(X, annotations(labels))
    clf = MBEM(SoftmaxRegression(), rounds=1).fit(features.assign(odd=0.0), annotations(labels))
    with pytest.raises(ValueError, match=says):
        clf.predict(X)


@pytest.mark.parametrize(
    "kind", [np.array, sparse.csr_array, lambda X: X.astype(object)], ids=["array", "sparse", "object"]
)
def test_arrays_name_the_number_of_the_column(kind: Any) -> None:
    values = np.ones((3, 2))
    values[2, 1] = np.nan
    with pytest.raises(ValueError, match=r"got NaN in column 1 at row 2 \(1 in total\)"):
        MBEM().fit(kind(values), [0, 1, 0])


def test_learners_that_take_more_than_numbers_are_left_alone() -> None:
    features, _ = numbered()
    X = features.assign(shop=["a", "b"] * 6, gap=[np.nan, 1.0] * 6)
    check_features(MBEM(make_pipeline(OneHotEncoder(), LogisticRegression())), X, reset=True)
    check_features(MBEM(HistGradientBoostingClassifier()), X, reset=True)
    check_features(MBEM(BoostedTrees()), X.drop(columns="shop"), reset=True)
    with pytest.raises(ValueError, match="column 'shop' must hold numbers; got 'a'"):
        check_features(MBEM(BoostedTrees()), X, reset=True)
