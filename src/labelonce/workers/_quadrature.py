"""The overall probability of being right of workers whose classes differ, integrated out.

A worker's chance to be right, p, comes from Beta(a, b) of the population, its chance for a class from
Beta(c p, c (1 - p)). Given p the labels of each class are beta-binomial. The integral over p is a sum over nodes by
adaptive Gauss-Hermite quadrature in the logits of p.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.special import betaln, digamma, expit, gammaln, zeta

from labelonce._types import Floats
from labelonce.workers._population import strength

Rule = tuple[Floats, Floats]


def hermite_rule(n_nodes: int) -> Rule:
    """Return Gauss-Hermite nodes in standard deviations, and the log of their widths."""
    place, weight = np.polynomial.hermite.hermgauss(n_nodes)
    return np.sqrt(2) * place, np.log(np.sqrt(2) * weight) + place**2


@dataclass(frozen=True)
class LabelledRows:
    """The confusion rows with labels: how many are right and wrong, and `owner`, 1 at [worker, row]."""

    right: Floats
    wrong: Floats
    worker: Any
    owner: Any

    @classmethod
    def of(cls, right: Floats, wrong: Floats) -> Self:
        """Return the rows with labels of counts by worker and class."""
        worker, true = np.nonzero(right + wrong)
        ends = np.concatenate([[0], np.cumsum(np.count_nonzero(right + wrong, axis=1))])
        shape = (len(right), len(worker))
        owner = sparse.csr_array((np.ones(len(worker)), np.arange(len(worker)), ends), shape=shape)
        return cls(right[worker, true], wrong[worker, true], worker, owner)


class OverallNodes:
    """Overall probabilities of being right, and the log of their weights, both (n_workers, n_nodes).

    The weights of a worker sum to the likelihood of its labels in the population at `point`: mean, spread and
    spread between classes. The nodes follow a Beta posterior for which n labels of one class are worth
    n / (1 + (n - 1) * class_spread) independent ones.
    """

    def __init__(self, rows: LabelledRows, point: Floats, rule: Rule) -> None:
        mean, spread, class_spread = point
        places, log_widths = rule
        self._rows, self._point, self._places = rows, point, places
        self._a, self._b = mean * float(strength(spread)), (1 - mean) * float(strength(spread))
        self._size = float(strength(class_spread))
        self._repeats = np.maximum(rows.right + rows.wrong - 1, 0)
        self._discount = 1 / (1 + self._repeats * class_spread)
        self._seen_a = self._a + rows.owner @ (rows.right * self._discount)
        self._seen_b = self._b + rows.owner @ (rows.wrong * self._discount)
        self._widths_a, self._widths_b = zeta(2, self._seen_a), zeta(2, self._seen_b)
        self._deviation = np.sqrt(self._widths_a + self._widths_b)[:, None]
        self._logits = (digamma(self._seen_a) - digamma(self._seen_b))[:, None] + self._deviation * places
        self._log_right, self._log_wrong = -np.logaddexp(0, -self._logits), -np.logaddexp(0, self._logits)
        self.overall = np.clip(expit(self._logits), 1e-9, 1 - 1e-9)
        log_prior = self._a * self._log_right + self._b * self._log_wrong - betaln(self._a, self._b)
        self.log_weights = log_prior + np.log(self._deviation) + log_widths + self._log_likelihood_given_overall()

    def log_likelihood(self) -> float:
        """Return the log-likelihood of all labels."""
        return float(np.logaddexp.reduce(self.log_weights, axis=1).sum())

    def shares(self) -> Floats:
        """Return the posterior of the nodes of each worker."""
        return np.asarray(np.exp(self.log_weights - np.logaddexp.reduce(self.log_weights, axis=1, keepdims=True)))

    def gradient(self) -> Floats:
        """Return the derivatives of the log-likelihood by the parameters in `point`; the nodes move along."""
        mean, spread, class_spread = self._point
        shares = self.shares()
        by_logit, by_size = self._slopes_given_overall()
        by_logit += self._a - (self._a + self._b) * expit(self._logits)
        by_place = (shares * by_logit).sum(axis=1)
        by_deviation = (shares * by_logit * self._places).sum(axis=1) + 1 / self._deviation[:, 0]
        by_variance = by_deviation / (2 * self._deviation[:, 0])
        by_seen_a = by_place * self._widths_a - 2 * by_variance * zeta(3, self._seen_a)
        by_seen_b = -by_place * self._widths_b - 2 * by_variance * zeta(3, self._seen_b)
        both = digamma(self._a + self._b)
        by_a = float((shares * self._log_right).sum() + (by_seen_a + both - digamma(self._a)).sum())
        by_b = float((shares * self._log_wrong).sum() + (by_seen_b + both - digamma(self._b)).sum())
        rows = self._rows
        by_discount = rows.right * by_seen_a[rows.worker] + rows.wrong * by_seen_b[rows.worker]
        by_class_spread = -float(by_discount @ (self._repeats * self._discount**2))
        by_class_spread -= float((shares * by_size).sum()) / class_spread**2
        by_strength = mean * by_a + (1 - mean) * by_b
        return np.array([float(strength(spread)) * (by_a - by_b), -by_strength / spread**2, by_class_spread])

    def _given_overall(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the parameters of the Beta distribution of a class at each node, before and after its labels."""
        right, wrong = self._size * self.overall, self._size * (1 - self.overall)
        rows = self._rows
        return right, wrong, right[rows.worker] + rows.right[:, None], wrong[rows.worker] + rows.wrong[:, None]

    def _log_likelihood_given_overall(self) -> Floats:
        right, wrong, seen_right, seen_wrong = self._given_overall()
        rows, n_rows = self._rows, self._rows.owner.sum(axis=1)[:, None]
        before = gammaln(right) + gammaln(wrong) - gammaln(self._size)
        after = gammaln(seen_right) + gammaln(seen_wrong) - gammaln(self._size + rows.right + rows.wrong)[:, None]
        return np.asarray(rows.owner @ after - n_rows * before)

    def _slopes_given_overall(self) -> tuple[Floats, Floats]:
        """Return the derivatives of the log-likelihood given a node by its logit and by the class strength."""
        right, wrong, seen_right, seen_wrong = self._given_overall()
        rows, n_rows = self._rows, self._rows.owner.sum(axis=1)[:, None]
        by_right = rows.owner @ digamma(seen_right) - n_rows * digamma(right)
        by_wrong = rows.owner @ digamma(seen_wrong) - n_rows * digamma(wrong)
        total = rows.owner @ digamma(self._size + rows.right + rows.wrong)[:, None] - n_rows * digamma(self._size)
        by_size = self.overall * by_right + (1 - self.overall) * by_wrong - total
        return right * (1 - self.overall) * (by_right - by_wrong), by_size
