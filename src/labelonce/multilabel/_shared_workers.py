"""Workers' matrices per question, shrunk towards their overall matrix as strongly as the counts suggest.

A worker's chances for one question come from a Dirichlet distribution around the worker's own chances over all
questions, and those from one around the crowd's. How narrow each is, its strength, is the one under which the raw
counts are most probable (Dirichlet-multinomial marginal likelihood). Moments of matrices that are already shrunk would
find too little variation, and shrink again.
"""

from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import digamma, gammaln

from labelonce._kernels import Counts
from labelonce._types import Codes, Floats
from labelonce.workers import WorkerModel, beta_interval, has_moved, leaning_moments

STRENGTHS = (0.3, 3000.0)
"""Between these the strengths are searched: from matrices of their own for everybody to one for all."""

_MOST_ROWS = 4000  # to learn one number from
_LEAST = 1e-8
_FIRST_STEPS = 3  # of learning the levels, from workers who all answer as the crowd does


class SharedWorkers(WorkerModel):
    """A matrix per worker and question, shrunk towards the worker's own over all questions, and that to the crowd's.

    How strongly is chosen by the marginal likelihood of the counts, separately for true no and yes: whoever ticks
    little, ticks little of rare labels too, and workers who differ from question to question are left apart.

    Attributes
    ----------
    confusion_ : (n_cells, 2, n_answers)
        P(answer | true) of every cell, a worker and a question.
    worker_confusion_ : (n_workers, 2, n_answers)
        P(answer | true) of every worker over all questions.
    crowd_confusion_ : (2, n_answers)
    question_strength_, worker_strength_ : (2,)
        How many answers a worker's overall chances are worth for a question, and the crowd's for a worker; by true no
        and yes.
    """

    _takes_scales = True
    _forgotten = ("crowd_confusion_", "_learned_from")
    worker_confusion_: Floats
    crowd_confusion_: Floats
    question_strength_: Floats
    worker_strength_: Floats
    _cell_worker: Codes
    _cell_counts: Floats

    def prepare(self, labels: Any, predictions: Any = None) -> None:
        """Learn which cells are of which worker."""
        self._forget()
        self._cell_worker, self._n_people = labels.cell_worker, labels.n_people

    def _fit(self, tallies: Any, *, first: bool = False) -> None:
        self._leaning, self._cell_counts = tallies.leaning, tallies.values
        for _ in range(1 if "crowd_confusion_" in vars(self) else _FIRST_STEPS):
            self._refine(tallies.values)
        found = self.pseudo_counts()
        self.confusion_ = found / found.sum(axis=2, keepdims=True)

    def pseudo_counts(self) -> Floats:
        """Return the counts plus what the worker's overall chances are worth, [cell, true, answer]."""
        base = self.worker_confusion_[self._cell_worker]
        return np.asarray(self._cell_counts + self.question_strength_[:, None] * base)

    def _fit_answers(self, counts: Floats, leaning: Floats) -> None:
        self._fit(Counts(counts, leaning))

    def _refine(self, counts: Floats) -> None:
        """Learn the levels from counts [cell, true, answer], and how far each is shrunk where counts have moved."""
        total = counts.sum(axis=2, keepdims=True)
        share = counts / np.maximum(total, 1.0)
        learns = has_moved(share, self)
        if "crowd_confusion_" not in vars(self):
            crowd = counts.sum(axis=0) + 1.0
            self.crowd_confusion_ = crowd / crowd.sum(axis=1, keepdims=True)
            self.worker_confusion_ = np.repeat(self.crowd_confusion_[None], self._n_people, axis=0)
            self.question_strength_, self.worker_strength_ = np.full(2, 4.0), np.full(2, 4.0)
        levels = self.crowd_confusion_, self.worker_confusion_, self.question_strength_, self.worker_strength_
        crowd, worker, by_question, by_worker = (level.copy() for level in levels)
        for true in (0, 1):
            base = worker[self._cell_worker, true]
            if learns:
                by_question[true] = strength(counts[:, true], base)
            drawn = tables(counts[:, true], base, float(by_question[true]))
            sums = [np.bincount(self._cell_worker, column, self._n_people) for column in drawn.T]
            of_worker = np.stack(sums, axis=1).astype(np.float64)
            own = np.broadcast_to(crowd[true], of_worker.shape)
            if learns:
                by_worker[true] = strength(of_worker, own)
            size = float(by_worker[true])
            of_crowd = tables(of_worker, own, size).sum(axis=0) + 0.5
            crowd[true] = of_crowd / of_crowd.sum()
            shrunk = of_worker + size * crowd[true]
            worker[:, true] = shrunk / shrunk.sum(axis=1, keepdims=True)
        if learns:
            self._learned_from = share
        self.crowd_confusion_, self.worker_confusion_ = crowd, worker
        self.question_strength_, self.worker_strength_ = by_question, by_worker

    def _size(self) -> Floats:
        """Return the weight in answers of the probabilities of every cell, (n_cells, 2, 1)."""
        return np.asarray(self._cell_counts.sum(axis=2, keepdims=True) + self.question_strength_[:, None])

    def _entry_interval(self, level: float) -> tuple[Floats, Floats]:
        mean = self.confusion_
        return beta_interval(mean, mean * (1 - mean) / (self._size() + 1), level)

    def _skill_moments(self, prior: Floats) -> tuple[Floats, Floats]:
        leaning = np.eye(2) if self._leaning is None else self._leaning
        return leaning_moments(self.confusion_, self._size(), leaning, prior)


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

    def loss(log_size: float) -> float:
        size = float(np.exp(log_size))
        return -log_likelihood(seen, mean, size) - 2 * float(np.log(size / (1 + size)))

    return float(np.exp(minimize_scalar(loss, bounds=np.log(STRENGTHS), method="bounded", options={"xatol": 1e-3}).x))


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


def shrunk_shares(of_yes: Floats, total: Floats) -> Floats:
    """Return every question's share of true yes, shrunk towards that of all as strongly as the counts suggest."""
    counts = np.stack([total - of_yes, of_yes], axis=1)
    mean = counts.sum(axis=0) + 0.5
    mean /= mean.sum()
    size = strength(counts, np.broadcast_to(mean, counts.shape))
    return np.asarray((of_yes + size * mean[1]) / (total + size))
