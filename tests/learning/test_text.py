"""The text model: what it sees, that its state is small and whole, that it is fitted once."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from skops.io import dumps, loads

from labelonce import MBEM, SoftmaxRegression
from labelonce.data._packed_strings import PackedStrings
from labelonce.learning import TextFeatures, text_model

TEXTS = ["good film", "bad film", "very good", "very bad", "ein schöner 影 film\n\tgood"]


def test_words_pairs_and_characters_are_seen() -> None:
    features = TextFeatures(min_df=1).fit(["ab cd"])
    words, characters = (set(part.vocabulary_) for part in features._parts)
    assert words == {"ab", "cd", "ab cd"}
    assert characters == {" a", "ab", "b ", " ab", "ab ", " ab ", " c", "cd", "d ", " cd", "cd ", " cd "}


def test_rows_have_unit_length_in_each_half() -> None:
    X = TextFeatures(min_df=1).fit_transform(TEXTS)
    assert np.asarray(X.multiply(X).sum(axis=1)).ravel() == pytest.approx(2.0)


def test_a_word_misspelt_still_shares_characters() -> None:
    X = TextFeatures(min_df=1).fit(TEXTS).transform(["goood", "zzz"])
    assert X[0].nnz > 0
    assert X[1].nnz == 0


def test_rare_terms_are_left_out_unless_all_are_rare() -> None:
    assert set(TextFeatures().fit(TEXTS)._parts[0].vocabulary_) == {"good", "film", "bad", "very"}
    assert TextFeatures().fit(["one"]).n_terms_ > 0


@pytest.mark.parametrize("copied", ["pickle", "skops"])
def test_a_copy_gives_the_same_numbers(copied: str) -> None:
    features = TextFeatures(min_df=1).fit(TEXTS)
    names = [f"{kind.__module__}.{kind.__name__}" for kind in (TextFeatures, PackedStrings)]
    again = pickle.loads(pickle.dumps(features)) if copied == "pickle" else loads(dumps(features), trusted=names)
    first, second = features.transform([*TEXTS, "new film"]), again.transform([*TEXTS, "new film"])
    assert_array_equal(first.toarray(), second.toarray())
    assert first.dtype == second.dtype


def test_an_unfitted_copy_is_unfitted() -> None:
    assert not hasattr(pickle.loads(pickle.dumps(TextFeatures(min_df=3))), "n_terms_")


@pytest.mark.parametrize(("texts", "message"), [(["a", None], "got None at row 1"), ([], "at least one; got 0")])
def test_what_is_no_text_is_refused(texts: list[Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        TextFeatures().fit(texts)


def test_empty_texts_are_refused() -> None:
    fitted = TextFeatures().fit(TEXTS)
    for work in (TextFeatures().fit, fitted.transform):
        with pytest.raises(ValueError, match=r"^texts must not be empty; got ' ' at row 1 \(2 in total\)\. Leave out"):
            work(["a film", " ", "a play", ""])


NOT_A_COLUMN: dict[str, tuple[Any, str]] = {
    "one string": ("good film", r"got 'good film' of type str\. Give \[text\] for a single one"),
    "bytes": (b"good film", "of type bytes"),
    "a set": ({"good", "bad"}, "of type set"),
    "a mapping": ({"good": 1}, "of type dict"),
    "an iterator": (iter(["good", "bad"]), "of type list_iterator"),
    "nothing": (None, "got None of type NoneType"),
    "one number": (np.array("good"), r"got ndarray of shape \(\)"),
    "a matrix": (np.array([["good"], ["bad"]], dtype=object), r"got ndarray of shape \(2, 1\)\. Give one column"),
    "a frame": (pd.DataFrame({"text": TEXTS[:3]}), r"got DataFrame of shape \(3, 1\)\. Give df\['text'\]\."),
    "two columns": (pd.DataFrame({"a": TEXTS, "b": TEXTS}), r"DataFrame of shape \(5, 2\)\. Give one column"),
    "an Arrow table": (pa.table({"text": TEXTS}), r"got Table of shape \(5, 1\)\. Give one column"),
}


@pytest.mark.parametrize("name", NOT_A_COLUMN)
def test_what_is_no_column_of_texts_is_refused(name: str) -> None:
    texts, message = NOT_A_COLUMN[name]
    fitted = TextFeatures().fit(TEXTS)
    for work in (TextFeatures().fit, fitted.transform):
        with pytest.raises(TypeError, match=rf"^texts must be a list or one column of strings; .*{message}"):
            work(texts)


@pytest.mark.parametrize("column", [tuple, np.array, pd.Series, lambda texts: np.array(texts, dtype=object)])
def test_every_column_of_texts_is_taken(column: Any) -> None:
    features = TextFeatures(min_df=1).fit(TEXTS)
    assert_array_equal(features.transform(column(TEXTS)).toarray(), features.transform(TEXTS).toarray())


@pytest.mark.parametrize("min_df", [-1, 0, 0.5, True, "2"])
def test_a_min_df_that_is_no_count_is_refused(min_df: Any) -> None:
    with pytest.raises(ValueError, match=f"min_df must be an integer of at least 1; got {min_df!r}"):
        TextFeatures(min_df=min_df).fit(TEXTS)


def test_the_candidates_share_features_that_are_fitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = []
    plain = TextFeatures.fit

    def counted(self: TextFeatures, X: Any, y: Any = None) -> TextFeatures:
        fits.append(len(X))
        return plain(self, X, y)

    monkeypatch.setattr(TextFeatures, "fit", counted)
    labels = np.tile(np.array([1, 0, 1, 0]), 10)
    clf = MBEM(text_model((0.5, 5.0)), rounds=2).fit(TEXTS[:4] * 10, labels)
    assert fits == [40]
    assert sorted(choice["learner"].C for choice in clf.choices_) == [0.5, 5.0]
    assert clf.predict(["good", "bad"]).tolist() == [1, 0]


def test_one_penalty_is_one_contender() -> None:
    ((_, learner),) = (pipeline.steps[-1] for pipeline in text_model(3.0))
    assert learner.get_params() == SoftmaxRegression(C=3.0).get_params()
