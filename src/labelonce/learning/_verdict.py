"""The last step: what people are shown, averaged over how right the best workers are.

The likelihood of labels cannot tell a weak model with good workers from a strong model with bad workers. One number of
the fit is not in the data, and it is named in plain words: *tau, how often the best fifth of the labels are right*. So
everything is done for a grid of tau, and averaged with weights that follow from what the labels say and from the
assumption that the best workers are nearly always right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtri

from labelonce._kernels import Beliefs, Evidence, mean_beliefs, normalise
from labelonce._rules import RULES
from labelonce._types import Codes, Floats, Mask
from labelonce.learning._calibration import best_exponent, log_wide, tempered
from labelonce.learning._judge import View
from labelonce.workers import WorkerModel

LEVEL = 0.9
_TINY = 1e-4  # weight of a candidate below which it is left out
_POINTS = 64  # that stand for a distribution


@dataclass(frozen=True)
class Estimate:
    """A number that is not known, and the ends of its 90 % range."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Case:
    """What the last step looks at: the labels as evidence, out-of-fold predictions of its rows, and what is known.

    `fold` is the part of every row, by which workers are counted without the labels that they are asked about; `votes`
    are the vote fractions on the slots of the predictions.
    """

    evidence: Evidence
    predictions: Beliefs
    gold: Codes | None
    balance: Floats | None
    fold: Codes
    votes: Beliefs
    kind: Codes | None = None
    worker_kind: Codes | None = None
    score: float = float("nan")
    informed: bool = True

    @classmethod
    def of(cls, view: View, score: float) -> Case:
        """Return the case of a view of out-of-fold predictions; `score` is that of held-out labels, where it is known.

        Predictions that tell no more of held-out labels than how often each is given are left out.
        """
        problem, predictions = view.problem, view.predictions
        fold = np.random.default_rng(0).permutation(problem.n_tasks) % RULES.verdict_folds
        votes = problem.votes(few=predictions.classes is not None)[0].on(predictions.classes)
        known = (problem.gold, problem.balance, fold[problem.task].astype(np.int32), votes)
        informed = not score <= label_entropy(problem.labels)
        if not informed:
            even = np.full(problem.labels.n_classes, 1 / problem.labels.n_classes)
            predictions = Beliefs.of(np.broadcast_to(even, predictions.shape)).on(predictions.classes)
        return cls(view.evidence, predictions, *known, problem.kind, problem.worker_kind, score, informed)

    @cached_property
    def log_predictions(self) -> Floats:
        """Log P(class) by row and slot, minus infinity where a slot is empty."""
        return log_wide(self.predictions)

    @cached_property
    def labelled(self) -> Mask:
        """Which rows have labels."""
        return np.bincount(self.evidence.labels.task, minlength=len(self.predictions)) > 0

    @cached_property
    def load(self) -> Floats:
        """The share of the labels that each worker gave."""
        labels = self.evidence.labels
        return np.bincount(labels.worker, minlength=labels.n_workers) / len(labels)

    @cached_property
    def parts(self) -> list[tuple[Mask, Evidence]]:
        """The rows of each fold, and their evidence."""
        held = [self.fold == number for number in np.unique(self.fold)]
        return [(rows, self.evidence.select(rows)) for rows in held]

    @cached_property
    def several(self) -> Evidence | None:
        """The evidence of rows with two or more labels; None where there are none."""
        labels = self.evidence.labels
        rows = np.bincount(labels.task, minlength=len(self.predictions)) > 1
        return self.evidence.select(rows) if rows.any() else None

    def prior_of(self, beliefs: Beliefs) -> Floats:
        """Return the class balance, (n_classes,) or (n_kinds, n_classes): the given one, or that of the beliefs."""
        if self.balance is not None:
            return self.balance
        if self.kind is None:
            mass = beliefs.class_counts() + 1.0
        else:
            mass = np.stack([np.bincount(self.kind, one) for one in beliefs.to_dense().T], axis=1) + 1.0
        return np.asarray(mass / mass.sum(axis=-1, keepdims=True))

    def of_workers(self, prior: Floats) -> Floats:
        """Return a class balance as the workers meet it: of their kind of rows."""
        return prior if self.worker_kind is None else prior[self.worker_kind]

    def select(self, rows: Mask) -> Case:
        """Return the case of some rows."""
        gold = None if self.gold is None else self.gold[rows]
        some = np.flatnonzero(rows)
        kind = None if self.kind is None else self.kind[rows]
        known = (gold, self.balance, self.fold[rows], self.votes[some], kind, self.worker_kind)
        return Case(self.evidence.select(rows), self.predictions[some], *known, self.score, self.informed)


