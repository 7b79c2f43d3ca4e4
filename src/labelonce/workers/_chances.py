"""Chances of being right, of one number per worker or several, in a population that is learned."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from labelonce._kernels import Factors, Pattern
from labelonce._types import Floats
from labelonce.data import is_large
from labelonce.workers._base import WorkerModel
from labelonce.workers._intervals import beta_interval, one_coin_interval
from labelonce.workers._population import average_moments, has_moved, likely_points, most_likely, strength

_LEAST = 1e-4  # labels that each end of a Beta distribution is worth at least


class ChanceModel(WorkerModel):
    """Base: right with a chance by worker and row of classes; when wrong, all other classes are equally likely.

    A subclass says how probable labels are in a population, and what the chances of its workers then are.
    """

    population_: tuple[float, float]
    _forgotten: tuple[str, ...] = ("_mode", "_learned_from")
    _right_counts: Sequence[Floats]
    _mode: Floats  # of the population: a mean and spreads
    _right: Floats
    _n_spreads: ClassVar[int]

    @abstractmethod
    def _class_rows(self, n_classes: int) -> Any:
        """Return the row of chances of every class."""

    @abstractmethod
    def _sampled(self, right: Floats, wrong: Floats) -> tuple[Floats, Floats]:
        """Keep some right and wrong labels by worker and row, enough for a population; return those."""

    @abstractmethod
    def _log_density(self, point: Floats) -> tuple[float, Floats]:
        """Return the log-density of the labels that were kept in a population, with its derivatives."""

    @abstractmethod
    def _moments_at(self, point: Floats) -> tuple[Floats, Floats]:
        """Return mean and mean square of the chances in a known population."""

    @abstractmethod
    def overall_moments(self, prior: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance of every worker's chance of being right; `prior` is the share of each row."""

    def uses_slots(self, labels: Any) -> bool:
        """Return whether arrays of all classes would be too large."""
        return bool(labels.is_square and is_large(labels.n_tasks, labels.n_workers, labels.n_classes))

    def prepare(self, labels: Any, predictions: Any = None) -> Pattern | None:
        """Return the row of chances of every class, None where there is room for matrices."""
        self._forget()
        return Pattern.even(self._class_rows(labels.n_classes)) if self.uses_slots(labels) else None

    def _fit(self, tallies: Any, *, first: bool = False) -> None:
        one = not self._class_rows(tallies.n_classes).any()
        pairs = tallies.right_and_wrong(), tallies.drawn_right_and_wrong()
        self.learn(*([part.sum(axis=1, keepdims=True) if one else part for part in pair] for pair in pairs))
        self.factors_ = Factors.one_coin(self._right, tallies.n_classes)

    def learn(self, counts: Sequence[Floats], drawn: Sequence[Floats]) -> Floats:
        """Return the mean chances by worker and row, of right and wrong labels, `drawn` as real ones scatter.

        The population starts from that of the last call, and is the same where next to nothing has changed.
        """
        self._right_counts = counts
        right, wrong = self._sampled(*drawn)
        before, share = vars(self).get("_mode"), counts[0] / np.maximum(counts[0] + counts[1], 1.0)
        if before is None:
            n_right, n_wrong = float(right.sum()), float(wrong.sum())
            before = np.array([(n_right + 1) / (n_right + n_wrong + 2), *[0.2] * self._n_spreads])
        if has_moved(share, self):
            before, self._learned_from = most_likely(self._log_density, before), share
        self._mode = before
        mean, size = before[0], float(strength(before[1]))
        self.population_ = (mean * size, (1 - mean) * size)
        self._right = self._moments_at(before)[0]
        return self._right

    def drawn_chances(self, rng: np.random.Generator) -> Floats:
        """Return chances (n_workers, n_rows), each drawn from those that are consistent with the labels."""
        mean, square = self._moments_at(self._mode)
        size = np.maximum(mean * (1 - mean) / np.maximum(square - mean**2, 1e-12) - 1, 1e-3)
        return rng.beta(np.maximum(size * mean, _LEAST), np.maximum(size * (1 - mean), _LEAST))

    def chance_moments(self) -> tuple[Floats, Floats]:
        """Return mean and variance of the chances, both (n_workers, n_rows), in all likely populations."""
        return average_moments(self._moments_at, likely_points(self._log_density, self._mode))

    def _skill_moments(self, prior: Floats) -> tuple[Floats, Floats]:
        if len(prior) == 1:
            return np.ones(len(self._right)), np.zeros(len(self._right))
        return self.overall_moments(prior)

    def _entry_interval(self, level: float) -> tuple[Floats, Floats]:
        return one_coin_interval(*beta_interval(*self.chance_moments(), level), self._confusion.shape[1])
