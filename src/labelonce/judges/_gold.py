"""The panel after gold: a Bayesian logistic regression that starts from what agreement says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from labelonce._rules import RULES
from labelonce._types import Codes, Floats, Ids
from labelonce.judges._votes import Votes

_ROWS = 20_000  # tasks at a time


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the regression sees of some tasks: [task, class, feature].

    Features are an offset of every class, the panel's log-odds, and the votes of the judges with gold.
    """

    values: Floats
    n_classes: int

    @classmethod
    def of(cls, votes: Votes, log_odds: Floats, rows: Ids, judges: Codes) -> Evidence:
        """Return the evidence of tasks by their codes, ascending."""
        n_classes = log_odds.shape[1]
        values = np.zeros((len(rows), n_classes, n_classes + 1 + len(judges)))
        values[:, np.arange(n_classes), np.arange(n_classes)] = 1.0
        values[:, :, n_classes] = log_odds[rows] - log_odds[rows].mean(axis=1, keepdims=True)
        place, column = np.full(votes.shape[0], -1), np.full(votes.shape[1], -1)
        place[rows], column[judges] = np.arange(len(rows)), np.arange(len(judges))
        entries = votes.amount[(place[votes.task] >= 0) & (column[votes.worker] >= 0)].tocoo()
        kept = np.flatnonzero((place[votes.task] >= 0) & (column[votes.worker] >= 0))[entries.row]
        where = place[votes.task[kept]], entries.col, n_classes + 1 + column[votes.worker[kept]]
        values[where] = entries.data * votes.strength[kept]
        return cls(values, n_classes)


@dataclass(frozen=True)
class Choice:
    """One model: the deviation of the judges' weights, who is trusted (a column, or None), and its log prior."""

    deviation: float
    trusted: int | None
    log_prior: float

    def scale(self, evidence: Evidence) -> tuple[Floats, Floats]:
        """Return the prior means and deviations of the features."""
        offset, slope, slope_doubt, trust, trust_doubt, _ = RULES.panel_gold
        n_judges = evidence.values.shape[2] - evidence.n_classes - 1
        mean = np.zeros(evidence.values.shape[2])
        spread = np.full(evidence.values.shape[2], self.deviation / np.sqrt(max(n_judges, 1)))
        spread[: evidence.n_classes] = np.sqrt(offset / 2)
        mean[evidence.n_classes], spread[evidence.n_classes] = slope, slope_doubt
        if self.trusted is not None:
            place = evidence.n_classes + 1 + self.trusted
            mean[place], spread[place] = trust, np.hypot(trust_doubt, spread[place])
        return mean, spread


@dataclass(frozen=True, eq=False)
class GoldFit:
    """The models that gold leaves probable, with weights; each is a mean, deviations and a Cholesky factor."""

    judges: Codes
    models: list[tuple[float, Floats, Floats, Any]]

    def predict(self, votes: Votes, log_odds: Floats, rows: Ids) -> Floats:
        """Return P(class) of tasks, averaged over the models and the doubt about their coefficients."""
        found = np.zeros((len(rows), log_odds.shape[1]))
        for start in range(0, len(rows), _ROWS):
            part = slice(start, start + _ROWS)
            evidence = Evidence.of(votes, log_odds, rows[part], self.judges)
            for weight, centre, spread, factor in self.models:
                found[part] += weight * _moderated(evidence, centre, spread, factor)
        return found


def fit_gold(votes: Votes, log_odds: Floats, rows: Ids, gold: Codes) -> GoldFit:
    """Return the regression by the known classes of these tasks, averaged over its priors by Laplace's evidence.

    log P(class) = offset + slope times what agreement says + weight of one trusted judge, or none + weights of all.
    """
    judges = _judges_with_gold(votes, rows)
    evidence = Evidence.of(votes, log_odds, rows, judges)
    fits, scores = [], []
    for choice in _choices(evidence, gold):
        mean, spread = choice.scale(evidence)
        centre, factor, score = _laplace(evidence.values, mean, spread, gold)
        fits.append((centre, spread, factor))
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
    """Yield the models: nobody trusted, or one of the judges who were right most often, each as probable."""
    n_classes, rate = evidence.n_classes, RULES.panel_gold[5]
    votes = evidence.values[:, :, n_classes + 1 :]
    right = np.take_along_axis(votes, gold[:, None, None], axis=1)[:, 0]
    score = (right - (votes.sum(axis=1) - right)).sum(axis=0)
    trusted = np.argsort(-score, kind="stable")[: RULES.panel_trusted]
    for who in [None, *trusted.tolist()]:
        deviations = np.array(RULES.panel_gold_deviations[: 5 if who is None else 3])
        prior = -rate * deviations - np.log(np.exp(-rate * deviations).sum())
        share = 0.5 if who is None else 0.5 / max(len(score), 1)
        for deviation, log_prior in zip(deviations, prior, strict=True):
            yield Choice(float(deviation), who, float(log_prior + np.log(share)))


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


def _moderated(evidence: Evidence, centre: Floats, spread: Floats, factor: Any) -> Floats:
    """Return P(class), flatter where the difference of the two most probable classes is in doubt (MacKay 1992)."""
    logs = evidence.values @ centre
    top = np.argsort(logs, axis=1)[:, -2:]
    rows = np.arange(len(logs))
    between = (evidence.values[rows, top[:, 1]] - evidence.values[rows, top[:, 0]]) * spread
    doubt = (between * cho_solve(factor, between.T).T).sum(axis=1)
    logs = (logs - logs.max(axis=1, keepdims=True)) / np.sqrt(1 + np.pi / 8 * doubt)[:, None]
    chance = np.exp(logs)
    return np.asarray(chance / chance.sum(axis=1, keepdims=True))