@dataclass(frozen=True, eq=False)
class Candidate:
    """One way in which labels and predictions go together.

    `crowd` are the workers after they were moved by `factor`, so that the best fifth of the labels are right with
    `tau`; `exponent` is that of the predictions. `beliefs` follow from workers counted without the labels of each
    row's part. `score` is the log of its weight, but for the assumption about tau.
    """

    tau: float
    workers: WorkerModel
    crowd: Any
    factor: float
    exponent: float
    beliefs: Beliefs
    prior: Floats
    skill: Floats
    score: float = 0.0


@dataclass(frozen=True, eq=False)
class Verdict:
    """What people are shown of a fit.

    Attributes
    ----------
    posterior : Beliefs
        P(true class) of every row, in which no class is more probable than its label.
    labels : (n_rows,)
        The codes of the labels.
    crowd : Confusion
        The mean of P(given | true) over the candidates.
    prior : (n_classes,)
        The class balance.
    n_labels : (n_workers,)
        How many labels each worker gave.
    weights, taus : (n_candidates,)
        Of the candidates that count.
    skills : (n_candidates, n_workers)
    rights, chances : (n_candidates,)
        The mean probability of the labels, and the variance of the share that is right.
    kept : int
        How many given labels stay although another class is more probable, since not nearly all candidates say so.
    score : float
        The mean log-likelihood of held-out labels.
    informed : bool
        Whether predictions tell more of held-out labels than how often each is given; if not, they were left out.
    held_out : bool
        Whether anything was held out; if not, nothing has checked the posterior.
    """

    posterior: Beliefs
    labels: Codes
    crowd: Any
    prior: Floats
    n_labels: Codes
    weights: Floats
    taus: Floats
    skills: Floats
    rights: Floats
    chances: Floats
    kept: int = 0
    score: float = float("nan")
    informed: bool = True
    held_out: bool = True

    @property
    def confidence(self) -> Floats:
        """The probability of every label."""
        return self.posterior.at(np.arange(len(self.labels)), self.labels)

    @property
    def skill(self) -> Floats:
        """Every worker's chance of being right."""
        return np.asarray(self.weights @ self.skills)

    def skill_interval(self, level: float = LEVEL) -> tuple[Floats, Floats]:
        """Return the ends of the interval of every skill: quantiles over the candidates and within each of them."""
        spread = np.sqrt(self.skills * (1 - self.skills) / (self.n_labels + 1.0) + RULES.skill_doubt**2)
        low, high = mixture_interval(self.skills.T, spread.T, self.weights, level)
        seen, skill = self.n_labels > 0, self.skill
        return np.where(seen, np.minimum(low, skill), 0.0), np.where(seen, np.maximum(high, skill), 1.0)

    def of_groups(self, group: Codes, n_groups: int) -> Verdict:
        """Return the verdict with groups of workers in the place of workers, such as the cells of one person."""
        n_labels = np.bincount(group, self.n_labels, n_groups)
        total = np.stack([np.bincount(group, one * self.n_labels, n_groups) for one in self.skills])
        mean = np.average(self.skills, axis=1, weights=np.maximum(self.n_labels, 1e-9))[:, None]
        skills = np.where(n_labels > 0, total / np.maximum(n_labels, 1), mean)
        return replace(self, skills=skills, n_labels=n_labels.astype(np.int32))

    def accuracy(self) -> Estimate:
        """Return the estimated share of labels that are right, with its range: over and within the candidates."""
        value = float(self.confidence.mean())
        spread = np.sqrt(self.chances + (RULES.unsure_errors * (1 - self.rights)) ** 2 + RULES.least_doubt**2)
        low, high = mixture_interval(self.rights[None], spread[None], self.weights, LEVEL)
        return Estimate(value, min(float(low[0]), value), max(float(high[0]), value))


