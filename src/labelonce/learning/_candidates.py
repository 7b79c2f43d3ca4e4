"""Ways in which labels and predictions may go together, one for every answer to what the labels cannot tell.

The likelihood of labels cannot tell a weak model with good workers from a strong model with bad workers. One number of
the fit is not in the data, and it is named in plain words: *tau, how often the best fifth of the labels are right*. So
everything is done for a grid of tau, and weighed by what the labels say and by what is assumed of good workers.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from labelonce._kernels import Beliefs, normalise
from labelonce._rules import RULES
from labelonce._types import Floats
from labelonce.learning._calibration import best_exponent, tempered
from labelonce.learning._case import Case
from labelonce.workers import WorkerModel

_LATE = 6  # steps after which workers hardly change


@dataclass(frozen=True, eq=False)
class Link:
    """How predictions tell of the true classes of the rows.

    Attributes
    ----------
    exponent : float
        The power of the predictions.
    added : array, optional
        What the other tasks of a row's workers tell, in logs, and how many classes a column stands for.
    mixing : (n_classes, n_classes) array, optional
        P(true class | predicted class), where some classes cannot be predicted.
    """

    exponent: float = 1.0
    added: Floats | None = None
    mixing: Floats | None = None

    def log_prior(self, case: Case) -> Floats:
        """Return the logs of the probabilities of the classes."""
        logs = tempered(case.log_predictions, self.exponent, self.added, case.log_base)
        return logs if self.mixing is None else np.log(np.exp(logs) @ self.mixing)

    def fitted(self, case: Case, beliefs: Beliefs, said: Floats, prior: Floats, *, searches: bool) -> Self:
        """Return the link after a step: for what the labels say, and the beliefs before them."""
        added = case.log_sizes
        if case.assignment is not None:
            added = case.assignment.log_ratio(beliefs, prior) + (0.0 if added is None else added)
        exponent, rows = self.exponent, case.labelled
        if searches:
            here, base = (None if one is None else one[rows] for one in (added, case.log_base))
            logs = case.log_predictions[rows]
            exponent = best_exponent(logs, said[rows], RULES.verdict_exponents, here, self.mixing, base)
        return replace(self, exponent=exponent, added=added)

    def mixed(self, case: Case, said: Floats) -> Self:
        """Return the link with the mixing that explains labels better, by a step of EM."""
        if self.mixing is None:
            return self
        rows = case.labelled
        predicted = np.exp(tempered(case.log_predictions, self.exponent, self.added)[rows])
        chance = np.exp(said[rows] - said[rows].max(axis=1, keepdims=True))
        likelihood = ((predicted @ self.mixing) * chance).sum(axis=1, keepdims=True)
        counts = self.mixing * (predicted.T @ (chance / likelihood)) + RULES.mixing_kept * np.eye(len(self.mixing))
        return replace(self, mixing=counts / counts.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class Candidate:
    """One way in which labels and predictions go together.

    `crowd` are the workers after they were moved by `factor`, so that the best fifth of the labels are right with
    `tau`. `beliefs` follow from workers counted without the labels of each row's part; when a candidate is done they
    do not hold what is known of a row itself. `gain` is the log-likelihood of the labels, these left out, over that of
    their shares, `score` the log of the weight; `place` is that of the start.
    """

    tau: float
    place: int
    workers: WorkerModel
    crowd: Any
    factor: float
    link: Link
    beliefs: Beliefs
    prior: Floats
    skill: Floats
    gain: float = 0.0
    ceiling: float = 0.0
    score: float = 0.0


def candidates(case: Case, workers: WorkerModel) -> Iterator[Candidate]:
    """Yield the fixed points for each tau, from two starts: the given labels, and the predictions."""
    begun, even = starts(case), np.full((case.predictions.n_classes,) * 2, 0.1 / case.predictions.n_classes)
    links = [Link(), Link(mixing=even + 0.9 * np.eye(len(even)))] if case.may_mix else [Link()]
    for link in links:
        for tau in RULES.taus:
            for place in range(len(begun)):
                yield scored(case, fixed_point(case, workers, tau, begun[place], link, place))


def likely(case: Case, found: list[Candidate]) -> tuple[list[Candidate], list[float]]:
    """Return the candidates that count, and their weights."""
    chance = 1 / case.predictions.n_classes
    least = chance + RULES.least_skill * (1 - chance)
    above = [one for one in found if float(one.skill @ case.load) > least]  # the other solution: everybody lies
    found = above or found
    taus = np.array(RULES.taus)
    width = np.diff(np.concatenate([[taus[0] - 0.05], (taus[1:] + taus[:-1]) / 2, [1.0]]))
    score = np.array([one.score + np.log(width[taus == one.tau][0]) for one in found])
    score += RULES.ceiling_power * below_ceiling(found)
    weight = np.exp(score - score.max())
    kept = np.flatnonzero(weight > RULES.least_weight * weight.sum())
    return [found[place] for place in kept], (weight[kept] / weight[kept].sum()).tolist()


def below_ceiling(found: list[Candidate]) -> Floats:
    """Return what the agreement with surer predictions says for each candidate, or for one of better workers.

    Agreement that stops rising far below one says that workers are no better. Agreement that rises to one does not say
    that they are as good as that: people and models may find the same tasks hard.
    """
    kind = np.array([2 * one.place + (one.link.mixing is not None) for one in found])
    tau, told = (np.array([getattr(one, name) for one in found]) for name in ("tau", "ceiling"))
    better = (kind[:, None] == kind) & (tau >= tau[:, None])
    return np.asarray(np.where(better, told, -np.inf).max(axis=1))


def starts(case: Case) -> list[Beliefs]:
    """Return where the search begins: the given labels, and the predicted classes, each mixed with uniform."""
    predicted = case.predictions.one_hot()
    given = case.votes.wide().copy()
    given[~case.labelled] = predicted.wide()[~case.labelled]
    size = 1.0 if case.log_sizes is None else np.exp(case.log_sizes)
    even = np.where(np.isfinite(case.log_predictions), size, 0.0)
    even /= even.sum(axis=1, keepdims=True)
    return [
        predicted.with_wide(RULES.start_share * one + (1 - RULES.start_share) * even)
        for one in (given, predicted.wide())
    ]


def fixed_point(case: Case, workers: WorkerModel, tau: float, start: Beliefs, link: Link, place: int) -> Candidate:
    """Return where EM ends: workers counted against the posterior and moved to tau, and the link of predictions."""
    beliefs, fitted, factor = start.with_gold(case.gold), workers, 1.0
    for step in range(RULES.verdict_steps):
        prior = case.prior_of(beliefs)
        if step < _LATE or step % 4 == 0:
            fitted = fitted.refitted(case.evidence.tallies(beliefs))
        crowd, factor = moved_to(tau, fitted.crowd, case, prior, factor)
        said = case.evidence.messages(crowd)
        link = link.fitted(case, beliefs, said, prior, searches=step % 2 == 0)
        after = joint(case, link, said)
        link = link.mixed(case, said)
        change, beliefs = after.change(beliefs), after
        if step >= _LATE and change < RULES.verdict_settled:
            break
    skill = crowd.skill(case.of_workers(prior), case.evidence.leaning)
    return Candidate(tau, place, fitted, crowd, factor, link, beliefs, prior, skill)


def joint(case: Case, link: Link, said: Floats) -> Beliefs:
    """Return the posteriors that predictions and what the labels say give together."""
    log_joint = link.log_prior(case) + said
    normalise(log_joint)
    return case.predictions.with_wide(log_joint).with_gold(case.gold)


def best_fifth(case: Case, crowd: Any, prior: Floats) -> float:
    """Return how often the best fifth of the labels are right, by their worker's chance for their class.

    Of questions it is the mean over a true yes and a true no: where yes is rare, nearly all answers are a right no.
    """
    right, share = crowd.right_by(prior, case.evidence.leaning)
    weight = case.load[:, None] * share
    if not case.of_questions:
        return _best(right.ravel(), weight.ravel())
    return float(np.mean([_best(right[:, k], weight[:, k]) for k in range(right.shape[1])]))


def _best(right: Floats, weight: Floats) -> float:
    order = np.argsort(-right)
    cumulative = np.cumsum(weight[order])
    upper = np.minimum(cumulative / cumulative[-1], RULES.best_share)
    counted = np.diff(upper, prepend=0.0)
    return float((counted * right[order]).sum() / RULES.best_share)


def moved_to(tau: float, crowd: Any, case: Case, prior: Floats, near: float) -> tuple[Any, float]:
    """Return the workers moved away from guessing, or towards it, until the best fifth of the labels reach tau."""
    prior = case.of_workers(prior)

    def at(factor: float) -> float:
        return best_fifth(case, crowd.rescaled(factor, prior), prior) - tau

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
    log_joint = one.link.log_prior(case) + left_out_messages(case, one)
    rows = np.flatnonzero(case.labelled)
    top = log_joint[rows].max(axis=1)
    gain = float((np.log(np.exp(log_joint[rows] - top[:, None]).sum(axis=1)) + top).sum()) - case.by_shares
    if one.link.mixing is not None:
        n_classes = len(one.link.mixing)
        gain -= n_classes * (n_classes - 1) / 2 * np.log(len(case.evidence.labels))
    normalise(log_joint)
    beliefs = case.predictions.with_wide(log_joint)
    score = RULES.likelihood_power * gain + RULES.pairs_power * pairs_evidence(case, one)
    agreement = Agreement.of(case, one)
    score += RULES.differ_power * difference_evidence(case, agreement)
    score += RULES.trained_power * training_evidence(case, beliefs)
    score += log_beta(one.tau, RULES.tau_prior) + log_beta(float(one.skill @ case.load), RULES.skill_prior)
    if case.gold is not None:
        known = np.flatnonzero(case.gold >= 0)
        score += float(np.log(np.maximum(beliefs.at(known, case.gold[known]), 1e-12)).sum())
    return replace(one, beliefs=beliefs, gain=gain, ceiling=ceiling_evidence(case, agreement), score=score)


def log_beta(value: float, shape: tuple[float, float]) -> float:
    """Return the log-density of a Beta distribution, up to a constant, bounded where it ends."""
    value = float(np.clip(value, 1e-3, 0.995))
    return float((shape[0] - 1) * np.log(value) + (shape[1] - 1) * np.log1p(-value))


def left_out_messages(case: Case, one: Candidate) -> Floats:
    """Return what labels say, their workers counted on the rows of the other parts."""
    everything, prior = case.evidence.tallies(one.beliefs), case.of_workers(one.prior)
    said = np.zeros_like(case.log_predictions)
    for rows, some in case.parts:
        own = some.tallies(one.beliefs[np.flatnonzero(rows)])
        others = one.workers.refitted(everything.without(own), same_population=True)
        said[rows] = some.messages(others.crowd.rescaled(one.factor, prior))
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


class Agreement(NamedTuple):
    """What a candidate says of labels and predicted classes: how often they should agree, label by label.

    `share` is P(true class) by slot, `chance` how often the worker says the predicted class where each is true.
    """

    share: Floats
    chance: Floats

    @classmethod
    def of(cls, case: Case, one: Candidate) -> Self:
        """Return the agreement that a candidate expects."""
        labels, leaning, codes = case.evidence.labels, case.evidence.leaning, case.predictions.codes
        predicted = case.predicted[labels.task]
        share = one.link.log_prior(case)
        normalise(share)
        codes = codes[labels.task]

        def said(answer: Any) -> Floats:
            return np.asarray(one.crowd.probability(labels.worker[:, None], np.maximum(codes, 0), answer[:, None]))

        if leaning is None:
            chance = said(predicted)
        else:  # an answer that nobody gave is none
            given = np.flatnonzero(np.bincount(labels.label, minlength=len(leaning)))
            every = np.stack([said(np.full_like(predicted, k)) for k in given])
            chance = (every * leaning[given][:, predicted, None]).sum(axis=0) / every.sum(axis=0)
        return cls(share[labels.task, : codes.shape[1]], np.where(codes >= 0, chance, 0.0))


def difference_evidence(case: Case, agreement: Agreement) -> float:
    """Return how likely it is that each worker agrees with the predicted classes as often as it does.

    That workers differ shows however wrong the probabilities are: of those, only the predicted class counts, and the
    mean agreement of all workers is taken as it is.
    """
    labels, n, agrees = case.evidence.labels, case.load * len(case.evidence.labels), case.agrees
    expected = (agreement.share * agreement.chance).sum(axis=1)
    expected *= agrees.sum() / max(expected.sum(), 1e-12)
    often = np.bincount(labels.worker, agrees, len(n))
    rate = np.clip(np.bincount(labels.worker, expected, len(n)) / np.maximum(n, 1), 0.005, 0.995)
    return float((often * np.log(rate) + (n - often) * np.log1p(-rate)).sum())


def ceiling_evidence(case: Case, agreement: Agreement) -> float:
    """Return how likely it is that labels agree with the surer predictions as often as they do; see `Curve`.

    That workers differ has no part in it: they count together, by predicted class.
    """
    if case.curve is None:
        return 0.0
    predicted = case.predicted[case.evidence.labels.task]
    is_it = case.predictions.codes[case.evidence.labels.task] == predicted[:, None]
    other = np.where(is_it, 0.0, agreement.share) + 1e-9
    hits, misses = (np.where(where, agreement.chance, 0.0) for where in (is_it, ~is_it))
    said = hits.sum(axis=1), (other * misses).sum(axis=1)
    n = np.maximum(np.bincount(predicted), 1), np.maximum(np.bincount(predicted, other.sum(axis=1)), 1e-12)
    hit, miss = (np.bincount(predicted, one) / many for one, many in zip(said, n, strict=True))
    return case.curve.log_likelihood(hit, miss)


def training_evidence(case: Case, beliefs: Beliefs) -> float:
    """Return what rounds tell that predict labels left out better: all where half of their changes are believed.

    Targets that differ from the labels given train better models only where they are nearer to the truth.
    """
    if case.trained is None or not len(case.changed):
        return 0.0
    believed = float((beliefs.argmax()[case.changed] == case.trained.labels[case.changed]).mean())
    return case.trained.gain * min(2 * believed, 1.0)


def found_again(case: Case, one: Candidate) -> Candidate:
    """Return the candidate with the same tau and start by other predictions."""
    link = Link() if one.link.mixing is None else replace(one.link, exponent=1.0, added=None)
    again = fixed_point(case, one.workers, one.tau, starts(case)[one.place], link, one.place)
    return without_own(case, again)


def on_all(case: Case, one: Candidate) -> Candidate:
    """Return a candidate that was found on a draw of the rows after two steps on all."""
    workers, factor, prior, crowd = one.workers, one.factor, one.prior, one.crowd
    link = replace(one.link, added=case.log_sizes)
    for _ in range(2):
        said = case.evidence.messages(crowd)
        beliefs = joint(case, link, said)
        prior = case.prior_of(beliefs)
        link = link.fitted(case, beliefs, said, prior, searches=False)
        workers = workers.refitted(case.evidence.tallies(beliefs))
        crowd, factor = moved_to(one.tau, workers.crowd, case, prior, factor)
    skill = crowd.skill(case.of_workers(prior), case.evidence.leaning)
    moved: dict[str, Any] = {"workers": workers, "crowd": crowd, "factor": factor, "skill": skill}
    found = replace(one, link=link, prior=prior, beliefs=beliefs, **moved)
    return without_own(case, found)


def without_own(case: Case, one: Candidate) -> Candidate:
    """Return a candidate with beliefs by workers counted without the row's part."""
    log_joint = one.link.log_prior(case) + left_out_messages(case, one)
    normalise(log_joint)
    return replace(one, beliefs=case.predictions.with_wide(log_joint))
