"""The last step: what people are shown, averaged over how right the best workers may be."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import beta

from labelonce._kernels import Beliefs, mean_beliefs
from labelonce._rules import RULES
from labelonce._types import Codes, Estimate, Floats
from labelonce.aggregation import by_correlation
from labelonce.learning._candidates import candidates, found_again, likely, on_all
from labelonce.learning._case import Case
from labelonce.learning._causes import common_causes, ranks, surely_contradicted, taken_wrong
from labelonce.learning._narrowing import Narrowing
from labelonce.workers import WorkerModel

LEVEL = 0.9


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
    weights, taus, rights : (n_candidates,)
        Of the candidates that count; the last is how many of the labels are right by each.
    skills : (n_candidates, n_workers)
    kept : int
        How many given labels stay although another class is more probable, since not nearly all candidates say so.
    gain : float
        The log-likelihood of labels left out over that by how often each is given.
    held_out : bool
        Whether anything was held out; if not, nothing has checked the posterior.
    gold_decided : bool
        Whether known classes said that given labels stay, or that they do not.
    n_pairs : int
        How many pairs of labels of one row there are that have no label in common.
    n_gold : int
        How many rows have a known class, by which the posterior was calibrated.
    contradicted : float
        The share of labelled rows whose label models that did not see the row contradict.
    taken : float
        The share of single labels that are taken to be wrong where far more are contradicted; 0 elsewhere.
    common : float
        How surely labels of one row disagree more where the model is unsure: z; see `common_causes`.
    surely : float
        How much more often the surest predictions contradict labels than these are estimated to be wrong.
    open : float
        The variance of the share of right labels that the candidates do not show: that of people where features say
        nothing, that of mistakes which people may share, and that between the rounds' labels and these where rounds are
        not believed (`disputed`).
    shift : (n_workers,), optional
        How far the predicted classes of a worker's tasks are from those of all; None where all take the same tasks.
    """

    posterior: Beliefs
    labels: Codes
    crowd: Any
    prior: Floats
    n_labels: Codes
    weights: Floats
    taus: Floats
    rights: Floats
    skills: Floats
    kept: int = 0
    gain: float = float("nan")
    held_out: bool = True
    gold_decided: bool = False
    n_pairs: int = 0
    n_gold: int = 0
    contradicted: float = 0.0
    taken: float = 0.0
    common: float = 0.0
    surely: float = 0.0
    open: float = 0.0
    shift: Floats | None = None

    @property
    def confidence(self) -> Floats:
        """The probability of every label."""
        return self.posterior.at(np.arange(len(self.labels)), self.labels)

    def with_labels(self, labels: Codes) -> Self:
        """Return the verdict with other labels, whose probability may be below one half."""
        found = replace(self, labels=labels)
        return replace(found, rights=self.rights + found.confidence.mean() - self.confidence.mean())

    @property
    def skill(self) -> Floats:
        """Every worker's chance of being right."""
        return np.asarray(self.weights @ self.skills)

    def skill_interval(self, level: float = LEVEL) -> tuple[Floats, Floats]:
        """Return the ends of the interval of every skill, for the doubt over the candidates and within each.

        Nobody's skill is known better than how many of the labels shown are right.
        """
        skill = self.skill
        within = self.weights @ (self.skills * (1 - self.skills)) / (self.n_labels + 1.0)
        over = self.weights @ (self.skills - skill) ** 2
        chosen = 0.0 if self.shift is None else RULES.chosen_doubt * self.shift
        low, high = doubt_interval(skill, over + within + chosen**2 + max(self.doubt(), RULES.skill_doubt**2), level)
        return np.where(self.n_labels > 0, low, 0.0), np.where(self.n_labels > 0, high, 1.0)

    def of_groups(self, group: Codes, n_groups: int) -> Self:
        """Return the verdict with groups of workers in the place of workers, such as the cells of one person."""
        n_labels = np.bincount(group, self.n_labels, n_groups)
        total = np.stack([np.bincount(group, one * self.n_labels, n_groups) for one in self.skills])
        mean = np.average(self.skills, axis=1, weights=np.maximum(self.n_labels, 1e-9))[:, None]
        skills = np.where(n_labels > 0, total / np.maximum(n_labels, 1), mean)
        return replace(self, skills=skills, n_labels=n_labels.astype(np.int32))

    def accuracy(self) -> Estimate:
        """Return the estimated share of labels that are right, with its range."""
        value = float(self.confidence.mean())
        low, high = doubt_interval(np.array([value]), np.array([self.doubt()]), LEVEL)
        return Estimate(value, float(low[0]), float(high[0]))

    def doubt(self, second: float = 0.0, checked: float = 0.0) -> float:
        """Return the variance of the share of labels that are right, after N more second or checked labels.

        Second labels tell by how often they agree how good the workers are, checked ones how many labels are right.
        """
        value = float(self.confidence.mean())
        told, (alone, by_pairs) = self._told_by_pair(), RULES.unsure_errors
        over = max(float(self.weights @ (self.rights - value) ** 2), self.open) + 1e-12
        share, most = RULES.shared_errors
        learned = share * min(self.contradicted, most)  # mistakes of people that the model has learned from them
        open_to_pairs = (alone**2 - by_pairs**2) * (1 - value) ** 2 + learned**2 + 1e-12
        doubt = 1 / (1 / over + second * told) + 1 / (1 / open_to_pairs + (self.n_pairs + second) * told)
        doubt += (by_pairs * (1 - value)) ** 2 + RULES.least_doubt**2 + (share * min(self._in_company(), most)) ** 2
        spread = value * (1 - value) + 1e-3
        return 1 / (1 / doubt + (self.n_gold + checked) / spread) + spread / len(self.labels)

    def narrowing(self) -> Narrowing | None:
        """Return what would narrow the range of `accuracy`; None where it is narrow, or where nothing was held out."""
        return Narrowing.of(self.doubt, len(self.labels)) if self.held_out else None

    def _in_company(self) -> float:
        """Return the share of labels that are wrong next to others: such mistakes people may share."""
        per_row = max(float(self.n_labels.sum()) / len(self.labels), 1.0)
        told = self.n_labels * np.maximum(self.skill - 1 / self._n_classes(), 0.0) + 1e-9  # guesses are not shared
        return float(np.average(1 - self.skill, weights=told)) * (1 - 1 / per_row)

    def _n_classes(self) -> int:
        return max(len(np.atleast_2d(self.prior)[0]), 2)

    def _told_by_pair(self) -> float:
        """Return what one pair of labels tells of how often labels are right, as the inverse of a variance.

        Two labels agree where both are right, or both are wrong and say the same class; where mistakes have common
        causes, they tell nothing.
        """
        if self.common > RULES.common_causes:
            return 0.0
        n_others = self._n_classes() - 1
        right = float(np.average(self.skill, weights=np.maximum(self.n_labels, 1e-9)))  # of the labels given
        agree = right**2 + (1 - right) ** 2 / n_others
        slope = 2 * right - 2 * (1 - right) / n_others
        return slope**2 / (agree * (1 - agree) + 1e-3)


