"""One number per worker and true class."""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, expit, gammaln, polygamma

from labelonce._types import Floats
from labelonce.workers._base import WorkerModel
from labelonce.workers._intervals import beta_interval, one_coin_interval
from labelonce.workers._matrices import one_coin_confusion
from labelonce.workers._population import (
    average_moments,
    likely_points,
    log_spread_prior,
    most_likely,
    sample_workers,
    strength,
)


def _quadrature(n_nodes: int) -> tuple[Floats, Floats]:
    """Return Gauss-Hermite nodes in standard deviations, and the log of their widths."""
    place, weight = np.polynomial.hermite.hermgauss(n_nodes)
    return np.sqrt(2) * place, np.log(np.sqrt(2) * weight) + place**2


_COARSE, _FINE = _quadrature(5), _quadrature(9)  # for likelihoods, and for the moments of the workers


class ClassWise(WorkerModel):
    """Right with a probability for every true class, else any other class alike.

    Each probability leans on the worker's own overall one, that on the population; how strongly is chosen by the
    marginal likelihood of the counts. The overall probability is integrated out by adaptive Gauss-Hermite
    quadrature. The model behind the paper's class-wise hammer-spammers.

    Attributes
    ----------
    strength_ : float
        How many labels of a class the worker's overall probability is worth.
    population_ : (float, float)
        The Beta distribution of the workers' overall probabilities of being right.

    Examples
    --------
    A crowd that is good at the first class; its last worker labelled no task of the second:

    >>> import numpy as np
    >>> counts = np.array([[[9, 1], [4, 6]], [[10, 0], [2, 8]], [[8, 2], [7, 3]], [[5, 0], [0, 0]]])
    >>> model = ClassWise().fit_counts(counts)
    >>> model.confusion_[:, [0, 1], [0, 1]].round(2)
    array([[0.85, 0.63],
           [0.95, 0.8 ],
           [0.75, 0.4 ],
           [0.92, 0.81]])
    """

    strength_: float
    population_: tuple[float, float]

    def _fit(self, counts: Floats) -> None:
        self._sample, self._right_counts = _right_and_wrong(sample_workers(counts)), _right_and_wrong(counts)
        right, wrong = (float(part.sum()) for part in self._sample)
        start = np.array([(right + 1) / (right + wrong + 2), 0.2, 0.2])
        self._mode = most_likely(self._log_density, start)
        mean, size = self._mode[0], float(strength(self._mode[1]))
        self.population_, self.strength_ = (mean * size, (1 - mean) * size), float(strength(self._mode[2]))
        self._right = self._right_moments_at(self._mode)[0]
        self.confusion_ = one_coin_confusion(self._right, counts.shape[1])

    def _log_density(self, point: Floats) -> float:
        _, log_weights = overall_nodes(*self._sample, point, _COARSE)
        log_likelihood = float(np.logaddexp.reduce(log_weights, axis=1).sum())
        return log_likelihood + log_spread_prior(point[1]) + log_spread_prior(point[2])

    def _given_overall(self, point: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the weights (n_workers, n_nodes) of overall probabilities, and for each mean and variance by class."""
        overall, log_weights = overall_nodes(*self._right_counts, point, _FINE)
        shares = np.exp(log_weights - np.logaddexp.reduce(log_weights, axis=1, keepdims=True))
        right, wrong = (part[:, :, None] for part in self._right_counts)
        size = right + wrong + strength(point[2])
        mean = (right + strength(point[2]) * overall[:, None, :]) / size
        return shares, mean, mean * (1 - mean) / (size + 1)

    def _right_moments_at(self, point: Floats) -> tuple[Floats, Floats]:
        shares, mean, variance = self._given_overall(point)
        return np.einsum("wg,wkg->wk", shares, mean), np.einsum("wg,wkg->wk", shares, mean**2 + variance)

    def _right_moments(self) -> tuple[Floats, Floats]:
        """Return mean and variance of the probability of being right, both (n_workers, n_classes)."""
        if self._right.shape[1] == 1:
            return np.ones_like(self._right), np.zeros_like(self._right)
        return average_moments(self._right_moments_at, likely_points(self._log_density, self._mode))

    def _skill_moments(self, prior: Floats) -> tuple[Floats, Floats]:
        if len(prior) == 1:
            return np.ones(len(self.confusion_)), np.zeros(len(self.confusion_))

        def moments_at(point: Floats) -> tuple[Floats, Floats]:
            shares, mean, variance = self._given_overall(point)
            skill, doubt = np.einsum("wkg,k->wg", mean, prior), np.einsum("wkg,k->wg", variance, prior**2)
            return (shares * skill).sum(axis=1), (shares * (skill**2 + doubt)).sum(axis=1)

        return average_moments(moments_at, likely_points(self._log_density, self._mode))

    def _entry_interval(self, level: float) -> tuple[Floats, Floats]:
        return one_coin_interval(*beta_interval(*self._right_moments(), level), self.confusion_.shape[1])


def overall_nodes(
    right: Floats, wrong: Floats, point: Floats, quadrature: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """Return overall probabilities of being right, and the log of their weights, both (n_workers, n_nodes).

    The weights of a worker sum to the likelihood of its labels. The nodes follow a Beta posterior for which n
    labels of one class are worth n / (1 + (n - 1) * class_spread) independent ones.
    """
    mean, spread, class_spread = point
    places, log_widths = quadrature
    a, b = mean * strength(spread), (1 - mean) * strength(spread)
    discount = 1 / (1 + np.maximum(right + wrong - 1, 0) * class_spread)
    seen_a, seen_b = a + (right * discount).sum(axis=1), b + (wrong * discount).sum(axis=1)
    deviation = np.sqrt(polygamma(1, seen_a) + polygamma(1, seen_b))[:, None]
    logits = (polygamma(0, seen_a) - polygamma(0, seen_b))[:, None] + deviation * places
    overall = np.clip(expit(logits), 1e-9, 1 - 1e-9)
    log_prior = -a * np.logaddexp(0, -logits) - b * np.logaddexp(0, logits) - betaln(a, b)
    log_weights = log_prior + np.log(deviation) + log_widths
    size = strength(class_spread)
    before = gammaln(size * overall) + gammaln(size * (1 - overall)) - gammaln(size)
    worker, true = np.nonzero(right + wrong)
    seen_right, seen_wrong = right[worker, true, None], wrong[worker, true, None]
    after = gammaln(size * overall[worker] + seen_right) + gammaln(size * (1 - overall[worker]) + seen_wrong)
    np.add.at(log_weights, worker, after - gammaln(size + seen_right + seen_wrong) - before[worker])
    return overall, log_weights


def _right_and_wrong(counts: Floats) -> tuple[Floats, Floats]:
    """Return the labels right and wrong of every worker and true class, both (n_workers, n_classes)."""
    right = np.asarray(np.einsum("wkk->wk", counts))
    return right, np.maximum(counts.sum(axis=2) - right, 0.0)  # rounding may leave less than nothing