def reach(case: Case, workers: WorkerModel) -> Verdict:
    """Return what people are shown; `workers` are prepared for the evidence.

    Of many rows a draw finds the candidates and their weights, and two last steps are done on all.
    """
    n_rows, small = len(case.predictions), case
    if case.labelled.sum() > RULES.verdict_rows:
        drawn = np.random.default_rng(0).choice(np.flatnonzero(case.labelled), RULES.verdict_rows, replace=False)
        small = case.select(np.isin(np.arange(n_rows), drawn))
    found, weights = weighted(list(candidates(small, workers)))
    if small is not case:
        found = [on_all(case, one) for one in found]
    return shown(case, found, weights)


def candidates(case: Case, workers: WorkerModel) -> Iterator[Candidate]:
    """Yield for each tau the better of the fixed points from two starts: the given labels, and the predictions."""
    for tau in RULES.taus:
        ends = [scored(case, fixed_point(case, workers, tau, start)) for start in starts(case)]
        chance = 1 / case.predictions.n_classes
        least = chance + RULES.least_skill * (1 - chance)
        above = [one for one in ends if float(one.skill @ case.load) > least]  # the other solution: everybody lies
        yield max(above or ends, key=lambda one: one.score)


def starts(case: Case) -> list[Beliefs]:
    """Return where the search begins: the given labels, and the predicted classes, each mixed with uniform."""
    predicted = case.predictions.one_hot()
    given = case.votes.wide().copy()
    given[~case.labelled] = predicted.wide()[~case.labelled]
    even = np.where(np.isfinite(case.log_predictions), 1.0, 0.0)
    even /= even.sum(axis=1, keepdims=True)
    return [
        predicted.with_wide(RULES.start_share * one + (1 - RULES.start_share) * even)
        for one in (given, predicted.wide())
    ]


def fixed_point(case: Case, workers: WorkerModel, tau: float, start: Beliefs) -> Candidate:
    """Return where EM ends: workers counted against the posterior and moved to tau, predictions to a power."""
    beliefs, fitted, exponent, factor = start.with_gold(case.gold), workers, 1.0, 1.0
    for step in range(RULES.verdict_steps):
        prior = case.prior_of(beliefs)
        if step < 8 or step % 4 == 0:  # near the fixed point workers hardly change
            fitted = fitted.refitted(case.evidence.tallies(beliefs))
        crowd, factor = moved_to(tau, fitted.crowd, case, prior, factor)
        said = case.evidence.messages(crowd)
        if step % 2 == 0:
            exponent = best_exponent(case.log_predictions[case.labelled], said[case.labelled], RULES.verdict_exponents)
        after = joint(case, said, exponent).with_gold(case.gold)
        change, beliefs = after.change(beliefs), after
        if step > 5 and change < RULES.verdict_settled:
            break
    skill = crowd.skill(case.of_workers(prior), case.evidence.leaning)
    return Candidate(tau, fitted, crowd, factor, exponent, beliefs, prior, skill)


def joint(case: Case, said: Floats, exponent: float) -> Beliefs:
    """Return the posteriors that predictions to a power and what the labels say give together."""
    log_joint = tempered(case.log_predictions, exponent) + said
    normalise(log_joint)
    return case.predictions.with_wide(log_joint)


def best_fifth(crowd: Any, prior: Floats, load: Floats, leaning: Floats | None) -> float:
    """Return how often the best fifth of the labels are right, by their worker's chance for their class."""
    right, share = crowd.right_by(prior, leaning)
    weight, right = (load[:, None] * share).ravel(), right.ravel()
    order = np.argsort(-right)
    cumulative = np.cumsum(weight[order])
    upper = np.minimum(cumulative / cumulative[-1], RULES.best_share)
    counted = np.diff(upper, prepend=0.0)
    return float((counted * right[order]).sum() / RULES.best_share)


def moved_to(tau: float, crowd: Any, case: Case, prior: Floats, near: float) -> tuple[Any, float]:
    """Return the workers moved away from guessing, or towards it, until the best fifth of the labels reach tau."""
    leaning, prior = case.evidence.leaning, case.of_workers(prior)

    def at(factor: float) -> float:
        return best_fifth(crowd.rescaled(factor, prior), prior, case.load, leaning) - tau

    low, high = near / 1.2, near * 1.2
    while at(low) > 0 and low > 1 / 64:
        low /= 1.5
    while at(high) < 0 and high < 64:
        high *= 1.5
    for _ in range(8):
        middle = (low + high) / 2
        low, high = (middle, high) if at(middle) < 0 else (low, middle)
    return crowd.rescaled((low + high) / 2, prior), (low + high) / 2


