"""The rounds at many classes: posteriors live on candidates, workers are factors, nothing follows tasks x classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from labelonce._kernels import (
    CandidateEngine,
    Candidates,
    Mistakes,
    candidate_classes,
    make_candidate_engine,
    normalise,
)
from labelonce._sklearn import clone
from labelonce._types import Codes, Floats, Mask
from labelonce.data import Annotations
from labelonce.learning._calibration import pull_in_round
from labelonce.learning._candidate_calibration import (
    CandidateCalibration,
    Spoken,
    calibrate_candidates,
    calibrated_log_prior,
)
from labelonce.learning._candidate_predictions import predict_candidates
from labelonce.learning._fits import count_fit
from labelonce.learning._learner import Learner
from labelonce.learning._predict import fit_to_rows, take_rows
from labelonce.learning._rounds import Recipe, Round, fit_model, learner_of_round
from labelonce.workers import Grouped

TOP = 5  # classes of the model's that are candidates of every task
_REFINEMENTS = 10  # E and M steps on the workers within a round at most
_SETTLED = 1e-3  # mean change of the chances of being right in such a step: near the fixed point
_FEW_TASKS, _MANY_TASKS = 10_000, 50_000  # to calibrate by: 30 per class, within these
_SINGLE = 10**7  # candidates of all annotations from which sums are in float32


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
        judge = CandidateJudge.after(asked, annotations, gold, picks)
        workers, prior, found, log_likelihood = judge.verdict(number)
        fitted_to, picks = (posterior, weight), judge.predictions.top_class()
        weight = candidate_weight(recipe, found, start, first=number == 1)
        seen = (found, weight, workers, log_likelihood)
        this = Round(number, model, judge.predictions, workers.factors_, prior, *seen, *fitted_to)
        posterior = found
        yield this


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


def candidates_out_of_fold(
    learner: Any,
    X: Any,
    targets: Candidates,
    weight: Floats,
    own: Codes,
    top: int,
    *,
    n_folds: int,
    rng: np.random.Generator,
) -> Candidates:
    """Return predictions for every task by a model that was fitted without it, on `own` and its `top` classes.

    Where no other task has a weight, nothing is known: equal probabilities.
    """
    fold = rng.permutation(len(targets)) % n_folds
    n_classes = targets.n_classes
    width = own.shape[1] + top
    classes = np.full((len(own), width), -1, dtype=np.int32)
    classes[:, : own.shape[1]] = own
    even = (classes >= 0) / n_classes
    probability, rest = even, 1 - even.sum(axis=1)
    for number in np.unique(fold):
        seen = np.flatnonzero((fold != number) & (weight > 0))
        left_out = np.flatnonzero(fold == number)
        if not len(seen):
            continue
        model = fit_to_rows(learner, X, targets, weight, seen)
        found = predict_candidates(model, take_rows(X, left_out), own[left_out], top)
        n = found.classes.shape[1]
        classes[left_out, :n], probability[left_out, :n], rest[left_out] = found.classes, found.probability, found.rest
    used = max(1, int((classes >= 0).sum(axis=1).max(initial=1)))
    return Candidates(classes[:, :used], probability[:, :used], rest, n_classes)


class CandidateJudge:
    """Predictions on candidates and the annotations of their tasks: what they say of the workers and of each other."""

    def __init__(
        self,
        annotations: Annotations,
        recipe: Recipe,
        gold: Codes | None,
        workers: Grouped,
        predictions: Candidates,
        spoken: Mask,
    ) -> None:
        self.annotations, self.recipe, self.gold = annotations, recipe, gold
        self.workers, self.predictions, self.spoken = workers, predictions, spoken
        self.heard: Floats | None = None  # what the labels say, where each is judged by others
        size = len(annotations) * (predictions.classes.shape[1] + 1)
        self.sums = self._engine(annotations, predictions.classes, "float32" if size > _SINGLE else "float64")

    def _engine(self, annotations: Annotations, classes: Codes, dtype: str = "float64") -> CandidateEngine:
        engine, device = self.recipe.engine, self.recipe.device
        return make_candidate_engine(
            annotations, classes, *self.workers.pattern, dtype=dtype, engine=engine, device=device
        )

    @classmethod
    def after(
        cls,
        asked: Asked,
        annotations: Annotations,
        gold: Codes | None,
        picks: Codes | None,
    ) -> CandidateJudge:
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
        spoken: Mask = np.ones_like(predictions.classes, dtype=bool)
        if len(workers.pattern[0]):
            spoken[:] = False
            kept = min(own.shape[1], spoken.shape[1])
            spoken[:, :kept] = (own[:, :kept] >= 0) & (predictions.classes[:, :kept] == own[:, :kept])
        return cls(annotations, asked.recipe, gold, workers, predictions, spoken)

    def verdict(self, number: int) -> tuple[Grouped, Floats, Candidates, float]:
        """Return the workers, the class prior, the posteriors and the log-likelihood of a round."""
        first = number == 1
        picks = self._picks()
        soft = self.recipe.counts == "soft" and not first
        counted = self.predictions.with_gold(self.gold) if soft else picks
        self.workers.fit_tallies(self.sums.m_step(counted), first=True)
        prior = self._class_prior(picks)
        if self.recipe.posterior == "prior" or first:
            log_prior = self._by_class(prior)
        else:
            log_prior = self._calibrated(number, prior)
        if self.heard is not None:
            joint = (self.heard + self._with_gold(log_prior)).astype(self.sums.dtype, copy=False)
            log_likelihood = normalise(joint)
            return self.workers, prior, self.sums.as_candidates(joint), log_likelihood
        step = self.sums.e_step(self.workers.factors_, self._with_gold(log_prior))
        return self.workers, prior, step.posterior, step.log_likelihood

    def _picks(self) -> Candidates:
        """Return the most probable class among those that the labels speak for, of every task; gold where known."""
        probability = self.predictions.probability
        score = probability + self.spoken  # those that they speak for are above all others
        best = np.zeros_like(probability)
        best[np.arange(len(best)), np.where(self.predictions.classes >= 0, score, -1.0).argmax(axis=1)] = 1.0
        certain = Candidates(self.predictions.classes, best, np.zeros(len(best)), self.predictions.n_classes)
        return certain.with_gold(self.gold)

    def _calibrated(self, number: int, prior: Floats) -> Floats:
        """Return the calibrated log prior of every task, and refine the workers by it."""
        n_classes = self.annotations.n_classes
        given = np.bincount(self.annotations.label, minlength=n_classes) + 1.0
        shares = given / given.sum() if isinstance(self.recipe.prior, str) else prior
        pull, tasks = pull_in_round(number), self._sample()
        some = Spoken.of(self.predictions[tasks], self.spoken[tasks])
        one_of = np.isin(np.arange(len(self.predictions)), tasks)
        sums = self._engine(self.annotations.select(one_of), self.predictions.classes[tasks])
        found = CandidateCalibration.none(n_classes)
        found = calibrate_candidates(some, sums.messages(self.workers.factors_), shares, pull, found)
        if self.recipe.counts == "refined" and isinstance(self.workers, Grouped):
            found = self._listen(found, lambda said, near: calibrate_candidates(some, said[tasks], shares, pull, near))
        self.calibration = found
        return calibrated_log_prior(self.predictions, self.spoken, found, self.sums.dtype)

    def _listen(
        self, found: CandidateCalibration, calibrate: Callable[[Floats, CandidateCalibration], CandidateCalibration]
    ) -> CandidateCalibration:
        """Estimate workers and calibration by each other, near the fixed point; return the calibration.

        What a label says of its task is judged by the other labels of its worker. Else every label would vouch for
        itself through its worker, and predictions that agree with the labels would seem too sure.
        """
        evidence = self.sums.evidence()
        for _ in range(_REFINEMENTS):
            before = self.workers.factors_.right
            log_prior = calibrated_log_prior(self.predictions, self.spoken, found, self.sums.dtype)
            said = evidence.step(self.workers.chances, self.workers.factors_, self._with_gold(log_prior))
            self.workers.fit_evidence(said)
            self.heard = said.messages
            found = calibrate(said.messages, found)
            if float(np.abs(self.workers.factors_.right - before).mean()) < _SETTLED:
                break
        return found

    def _sample(self) -> Any:
        """Return tasks with labels to calibrate by, all or a draw of many, always the same, in order."""
        labelled = np.flatnonzero(np.bincount(self.annotations.task, minlength=self.annotations.n_tasks))
        most = int(np.clip(30 * self.annotations.n_classes, _FEW_TASKS, _MANY_TASKS))
        if len(labelled) > most:
            labelled = np.sort(np.random.default_rng(0).choice(labelled, most, replace=False))
        return labelled

    def _class_prior(self, picks: Candidates) -> Floats:
        """Return P(true label): given, the share of the model's picks, the one that explains the labels, or uniform."""
        n_classes, prior = self.annotations.n_classes, self.recipe.prior
        if not isinstance(prior, str):
            return np.asarray(prior, dtype=np.float64)
        if prior == "picks":
            mass = picks.shares()
            return np.asarray(mass / mass.sum())
        learned = np.full(n_classes, 1 / n_classes)
        for _ in range(20 if prior == "learned" else 0):
            mass = self.sums.e_step(self.workers.factors_, self._by_class(learned)).posterior.shares() + 1.0
            learned = mass / mass.sum()
        return learned

    def _by_class(self, prior: Floats) -> Floats:
        """Return a class prior as the log prior of every task's candidates."""
        classes = self.predictions.classes
        wide = np.zeros((len(classes), classes.shape[1] + 1), dtype=self.sums.dtype)
        np.copyto(wide[:, :-1], prior.astype(wide.dtype).take(classes, mode="wrap"), where=classes >= 0)
        wide[:, -1] = np.maximum(1 - wide[:, :-1].sum(axis=1), 0.0)
        with np.errstate(divide="ignore"):
            return np.log(wide, out=wide)

    def _with_gold(self, log_prior: Floats) -> Floats:
        if self.gold is None:
            return log_prior
        known = np.flatnonzero(self.gold >= 0)
        own = self.predictions.classes[known] == self.gold[known, None]
        log_prior[known] = np.where(np.pad(own, ((0, 0), (0, 1))), 0.0, -np.inf)
        return log_prior


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
