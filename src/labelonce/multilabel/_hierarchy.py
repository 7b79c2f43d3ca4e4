"""Workers who answer alike to all questions, or not: matrices per question, shrunk as far as the counts ask.

A worker's chances for one question come from a Dirichlet distribution around the worker's own chances over all
questions, and those from one around the crowd's. How narrow each is, its strength, is the one under which the raw
counts are most probable (Dirichlet-multinomial marginal likelihood). Moments of matrices that are already shrunk would
find too little variation, and shrink again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, expit, gammaln, logit

from labelonce._types import Codes, Floats
from labelonce.multilabel._answer_sums import AnswerSums

STRENGTHS = np.exp(np.linspace(np.log(0.3), np.log(3000.0), 28))
"""Among these the strengths are searched: from matrices of their own for everybody to one for all."""

_MOST_ROWS = 4000  # to learn one number from
_LEAST = 1e-8
_SKILLS = np.linspace(-6.0, 6.0, 25)
_SPREADS = np.array([0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0])
_NODE_WORTH = 4.0  # answers that the rest of the hierarchy is worth, where an answer's own share is left out


@dataclass
class SharedWorkers:
    """The levels of the hierarchy while a fit refines them.

    Attributes
    ----------
    crowd : (2, n_answers)
        P(answer | true) of the crowd.
    worker : (n_workers, 2, n_answers)
        P(answer | true) of every worker over all questions.
    question_strength, worker_strength : (2,)
        How many answers a worker's overall chances are worth for a question, and the crowd's for a worker; by true no
        and yes.
    by_skill : bool
        Whether a worker is better or worse at a question for true yes and no together, instead of apart. Needs two
        answers.
    skill_spread : float
        Standard deviation of a worker's skill between questions, in logits.
    """

    crowd: Floats
    worker: Floats
    question_strength: Floats
    worker_strength: Floats
    by_skill: bool = False
    skill_spread: float = 0.0

    @classmethod
    def of(cls, counts: Floats, sums: AnswerSums, *, by_skill: bool = False) -> SharedWorkers:
        """Return workers who all answer as the crowd does."""
        crowd = counts.sum(axis=0) + 1.0
        crowd /= crowd.sum(axis=1, keepdims=True)
        worker = np.repeat(crowd[None], sums.n_workers, axis=0)
        return cls(crowd, worker, np.full(2, 4.0), np.full(2, 4.0), by_skill and sums.n_answers == 2)

    def refine(self, counts: Floats, sums: AnswerSums, *, strengths: bool = True) -> None:
        """Learn the levels from counts [cell, true, answer], and with `strengths` how far each is shrunk."""
        for true in (0, 1):
            base = self.worker[sums.cell_worker, true]
            if strengths:
                self.question_strength[true] = strength(counts[:, true], base)
            drawn = tables(counts[:, true], base, float(self.question_strength[true]))
            of_worker = sum_by(sums.cell_worker, drawn, sums.n_workers)
            crowd = np.broadcast_to(self.crowd[true], of_worker.shape)
            if strengths:
                self.worker_strength[true] = strength(of_worker, crowd)
            size = float(self.worker_strength[true])
            of_crowd = tables(of_worker, crowd, size).sum(axis=0) + 0.5
            self.crowd[true] = of_crowd / of_crowd.sum()
            shrunk = of_worker + size * self.crowd[true]
            self.worker[:, true] = shrunk / shrunk.sum(axis=1, keepdims=True)
        if strengths and self.by_skill:
            self.skill_spread = best_skill_spread(counts, self.worker[sums.cell_worker])

    def evidence(self, counts: Floats, sums: AnswerSums) -> Floats:
        """Return counts plus what the worker's overall chances are worth, [cell, true, answer]."""
        base = self.worker[sums.cell_worker]
        if self.by_skill and self.skill_spread:
            chance = skilled(counts, base, self.skill_spread)
            return np.asarray(chance * (counts.sum(axis=(1, 2)) + _NODE_WORTH)[:, None, None])
        return counts + self.question_strength[:, None] * base


def best_skill_spread(counts: Floats, base: Floats) -> float:
    """Return the spread of skill between questions that makes the counts most probable.

    With a skill of d on a question, the log-odds of a right answer are d above those in `base`, for true yes and no.
    """
    by_node = _log_likelihood_at_nodes(counts, base)
    found = []
    for spread in _SPREADS:
        log_weight = _log_normal(spread)
        found.append(float(np.logaddexp.reduce(by_node + log_weight, axis=1).sum()))
    return float(_SPREADS[int(np.argmax(found))])


