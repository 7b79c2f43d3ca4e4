"""One number per worker."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import betaln, digamma

from labelonce._kernels import Candidates, Factors
from labelonce._types import Floats
from labelonce.data import Annotations
from labelonce.workers._base import WorkerModel
from labelonce.workers._intervals import one_coin_interval
from labelonce.workers._population import (
    average_moments,
    likely_points,
    log_spread_prior,
    most_likely,
    sample_workers,
    strength,
)


class OneCoin(WorkerModel):
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

    _takes_candidates = True
    population_: tuple[float, float]

    def _fit(self, counts: Floats) -> None:
        self._fit_agreement(_agreement(counts), counts.shape[1])

    def _fit_predictions(self, annotations: Annotations, predictions: Any, weight: Floats | None) -> None:
        task, label = annotations.task, annotations.label
        each = np.ones(len(task)) if weight is None else weight[task]
        if isinstance(predictions, Candidates):
            agreed = predictions.at(task, label)
        else:
            agreed = predictions[task] == label if predictions.ndim == 1 else predictions[task, label]
        right: Any = np.bincount(annotations.worker, each * agreed, annotations.n_workers)
        total: Any = np.bincount(annotations.worker, each, annotations.n_workers)
        self._fit_agreement((right, np.maximum(total - right, 0.0)), annotations.n_classes)

    def _fit_agreement(self, counts: tuple[Floats, Floats], n_classes: int) -> None:
        """Fit to the right and the wrong labels of each worker."""
        kept = sample_workers((counts[0] + counts[1])[:, None])
        self.learn(counts, (counts[0][kept], counts[1][kept]))
        self.factors_ = Factors.one_coin(self.chance(), n_classes)

    def learn(
        self,
        counts: tuple[Floats, Floats],
        sample: tuple[Floats, Floats],
        near: Floats | None = None,
        *,
        is_known: bool = False,
    ) -> None:
        """Find the population from right and wrong labels of workers, those of all or of a sample of them.

        `near` and `is_known` are as in `ClassWise`.
        """
        self._sample, self._counts = sample, counts
        right, wrong = (float(part.sum()) for part in self._sample)
        start = np.array([(right + 1) / (right + wrong + 2), 0.2]) if near is None else near
        self._mode = start if is_known else most_likely(self._log_density, start)
        mean, size = self._mode[0], float(strength(self._mode[1]))
        self.population_ = (mean * size, (1 - mean) * size)

    @property
    def mode(self) -> Floats:
        """The most likely parameters of the population."""
        return self._mode

    def chance(self) -> Floats:
        """Return every worker's mean chance of being right, shape (n_workers,)."""
        return self._moments_at(self._mode)[0]

    def chance_moments(self) -> tuple[Floats, Floats]:
        """Return mean and variance of every worker's chance of being right, in all likely populations."""
        return average_moments(self._moments_at, likely_points(self._log_density, self._mode))

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
        """Return mean and mean square of every worker's probability of being right, in a known population."""
        mean, spread = point
        right, wrong = self._counts
        size = right + wrong + strength(spread)
        right_share = (right + strength(spread) * mean) / size
        return right_share, right_share**2 + right_share * (1 - right_share) / (size + 1)

    def _skill_moments(self, prior: Floats) -> tuple[Floats, Floats]:
        if len(prior) == 1:
            return np.ones(self.factors_.n_workers), np.zeros(self.factors_.n_workers)
        return self.chance_moments()

    def _entry_interval(self, level: float) -> tuple[Floats, Floats]:
        return one_coin_interval(*self.skill_interval(level=level), self.factors_.n_classes)


def _agreement(counts: Floats) -> tuple[Floats, Floats]:
    """Return how many labels of each worker agree with the predictions, and how many do not."""
    right = np.asarray(np.einsum("wkk->w", counts))
    return right, np.maximum(counts.sum(axis=(1, 2)) - right, 0.0)  # rounding may leave less than nothing
