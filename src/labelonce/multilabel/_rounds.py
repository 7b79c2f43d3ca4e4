"""The rounds for several questions: fit the heads, re-estimate the workers, recompute every answer, fit again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from labelonce._sklearn import clone, count_rows, select_rows
from labelonce._types import Codes, Floats, Mask
from labelonce.learning._calibration import pull_in_round
from labelonce.multilabel._annotations import MultiLabelAnnotations
from labelonce.multilabel._answer_sums import AnswerSums
from labelonce.multilabel._base import votes_of
from labelonce.multilabel._hierarchy import SharedWorkers
from labelonce.multilabel._sigmoid import SigmoidRegression

N_FOLDS = 5
_REFINEMENTS = 10  # E and M steps on the workers within a round at most
_SETTLED = 1e-3  # mean change of the posterior in such a step: near the fixed point
_EXPONENTS = (0.3, 5.0)  # between which predictions are flattened or sharpened
_SHIFT = 8.0
_SURE = 20.0  # worth of the belief that predictions need no exponent, in answers
_SOFT = 0.1  # and that they need no shift
_CERTAIN = 1e-6


@dataclass(frozen=True)
class Recipe:
    """How the rounds are done: the heads, whether workers vary by skill, and what judges them."""

    learner: Any
    by_skill: bool = False
    predictions: str = "out_of_fold"
    rounds: int = 5
    weighting: str = "information"


@dataclass(frozen=True)
class Round:
    """What one round found; `posterior` and `log_odds`, the prediction's after calibration, are of pairs.

    `model` was fitted to all tasks, `parts` without a fold each, where the next round's fits start from them.
    """

    number: int
    model: Any
    parts: list[Any]
    posterior: Floats
    log_odds: Floats
    workers: SharedWorkers
    evidence: Floats
    calibration: Calibration


@dataclass(frozen=True)
class Calibration:
    """What makes the heads' predictions P(yes): an exponent and a shift of the log-odds of every question."""

    exponent: Floats
    shift: Floats

    def apply(self, log_odds: Floats, question: Codes) -> Floats:
        """Return calibrated log-odds of pairs."""
        return np.asarray(self.exponent[question] * log_odds + self.shift[question])


def run_rounds(
    X: Any,
    annotations: MultiLabelAnnotations,
    recipe: Recipe,
    gold: Floats,
    seed: int,
    *,
    after: Round | None = None,
) -> Iterator[Round]:
    """Yield rounds, starting from the votes or after a round; `gold` is 0, 1 or -1 for every pair."""
    sums, n_tasks, n_questions = AnswerSums.of(annotations), annotations.n_tasks, annotations.n_questions
    place = sums.pair_task, sums.pair_question
    votes = np.where(gold >= 0, gold, votes_of(annotations))
    shares = np.bincount(place[1], votes, minlength=n_questions) + 0.5
    shares /= np.bincount(place[1], minlength=n_questions) + 1.0
    heads = Heads(recipe, n_tasks, seed, after)
    posterior: Floats = votes if after is None else after.posterior
    weight: Floats = np.ones(len(votes))
    if after is not None:
        weight = pair_weight(posterior, place[1], n_questions, recipe.weighting)
    for number in range(1 if after is None else after.number + 1, recipe.rounds + 1):
        targets = filled(posterior, place, (n_tasks, n_questions), 0.5)
        model, predicted = heads.fit(X, targets, filled(weight, place, targets.shape, 0.0))
        found = judge(sums, predicted[place], shares, gold, number, by_skill=recipe.by_skill)
        log_odds, workers, evidence, calibration = found
        posterior = answered(sums, log_odds, evidence, gold)
        weight = pair_weight(posterior, place[1], n_questions, recipe.weighting)
        yield Round(number, model, heads.parts, posterior, log_odds, workers, evidence, calibration)