def skilled(counts: Floats, base: Floats, spread: float) -> Floats:
    """Return P(answer | true) of every cell, given its counts and a spread of skill between questions."""
    share = _log_likelihood_at_nodes(counts, base) + _log_normal(spread)
    share = np.exp(share - share.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    found = np.empty_like(base)
    for true in (0, 1):
        right = (share * expit(_log_odds(base, true)[:, None] + _SKILLS)).sum(axis=1)
        found[:, true, true], found[:, true, 1 - true] = right, 1 - right
    return found


def _log_likelihood_at_nodes(counts: Floats, base: Floats) -> Floats:
    total = np.zeros((len(counts), len(_SKILLS)))
    for true in (0, 1):
        odds = _log_odds(base, true)[:, None] + _SKILLS
        right, wrong = counts[:, true, true, None], counts[:, true, 1 - true, None]
        total -= right * np.logaddexp(0, -odds) + wrong * np.logaddexp(0, odds)
    return total


def _log_odds(base: Floats, true: int) -> Floats:
    return np.asarray(logit(np.clip(base[:, true, true], 0.01, 0.99)))


def _log_normal(spread: float) -> Floats:
    weight = -0.5 * (_SKILLS / spread) ** 2
    return np.asarray(weight - np.logaddexp.reduce(weight))


def strength(counts: Floats, base: Floats) -> float:
    """Return how many answers `base` is worth, by the marginal likelihood of raw counts; both (n_rows, n_answers).

    A prior on the spread 1 / (1 + strength), Beta(1, 3) as for worker models, keeps few rows that happen to be extreme
    from a strength of zero.

    >>> from numpy.random import default_rng
    >>> rng = default_rng(0)
    >>> chance = rng.beta(4 * 0.7, 4 * 0.3, size=2000)
    >>> given = rng.binomial(10, chance)
    >>> bool(3.5 < strength(np.stack([given, 10 - given], axis=1), np.tile([0.7, 0.3], (2000, 1))) < 4.5)
    True
    """
    total = counts.sum(axis=1)
    rows = np.flatnonzero(total > 1e-3)
    if not len(rows):
        return float(STRENGTHS[-1])
    rows = rows[:: max(1, -(-len(rows) // _MOST_ROWS))]
    seen, mean = counts[rows], base[rows]
    found = np.array([log_likelihood(seen, mean, size) for size in STRENGTHS])
    found += 2 * np.log(STRENGTHS / (1 + STRENGTHS))
    best = int(found.argmax())
    if not 0 < best < len(STRENGTHS) - 1:
        return float(STRENGTHS[best])
    left, top, right = found[best - 1 : best + 2]
    shift = 0.5 * (left - right) / (left - 2 * top + right)  # the vertex of the parabola through three points
    step = np.log(STRENGTHS[1] / STRENGTHS[0])
    return float(np.exp(np.log(STRENGTHS[best]) + step * np.clip(shift, -0.5, 0.5)))


def log_likelihood(counts: Floats, base: Floats, size: float) -> float:
    """Return the log-probability of counts under Dirichlet-multinomial rows around `base`, up to their order."""
    prior, total = size * np.clip(base, _LEAST, 1.0), counts.sum(axis=1)
    by_answer = (gammaln(prior + counts) - gammaln(prior)).sum()
    return float(by_answer - (gammaln(size + total) - gammaln(size)).sum())


def tables(counts: Floats, base: Floats, size: float) -> Floats:
    """Return how many of the counted answers were drawn from `base` itself, in expectation.

    The rest repeats answers of the same row. In the words of the Chinese restaurant franchise (Teh, Jordan, Beal and
    Blei, "Hierarchical Dirichlet Processes", JASA, 2006): the number of tables.
    """
    prior = np.maximum(size * base, _LEAST)
    return np.asarray(prior * (digamma(prior + counts) - digamma(prior)))


def sum_by(code: Codes, rows: Floats, n: int) -> Floats:
    """Return the sums of the rows of each code, shape (n, n_columns)."""
    return np.stack([np.bincount(code, column, minlength=n) for column in rows.T], axis=1)


def shrunk_shares(of_yes: Floats, total: Floats) -> tuple[Floats, float]:
    """Return every question's share of true yes, shrunk towards that of all, and how strongly."""
    counts = np.stack([total - of_yes, of_yes], axis=1)
    mean = counts.sum(axis=0) + 0.5
    mean /= mean.sum()
    size = strength(counts, np.broadcast_to(mean, counts.shape))
    return np.asarray((of_yes + size * mean[1]) / (total + size)), size