def scored(case: Case, one: Candidate) -> Candidate:
    """Return a candidate with beliefs by workers counted without the row's part, and what the labels say for it."""
    said = left_out_messages(case, one)
    log_joint = tempered(case.log_predictions, one.exponent) + said
    rows = np.flatnonzero(case.labelled)
    top = log_joint[rows].max(axis=1)
    log_likelihood = float((np.log(np.exp(log_joint[rows] - top[:, None]).sum(axis=1)) + top).sum())
    normalise(log_joint)
    beliefs = case.predictions.with_wide(log_joint)
    score = RULES.likelihood_power * log_likelihood + RULES.pairs_power * pairs_evidence(case, one)
    if case.gold is not None:
        known = np.flatnonzero(case.gold >= 0)
        score += float(np.log(np.maximum(beliefs.at(known, case.gold[known]), 1e-12)).sum())
    return replace(one, beliefs=beliefs.with_gold(case.gold), score=score)


def left_out_messages(case: Case, one: Candidate) -> Floats:
    """Return what labels say, their workers counted on the rows of the other parts."""
    everything = case.evidence.tallies(one.beliefs)
    said = np.zeros_like(case.log_predictions)
    for rows, some in case.parts:
        own = some.tallies(one.beliefs[np.flatnonzero(rows)])
        others = one.workers.refitted(everything.without(own))
        said[rows] = some.messages(others.crowd.rescaled(one.factor, case.of_workers(one.prior)))
    return said


def pairs_evidence(case: Case, one: Candidate) -> float:
    """Return how much likelier labels of one row are together than apart, by the workers alone: no model is in it."""
    if case.several is None:
        return 0.0
    labels, prior = case.several.labels, one.prior
    if case.kind is not None:
        prior = prior[case.kind[np.bincount(case.evidence.labels.task, minlength=len(case.kind)) > 1]]
    log_prior = np.asarray(case.several.fetch(case.several.log_prior(prior)))
    said = case.several.messages(one.crowd) + log_prior
    top = said.max(axis=1)
    together = float((np.log(np.exp(said - top[:, None]).sum(axis=1)) + top).sum())
    alone = one.crowd.answer_probability(labels.worker, labels.label, case.of_workers(one.prior))
    return together - float(np.log(np.maximum(alone, 1e-12)).sum())


def weighted(found: list[Candidate]) -> tuple[list[Candidate], list[float]]:
    """Return the candidates that count and their weights: what the labels say, and the assumption about tau."""
    tau = np.array([one.tau for one in found])
    a, b = RULES.tau_prior
    ends = np.concatenate([[tau[0] - 0.05], (tau[1:] + tau[:-1]) / 2, [1.0]])
    log_weight = np.array([one.score for one in found]) + (a - 1) * np.log(tau) + (b - 1) * np.log1p(-tau)
    log_weight += np.log(np.diff(ends))
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    kept = np.flatnonzero(weight > _TINY)
    return [found[place] for place in kept], (weight[kept] / weight[kept].sum()).tolist()


def on_all(case: Case, one: Candidate) -> Candidate:
    """Return a candidate that was found on a draw of the rows after two steps on all."""
    workers, factor, prior = one.workers, one.factor, one.prior
    crowd = one.crowd
    for _ in range(2):
        beliefs = joint(case, case.evidence.messages(crowd), one.exponent).with_gold(case.gold)
        prior = case.prior_of(beliefs)
        workers = workers.refitted(case.evidence.tallies(beliefs))
        crowd, factor = moved_to(one.tau, workers.crowd, case, prior, factor)
    skill = crowd.skill(case.of_workers(prior), case.evidence.leaning)
    found = replace(one, workers=workers, crowd=crowd, factor=factor, prior=prior, beliefs=beliefs, skill=skill)
    log_joint = tempered(case.log_predictions, one.exponent) + left_out_messages(case, found)
    normalise(log_joint)
    return replace(found, beliefs=case.predictions.with_wide(log_joint).with_gold(case.gold))


