"""What agreement tells of the truth when judges share mistakes, averaged over how much of it is shared error.

Judges agree since they are right or since they err together, and no set of verdicts says which. Let rho be their
agreement beyond chance and r the share of it that is shared error. Then a judge knows the truth with probability q,
q^2 = rho (1 - r) / (1 - r rho), and errors correlate by r rho. All is computed on a grid of r and averaged by a prior,
which gold and persons who contradict the models turn into a posterior.

Judges with errors of their own agree equally well on every task, but for chance. Tasks on which they agree less than on
others are hard, or lure some of them into the same mistake. Even agreement means that judges are independent, or that
they copy nearly everything, in which case they agree more than their usual skill explains.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.special import softmax
from scipy.stats import beta, exponnorm, norm

from labelonce._rules import RULES
from labelonce._types import Codes, Floats, Ids, Mask
from labelonce.judges._votes import Pairs, Votes

GRID = np.linspace(*RULES.panel_grid)  # shares of the agreement that are shared error


@dataclass(frozen=True, eq=False)
class Unevenness:
    """The variance over tasks of the squared mean vote, as a share of the largest possible one, and its error."""

    value: float
    error: float

    @classmethod
    def of(
        cls, votes: Votes, weight: Floats, knows: Floats, guesses: Floats, balance: Floats, rho: float
    ) -> Self | None:
        """Return by how much agreement varies more than that of independent judges; None of too few votes per task.

        Judges count by `weight`, know the truth with probability `knows` and guess otherwise. The draws do not depend
        on the order of judges and classes.
        """
        part = _Part.of(votes, weight, np.argsort(np.argsort(knows, kind="stable")))
        if part is None:
            return None
        rng, n_classes, order = np.random.default_rng(0), len(balance), np.argsort(balance, kind="stable")
        balance, guesses = balance[order], guesses[:, order]
        known, guess = np.clip(knows, 0.0, 0.97)[part.worker], np.cumsum(guesses, axis=1)
        drawn = []
        for _ in range(RULES.uneven_draws):
            truth = rng.choice(n_classes, part.n_tasks, p=balance)
            label = (rng.random(len(part.task))[:, None] > guess[part.worker]).sum(axis=1)
            label = np.where(rng.random(len(part.task)) < known, truth[part.task], np.minimum(label, n_classes - 1))
            drawn.append(part.variance(sparse.csr_array((np.ones(len(label)), (np.arange(len(label)), label)))))
        chance = float((balance**2).sum())
        scale = (1 - chance) ** 2 * rho * (1 - rho)
        return cls((part.variance(part.amount) - float(np.mean(drawn))) / scale, float(np.std(drawn)) / scale)


@dataclass(frozen=True, eq=False)
class _Part:
    """The votes that are compared: those that count, of tasks with enough of them."""

    task: Codes
    worker: Codes
    amount: Any
    pull: Floats
    n_tasks: int

    @classmethod
    def of(cls, votes: Votes, weight: Floats, rank: Ids) -> Self | None:
        counts, (least, least_tasks, most) = weight[votes.worker] > 0, RULES.uneven_votes
        number = np.bincount(votes.task[counts], minlength=votes.shape[0])
        chosen = number >= least
        if (total := number[chosen].sum()) > most:
            chosen &= np.random.default_rng(0).random(len(number)) < most / total
        if chosen.sum() < least_tasks:
            return None
        rows = np.flatnonzero(counts & chosen[votes.task])
        rows = rows[np.lexsort((rank[votes.worker[rows]], votes.task[rows]))]
        task = np.unique(votes.task[rows], return_inverse=True)[1].astype(np.int32)
        return cls(task, votes.worker[rows], votes.amount[rows], weight[votes.worker[rows]], int(chosen.sum()))

    def variance(self, amount: Any) -> float:
        """Return how much the agreement of two votes of a task varies over the tasks."""
        n_votes = len(self.task)
        to_task = sparse.csr_array((self.pull, (self.task, np.arange(n_votes))), shape=(self.n_tasks, n_votes))
        squares = np.bincount(self.task, self.pull**2)
        own = np.bincount(self.task, self.pull**2 * np.asarray(amount.multiply(amount).sum(axis=1)).ravel())
        said = to_task @ amount
        agree = np.asarray(said.multiply(said).sum(axis=1)).ravel() - own
        return float((agree / np.maximum(np.bincount(self.task, self.pull) ** 2 - squares, 1e-12)).var())


def usual_sharing(
    grid: Floats, truth: Callable[[Floats], Floats], rho: float, n_classes: int, uneven: Unevenness | None
) -> Floats:
    """Return the weight of every share r of the grid, by what models usually are and how unevenly they agree.

    They share mistakes, or are independent of each other, or copy nearly everything; and know the truth as often as is
    usual: r and rho say how often that would be.
    """
    knows = np.sqrt(truth(grid))
    usual, spread = RULES.models_know
    slope = (1 - grid) / (1 - rho * grid) ** 2 / (2 * knows)  # of what they know by rho: r gives a density of rho
    kinds = [_prior(grid, one) for one in (RULES.models_share, RULES.models_independent, RULES.models_copy)]
    if uneven is not None:
        error, more = float(np.hypot(uneven.error, RULES.uneven_doubt)), RULES.uneven_usual
        kinds[0] *= float(exponnorm.pdf(uneven.value, more / error, 0.0, error))
        kinds[1] *= float(norm.pdf(uneven.value, 0.0, error))
        kinds[2] *= norm.pdf(uneven.value, uneven_if_copied(grid, knows, rho, n_classes), error)
    shares = (1 - sum(RULES.models_kinds), *RULES.models_kinds)
    found = norm.pdf(knows, usual, spread) * slope * sum(s * kind for s, kind in zip(shares, kinds, strict=True))
    return np.asarray(found / found.sum())


def uneven_if_copied(r: Floats, knows: Floats, rho: float, n_classes: int) -> Floats:
    """Return the unevenness if a share s = sqrt(r rho) of every judge's votes is copied from one source.

    The mean vote is longer on tasks where the source is right: s + (1 - s) q there, s - (1 - s) q elsewhere.
    """
    copied = np.sqrt(r * rho)
    right = knows + (1 - knows) / n_classes
    apart = 2 * copied * (1 - copied) * knows * n_classes / (n_classes - 1)
    return np.asarray(right * (1 - right) * apart**2 / (rho * (1 - rho)))


def _prior(grid: Floats, ends: tuple[float, float]) -> Floats:
    found = beta.pdf(grid, *ends)
    return np.asarray(found / found.sum())


@dataclass(frozen=True, eq=False)
class Panel:
    """The votes, and who belongs together: `family` are codes, `person` says who is a person."""

    votes: Votes
    pairs: Pairs
    family: Ids
    person: Mask

    @cached_property
    def sharing(self) -> Mask:
        """Who shares mistakes: the models; where there are none, everybody."""
        return ~self.person if not self.person.all() else np.ones(len(self.person), dtype=bool)

    @cached_property
    def balance(self) -> Floats:
        """The share of each class among the votes."""
        counts = self.votes.n_votes @ self.votes.shares
        return np.asarray(counts / counts.sum())

    @cached_property
    def steadiness(self) -> Floats | None:
        """How often each judge repeats its own verdicts, beyond chance; None where most never answer twice."""
        found, by_chance = self.votes.consistency, 1 / self.votes.shape[2]
        if np.isfinite(found[self.sharing]).mean() <= 0.5:
            return None
        beyond = np.clip((found - by_chance) / (1 - by_chance), 0.0, 0.95)
        return np.asarray(np.where(np.isnan(beyond), np.nanmedian(beyond), beyond))


@dataclass(frozen=True, eq=False)
class Law:
    """What agreement says."""

    panel: Panel
    # (n_workers,): By how much a vote of each judge counts next to the others, 1 on average; negative where it
    # contradicts them
    drive: Floats
    # (n_workers,): The square root of the agreement that each judge shares with the others; their mean square is near
    # rho
    loading: Floats
    rho: float  # Agreement beyond chance of votes as they count
    between: float  # That of votes of different families
    within: float  # That of votes of one family
    plain: float  # That of all pairs of votes alike
    weight: Floats  # (n_grid,): The weight of every r of `GRID`

    def truth(self, r: Any) -> Any:
        """Return q^2, the agreement that the truth makes, if a share r of all is shared error."""
        return self.rho * (1 - r) / (1 - r * self.rho)

    def errors(self, r: float) -> tuple[float, float]:
        """Return the correlations of errors between families and inside of them."""
        truth = self.truth(r)
        between = max((self.between - truth) / (1 - truth), r * self.between)
        within = max((self.within - truth) / (1 - truth), between)
        return float(min(between, 0.97)), float(min(within, 0.98))

    def knows(self, r: float) -> Floats:
        """Return with which probability every judge knows the truth; negative for one that contradicts it."""
        found = self.loading * np.sqrt(self.truth(r) / self.rho)
        found = np.where(self.panel.sharing, found, _persons(self.panel, found))
        return np.asarray(np.clip(found, -0.9 / (self.panel.votes.shape[2] - 1), 0.97))

    def skills(self, r: float) -> Floats:
        """Return how often every judge is right."""
        q, prior = self.knows(r)[:, None], self.panel.balance
        return np.asarray(((q + (1 - q) * _guesses(self.panel, q)) * prior).sum(axis=1))

    def likely(self) -> tuple[list[float], Floats]:
        """Return every r that counts, and their weights."""
        kept = self.weight >= RULES.least_weight
        return GRID[kept].tolist(), self.weight[kept] / self.weight[kept].sum()

    def over_grid(self, value: Any) -> tuple[Any, Any]:
        """Return the mean and the variance over r of a function of r."""
        grid, weight = self.likely()
        values = np.array([value(r) for r in grid])
        mean = np.tensordot(weight, values, 1)
        return mean, np.tensordot(weight, (values - mean) ** 2, 1)

    def seen(self, told: float, doubt: float) -> Self:
        """Return the law after judges, as they count, were seen to know the truth with this probability."""
        return self.weighed(norm.pdf(told, np.sqrt(self.truth(GRID)), np.hypot(doubt, RULES.panel_doubt)))

    def weighed(self, likelihood: Floats) -> Self:
        """Return the law with every r as likely as something makes it that was seen; nothing rules out all of them."""
        weight = self.weight * likelihood
        return self if weight.sum() < 1e-100 else replace(self, weight=weight / weight.sum())


def law_of(panel: Panel, prior: tuple[float, float] | None) -> Law:
    """Return what the agreement of those who share mistakes says, and of persons with them.

    `prior` is a Beta prior of r; None: what is usual for models.
    """
    sharing = panel.sharing
    pairs = panel.pairs.select(sharing[panel.pairs.one] & sharing[panel.pairs.other])
    same = panel.family[pairs.one] == panel.family[pairs.other]
    apart = ~same if len(np.unique(panel.family[sharing])) > 2 else np.ones(len(same), dtype=bool)
    loading = loadings(pairs.select(apart), panel.votes.shape[1])
    steady = panel.steadiness
    each = loading / (1 - loading**2) if steady is None else (steady / (1 - steady)) ** RULES.panel_steady_power
    drive = np.where(sharing, each, 0.0)
    loading = loading if steady is None else _with_steady(pairs, np.sqrt(steady), drive)
    own = np.zeros(0) if steady is None else steady[sharing]
    own_weight = (panel.votes.n_votes * drive**2)[sharing][: len(own)]
    pull = pairs.n * np.abs(drive[pairs.one] * drive[pairs.other])
    counted = pull * apart if steady is None else pull
    rho = _mean(np.append(pairs.kappa, own), np.append(counted, own_weight))
    between = _mean(pairs.kappa[~same], pull[~same], rho)
    within = max(_mean(pairs.kappa[same], pull[same], between), between)
    scale = np.sqrt(rho / _mean(loading[pairs.one] * loading[pairs.other], pull, rho))
    size = panel.votes.n_votes * np.abs(drive)
    drive /= max(float((size * np.abs(drive)).sum() / max(size.sum(), 1e-12)), 1e-12)
    weight = beta.pdf(GRID, *(prior or RULES.models_share))
    loading = np.clip(loading * min(scale, 1.5), -0.95, 0.95)
    law = Law(panel, drive, loading, rho, between, within, _mean(pairs.kappa, pairs.n, rho), weight / weight.sum())
    law = law if prior else replace(law, weight=_usual(law))
    return law if not panel.person.any() or panel.person.all() else _against_persons(law)


def _usual(law: Law) -> Floats:
    panel, votes = law.panel, law.panel.votes
    knows = np.maximum(law.loading, 0.0)
    counts = np.where(panel.sharing, np.maximum(law.drive, 0.0), 0.0)
    uneven = Unevenness.of(votes, counts, knows, _guesses(panel, knows[:, None]), panel.balance, law.rho)
    return usual_sharing(GRID, law.truth, law.rho, votes.shape[2], uneven)


def loadings(pairs: Pairs, n_workers: int) -> Floats:
    """Return d with kappa of a pair near d_one d_other, by least squares; few common tasks are pulled to the mean."""
    one, other, n, kappa = pairs.both_ways()
    middle, pull = np.sqrt(min(_mean(pairs.kappa, pairs.n), 0.9)), RULES.panel_loading_pull
    found = np.full(n_workers, middle)
    for _ in range(RULES.panel_loading_steps):
        top = np.bincount(one, n * kappa * found[other], minlength=n_workers) + pull * middle
        low = np.bincount(one, n * found[other] ** 2, minlength=n_workers) + pull
        change = np.clip(top / low, -0.95, 0.95) - found
        found = found + 0.5 * change
        if np.abs(change).max(initial=0.0) < 1e-5:
            break
    return np.asarray(found)


def _with_steady(pairs: Pairs, strength: Floats, drive: Floats) -> Floats:
    """Return d by the agreement with the others, most with those who count most as they repeat their verdicts."""
    one, other, n, kappa = pairs.both_ways()
    pull = n * drive[other] ** 2
    top = np.bincount(one, pull * kappa * strength[other], minlength=len(drive))
    low = np.bincount(one, pull * strength[other] ** 2, minlength=len(drive))
    return np.where(low > 0, np.clip(top / np.maximum(low, 1e-9), -0.95, 0.95), strength)


def _persons(panel: Panel, models: Floats) -> Floats:
    """Return how often persons know the truth, by their agreement with models of whom this is known."""
    who, model, n, kappa = _mixed(panel)
    usual, worth = RULES.panel_person
    top = np.bincount(who, n * kappa * models[model], minlength=len(models)) + worth * usual
    return np.asarray(top / (np.bincount(who, n * models[model] ** 2, minlength=len(models)) + worth))


def _mixed(panel: Panel) -> tuple[Codes, Codes, Floats, Floats]:
    """Return the person, the model, common tasks and agreement of every pair of a person and a model."""
    who, model, n, kappa = panel.pairs.both_ways()
    kept = panel.person[who] & ~panel.person[model]
    return who[kept], model[kept], n[kept], kappa[kept]


def _against_persons(law: Law) -> Law:
    """Return the law with r as likely as persons agree with models and with each other.

    Persons err on their own: both know the truth in a q_person q_model of the cases, two persons in q_person^2.
    """
    _, model, n, kappa = _mixed(law.panel)
    each = law.panel.person
    alike = law.panel.pairs.select(each[law.panel.pairs.one] & each[law.panel.pairs.other])
    if not len(n):
        return law
    seen = _mean(kappa, n), _mean(alike.kappa, alike.n, 0.5)
    spread = [np.hypot(1 / np.sqrt(max(size.sum(), 1.0)), RULES.panel_doubt) for size in (n, alike.n)]
    (usual, worth), ability = RULES.panel_person, np.linspace(*RULES.panel_person_grid)
    likely = beta.pdf(ability, usual * worth, (1 - usual) * worth)
    likely *= norm.pdf(seen[1], ability**2, spread[1]) if len(alike.n) else 1.0
    level = float(np.average(law.loading[model], weights=n)) * np.sqrt(law.truth(GRID) / law.rho)
    return law.weighed(norm.pdf(seen[0], level[:, None] * ability, spread[0]) @ likely)


def posteriors(law: Law) -> Iterator[tuple[float, Floats]]:
    """Yield the weight of every r that counts, and the posterior of the tasks by it."""
    for r, weight in zip(*law.likely(), strict=True):
        yield float(weight), softmax(_log_odds(law, r), axis=1)


def _log_odds(law: Law, r: float) -> Floats:
    """Return the log-probability of every class of every task but for a constant."""
    panel, votes = law.panel, law.panel.votes
    q = np.sqrt(law.truth(r))
    gain = law.drive[:, None] * np.log1p(q / ((1 - q) * _guesses(panel, q)))
    if not panel.sharing.all():
        own = law.knows(r)[:, None]
        alone = np.log1p(np.maximum(own / ((1 - own) * _guesses(panel, own)), -0.95))
        gain = np.where(panel.sharing[:, None], gain, alone)
    entries = votes.amount.tocoo()
    counts = (votes.strength * _discounts(law, r))[entries.row]
    value = entries.data * gain[votes.worker[entries.row], entries.col] * counts
    cell = votes.task[entries.row].astype(np.int64) * votes.shape[2] + entries.col
    total = np.bincount(cell, value, minlength=votes.shape[0] * votes.shape[2])
    return np.asarray(np.log(panel.balance) + total.reshape(votes.shape[0], votes.shape[2]))


def _guesses(panel: Panel, knows: Any) -> Floats:
    """Return how often each judge says each class when it does not know the truth [worker, class]."""
    knows, prior = np.maximum(knows, 0.0), panel.balance
    guess = np.maximum((panel.votes.shares - knows * prior) / (1 - knows), RULES.panel_least_guess * prior)
    return np.asarray(guess / guess.sum(axis=1, keepdims=True))


def _discounts(law: Law, r: float) -> Floats:
    """Return how much of every vote counts next to those with which it shares errors.

    Errors correlate more inside a family than between families, those of persons with nobody's: generalised least
    squares for such a block matrix, with Kish's effective numbers where votes count differently.
    """
    panel, votes = law.panel, law.panel.votes
    between, within = law.errors(r)
    key = votes.task.astype(np.int64) * (int(panel.family.max()) + 1) + panel.family[votes.worker]
    _, block = np.unique(key, return_inverse=True)
    weight = np.abs(law.drive[votes.worker]) + 1e-9
    total = np.bincount(block, weight)
    number = total**2 / np.bincount(block, weight**2)
    inside = 1 / ((1 - within) / number + within - between)
    task = np.zeros(len(number), dtype=np.int64)
    task[block] = votes.task
    pull = total * inside / number
    whole = np.bincount(task, pull, minlength=votes.shape[0])
    kish = whole**2 / np.maximum(np.bincount(task, pull**2 / inside, minlength=votes.shape[0]), 1e-300)
    shared = inside / number / (1 + between * kish[task])
    return np.where(panel.sharing[votes.worker], shared[block], 1.0)


def _mean(values: Floats, weight: Floats, otherwise: float | None = None) -> float:
    least = RULES.panel_least_agreement
    total = float(weight.sum())
    return max(float(weight @ values) / total, least) if total > 0 else (least if otherwise is None else otherwise)
