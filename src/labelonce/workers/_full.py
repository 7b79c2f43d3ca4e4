"""A full confusion matrix per worker, shrunk as far as the evidence asks."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelonce._kernels import one_coin_confusion
from labelonce._types import Floats
from labelonce.workers._answers import Shares, leaning_moments, scale_shares
from labelonce.workers._class_wise import ClassWise
from labelonce.workers._intervals import beta_interval
from labelonce.workers._population import (
    LogDensity,
    average_moments,
    likely_points,
    most_likely,
    sample_workers,
    shrinkage,
    strength,
)


class Full(ClassWise):
    """A confusion matrix per worker whose rows are shrunk towards the worker's one-coin matrix.

    Being right is modelled as in `ClassWise`; which wrong class is given is shrunk towards all wrong classes being
    equally likely. Both strengths are chosen by the marginal likelihood of the counts, so that with many labels per
    worker this is plain counting, with few it is `OneCoin`, and where only the diagonal matters it is `ClassWise`.

    On a scale, where no answer is right or wrong, rows are shrunk towards those of all workers for the same class.

    Mistakes are not shrunk towards those of all workers together: within `MBEM` these are partly the model's own
    mistakes, and shrinking towards them would confirm the model.

    Attributes
    ----------
    strength_, population_ : float, (float, float)
        As in `ClassWise`.
    error_strength_ : float
        How many wrong labels of a class the assumption of equally likely mistakes is worth.

    Examples
    --------
    >>> from labelonce import simulate
    >>> y_true = np.arange(3000) % 3
    >>> confusion = simulate.dirichlet(20, 3, rng=0, diagonal=6, off_diagonal=2)
    >>> ann = simulate.annotate(y_true, confusion, simulate.assign(3000, 20, 1, rng=0), rng=0)
    >>> model = Full().fit(ann, y_true)
    >>> confusion[0].round(2)
    array([[0.74, 0.16, 0.11],
           [0.1 , 0.85, 0.05],
           [0.29, 0.35, 0.35]])
    >>> model.confusion_[0].round(2)
    array([[0.76, 0.16, 0.08],
           [0.13, 0.82, 0.04],
           [0.19, 0.29, 0.52]])
    >>> low, high = model.confusion_interval()
    >>> low[0].round(2)
    array([[0.66, 0.09, 0.03],
           [0.07, 0.74, 0.01],
           [0.11, 0.2 , 0.41]])
    >>> high[0].round(2)
    array([[0.84, 0.24, 0.15],
           [0.21, 0.9 , 0.09],
           [0.28, 0.39, 0.62]])
    """

    error_strength_: float
    _takes_scales = True
    _forgotten = (*ClassWise._forgotten, "_error_mode")

    def _fit_answers(self, counts: Floats, leaning: Floats) -> None:
        if np.array_equal(leaning, np.eye(*leaning.shape)):
            super()._fit_answers(counts, leaning)
            return
        found = scale_shares(counts, leaning)
        self._shares, self._leaning, self.confusion_ = tuple(found), leaning, found.mean

    def _on_scale(self) -> bool:
        return "_shares" in vars(self) and len(self._shares[0][0, 0]) == len(self._leaning)

    def _answer_interval(self, level: float) -> tuple[Floats, Floats]:
        if not self._on_scale():
            return super()._answer_interval(level)
        shares = Shares(*self._shares)
        return beta_interval(shares.mean, shares.variance(), level)

    def _skill_moments(self, prior: Floats) -> tuple[Floats, Floats]:
        if not self._on_scale():
            return super()._skill_moments(prior)
        shares = Shares(*self._shares)
        return leaning_moments(shares.mean, shares.size, self._leaning, prior)

    def uses_slots(self, labels: Any) -> bool:
        """Return that matrices need all classes."""
        return False

    def _fit(self, tallies: Any, *, first: bool = False) -> None:
        counts, before = tallies.values, vars(self).get("_learned_from")
        n_classes = counts.shape[1]
        self.learn(tallies.right_and_wrong(), tallies.right_and_wrong())
        if n_classes < 3:
            self.error_strength_ = np.inf
            self.confusion_ = one_coin_confusion(self._right, n_classes)
            return
        self._wrong = _mistakes(counts)
        if "_error_mode" not in vars(self) or self._learned_from is not before:
            sample = self._wrong[sample_workers(counts.sum(axis=2))]
            self._wrong_entries, self._wrong_totals = _how_often(sample), _how_often(sample.sum(axis=2))
            self._error_mode = most_likely(self._error_log_density, vars(self).get("_error_mode", np.array([0.2])))
        self.error_strength_ = float(strength(self._error_mode[0]))
        evidence, total = self._error_evidence(self._error_mode)
        evidence *= (1 - self._right)[:, :, None] / total
        self.confusion_ = np.where(np.eye(n_classes, dtype=bool), self._right[:, :, None], evidence)

    @property
    def _error_log_density(self) -> LogDensity:
        (entries, n_entries), (totals, n_totals) = self._wrong_entries, self._wrong_totals
        return shrinkage(1 / (self._wrong.shape[1] - 1), entries, totals, n_entries, n_totals)

    def _error_moments_at(self, point: Floats) -> tuple[Floats, Floats]:
        """Return mean and mean square of P(given | true, wrong), in a known population."""
        evidence, total = self._error_evidence(point)
        return evidence / total, evidence * (evidence + 1) / (total * (total + 1))

    def _error_evidence(self, point: Floats) -> tuple[Floats, Floats]:
        """Return the wrong labels, seen and believed, by true and given class, and by true class."""
        size, n_classes = strength(point[0]), self._wrong.shape[1]
        evidence = self._wrong + size / (n_classes - 1) * (1 - np.eye(n_classes))
        return evidence, self._wrong.sum(axis=2, keepdims=True) + size

    def _entry_interval(self, level: float) -> tuple[Floats, Floats]:
        n_classes = self.confusion_.shape[1]
        if n_classes < 3:
            return super()._entry_interval(level)
        right, right_variance = (part[:, :, None] for part in self.chance_moments())
        points = likely_points(self._error_log_density, self._error_mode)
        error, error_variance = average_moments(self._error_moments_at, points)
        square = ((1 - right) ** 2 + right_variance) * (error**2 + error_variance)
        diagonal = np.eye(n_classes, dtype=bool)
        mean = np.where(diagonal, right, (1 - right) * error)
        variance = np.where(diagonal, right_variance, square - ((1 - right) * error) ** 2)
        return beta_interval(mean, variance, level)


def _mistakes(counts: Floats) -> Floats:
    return np.where(np.eye(counts.shape[1], dtype=bool), 0.0, counts)


def _how_often(amounts: Floats) -> tuple[Floats, Floats]:
    """Return the amounts above zero, each once, and how often each is there: hard counts are few different ones."""
    values, times = np.unique(amounts[amounts > 0], return_counts=True)
    return values, times.astype(np.float64)
