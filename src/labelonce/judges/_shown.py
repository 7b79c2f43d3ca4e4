"""What people are shown of a panel: labels, how right they are, judges, and what each of them is worth."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from scipy.optimize import minimize_scalar

from labelonce._rules import RULES
from labelonce._types import Codes, Estimate, Floats, Ids
from labelonce.judges._gold import fit_gold
from labelonce.judges._law import GRID, Law, posteriors
from labelonce.workers import beta_interval

_FOLDS = 5
_FEW = 10  # gold tasks below which none is left out
MOST_IN_MATRIX = 2_000  # judges


@dataclass(frozen=True, eq=False)
class Shown:
    """What a panel says."""

    law: Law  # With what gold says of the share of shared error
    posterior: Floats  # (n_tasks, n_classes)
    proxy: Floats  # (n_tasks, n_classes): The posterior by models that did not see a task's gold
    accuracy: Estimate
    skill: tuple[Floats, Floats]  # (2, n_workers): Means and variances
    gold: Codes  # (n_tasks,): -1 where it is not known
    share_doubt: Floats  # (n_classes,): The variance of the share of each class without gold

    @classmethod
    def of(cls, law: Law, gold: Codes) -> Self:
        """Return what agreement says, and gold if there is some."""
        weights, parts = zip(*posteriors(law), strict=True)
        mean = np.asarray(sum(weight * part for weight, part in zip(weights, parts, strict=True)))
        rows, picks = np.arange(len(mean)), mean.argmax(axis=1)
        weight, rights = np.array(weights), np.array([part[rows, picks].mean() for part in parts])
        spread = weight @ (rights - weight @ rights) ** 2
        shares = np.array([part.mean(axis=0) for part in parts])
        doubt = weight @ (shares - mean.mean(axis=0)) ** 2 + RULES.panel_least_doubt**2
        known, skill = np.flatnonzero(gold >= 0), law.over_grid(law.skills)
        posterior = proxy = mean
        if len(known):
            law = law.seen(*_seen_by_gold(law, known, gold))
            posterior, proxy = _by_gold(law, mean, known, gold)
            skill = _skill_by_gold(law, gold)
        value = float(posterior.max(axis=1).mean())
        spread += value * (1 - value) / len(mean)
        spread = 1 / (1 / (spread + RULES.panel_least_doubt**2) + len(known) / (value * (1 - value) + 1e-3))
        return cls(law, posterior, proxy, _estimate(value, spread), skill, gold, doubt)

    @property
    def prior(self) -> Floats:
        """The share of each class among the tasks."""
        return np.asarray(self.posterior.mean(axis=0))

    @property
    def n_gold(self) -> int:
        """How many tasks have gold."""
        return int((self.gold >= 0).sum())

    def confusion(self) -> Floats:
        """Return P(given | true) of judges who know or guess, with their skills."""
        shares, prior = self.law.panel.votes.shares, self.prior
        by_chance = (shares * prior).sum(axis=1)
        q = np.clip((self.skill[0] - by_chance) / (1 - by_chance), -0.9 / max(len(prior) - 1, 1), 0.99)
        guess = np.maximum(shares - np.maximum(q, 0)[:, None] * prior, 1e-3)
        guess /= guess.sum(axis=1, keepdims=True)
        found = (1 - q)[:, None, None] * guess[:, None, :] + q[:, None, None] * np.eye(len(prior))
        found = np.maximum(found, 1e-4)
        return np.asarray(found / found.sum(axis=2, keepdims=True))

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes by name."""
        law, panel = self.law, self.law.panel
        share, doubt = law.over_grid(lambda r: np.array([r]))
        pairs, n_workers = panel.pairs, panel.votes.shape[1]
        small = n_workers <= MOST_IN_MATRIX
        full = pairs.matrix(n_workers) if small else None
        return {
            "estimated_accuracy_": self.accuracy,
            "shared_error_": _estimate(float(share[0]), float(doubt[0])),
            "effective_workers_": self._effective(),
            "consistency_": panel.votes.consistency,
            "worth_": self._signal() / self._reference(),
            "adds_": self._adds() / self._reference() if small else np.full(n_workers, np.nan),
            "agreement_": full,
            "excess_agreement_": None if full is None else full - np.outer(self._knows(), self._knows()),
            "gold_accuracy_": self._gold_accuracy(),
            "n_gold_": self.n_gold,
            "doubts_": tuple(self._doubts()),
        }

    def _knows(self) -> Floats:
        chance = (self.law.panel.votes.shares * self.prior).sum(axis=1)
        return np.asarray(np.clip((self.skill[0] - chance) / np.maximum(1 - chance, 1e-3), -0.98, 0.98))

    def expected(self) -> Floats:
        """Return the agreement of every pair of judges that being right explains."""
        q, pairs = self._knows(), self.law.panel.pairs
        return np.asarray(q[pairs.one] * q[pairs.other])

    def _effective(self) -> Estimate:
        """Return Kish's effective number of the workers of one task."""
        panel = self.law.panel
        judged = max(len(np.unique(panel.votes.task)), 1)
        models = float(panel.sharing[panel.votes.worker].sum()) / judged
        persons = len(panel.votes.task) / judged - models

        def number(r: float) -> Floats:
            return np.array([persons + models / (1 + max(models - 1, 0) * self._error_correlation(r))])

        mean, spread = self.law.over_grid(number)
        value, deviation = float(mean[0]), 1.645 * float(np.sqrt(spread[0]))
        most = models + persons
        return Estimate(value, max(value - deviation, min(1.0, value)), min(value + deviation, most))

    def _error_correlation(self, r: float) -> float:
        """Return how far mistakes of two judges go together, of all pairs alike; gold shows it directly."""
        by_law = r * self.law.plain
        if self.n_gold < 2 * _FEW:
            return by_law
        n, worth = self.n_gold, RULES.panel_gold_correlation_worth
        return (n * self._seen_correlation() + worth * by_law) / (n + worth)

    def _seen_correlation(self) -> float:
        votes = self.law.panel.votes
        kept, right = votes.rights(self.gold)
        worker, task = votes.worker[kept], votes.task[kept]
        number = np.bincount(worker, minlength=votes.shape[1])
        error = right - (np.bincount(worker, right, minlength=votes.shape[1]) / np.maximum(number, 1))[worker]
        deviation = np.sqrt(np.bincount(worker, error**2, minlength=votes.shape[1]) / np.maximum(number, 1))
        error = error / np.maximum(deviation[worker], 1e-9) * (deviation[worker] > 1e-6)
        per_task = np.bincount(task, minlength=votes.shape[0])
        sums, squares = (np.bincount(task, one, minlength=votes.shape[0]) for one in (error, error**2))
        both = sums**2 - squares
        return float(np.clip(both.sum() / max(float((per_task * (per_task - 1)).sum()), 1.0), 0.0, 1.0))

    def _noise(self) -> tuple[Floats, Floats]:
        """Return how far judges know the truth, and the covariance of what else is in their votes."""
        panel, q = self.law.panel, self._knows()
        mean_r = float(self.law.weight @ GRID)
        between, within = self.law.errors(mean_r)
        same = panel.family[:, None] == panel.family[None]
        usual = np.where(same, within, between) * (panel.sharing[:, None] & panel.sharing[None])
        noise = np.sqrt(1 - q**2)
        correlation = usual.copy()
        pairs = panel.pairs
        seen = np.clip((pairs.kappa - q[pairs.one] * q[pairs.other]) / (noise[pairs.one] * noise[pairs.other]), 0, 0.99)
        share = pairs.n / (pairs.n + RULES.panel_correlation_worth)
        kept = share * seen + (1 - share) * usual[pairs.one, pairs.other]
        correlation[pairs.one, pairs.other] = correlation[pairs.other, pairs.one] = kept
        np.fill_diagonal(correlation, 1.0)
        values, vectors = np.linalg.eigh(correlation)
        correlation = (vectors * np.maximum(values, 0.02)) @ vectors.T
        return q, correlation * noise[:, None] * noise[None]

    def _signal(self) -> Floats:
        """Return the signal in one vote of every judge: q^2 to 1 - q^2."""
        q = self._knows()
        return np.asarray(q**2 / (1 - q**2))

    def _reference(self) -> float:
        """Return the signal in one label of a person: of those in the panel, or a usual one."""
        person = self.law.panel.person
        return float(self._signal()[person].mean()) if person.any() else 1 / (RULES.panel_person[0] ** -2 - 1)

    def _adds(self) -> Floats:
        """Return the signal that a vote of each judge adds to those of all others.

        The signal of correlated votes is q' N^-1 q, with N the covariance of what is not the truth in them.
        """
        q, noise = self._noise()
        inverse = np.linalg.inv(noise)
        return np.asarray((inverse @ q) ** 2 / np.diag(inverse))

    def useless(self) -> Iterator[int]:
        """Yield judges, least useful first, without whom nearly all of the signal is left."""
        q, noise = self._noise()
        left = list(range(len(q)))
        inverse = np.linalg.inv(noise)
        whole = float(q @ inverse @ q)
        while len(left) > 2:
            inner = inverse @ q[left]
            loss = inner**2 / np.diag(inverse)
            least = int(np.argmin(loss))
            if float(q[left] @ inner) - loss[least] < RULES.panel_enough * whole:
                return
            yield left.pop(least)
            rest = np.delete(np.arange(len(inverse)), least)
            column = inverse[rest, least]
            inverse = inverse[np.ix_(rest, rest)] - np.outer(column, column) / inverse[least, least]

    def _gold_accuracy(self) -> Estimate | None:
        if self.n_gold < _FEW:
            return None
        known = np.flatnonzero(self.gold >= 0)
        right = (self.proxy[known].argmax(axis=1) == self.gold[known]).mean()
        return _estimate(float(right), float(right * (1 - right) + 0.05) / len(known))

    def _doubts(self) -> Iterator[str]:
        wide = self.accuracy.high - self.accuracy.low
        if not self.n_gold and wide > RULES.panel_wide:
            yield (
                f"{self.accuracy.low:.0%} to {self.accuracy.high:.0%} of the labels may be right: verdicts alone "
                "cannot tell agreement on the truth from shared mistakes. Check about 50 tasks (see next_tasks) "
                "and fit with gold."
            )