def shown(case: Case, found: list[Candidate], weights: list[float]) -> Verdict:
    """Return the mean over the candidates, in which a given label stays unless nearly all of them say otherwise."""
    posterior = mean_beliefs([one.beliefs for one in found], weights)
    labels, rows = posterior.argmax().astype(np.int32), np.arange(len(posterior))
    given, unique = unique_vote(case)
    asked = np.flatnonzero(unique & (given != labels) & (case.gold < 0 if case.gold is not None else True))
    ahead = np.zeros(len(asked))
    for share, one in zip(weights, found, strict=True):
        own = one.beliefs[asked]
        place = rows[: len(asked)]
        ahead += share * (own.at(place, labels[asked]) > own.at(place, given[asked]))
    back = asked[ahead < RULES.sure_change]
    labels[back] = given[back]
    worker, n_workers = case.evidence.labels.worker, case.evidence.labels.n_workers
    right = [one.beliefs.at(rows, labels) for one in found]
    return Verdict(
        posterior.level_with(labels),
        labels,
        found[0].crowd.mean_with([one.crowd for one in found[1:]], weights),
        np.asarray(sum(share * one.prior for share, one in zip(weights, found, strict=True))),
        np.bincount(worker, minlength=n_workers).astype(np.int32),
        np.array(weights),
        np.array([one.tau for one in found]),
        np.stack([one.skill for one in found]),
        np.array([one.mean() for one in right]),
        np.array([(one * (1 - one)).sum() / len(one) ** 2 for one in right]),
        len(back),
        case.score,
        case.informed,
    )


def in_sample_verdict(labels: Any, beliefs: Beliefs, workers: WorkerModel) -> Verdict:
    """Return what is shown where nothing was held out: the posterior of the rounds, which is too sure of itself."""
    prior = np.asarray(beliefs.class_counts() / len(beliefs))
    found = beliefs.argmax().astype(np.int32)
    right = beliefs.at(np.arange(len(beliefs)), found)
    skill = workers.crowd.skill(prior, None if labels.is_square else labels.leaning)
    one = np.ones(1)
    chance = np.array([(right * (1 - right)).sum() / len(right) ** 2])
    numbers = (one, np.full(1, np.nan), skill[None], np.array([right.mean()]), chance)
    n_labels = np.bincount(labels.worker, minlength=labels.n_workers).astype(np.int32)
    return Verdict(beliefs, found, workers.crowd, prior, n_labels, *numbers, held_out=False)


def label_entropy(labels: Any) -> float:
    """Return the mean log-likelihood of labels by how often each answer is given."""
    said = np.bincount(labels.label, minlength=labels.n_answers) / len(labels)
    return float(said @ np.log(np.maximum(said, 1e-300)))


def unique_vote(case: Case) -> tuple[Codes, Mask]:
    """Return the class that most labels of a row are for, and whether it is the only one."""
    votes = case.votes
    top = votes.argmax().astype(np.int32)
    return top, case.labelled & (votes.max() > 0) & (votes.tied_with(top) == 1)


def mixture_interval(means: Floats, spreads: Floats, weights: Floats, level: float) -> tuple[Floats, Floats]:
    """Return quantiles of mixtures, one per row, of distributions on (0, 1) that are normal in the logit.

    >>> low, high = mixture_interval(np.array([[0.5, 0.9]]), np.array([[0.05, 0.02]]), np.array([0.5, 0.5]), 0.9)
    >>> low.round(2), high.round(2)
    (array([0.44]), array([0.93]))
    """
    levels = (np.arange(_POINTS) + 0.5) / _POINTS
    inner = np.clip(means, 1e-3, 1 - 1e-3)
    variance = inner * (1 - inner)
    wide = np.minimum(spreads, 0.5 * np.sqrt(variance)) / variance
    points = expit(logit(inner)[:, :, None] + wide[:, :, None] * ndtri(levels)).reshape(len(means), -1)
    order = np.argsort(points, axis=1)
    cumulative = np.cumsum(np.repeat(weights / _POINTS, _POINTS)[order], axis=1)
    ranked, rows = np.take_along_axis(points, order, axis=1), np.arange(len(points))
    tail = (1 - level) / 2
    low, high = (np.minimum((cumulative < cut).sum(axis=1), points.shape[1] - 1) for cut in (tail, 1 - tail))
    return ranked[rows, low], ranked[rows, high]
