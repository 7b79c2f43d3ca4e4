"""The panel after gold: a Bayesian logistic regression that starts from what agreement says."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import softmax

from labelonce._rules import RULES
from labelonce._types import Codes, Floats, Ids
from labelonce.judges._votes import Votes

_ROWS = 20_000  # tasks at a time


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the regression sees of some tasks: [task, class, feature].

    Features are an offset of every class, the panel's log-odds, and by how far the vote of each judge with gold differs
    from the mean of these judges: where all agree, nothing but the panel decides. `votes` are the votes themselves.
    """

    values: Floats
    votes: Floats

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return int(self.values.shape[1])

    @classmethod
    def of(cls, votes: Votes, log_odds: Floats, rows: Ids, judges: Codes) -> Self:
        """Return the evidence of tasks by their codes, ascending."""
        n_classes = log_odds.shape[1]
        place, column = np.full(votes.shape[0], -1), np.full(votes.shape[1], -1)
        place[rows], column[judges] = np.arange(len(rows)), np.arange(len(judges))
        kept = np.flatnonzero((place[votes.task] >= 0) & (column[votes.worker] >= 0))
        entries = votes.amount[kept].tocoo()
        said = np.zeros((len(rows), n_classes, len(judges)))
        task, judge = place[votes.task[kept]], column[votes.worker[kept]]
        said[task[entries.row], entries.col, judge[entries.row]] = entries.data * votes.strength[kept][entries.row]
        answered = np.zeros((len(rows), len(judges)))
        answered[task, judge] = 1.0
        mean = said.sum(axis=2) / np.maximum(answered.sum(axis=1), 1.0)[:, None]
        offsets = np.broadcast_to(np.eye(n_classes), (len(rows), n_classes, n_classes))
        panel = log_odds[rows] - log_odds[rows].mean(axis=1, keepdims=True)
        apart = said - mean[:, :, None] * answered[:, None]
        return cls(np.concatenate([offsets, panel[:, :, None], apart], axis=2), said)

    def seen(self, trusted: int | None) -> Floats:
        """Return the features, with the vote of one judge as the last one if it may be trusted."""
        return self.values if trusted is None else np.append(self.values, self.votes[:, :, [trusted]], axis=2)


@dataclass(frozen=True)
class Choice:
    """One model: the deviation of a judge's weight, who is trusted, its log prior, and whether it knows the panel."""

    deviation: float
    trusted: int | None
    log_prior: float
    panel: bool = True

    def features(self, evidence: Evidence) -> Floats:
        """Return what the model sees of the tasks: without the panel, the votes as they are."""
        if self.panel:
            return evidence.seen(self.trusted)
        return np.concatenate([evidence.values[:, :, : evidence.n_classes], evidence.votes], axis=2)

    def scale(self, evidence: Evidence) -> tuple[Floats, Floats]:
        """Return the prior means and deviations of the features."""
        offset, slope, slope_doubt, trust, trust_doubt = RULES.panel_gold
        n_classes, n_judges = evidence.n_classes, evidence.votes.shape[2]
        offsets, judges = np.full(n_classes, np.sqrt(offset / 2)), np.full(n_judges, self.deviation)
        if not self.panel:
            return np.zeros(n_classes + n_judges), np.append(offsets, judges)
        last = [] if self.trusted is None else [(trust, trust_doubt)]
        mean = np.concatenate([np.zeros(n_classes), [slope], np.zeros(n_judges), [one for one, _ in last]])
        return mean, np.concatenate([offsets, [slope_doubt], judges, [doubt for _, doubt in last]])


@dataclass(frozen=True, eq=False)
class GoldFit:
    """The models that gold leaves probable, each with its weight, mean, deviations and Cholesky factor."""

    judges: Codes
    models: list[tuple[float, Choice, Floats, Floats, Any]]

    def predict(self, votes: Votes, log_odds: Floats, rows: Ids) -> Floats:
        """Return P(class) of tasks, averaged over the models and the doubt about their coefficients."""
        found = np.zeros((len(rows), log_odds.shape[1]))
        for start in range(0, len(rows), _ROWS):
            part = slice(start, start + _ROWS)
            evidence = Evidence.of(votes, log_odds, rows[part], self.judges)
            for weight, choice, centre, spread, factor in self.models:
                found[part] += weight * _moderated(choice.features(evidence), centre, spread, factor)
        return found