def reach(case: Case, workers: WorkerModel, more: Sequence[Beliefs] = (), *, score: float | None = None) -> Verdict:
    """Return what people are shown; `workers` are prepared for the evidence.

    `more` are further predictions by out-of-fold models; a candidate's posterior is then the mean of
    those by either. Of many rows a draw finds the candidates and their weights, and two last steps are done on all.
    `score` is the mean log-likelihood of held-out labels, where rounds that saw them have made the predictions.
    """
    n_rows, small = len(case.predictions), case
    if case.labelled.sum() > RULES.verdict_rows:
        drawn = np.random.default_rng(0).choice(np.flatnonzero(case.labelled), RULES.verdict_rows, replace=False)
        small = case.select(np.isin(np.arange(n_rows), drawn))
    found, weights = likely(small, list(candidates(small, workers)))
    if small is not case:
        found = [on_all(case, one) for one in found]
    elif more:
        others = [replace(case, predictions=one.on(case.predictions.classes)) for one in more]
        share = [1 / (1 + len(others))] * (1 + len(others))
        again = [[found_again(other, one).beliefs for other in others] for one in found]
        found = [
            replace(one, beliefs=mean_beliefs([one.beliefs, *beliefs], share))
            for one, beliefs in zip(found, again, strict=True)
        ]
    most = np.inf if score is None else score * len(case.evidence.labels) - case.by_shares
    if case.of_questions and ranks(case) < RULES.ranked:
        most = min(most, 0.0)
    return shown(case, found, weights, most)


