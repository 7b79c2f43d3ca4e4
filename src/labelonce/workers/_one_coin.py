"""One number per worker."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import betaln, digamma

from labelonce._kernels import Factors, Pattern
from labelonce._types import Floats
from labelonce.data._memory import is_large
from labelonce.workers._base import WorkerModel
from labelonce.workers._intervals import one_coin_interval
from labelonce.workers._population import (
    average_moments,
    has_moved,
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

    population_: tuple[float, float]
    _forgotten = ("_mode", "_learned_from")

    def uses_slots(self, labels: Any) -> bool:
        """Return whether arrays of all classes would be too large."""
        return bool(labels.is_square and is_large(labels.n_tasks, labels.n_workers, labels.n_classes))

    def prepare(self, labels: Any, predictions: Any = None) -> Pattern | None:
        """Return that one number per worker is kept, None where there is room for matrices."""
        self._forget()
        return Pattern.even(np.zeros(labels.n_classes, np.int32)) if self.uses_slots(labels) else None

    def _fit(self, tallies: Any, *, first: bool = False) -> None:
        right, wrong = (part.sum(axis=1) for part in tallies.right_and_wrong())
        drawn = tuple(part.sum(axis=1) for part in tallies.drawn_right_and_wrong())
        self.learn((right, wrong), drawn)
        self.factors_ = Factors.one_coin(self.chance(), tallies.n_classes)

    def learn(self, counts: tuple[Floats, Floats], drawn: tuple[Floats, ...]) -> None:
        """Find the population from right and wrong labels of workers, `drawn` as real ones scatter.

        It starts from that of the last call, and is the same where next to nothing has changed.
        """
        kept = sample_workers((drawn[0] + drawn[1])[:, None])
        self._sample, self._counts = (drawn[0][kept], drawn[1][kept]), counts
        right, wrong = (float(part.sum()) for part in self._sample)
        before, share = vars(self).get("_mode"), counts[0] / np.maximum(counts[0] + counts[1], 1.0)
        if before is None:
            before = np.array([(right + 1) / (right + wrong + 2), 0.2])
        if has_moved(share, self):
            before, self._learned_from = most_likely(self._log_density, before), share
        self._mode = before
        mean, size = self._mode[0], float(strength(self._mode[1]))
        self.population_ = (mean * size, (1 - mean) * size)

    def chance(self) -> Floats:
        """Return every worker's mean chance of being right, shape (n_workers,)."""
        return self._moments_at(self._mode)[0]

    def chance_moments(self) -> tuple[Floats, Floats]:
        """Return mean and variance of every worker's chance of being right, in all likely populations."""
        return average_moments(self._moments_at, likely_points(self._log_density, self._mode))

    def overall_moments(self, prior: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance of every worker's chance of being right."""
        return self.chance_moments()

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
            return np.ones(len(self._counts[0])), np.zeros(len(self._counts[0]))
        return self.chance_moments()

    def _entry_interval(self, level: float) -> tuple[Floats, Floats]:
        return one_coin_interval(*self.skill_interval(level=level), self._confusion.shape[1])
