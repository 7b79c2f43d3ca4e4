"""Learners that know labels by heart are told from those that do not."""

from typing import Any, Self

import numpy as np

from labelonce import Annotations
from labelonce._types import Floats
from labelonce.learning import Learner
from labelonce.learning._contenders import memorises


class Memory(Learner):
    """A learner that knows the targets of the rows it saw by heart, and nothing of others."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: ARG002
        self.n_classes_ = y.shape[1]
        self.seen_ = {float(row[0]): target for row, target in zip(X, y, strict=True)}
        return self

    def predict_proba(self, X: Any) -> Floats:
        unknown = np.full(self.n_classes_, 1 / self.n_classes_)
        return np.array([self.seen_.get(float(row[0]), unknown) for row in X])


class Constant(Memory):
    """A learner that says the same of every task."""

    def predict_proba(self, X: Any) -> Floats:
        return np.full((len(X), self.n_classes_), 1 / self.n_classes_)


def test_a_learner_by_heart_memorises_and_a_constant_one_does_not() -> None:
    label = np.random.default_rng(0).integers(0, 2, 50)
    ann = Annotations.from_arrays(np.arange(50), np.zeros(50, dtype=int), label)
    X = np.arange(50.0)[:, None]
    assert memorises(Memory(), X, ann, None, seed=0, n_folds=5)
    assert not memorises(Constant(), X, ann, None, seed=0, n_folds=5)


def test_knowing_the_votes_by_heart_is_memorising_where_most_labels_lose_them() -> None:
    labels = np.random.default_rng(0).integers(0, 6, (50, 10))
    ann = Annotations.from_matrix(labels, classes=np.arange(6))
    X = np.arange(50.0)[:, None]
    assert memorises(Memory(), X, ann, None, seed=0, n_folds=5)
    assert not memorises(Constant(), X, ann, None, seed=0, n_folds=5)
