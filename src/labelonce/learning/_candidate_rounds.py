"""The rounds at many classes: posteriors live on candidates, workers are factors, nothing follows tasks x classes."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from labelonce._kernels import Candidates, Mistakes, candidate_classes
from labelonce._sklearn import clone
from labelonce._types import Codes, Floats
from labelonce.data import Annotations
from labelonce.learning._candidate_judge import CandidateJudge
from labelonce.learning._candidate_predictions import candidates_out_of_fold, predict_candidates
from labelonce.learning._fits import count_fit
from labelonce.learning._learner import Learner
from labelonce.learning._predict import take_rows
from labelonce.learning._rounds import Recipe, Round, fit_model, learner_of_round

TOP = 5  # classes of the model's that are candidates of every task


def candidate_rounds(
    X: Any,
    annotations: Annotations,
    recipe: Recipe,
    *,
    gold: Codes | None,
    seed: int,
    last: int,
    after: Round | None = None,
) -> Iterator[Round]:
    """Yield rounds without end, from the vote fractions or `after` a round that was reached before."""
    posterior, weight = vote_candidates(annotations, gold)
    start = weight
    number, picks = 0, None
    model: Learner | None = None
    if after is not None:
        number, posterior, weight = after.number, after.posterior, after.weight
        picks, model = after.predictions.top_class(), after.model
    while True:
        number += 1
        rng = np.random.default_rng([seed, number])
        learner = learner_of_round(recipe.learner, number, last, rng)
        model = fit_again(learner, X, posterior, weight, model)
        asked = Asked(model, learner, X, posterior, weight, recipe, rng)
        judge = judge_after(asked, annotations, gold, picks)
        workers, prior, found, log_likelihood = judge.verdict(number)
        fitted_to, picks = (posterior, weight), judge.predictions.top_class()
        weight = candidate_weight(recipe, found, start, first=number == 1)
        seen = (found, weight, workers, log_likelihood)
        this = Round(number, model, judge.predictions, workers.factors_, prior, *seen, *fitted_to)
        posterior = found
        yield this
        del asked, judge, found, fitted_to, seen, this  # what only they hold would lie beside the next round's


def fit_again(learner: Learner, X: Any, targets: Candidates, weight: Floats, before: Learner | None) -> Learner:
    """Return a learner fitted to the tasks that have a weight; it starts where the last round ended, if it can."""
    if before is None or not getattr(learner, "warm_start", False):
        return fit_model(learner, X, targets, weight)
    fitted: Learner = copy(before).set_params(**learner.get_params(deep=False))
    rows = np.flatnonzero(weight > 0)
    if len(rows) < len(targets):
        X, targets, weight = take_rows(X, rows), targets[rows], weight[rows]
    fitted.fit(X, targets, sample_weight=weight)
    count_fit()
    return fitted


class Asked(NamedTuple):
    """A round's model, and what it takes to fit others like it to a part of the tasks."""

    model: Learner
    learner: Learner
    X: Any
    targets: Candidates
    weight: Floats
    recipe: Recipe
    rng: np.random.Generator

    def predict(self, own: Codes, top: int) -> Candidates:
        """Return predictions on candidates and the top few, by the model or by models that did not see the task."""
        if self.recipe.predictions == "in_sample":
            return predict_candidates(self.model, self.X, own, top)
        n_folds = self.recipe.n_folds
        return candidates_out_of_fold(
            self.learner, self.X, self.targets, self.weight, own, top, n_folds=n_folds, rng=self.rng
        )


def judge_after(asked: Asked, annotations: Annotations, gold: Codes | None, picks: Codes | None) -> CandidateJudge:
    """Return the judge of a model's predictions; `picks` are those of the last round, if there was one.

    Which mistakes workers make is known by groups, or told by a model's picks: those of the round before, and in
    the first round its own, for which it is asked twice. Posteriors would not do: where they side with the labels
    there are no mistakes, and then they always will.
    """
    more = None if gold is None else gold[:, None]
    workers: Any = clone(asked.recipe.worker_model)
    if workers.needs_picks:
        if picks is None:
            labels = candidate_classes(annotations, Mistakes.of([], [], annotations.n_classes), more)
            picks = asked.predict(labels, 1).top_class()
        workers.prepare(annotations, picks)
    else:
        workers.prepare(annotations)
    own = candidate_classes(annotations, workers.pattern[0], more)
    predictions = asked.predict(own, TOP)
    return CandidateJudge.of(annotations, asked.recipe, gold, workers, predictions, own)


def vote_candidates(annotations: Annotations, gold: Codes | None) -> tuple[Candidates, Floats]:
    """Return the vote fractions and weight 1 where there are any; tasks without labels wait with weight 0."""
    none = Mistakes.of([], [], annotations.n_classes)
    classes = candidate_classes(annotations, none, None if gold is None else gold[:, None])
    own = (classes[annotations.task] == annotations.label[:, None]).argmax(axis=1)
    votes = np.bincount(annotations.task * classes.shape[1] + own, minlength=classes.size).reshape(classes.shape)
    total = votes.sum(axis=1)
    probability = votes / np.maximum(total, 1)[:, None]
    found = Candidates(classes, probability, (total == 0).astype(np.float64), annotations.n_classes).with_gold(gold)
    labelled = total > 0 if gold is None else (total > 0) | (gold >= 0)
    return found, labelled.astype(np.float64)


def candidate_weight(recipe: Recipe, posterior: Candidates, start: Floats, *, first: bool) -> Floats:
    """Return how much each task counts in the next fit, as `task_weight` does."""
    if recipe.weighting == "information":
        weight = posterior.information()
        found = float(weight.sum())
        return np.asarray(weight * (start.sum() / found)) if found > 1e-9 else start
    return np.ones(len(posterior)) if recipe.posterior == "joint" and not first else start