class Heads:
    """The heads of all rounds: each fit of regressions starts where that of the round before ended, in every fold."""

    def __init__(self, recipe: Recipe, n_tasks: int, seed: int, after: Round | None) -> None:
        self._recipe = recipe
        self._fold = np.random.default_rng(seed).permutation(n_tasks) % N_FOLDS
        self._number = 0 if after is None else after.number
        self._model: Any = None if after is None else after.model
        self.parts: list[Any] = [] if after is None else after.parts

    def fit(self, X: Any, targets: Floats, weight: Floats) -> tuple[Any, Floats]:
        """Return the model, and what it says of the tasks; out of fold, by models that did not see the task."""
        self._number += 1
        learner: Any = self._recipe.learner
        if hasattr(learner, "for_round"):
            learner = learner.for_round(self._number, self._recipe.rounds)
        model = self._model = fit_heads(learner, X, targets, weight, self._model)
        if self._recipe.predictions == "in_sample":
            return model, model.predict_proba(X)
        found = np.empty_like(targets)
        before, self.parts = self.parts or [None] * N_FOLDS, []
        for fold in range(N_FOLDS):
            inside, outside = np.flatnonzero(self._fold != fold), np.flatnonzero(self._fold == fold)
            part = model  # which nothing but a task's own answers could teach, where it is the only one
            if len(inside):
                part = fit_heads(learner, select_rows(X, inside), targets[inside], weight[inside], before[fold])
            self.parts.append(part if isinstance(part, SigmoidRegression) else None)
            if len(outside):
                found[outside] = part.predict_proba(select_rows(X, outside))
        return model, found


def fit_heads(learner: Any, X: Any, targets: Floats, weight: Floats, before: Any) -> Any:
    """Return a copy of the learner, fitted; a regression starts from the one `before`, if there is one."""
    heads = clone(learner)
    if isinstance(heads, SigmoidRegression):
        return heads.fit(X, targets, weight, start=before)
    return heads.fit(X, targets, weight)


def judge(
    sums: AnswerSums, predicted: Floats, shares: Floats, gold: Floats, number: int, *, by_skill: bool
) -> tuple[Floats, SharedWorkers, Floats, Calibration]:
    """Return the log-odds of pairs before their answers, the workers, their evidence and the calibration.

    Workers are counted against the picks of predictions first. In the first round, where the model predicts answers
    rather than the truth, that is all, and every label is as likely as not. Later the calibrated prediction takes the
    place of the prior, and the workers are counted against the posterior that they give themselves.
    """
    n_questions = len(shares)
    picks = np.where(gold >= 0, gold, (predicted > 0.5).astype(np.float64))
    counts = sums.counts(picks)
    workers = SharedWorkers.of(counts, sums, by_skill=by_skill)
    for _ in range(3):
        workers.refine(counts, sums)
    evidence = workers.evidence(counts, sums)
    said = sums.by_pair(sums.log_ratios(evidence, picks))
    if number == 1:
        even = Calibration(np.ones(n_questions), np.zeros(n_questions))
        return np.zeros(len(picks)), workers, evidence, even
    shown, pull = log_odds_of(predicted), pull_in_round(number)
    found = calibrate(shown, said, sums.pair_question, shares, pull)
    log_odds = found.apply(shown, sums.pair_question)
    posterior = np.where(gold >= 0, gold, expit(log_odds + said))
    for step in range(_REFINEMENTS):
        counts = sums.counts(posterior)
        workers.refine(counts, sums, strengths=step % 3 == 0)
        evidence = workers.evidence(counts, sums)
        said = sums.by_pair(sums.log_ratios(evidence, posterior))
        moved = np.where(gold >= 0, gold, expit(log_odds + said))
        change, posterior = float(np.abs(moved - posterior).mean()), moved
        if change < _SETTLED:
            break
    found = calibrate(shown, said, sums.pair_question, shares, pull, found)
    return found.apply(shown, sums.pair_question), workers, evidence, found


def answered(sums: AnswerSums, log_odds: Floats, evidence: Floats, gold: Floats) -> Floats:
    """Return P(yes) of pairs after their answers, each answer judged by the worker's others."""
    said = sums.by_pair(sums.log_ratios(evidence))
    posterior = expit(log_odds + sums.by_pair(sums.log_ratios(evidence, expit(log_odds + said))))
    return np.where(gold >= 0, gold, posterior)


