"""How evenly models agree from task to task: what tells strangers and copies from judges who share mistakes.

Judges with errors of their own agree equally well on every task, but for chance. Tasks on which they agree less than on
others are hard, or lure some of them into the same mistake. Even agreement means that judges are independent, or that
they copy nearly everything, in which case they agree more than their usual skill explains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import beta, exponnorm, norm

from labelonce._rules import RULES
from labelonce._types import Codes, Floats, Ids, Mask
from labelonce.judges._votes import Votes

_LEAST = 4  # votes of a task: by fewer, nothing tells even from uneven agreement
_LEAST_TASKS = 30
_DRAWS = 10  # of independent judges
_MOST_VOTES = 200_000  # of which a draw is compared


@dataclass(frozen=True, eq=False)
class Unevenness:
    """The variance over tasks of the squared mean vote, as a share of the largest possible one, and its error."""

    value: float
    error: float

    @classmethod
    def of(
        cls, votes: Votes, weight: Floats, knows: Floats, guesses: Floats, balance: Floats, rho: float
    ) -> Unevenness | None:
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
        for _ in range(_DRAWS):
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
    def of(cls, votes: Votes, weight: Floats, rank: Ids) -> _Part | None:
        counts: Mask = weight[votes.worker] > 0
        number = np.bincount(votes.task[counts], minlength=votes.shape[0])
        chosen = number >= _LEAST
        if (total := number[chosen].sum()) > _MOST_VOTES:
            chosen &= np.random.default_rng(0).random(len(number)) < _MOST_VOTES / total
        if chosen.sum() < _LEAST_TASKS:
            return None
        rows = np.flatnonzero(counts & chosen[votes.task])
        rows = rows[np.lexsort((rank[votes.worker[rows]], votes.task[rows]))]
        task = np.unique(votes.task[rows], return_inverse=True)[1].astype(np.int32)
        worker = votes.worker[rows]
        return cls(task, worker, votes.amount[rows], weight[worker], int(chosen.sum()))

    def variance(self, amount: Any) -> float:
        """Return how much the agreement of two votes of a task varies over the tasks."""
        to_task = sparse.csr_array(
            (self.pull, (self.task, np.arange(len(self.task)))), shape=(self.n_tasks, len(self.task))
        )
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
