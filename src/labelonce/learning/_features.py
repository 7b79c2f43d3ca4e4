"""Pipelines: their transformers are fitted once, before the rounds; their last step is the learner."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline

from labelonce._kernels import ScipyEngine
from labelonce._sklearn import ClassifierBase, check_is_fitted, clone
from labelonce._types import Floats
from labelonce.data import Annotations
from labelonce.learning._adapter import as_learner
from labelonce.learning._inputs import check_features, split_task_column
from labelonce.learning._learner import Learner
from labelonce.learning._predict import take_rows


class Features:
    """The transformers before the learner, if any; what they learn does not depend on the round."""

    def __init__(self, transformers: Pipeline | None = None) -> None:
        self._given = transformers
        self._fitted: Any = None

    def fit(self, X: Any, annotations: Annotations | None) -> Self:
        """Fit the transformers to all tasks; those that want labels get the vote, of the tasks that have any."""
        if self._given is None:
            return self
        if annotations is None:
            self._fitted = clone(self._given).fit(X)
            return self
        votes = ScipyEngine(annotations, "float32").vote_counts()
        labelled, vote = np.flatnonzero(votes.any(axis=1)), annotations.classes[votes.argmax(axis=1)]
        whole = clone(self._given)
        if len(labelled) == len(vote):
            self._fitted = whole.fit(X, vote)
            return self
        for _, step in whole.steps:
            if step is None or step == "passthrough":
                continue
            try:
                step.fit(X)
            except (TypeError, ValueError):  # without labels; their tags do not tell
                step.fit(take_rows(X, labelled), vote[labelled])
            X = step.transform(X)
        self._fitted = whole
        return self

    def transform(self, X: Any) -> Any:
        """Return the features of the tasks; sparse ones as rows, which can be taken by number."""
        found = X if self._fitted is None else self._fitted.transform(X)
        return found.tocsr() if sparse.issparse(found) else found


@dataclass(frozen=True)
class GivenLearner:
    """One of the learners that the user gave: its transformers, itself, and both together under their own names."""

    features: Features
    learner: Learner
    whole: Any


def given_learners(learner: Any, as_one: Callable[[Any], Learner] = as_learner) -> list[GivenLearner]:
    """Return what `learner` stands for: one learner or several, each with its transformers; `as_one` makes it one.

    Learners with the very same transformers share one `Features`, so that these are fitted once.
    """
    choices = learner if isinstance(learner, list | tuple) else [learner]
    if not choices:
        raise ValueError("learner must not be an empty list; got [].")
    shared: dict[tuple[int, ...], Features] = {}
    return [_split(choice, shared, as_one) for choice in choices]


def _split(choice: Any, shared: dict[tuple[int, ...], Features], as_one: Callable[[Any], Learner]) -> GivenLearner:
    if not isinstance(choice, Pipeline):
        learner = as_one(choice)
        return GivenLearner(shared.setdefault((), Features()), learner, learner)
    *before, (name, last) = choice.steps
    learner = as_one(last)
    features = shared.setdefault(tuple(id(step) for _, step in before), Features(choice[:-1] if before else None))
    whole = Pipeline(**choice.get_params(deep=False) | {"steps": [*before, (name, learner)]})
    return GivenLearner(features, learner, whole)


class FeaturesClassifier(ClassifierBase):
    """Base of the classifiers that fit a learner behind transformers: `_features`, `model_` and `classes_`."""

    _features: Features
    model_: Learner

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True  # whether it is, the learner says
        return tags

    def predict_proba(self, X: Any) -> Floats:
        """Return the model's P(class | features), shape (n_tasks, n_classes); no annotations are needed.

        Row i of the result is row i of X, whatever the ids of its rows.
        """
        check_is_fitted(self, "model_")
        X, _ = split_task_column(X, self)
        check_features(self, X, reset=False)
        return self.model_.predict_proba(self._features.transform(X))
