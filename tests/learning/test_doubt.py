"""Doubt: the two warnings, with the numbers seen, and silence where all is well."""

import warnings
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from labelonce import MBEM, Annotations, SoftmaxRegression
from labelonce.learning._doubt import DoubtWarning, warn_of_doubt
from labelonce.learning._rounds import Round

LABEL = np.repeat([0, 1], 10)
ANN = Annotations.from_arrays(np.arange(20), np.zeros(20, dtype=int), LABEL)


def judged(picks: Any, ann: Annotations = ANN) -> list[str]:
    """The warnings for a last round with these picks."""
    values = dict.fromkeys((field.name for field in fields(Round)), None)
    last = Round(**(values | {"predictions": np.eye(ann.n_classes)[picks]}))  # type: ignore[arg-type]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_doubt(ann, last)
    assert all(one.category is DoubtWarning for one in caught)
    return [str(one.message) for one in caught]


def test_agreement_near_chance_is_named() -> None:
    (message,) = judged(np.tile([0, 1], 10))
    assert message.startswith("MBEM: the model agrees with 50.0% of the labels where chance gives 50.0%")
    assert "use better features" in message


def test_drifted_classes_are_named() -> None:
    (message,) = judged(np.where(np.arange(20) < 3, 0, 1))
    assert "picks class 1 for 85.0% of the tasks while 50.0% of the labels say so (drift 0.35, above 0.3)" in message


def test_a_class_is_named_by_its_id() -> None:
    named = Annotations.from_arrays(ANN.task, ANN.worker, np.array(["no", "yes"])[LABEL])
    assert "picks class 'yes' for 85.0%" in judged(np.where(np.arange(20) < 3, 0, 1), named)[0]


@pytest.mark.parametrize("n_wrong", [0, 3, 5])
def test_a_fit_in_order_is_silent(n_wrong: int) -> None:
    assert judged(np.where(np.arange(20) < n_wrong, 1, LABEL)) == []


def test_one_class_leaves_no_doubt() -> None:
    assert judged(np.zeros(4, dtype=int), Annotations.from_matrix(np.zeros((4, 1), dtype=int))) == []


def test_the_warning_points_at_the_call_of_fit() -> None:
    model = MBEM(SoftmaxRegression(), rounds=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(np.zeros((20, 1)), ANN)
    assert [one.filename for one in caught] == [__file__, __file__]
