"""One number per worker."""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, digamma

from labelonce._types import Codes, Floats
from labelonce.workers._chances import ChanceModel
from labelonce.workers._population import log_spread_prior, sample_workers, strength


class OneCoin(ChanceModel):
    """Right with one probability per worker; when wrong, all other classes are equally likely.

    The probabilities come from a Beta distribution over the population, fitted by marginal likelihood, so
    that a worker with few labels is shrunk towards the others and one without any is an average worker.
    Intervals average over the uncertainty about that distribution.

    Attributes
    ----------
    population_ : (float, float)
        The Beta distribution of the workers' probabilities of being right.

    Examples
    --------
    Four workers with 10 labels of each class, and one who has yet to start:

    >>> import numpy as np
    >>> counts = np.array([[[9, 1], [1, 9]], [[10, 0], [2, 8]], [[6, 4], [5, 5]], [[3, 7], [5, 5]], [[0, 0], [0, 0]]])
    >>> model = OneCoin().fit_counts(counts)
    >>> model.confusion_[:, 0, 0].round(2)
    array([0.86, 0.86, 0.57, 0.45, 0.67])
    >>> low, high = model.skill_interval(level=0.9)
    >>> low.round(2)
    array([0.72, 0.72, 0.4 , 0.28, 0.24])
    >>> high.round(2)
    array([0.96, 0.96, 0.73, 0.62, 0.97])
    """

    _n_spreads = 1
    _sample: tuple[Floats, Floats]

    def _class_rows(self, n_classes: int) -> Codes:
        return np.zeros(n_classes, dtype=np.int32)

    def _sampled(self, right: Floats, wrong: Floats) -> tuple[Floats, Floats]:
        kept = sample_workers(right + wrong)
        self._sample = right[kept], wrong[kept]
        return self._sample

    def overall_moments(self, prior: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance of every worker's chance of being right."""
        mean, variance = self.chance_moments()
        return mean[:, 0], variance[:, 0]

    def _log_density(self, point: Floats) -> tuple[float, Floats]:
        mean, spread = point
        size = float(strength(spread))
        a, b = mean * size, (1 - mean) * size
        right, wrong = self._sample
        log_prior, slope = log_spread_prior(point[1:])
        log_likelihood = float((betaln(a + right, b + wrong) - betaln(a, b)).sum())
        total = digamma(size + right + wrong) - digamma(size)
        by_a = float((digamma(a + right) - digamma(a) - total).sum())
        by_b = float((digamma(b + wrong) - digamma(b) - total).sum())
        by_size = mean * by_a + (1 - mean) * by_b
        return log_likelihood + log_prior, np.array([size * (by_a - by_b), -by_size / spread**2 + slope[0]])

    def _moments_at(self, point: Floats) -> tuple[Floats, Floats]:
        mean, spread = point
        right, wrong = self._right_counts
        size = right + wrong + strength(spread)
        right_share = (right + strength(spread) * mean) / size
        return right_share, right_share**2 + right_share * (1 - right_share) / (size + 1)