@dataclass(frozen=True)
class Versus:
    """The panel against its best judge: `verdict` says who is better, "unclear" where 0 is inside the range."""

    judge: Any
    panel: Estimate
    best: Estimate
    difference: Estimate
    verdict: Literal["panel", "judge", "unclear"]

    @classmethod
    def of(cls, fitted: Any) -> Self:
        """Return the comparison on gold that was left out, or, without, by what agreement says."""
        models = np.flatnonzero(~fitted.people_) if not fitted.people_.all() else np.arange(len(fitted.people_))
        judge = int(models[np.argmax(fitted.skill_[models])])
        low, high = fitted.skill_interval()
        best = Estimate(float(fitted.skill_[judge]), float(low[judge]), float(high[judge]))
        panel = fitted.gold_accuracy_ or fitted.estimated_accuracy_
        by_law = fitted.estimated_accuracy_.value - float(fitted.skill_[judge]), RULES.panel_least_doubt**2
        middle, spread = cls._on_gold(fitted, judge) or by_law
        half = 1.645 * np.sqrt(spread)
        difference = Estimate(middle, float(middle - half), float(middle + half))
        verdict: Literal["panel", "judge", "unclear"] = "panel" if difference.low > 0 else "unclear"
        if difference.high < 0:
            verdict = "judge"
        return cls(fitted.workers_[judge], panel, best, difference, verdict)

    @staticmethod
    def _on_gold(fitted: Any, judge: int) -> tuple[float, float] | None:
        gold, votes = fitted._gold_codes, fitted._shown.law.panel.votes
        if fitted.gold_accuracy_ is None:
            return None
        kept, right = votes.rights(gold)
        own = votes.worker[kept] == judge
        task = votes.task[kept[own]]
        if len(task) < _FEW:
            return None
        gap = (fitted._shown.proxy[task].argmax(axis=1) == gold[task]) - right[own]
        return float(gap.mean()), float((gap.var() + 0.01) / len(gap))


