"""The ways to fit among which `MBEM` may choose, and the rule that settles one option of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labelonce._kernels import ScipyEngine
from labelonce._types import Codes
from labelonce.data import Annotations
from labelonce.data._answers import disagreement
from labelonce.learning._features import GivenLearner
from labelonce.learning._learner import Learner
from labelonce.learning._predict import out_of_fold
from labelonce.learning._rounds import Recipe, fit_model, learner_of_round, vote_targets

MEMORISED = 0.25  # share of the disagreement of models that did not see the task


@dataclass(frozen=True)
class Candidate:
    """One of the ways to fit that the options leave open: a learner given, its transformed features, and a recipe."""

    given: GivenLearner
    X: Any
    recipe: Recipe


def memorises(learner: Learner, X: Any, annotations: Annotations, gold: Codes | None, seed: int, n_folds: int) -> bool:
    """Return whether a learner reproduces labels that it should disagree with.

    Only disagreement tells workers apart. A model that has memorised the labels agrees with everybody, so that
    all workers look alike; then they must be judged by models that did not see the task.
    """
    posterior, weight = vote_targets(ScipyEngine(annotations, "float64"), gold)
    rng = np.random.default_rng([seed, 0])
    learner = learner_of_round(learner, 1, 1, np.random.default_rng([seed, 0]))
    model = fit_model(learner, X, posterior, weight)
    fresh = out_of_fold(learner, X, posterior, weight, n_folds=n_folds, rng=rng)
    own_left, fresh_left = (
        disagreement(annotations, predictions.argmax(axis=1)) for predictions in (model.predict_proba(X), fresh)
    )
    return own_left < (1 - MEMORISED) * fresh_left