def shown(case: Case, found: list[Any], weights: list[float], most: float = np.inf) -> Verdict:
    """Return the mean over the candidates, in which a given label stays unless nearly all of them say otherwise.

    None is changed where the labels are explained no better than by how often each is given, which they are by at
    `most` that much. Known classes say how much to believe of the rest.
    """
    posterior = mean_beliefs([one.beliefs for one in found], weights)
    gain = min(max(one.gain for one in found), most)
    labels, rows = posterior.argmax().astype(np.int32), np.arange(len(posterior))
    given, unique = case.unique_vote()
    asked = np.flatnonzero(unique & (given != labels))
    ahead = np.zeros(len(asked))
    for share, one in zip(weights, found, strict=True):
        own = one.beliefs[asked]
        place = rows[: len(asked)]
        ahead += share * (own.at(place, labels[asked]) > own.at(place, given[asked]))
    gold_decided = False
    back = asked[(ahead < RULES.sure_change) | (gain < RULES.least_gain)]
    if case.gold is not None:
        kept = back
        back = back_by_gold(back, asked, case.gold, labels, given)
        gold_decided = len(back) != len(kept)
    labels[back] = given[back]
    posterior = posterior.level_with(labels)
    nothing_told = gain < RULES.least_gain and not gold_decided
    posterior, lowered, open_ = as_people_are(case, posterior, labels) if nothing_told else (posterior, 1.0, 0.0)
    as_independent, posterior = posterior, as_correlated(case, posterior, labels)
    share = float(posterior.at(rows, labels).mean() / as_independent.at(rows, labels).mean())
    taken = taken_wrong(case, labels, posterior.at(rows, labels))
    surely = surely_contradicted(case, labels, posterior.at(rows, labels))
    before = posterior.at(rows, labels).mean()
    open_ += (surely / 2) ** 2 + disputed(case, labels, float(before))  # all of these are wrong, or none is
    rights = lowered * share * np.array([one.beliefs.at(rows, labels).mean() for one in found])
    if case.gold is not None:
        known = case.gold >= 0
        posterior = by_gold(posterior, labels, case.gold).with_gold(case.gold)
        labels[known], back = case.gold[known], back[~known[back]]
        rights += posterior.at(rows, labels).mean() - before
    worker, n_workers = case.evidence.labels.worker, case.evidence.labels.n_workers
    likeliest = found[int(np.argmax(weights))]
    contradicted = float((case.predictions.argmax() != labels)[case.labelled].mean())
    return Verdict(
        posterior,
        labels,
        found[0].crowd.mean_with([one.crowd for one in found[1:]], weights),
        np.asarray(sum(share * one.prior for share, one in zip(weights, found, strict=True))),
        np.bincount(worker, minlength=n_workers).astype(np.int32),
        np.array(weights),
        np.array([one.tau for one in found]),
        rights,
        lowered * np.stack([one.skill for one in found]),
        len(back),
        gain,
        n_pairs=case.n_pairs,
        gold_decided=gold_decided,
        n_gold=0 if case.gold is None else int(known.sum()),
        contradicted=contradicted,
        taken=taken,
        common=common_causes(case, likeliest.crowd, likeliest.link.log_prior(case)),
        surely=surely,
        open=open_,
        shift=None if case.assignment is None else case.assignment.shift(),
    )


def as_people_are(case: Case, posterior: Beliefs, labels: Codes) -> tuple[Beliefs, float, float]:
    """Return the beliefs where features say nothing, what multiplies the confidence, and the variance of its mean.

    The candidates then hold nothing but what is assumed of the best workers, which is too sure an answer: the labels
    are as good as those of people are, and rows without one are as the classes are shared. Pairs of labels tell more;
    and most answers to questions are "no".
    """
    if case.of_questions or case.n_pairs >= RULES.least_pairs:
        return posterior, 1.0, 0.0
    rows, (mean, deviation) = np.arange(len(labels)), RULES.people
    confidence = posterior.at(rows, labels)
    shares = case.votes[np.flatnonzero(case.labelled)].class_counts() / case.labelled.sum()
    rare = (1 - max(mean, float(shares.max()))) / (1 - mean)  # where nearly all labels are one class, few can be wrong
    lowered = min(1.0, (1 - rare * (1 - mean)) / float(confidence[case.labelled].mean()))
    wanted = np.where(case.labelled, lowered * confidence, np.minimum(confidence, shares[labels]))
    return with_confidence(posterior, labels, wanted).level_with(labels), lowered, (rare * deviation) ** 2


def as_correlated(case: Case, posterior: Beliefs, labels: Codes) -> Beliefs:
    """Return the beliefs where errors of a row's workers may correlate, as aggregators assume, or may not.

    It changes nothing about rows with one label, nor about questions.
    """
    if case.of_questions:
        return posterior
    confidence = posterior.at(np.arange(len(labels)), labels)
    per_row = np.bincount(case.evidence.labels.task, minlength=len(labels)).astype(np.int32)
    correlated = np.minimum(by_correlation(confidence, per_row).mean(axis=0), confidence)
    wanted = confidence + RULES.errors_correlate * np.where(per_row > 1, correlated - confidence, 0.0)
    return with_confidence(posterior, labels, wanted).level_with(labels)


