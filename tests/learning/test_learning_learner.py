"""The base of learners: what one that says nothing else is taken for."""

from typing import Any

import numpy as np
import pytest

from labelonce import MBEM, BoostedTrees, SoftmaxRegression
from labelonce.learning import Learner, RepeatedRows
from labelonce.learning._adapter import as_learner


def test_a_learner_is_chosen_alone_for_tables_and_every_round_is_alike() -> None:
    learner = SoftmaxRegression(C=3.0)
    assert (learner.auto, learner.shared, learner.any_shape, learner.last_round_differs) == ({}, False, False, False)
    assert learner.for_round(1, 5) is not learner
    assert learner.for_round(1, 5).get_params() == learner.for_round(5, 5).get_params() == learner.get_params()


@pytest.mark.parametrize("learner", [SoftmaxRegression(), BoostedTrees(), RepeatedRows(SoftmaxRegression())])
def test_our_learners_are_learners_and_used_as_they_are(learner: Any) -> None:
    assert isinstance(learner, Learner)
    assert as_learner(learner) is learner


class Cheap(SoftmaxRegression):
    """A learner with rounds of its own."""

    auto = {"rounds": 2, "predictions": "in_sample"}  # noqa: RUF012


def test_auto_is_what_the_learner_says_it_is() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    clf = MBEM(Cheap()).fit(X, X[:, 0] > 0)
    assert (clf.n_rounds_, clf.recipe_["predictions"], clf.choices_) == (2, "in_sample", [])
    assert MBEM(Cheap(), rounds=1).fit(X, X[:, 0] > 0).n_rounds_ == 1
