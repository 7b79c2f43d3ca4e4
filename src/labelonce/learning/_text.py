"""A strong sparse model of texts: word and character n-grams, and softmax regression behind them."""

from collections.abc import Mapping, Set
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline, make_pipeline

from labelonce._messages import show
from labelonce._rules import RULES
from labelonce._sklearn import BaseEstimator, check_is_fitted
from labelonce._validate import check_int
from labelonce.data import PackedStrings
from labelonce.learning._softmax import SoftmaxRegression

_KINDS: tuple[dict[str, Any], ...] = (
    {"analyzer": "word", "ngram_range": (1, 2), "token_pattern": r"(?u)\b\w+\b"},
    {"analyzer": "char_wb", "ngram_range": (2, 5)},
)


class TextFeatures(BaseEstimator):
    """TF-IDF of words and pairs of words, and of 2 to 5 characters within words, side by side.

    Frequencies count by their logarithm. Terms of a single text are left out unless nothing else is there.

    Parameters
    ----------
    min_df : int
        Smallest number of texts that a term must be in.

    Attributes
    ----------
    n_terms_ : int
        Number of columns.

    Examples
    --------
    >>> TextFeatures(min_df=1).fit_transform(["a cat", "a dog"]).shape
    (2, 28)
    """

    def __init__(self, *, min_df: int = 2) -> None:
        self.min_df = min_df

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  # pipelines hand it over
        """Learn the terms of the texts and their weights."""
        texts, min_df = as_texts(X), check_int(self.min_df, "min_df", 1)
        if not texts:
            raise ValueError("texts must be at least one; got 0.")
        self._parts = [part for kind in _KINDS if (part := _fitted(kind, texts, min_df)) is not None]
        self.n_terms_ = sum(len(part.vocabulary_) for part in self._parts)
        return self

    def transform(self, X: Any) -> Any:
        """Return the weights of the terms of each text, a sparse matrix."""
        check_is_fitted(self, "n_terms_")
        texts = as_texts(X)
        return sparse.hstack([part.transform(texts) for part in self._parts], format="csr")

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and return the weights of the same texts."""
        return self.fit(X, y).transform(X)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_parts" in state:
            state["_parts"] = [_packed(part) for part in self._parts]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "_parts" in state:
            state["_parts"] = [_unpacked(part) for part in state["_parts"]]
        super().__setstate__(state)


class TextComponents(TextFeatures):
    """The strongest components of `TextFeatures`, few numbers per text, for fits that take seconds.

    Examples
    --------
    >>> TextComponents(min_df=1).fit_transform(["a cat", "a dog", "a car"]).shape
    (3, 3)
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the terms of the texts and their components."""
        terms = super().fit(X, y)
        values = super().transform(X)
        self._components = TruncatedSVD(min(RULES.text_components, *values.shape), random_state=0).fit(values)
        return terms

    def transform(self, X: Any) -> Any:
        """Return the components of each text, (n_texts, n_components)."""
        return self._components.transform(super().transform(X))


def text_model(C: Any = RULES.text_penalties) -> list[Pipeline]:
    """Return `TextFeatures` before `SoftmaxRegression`, one pipeline for each penalty C, for `MBEM` to choose from.

    What `labelonce train --text` uses. The transformer is one object in all pipelines, so that `MBEM` fits it once.

    Examples
    --------
    >>> import labelonce as lo
    >>> from labelonce.learning import text_model
    >>> ann = lo.Annotations.from_matrix([[0, 0], [0, 0], [1, 1], [1, 1]] * 5)
    >>> texts = ["a good film", "good acting", "a bad film", "bad acting"] * 5
    >>> lo.MBEM(text_model(), rounds=1).fit(texts, ann).predict(["good", "bad"])
    array([0, 1])
    """
    features = TextFeatures()
    return [make_pipeline(features, SoftmaxRegression(C=value)) for value in np.atleast_1d(C).tolist()]


def as_texts(X: Any) -> list[str]:
    _check_column(X)
    texts = list(X)
    bad = next((row for row, text in enumerate(texts) if not isinstance(text, str)), None)
    if bad is not None:
        raise TypeError(f"texts must be strings; got {show(texts[bad])} at row {bad}. Leave out tasks without a text.")
    empty = [row for row, text in enumerate(texts) if not text.strip()]
    if empty:
        raise ValueError(
            f"texts must not be empty; got {show(texts[empty[0]])} at row {empty[0]} ({len(empty)} in total). "
            "Leave out tasks without a text."
        )
    return texts


def _check_column(X: Any) -> None:
    """Raise an error for what is not a row of values in order, such as one string or a table."""
    must = "texts must be a list or one column of strings"
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) != 1:
        names = list(getattr(X, "columns", ()))
        fix = f"Give df[{names[0]!r}]." if len(names) == 1 and isinstance(names[0], str) else "Give one column."
        raise TypeError(f"{must}; got {type(X).__name__} of shape {tuple(shape)}. {fix}")
    if isinstance(X, str | bytes | Set | Mapping) or not hasattr(X, "__len__"):
        fix = "Give [text] for a single one." if isinstance(X, str) else "Give a list of strings."
        raise TypeError(f"{must}; got {show(X)} of type {type(X).__name__}. {fix}")


def _vectorizer(kind: dict[str, Any], **options: Any) -> Any:
    return TfidfVectorizer(sublinear_tf=True, **kind, **options)


def _fitted(kind: dict[str, Any], texts: list[str], min_df: int) -> Any:
    """Return a fitted vectorizer; without `min_df` where it leaves nothing, None where there is nothing at all."""
    for least in dict.fromkeys((min_df, 1)):
        try:
            return _vectorizer(kind, min_df=least).fit(texts)
        except ValueError:  # an empty vocabulary
            continue
    return None


def _packed(part: Any) -> dict[str, Any]:
    terms = sorted(part.vocabulary_, key=part.vocabulary_.__getitem__)
    return {"analyzer": part.analyzer, "terms": PackedStrings.of(terms), "idf": part.idf_}


def _unpacked(state: dict[str, Any]) -> Any:
    kind = next(kind for kind in _KINDS if kind["analyzer"] == state["analyzer"])
    terms = state["terms"].unpack().tolist()
    part = _vectorizer(kind, vocabulary=dict(zip(terms, range(len(terms)), strict=True)))
    part.idf_ = state["idf"]
    return part