def _estimate(value: float, variance: float) -> Estimate:
    low, high = beta_interval(np.array([value]), np.array([variance]), 0.9)
    return Estimate(value, min(float(low[0]), value), max(float(high[0]), value))


def _by_gold(law: Law, mean: Floats, known: Ids, gold: Codes) -> tuple[Floats, Floats]:
    """Return the posterior with gold, and one whose gold tasks are predicted from the gold of others."""
    votes, logs = law.panel.votes, np.log(np.clip(mean, 1e-6, 1.0))
    rows = np.arange(len(mean))
    found = fit_gold(votes, logs, known, gold[known]).predict(votes, logs, rows)
    if len(known) >= _FEW:
        fold = np.random.default_rng(0).permutation(len(known)) % _FOLDS
        unseen: Floats = np.empty((len(known), mean.shape[1]))
        for part in range(_FOLDS):
            others = known[fold != part]
            fit = fit_gold(votes, logs, others, gold[others])
            unseen[fold == part] = fit.predict(votes, logs, known[fold == part])
        slope = _slope(unseen, gold[known])
        found, unseen = _stretched(found, slope), _stretched(unseen, slope)
    else:
        unseen = mean[known]
    proxy, posterior = found.copy(), found
    proxy[known] = unseen
    posterior[known] = np.eye(mean.shape[1])[gold[known]]
    return posterior, proxy