def fit_gold(votes: Votes, log_odds: Floats, rows: Ids, gold: Codes) -> GoldFit:
    """Return the regression by the known classes of these tasks, averaged over its priors by Laplace's evidence.

    log P(class) = offset + slope times what agreement says + weight of one trusted judge, or none + weights of all; or
    a ridge on the votes, which does not believe what agreement says.
    """
    judges = _judges_with_gold(votes, rows)
    evidence = Evidence.of(votes, log_odds, rows, judges)
    fits, scores = [], []
    for choice in _choices(evidence, gold):
        mean, spread = choice.scale(evidence)
        centre, factor, score = _laplace(choice.features(evidence), mean, spread, gold)
        fits.append((choice, centre, spread, factor))
        scores.append(score + choice.log_prior)
    weight = np.exp(np.array(scores) - max(scores))
    weight[weight < 0.01 * weight.sum()] = 0.0
    weight /= weight.sum()
    return GoldFit(judges, [(float(share), *fit) for share, fit in zip(weight, fits, strict=True) if share])


def _judges_with_gold(votes: Votes, rows: Ids) -> Codes:
    known = np.zeros(votes.shape[0], dtype=bool)
    known[rows] = True
    number = np.bincount(votes.worker[known[votes.task]], minlength=votes.shape[1])
    most = np.argsort(-number, kind="stable")[: RULES.panel_gold_judges]
    return np.sort(most[number[most] > 0]).astype(np.int32)


def _choices(evidence: Evidence, gold: Codes) -> Iterator[Choice]:
    """Yield the models: nobody trusted, or one of the judges who were right most often; or not even the panel."""
    votes, (trust, ridge) = evidence.votes, RULES.panel_doubters
    right = np.take_along_axis(votes, gold[:, None, None], axis=1)[:, 0]
    score = (right - (votes.sum(axis=1) - right)).sum(axis=0)
    trusted = np.argsort(-score, kind="stable")[: RULES.panel_trusted]
    for who in [None, *trusted.tolist()]:
        share = (1 - ridge) * (1 - trust if who is None else trust / max(len(score), 1))
        for deviation, prior in _deviations(4 if who is None else 3, from_zero=True):
            yield Choice(deviation, who, float(np.log(share * prior)))
    for deviation, prior in _deviations(4, from_zero=False):
        yield Choice(deviation, None, float(np.log(ridge * prior)), panel=False)


def _deviations(n: int, *, from_zero: bool) -> Iterator[tuple[float, float]]:
    """Yield the smallest deviations and their priors."""
    kept = [one for one in RULES.panel_gold_deviations[:n] if from_zero or one[0]]
    total = sum(prior for _, prior in kept)
    yield from ((deviation, prior / total) for deviation, prior in kept)


def _laplace(values: Floats, mean: Floats, spread: Floats, gold: Codes) -> tuple[Floats, Any, float]:
    """Return the mode of the standardised coefficients, the Cholesky factor of their precision and log evidence."""
    scaled, start = values * spread, values @ mean
    rows = np.arange(len(gold))
    at, best, hessian = np.zeros(len(mean)), -np.inf, np.eye(len(mean))
    step, size = np.zeros(len(mean)), 1.0
    for _ in range(40):
        logs = start + scaled @ (at + size * step)
        logs -= np.logaddexp.reduce(logs, axis=1)[:, None]
        value = logs[rows, gold].sum() - 0.5 * ((at + size * step) ** 2).sum()
        if value < best - 1e-9 and size > 1e-3:
            size /= 2
            continue
        at, gain, best, size = at + size * step, value - best, value, 1.0
        chance = np.exp(logs)
        centred = scaled - np.einsum("nk,nkd->nd", chance, scaled)[:, None]
        flat = (np.sqrt(chance)[:, :, None] * centred).reshape(-1, len(mean))
        hessian = np.eye(len(mean)) + flat.T @ flat
        slope = scaled[rows, gold].sum(axis=0) - np.einsum("nk,nkd->d", chance, scaled) - at
        step = cho_solve(cho_factor(hessian, lower=True), slope)
        if gain < 1e-4:
            break
    factor = cho_factor(hessian, lower=True)
    return spread * at + mean, factor, float(best - np.log(np.diag(factor[0])).sum())


def _moderated(values: Floats, centre: Floats, spread: Floats, factor: Any) -> Floats:
    """Return P(class), flatter where the difference of the two most probable classes is in doubt (MacKay 1992)."""
    logs = values @ centre
    top = np.argsort(logs, axis=1)[:, -2:]
    rows = np.arange(len(logs))
    between = (values[rows, top[:, 1]] - values[rows, top[:, 0]]) * spread
    doubt = (between * cho_solve(factor, between.T).T).sum(axis=1)
    return np.asarray(softmax(logs / np.sqrt(1 + np.pi / 8 * doubt)[:, None], axis=1))