def disputed(case: Case, labels: Codes, value: float) -> float:
    """Return the variance of the share of right labels that comes of rounds which train well on labels not shown."""
    if case.trained is None or not len(case.changed):
        return 0.0
    believed = float((case.trained.labels == labels)[case.changed].mean())
    agreed = float((case.trained.labels == labels)[case.labelled].mean())
    told = -np.expm1(-RULES.trained_power * case.trained.gain)
    return float(told * max(1 - 2 * believed, 0.0) * (value - agreed) ** 2)  # none where half of them are shown


def back_by_gold(back: Any, asked: Any, gold: Codes, found: Codes, given: Codes) -> Any:
    """Return the rows whose given label stays: none, or all that are asked, where known classes clearly say so."""
    right, kept = (int((one[asked] == gold[asked]).sum()) for one in (found, given))
    if abs(right - kept) <= RULES.gold_says * np.sqrt(right + kept):
        return back
    return asked[:0] if right > kept else asked


def by_gold(posterior: Beliefs, labels: Codes, gold: Codes) -> Beliefs:
    """Return the beliefs with the confidence in labels calibrated by known classes that had no part in them.

    The log-odds are moved and stretched, as far as the known classes can tell.
    """
    confidence = posterior.at(np.arange(len(labels)), labels)
    odds, known = logit(np.clip(confidence, 1e-4, 1 - 1e-4)), np.flatnonzero(gold >= 0)
    right = np.where(labels[known] == gold[known], 1.0, -1.0)
    deviation = np.array(RULES.gold_calibration)

    def loss(at: Floats) -> float:
        unlikely = np.logaddexp(0, -right * (at[0] + at[1] * odds[known])).sum()
        return float(unlikely + 0.5 * (((at - [0.0, 1.0]) / deviation) ** 2).sum())

    moved, stretch = minimize(loss, np.array([0.0, 1.0])).x
    return with_confidence(posterior, labels, expit(moved + stretch * odds)).level_with(labels)


def with_confidence(posterior: Beliefs, labels: Codes, wanted: Floats) -> Beliefs:
    """Return the beliefs in which the labels have another probability; that of the other classes keeps its shares."""
    confidence = posterior.at(np.arange(len(labels)), labels)
    others = np.where(wanted == confidence, 1.0, (1 - wanted) / np.maximum(1 - confidence, 1e-12))
    is_label = posterior.codes == labels[:, None]
    inside = np.where(is_label, wanted[:, None], posterior.probability * others[:, None])
    wide = inside if posterior.rest is None else np.column_stack([inside, posterior.rest * others])
    return posterior.with_wide(wide / wide.sum(axis=1, keepdims=True))


def in_sample_verdict(labels: Any, beliefs: Beliefs, workers: WorkerModel) -> Verdict:
    """Return what is shown where nothing was held out: the posterior of the rounds, which is too sure of itself."""
    prior = np.asarray(beliefs.class_counts() / len(beliefs))
    found = beliefs.argmax().astype(np.int32)
    right = beliefs.at(np.arange(len(beliefs)), found).mean()
    skill = workers.crowd.skill(prior, None if labels.is_square else labels.leaning)
    n_labels = np.bincount(labels.worker, minlength=labels.n_workers).astype(np.int32)
    one = (np.ones(1), np.full(1, np.nan), np.full(1, right), skill[None])
    return Verdict(beliefs, found, workers.crowd, prior, n_labels, *one, held_out=False)


def label_entropy(labels: Any) -> float:
    """Return the mean log-likelihood of labels by how often each answer is given."""
    said = np.bincount(labels.label, minlength=labels.n_answers) / len(labels)
    return float(said @ np.log(np.maximum(said, 1e-300)))


def doubt_interval(mean: Floats, variance: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the ends of intervals that hold their means, however great the variance is.

    They are those of Beta distributions whose means are moved until there is room for the variance; an interval of
    counts that are known needs no such thing (`labelonce.workers.beta_interval`).

    >>> low, high = doubt_interval(np.array([0.5, 0.99]), np.array([0.01, 0.001]), 0.9)
    >>> low.round(2), high.round(2)
    (array([0.34, 0.9 ]), array([0.66, 1.  ]))
    """
    wide = np.minimum(np.sqrt(variance), 0.25)
    middle = np.clip(mean, wide, 1 - wide)
    total = middle * (1 - middle) / np.minimum(wide**2, 0.99 * middle * (1 - middle)) - 1
    shape = middle * total, (1 - middle) * total
    low, high = (beta.ppf(end, *shape) for end in ((1 - level) / 2, (1 + level) / 2))
    low, high = np.where(shape[0] <= 1, 0.0, low), np.where(shape[1] <= 1, 1.0, high)
    return np.minimum(low, mean), np.maximum(high, mean)