def _slope(unseen: Floats, gold: Codes) -> float:
    """Return by how much to stretch log-odds, by gold that was left out and a prior near 1."""
    logs, (usual, doubt) = np.log(np.clip(unseen, 1e-9, 1.0)), RULES.panel_stretch

    def loss(log_slope: float) -> float:
        stretched = np.exp(log_slope) * logs
        right = stretched[np.arange(len(gold)), gold] - np.logaddexp.reduce(stretched, axis=1)
        return float(0.5 * ((log_slope - usual) / doubt) ** 2 - right.sum())

    return float(np.exp(minimize_scalar(loss, bounds=(-2.0, 2.0), method="bounded").x))


def _stretched(chance: Floats, slope: float) -> Floats:
    powered = np.clip(chance, 1e-12, 1.0) ** slope
    return np.asarray(powered / powered.sum(axis=1, keepdims=True))


def _seen_by_gold(law: Law, known: Ids, gold: Codes) -> tuple[float, float]:
    """Return how far the judges, as they count, know the truth on gold tasks, and its standard error."""
    votes, prior = law.panel.votes, law.panel.balance
    weight = np.where(law.panel.sharing, law.drive, 0.0)
    kept, right = votes.rights(gold)
    by_chance = (votes.shares * prior).sum(axis=1)[votes.worker[kept]]
    pull = weight[votes.worker[kept]]
    top = np.bincount(votes.task[kept], pull * (right - by_chance) / (1 - by_chance), minlength=votes.shape[0])
    low = np.bincount(votes.task[kept], np.abs(pull), minlength=votes.shape[0])
    seen = (top / np.maximum(low, 1e-9))[known]
    return float(seen.mean()), float(np.sqrt((seen.var() + 0.25) / len(seen)))


def _skill_by_gold(law: Law, gold: Codes) -> tuple[Floats, Floats]:
    """Return skills with gold: what agreement says is a Beta prior of how often a judge is right."""
    mean, variance = law.over_grid(law.skills)
    mean = np.clip(mean, 0.01, 0.99)
    size = np.maximum(mean * (1 - mean) / (variance + RULES.panel_doubt**2) - 1, 2.0)
    votes = law.panel.votes
    kept, right = votes.rights(gold)
    number = np.bincount(votes.worker[kept], minlength=votes.shape[1])
    agreed = np.bincount(votes.worker[kept], right, minlength=votes.shape[1])
    total = size + number
    found = (size * mean + agreed) / total
    return found, found * (1 - found) / (total + 1)
