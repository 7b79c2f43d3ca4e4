"""Scores without gold under scikit-learn's cross-validation, where a fold may lack a class."""

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import KFold, cross_val_score

from labelonce import MBEM, Annotations, DawidSkene, SoftmaxRegression, TrainOnAggregate
from labelonce._types import Codes, Floats
from labelonce.learning import annotation_log_likelihood

every_classifier = pytest.mark.parametrize("kind", ["MBEM", "TrainOnAggregate"])


def classifier(kind: str, classes: Any) -> Any:
    if kind == "TrainOnAggregate":
        return TrainOnAggregate(DawidSkene(), SoftmaxRegression(), classes=classes)
    options: dict[str, Any] = {"rounds": 2, "classes": classes}
    return MBEM(SoftmaxRegression(), **options)


def crowd() -> tuple[Floats, Codes]:
    """Features and the labels of two workers for 60 tasks; the last class is that of the first three tasks only."""
    rng = np.random.default_rng(0)
    y_true = np.concatenate([[2] * 3, np.arange(57) % 2]).astype(np.int32)
    X = rng.normal(size=(60, 2)) + 3 * np.eye(3)[y_true, :2]
    return X, np.column_stack([y_true, np.where(rng.random(60) < 0.8, y_true, -1)])


@every_classifier
def test_with_declared_classes_a_fold_may_lack_one(kind: str) -> None:
    X, labels = crowd()
    scores = cross_val_score(classifier(kind, [0, 1, 2]), X, labels, cv=KFold(20), error_score="raise")
    assert np.isfinite(scores).all()
    assert scores[0] < scores[1:].min()  # a class that the fit has never seen


@every_classifier
def test_without_them_the_error_says_what_to_declare(kind: str) -> None:
    X, labels = crowd()
    with pytest.raises(ValueError, match=r"one of the declared \[0, 1\]; got 2 at row 0 .* Declare it in classes"):
        cross_val_score(classifier(kind, None), X, labels, cv=KFold(20), error_score="raise")


@every_classifier
def test_declared_classes_keep_their_order(kind: str) -> None:
    X, labels = crowd()
    fitted = classifier(kind, [2, 7, 0, 1]).fit(X, labels)
    assert fitted.classes_.tolist() == [2, 7, 0, 1]
    assert fitted.predict_proba(X)[:, 1].max() < 0.1
    with pytest.raises(ValueError, match=r"one of the declared \[0, 1\]; got 2 at row 0"):
        classifier(kind, [0, 1]).fit(X, labels)


def test_an_aggregate_is_scored_with_its_own_workers() -> None:
    X, labels = crowd()
    fitted = classifier("TrainOnAggregate", None).fit(X, labels)
    workers = fitted.aggregator_.confusion_
    expected = annotation_log_likelihood(Annotations.from_matrix(labels), fitted.predict_proba(X), workers)
    assert fitted.score_annotations(X, labels) == expected
    assert fitted.score(X, labels[:, 0]) == (fitted.predict(X) == labels[:, 0]).mean()