def calibrate(
    shown: Floats, said: Floats, question: Codes, shares: Floats, pull: float, start: Calibration | None = None
) -> Calibration:
    """Return the exponents and shifts with which predictions explain the answers best.

    `shown` are the log-odds of predictions, `said` what the answers say. A question's share of yes is pulled to that of
    its answers, as in `MBEM`, less strongly in every round: while the workers are poorly known, the likelihood alone
    would give up rare labels.
    """
    n = len(shares)
    total = np.maximum(np.bincount(question, minlength=n), 1)

    def loss(point: Floats) -> tuple[float, Floats]:
        exponent, shift = np.exp(point[:n])[question], point[n:][question]
        odds = exponent * shown + shift
        chance = expit(odds)
        share = np.clip(np.bincount(question, chance, minlength=n) / total, 1e-9, 1 - 1e-9)
        likelihood = (np.logaddexp(0, odds + said) - np.logaddexp(0, odds)).sum()
        pulled = pull * total @ (shares * np.log(share) + (1 - shares) * np.log1p(-share))
        doubt = 0.5 * (_SURE * point[:n] @ point[:n] + _SOFT * point[n:] @ point[n:])
        slope = expit(odds + said) - chance
        slope += (pull * (shares / share - (1 - shares) / (1 - share)))[question] * chance * (1 - chance)
        by_exponent = np.bincount(question, slope * exponent * shown, minlength=n) - _SURE * point[:n]
        by_shift = np.bincount(question, slope, minlength=n) - _SOFT * point[n:]
        return float(doubt - likelihood - pulled), -np.concatenate([by_exponent, by_shift])

    point = np.zeros(2 * n) if start is None else np.concatenate([np.log(start.exponent), start.shift])
    bounds = [tuple(np.log(_EXPONENTS))] * n + [(-_SHIFT, _SHIFT)] * n
    found = minimize(loss, point, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 40}).x
    return Calibration(np.exp(found[:n]), found[n:])


def pair_weight(posterior: Floats, question: Codes, n_questions: int, weighting: str) -> Floats:
    """Return how much each pair counts in the next fit: by information, scaled to one per pair of a question."""
    if weighting == "none":
        return np.ones(len(posterior))
    chance = np.clip(posterior, 1e-12, 1 - 1e-12)
    entropy = -(chance * np.log(chance) + (1 - chance) * np.log1p(-chance))
    weight = np.clip(1 - entropy / np.log(2), 0.0, 1.0)
    found, wanted = np.bincount(question, weight, minlength=n_questions), np.bincount(question, minlength=n_questions)
    scale = np.divide(wanted, found, out=np.zeros(n_questions), where=found > 1e-9)
    return np.where(scale[question] > 0, weight * scale[question], 1.0)


def filled(values: Floats, place: tuple[Codes, Codes], shape: tuple[int, ...], rest: float) -> Floats:
    """Return values of pairs as an array (n_tasks, n_questions), with `rest` where nobody was asked."""
    found = np.full(shape, rest)
    found[place] = values
    return found


def log_odds_of(probability: Floats) -> Floats:
    """Return the log-odds of probabilities, none of them certain."""
    return np.asarray(logit(np.clip(probability, _CERTAIN, 1 - _CERTAIN)))


def held_out_scores(
    X: Any, annotations: MultiLabelAnnotations, recipe: Recipe, gold: Floats, seed: int, held_out: Mask
) -> Floats:
    """Return the log-probability of the answers about each task held out, by a trial that has not seen the task."""
    inside = np.flatnonzero(~held_out)
    seen = annotations.select(~held_out)
    last = None
    pair_task = annotations.task[annotations.pair_start]
    for last in run_rounds(select_rows(X, inside), seen, recipe, gold[~held_out[pair_task]], seed):  # noqa: B007
        pass
    assert last is not None
    rows = np.flatnonzero(held_out[annotations.task])
    task, question = annotations.task[rows], annotations.question[rows]
    model = fit_last(select_rows(X, inside), seen, recipe, last)
    outside = np.flatnonzero(held_out)
    place = np.cumsum(held_out) - 1
    shown = log_odds_of(model.predict_proba(select_rows(X, outside))[place[task], question])
    yes = expit(last.calibration.apply(shown, question))
    sums = AnswerSums.of(seen)
    table = sums.table(last.evidence, last.workers.worker, annotations.n_questions)
    chance = table[annotations.worker[rows], question, :, annotations.answer[rows]]
    log_chance = np.log(yes * chance[:, 1] + (1 - yes) * chance[:, 0])
    return np.asarray(np.bincount(place[task], log_chance, minlength=len(outside)), dtype=np.float64)


def fit_last(X: Any, annotations: MultiLabelAnnotations, recipe: Recipe, last: Round) -> Any:
    """Return heads fitted to the posterior of the last round."""
    start = annotations.pair_start
    place = annotations.task[start], annotations.question[start]
    shape = count_rows(X), annotations.n_questions
    weight = pair_weight(last.posterior, place[1], annotations.n_questions, recipe.weighting)
    targets, weights = filled(last.posterior, place, shape, 0.5), filled(weight, place, shape, 0.0)
    return fit_heads(recipe.learner, X, targets, weights, last.model)
