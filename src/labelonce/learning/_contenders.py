"""The ways to fit among which `MBEM` may choose, and the rule that settles one option of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from labelonce._kernels import ScipyEngine
from labelonce._types import Codes, Floats
from labelonce.data import Annotations
from labelonce.data._answers import disagreement
from labelonce.learning._features import GivenLearner
from labelonce.learning._fits import FRUGAL_FOLDS
from labelonce.learning._learner import Learner
from labelonce.learning._predict import out_of_fold
from labelonce.learning._rounds import (
    Recipe,
    Round,
    fit_model,
    learner_of_round,
    run_rounds,
    vote_targets,
)

MEMORISED = 0.25  # share of the disagreement of models that did not see the task, as far as it can be avoided


@dataclass(frozen=True)
class Contender:
    """One of the ways to fit that the options leave open: a learner given, its transformed features, and a recipe.

    `first` is its first round, where that was done already to find out whether the learner memorises.
    """

    given: GivenLearner
    X: Any
    recipe: Recipe
    first: Round | None = None


def memorises(learner: Learner, X: Any, annotations: Annotations, gold: Codes | None, seed: int, n_folds: int) -> bool:
    """Return whether a learner reproduces labels that it should disagree with."""
    posterior, weight = vote_targets(ScipyEngine(annotations, "float64"), gold)
    rng = np.random.default_rng([seed, 0])
    learner = learner_of_round(learner, 1, 1, np.random.default_rng([seed, 0]))
    model = fit_model(learner, X, posterior, weight)
    fresh = out_of_fold(learner, X, posterior, weight, n_folds=n_folds, rng=rng)
    return reproduces(annotations, model.predict_proba(X), fresh)


def begun(
    contender: Contender, annotations: Annotations, gold: Codes | None, seed: int, last: int, *, keep: bool = False
) -> Contender:
    """Return a contender after its first round, out of fold, which one more fit tells whether to do the others so.

    If that model, fitted to all tasks, is to `keep`, it is the model of the round instead of those of the folds.
    """
    out = replace(contender.recipe, predictions="out_of_fold", of_folds=True)
    first = next(run_rounds(contender.X, annotations, out, gold=gold, seed=seed, last=last))
    learner = learner_of_round(out.learner, 1, last, np.random.default_rng([seed, 0]))
    model = fit_model(learner, contender.X, first.targets, first.target_weight)
    own = model.predict_proba(contender.X)
    recipe = out if reproduces(annotations, own, first.predictions) else replace(out, predictions="in_sample")
    return replace(contender, recipe=recipe, first=replace(first, model=model) if keep else first)


def alike(contenders: list[Contender]) -> list[Contender]:
    """Return contenders that can be judged by the same tasks: if one is out of fold, all are."""
    if not any(one.recipe.predictions == "out_of_fold" for one in contenders):
        folds: dict[str, Any] = {"of_folds": False, "n_folds": FRUGAL_FOLDS}
        return [replace(one, recipe=replace(one.recipe, **folds), first=None) for one in contenders]
    return [replace(one, recipe=replace(one.recipe, predictions="out_of_fold", of_folds=True)) for one in contenders]


def reproduces(annotations: Annotations, own: Floats, fresh: Floats) -> bool:
    """Return whether a model agrees with labels that models which did not see the task disagree with.

    Only disagreement tells workers apart. A model that has memorised the labels agrees with everybody, so that
    all workers look alike; then they must be judged by models that did not see the task. With several labels per task
    nobody agrees with all of them, and whoever knows them by heart agrees as often as the vote.
    """
    votes = ScipyEngine(annotations, "float64").vote_counts()
    own_left, fresh_left, least = (disagreement(annotations, one.argmax(axis=1)) for one in (own, fresh, votes))
    return fresh_left - own_left > MEMORISED * (fresh_left - least)
