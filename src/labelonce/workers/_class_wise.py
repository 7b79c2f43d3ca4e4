"""One number per worker and true class."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelonce._kernels import Factors, Pattern
from labelonce._types import Floats
from labelonce.data._memory import is_large
from labelonce.workers._base import WorkerModel
from labelonce.workers._intervals import beta_interval, one_coin_interval
from labelonce.workers._population import (
    average_moments,
    has_moved,
    likely_points,
    log_spread_prior,
    most_likely,
    sample_rows,
    strength,
)
from labelonce.workers._quadrature import LabelledRows, OverallNodes, hermite_rule

_COARSE, _FINE = hermite_rule(5), hermite_rule(9)  # for likelihoods, and for the moments of the workers


class ClassWise(WorkerModel):
    """Right with one probability per true class; when wrong, all other classes are equally likely.

    Each probability is shrunk towards the worker's overall one, and that towards the population; how strongly is
    chosen by the marginal likelihood of the counts. The overall probability is integrated out by adaptive
    Gauss-Hermite quadrature. `simulate.class_wise_hammer_spammer` draws such workers.

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
    _forgotten: tuple[str, ...] = ("_mode", "_learned_from")

    def uses_slots(self, labels: Any) -> bool:
        """Return whether arrays of all classes would be too large."""
        return bool(labels.is_square and is_large(labels.n_tasks, labels.n_workers, labels.n_classes))

    def prepare(self, labels: Any, predictions: Any = None) -> Pattern | None:
        """Return that one number per worker and class is kept, None where there is room for matrices."""
        self._forget()
        return Pattern.even(np.arange(labels.n_classes, dtype=np.int32)) if self.uses_slots(labels) else None

    def _fit(self, tallies: Any, *, first: bool = False) -> None:
        self.learn(tallies.right_and_wrong(), tallies.drawn_right_and_wrong())
        self.factors_ = Factors.one_coin(self._right, tallies.n_classes)

    def learn(self, counts: tuple[Floats, Floats], drawn: tuple[Floats, ...]) -> None:
        """Find the population from right and wrong labels by worker and row, `drawn` as real ones scatter.

        It starts from that of the last call, and is the same where next to nothing has changed.
        """
        self._right_counts, self._sample_counts = counts, sample_rows(*drawn)
        self._index()
        before, share = vars(self).get("_mode"), counts[0] / np.maximum(counts[0] + counts[1], 1.0)
        if before is None:
            right, wrong = float(self._sample.right.sum()), float(self._sample.wrong.sum())
            before = np.array([(right + 1) / (right + wrong + 2), 0.2, 0.2])
        if has_moved(share, self):
            before, self._learned_from = most_likely(self._log_density, before), share
        self._mode = before
        mean, size = self._mode[0], float(strength(self._mode[1]))
        self.population_, self.strength_ = (mean * size, (1 - mean) * size), float(strength(self._mode[2]))
        self._right = self._right_moments_at(self._mode)[0]

    def chance(self) -> Floats:
        """Return the mean chance of being right, (n_workers, n_rows)."""
        return self._right

    def _index(self) -> None:
        self._sample, self._rows = LabelledRows.of(*self._sample_counts), LabelledRows.of(*self._right_counts)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what follows from the counts."""
        return {name: value for name, value in super().__getstate__().items() if name not in ("_sample", "_rows")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if hasattr(self, "_right_counts"):
            self._index()

    def _log_density(self, point: Floats) -> tuple[float, Floats]:
        nodes = OverallNodes(self._sample, point, _COARSE)
        log_prior, slope = log_spread_prior(point[1:])
        return nodes.log_likelihood() + log_prior, nodes.gradient() + np.append(0.0, slope)

    def _overall_at(self, point: Floats) -> tuple[Floats, Floats]:
        """Return mean and mean square of the overall probabilities, both (n_workers, 1), in a known population."""
        nodes = OverallNodes(self._rows, point, _FINE)
        shares = nodes.shares()
        mean, square = ((shares * nodes.overall**power).sum(axis=1, keepdims=True) for power in (1, 2))
        return mean, square

    def _right_moments_at(self, point: Floats) -> tuple[Floats, Floats]:
        """Return mean and mean square of the chance of each row, which is linear in the overall probability."""
        mean, square = self._right_powers(point, *self._overall_at(point))
        size = self._right_counts[0] + self._right_counts[1] + strength(point[2])
        return mean, square + (mean - square) / (size + 1)

    def _right_powers(self, point: Floats, overall: Floats, overall_square: Floats) -> tuple[Floats, Floats]:
        """Return mean and mean square, over the overall probability, of the mean chance of each row."""
        (right, wrong), lean = self._right_counts, strength(point[2])
        size = right + wrong + lean
        return (right + lean * overall) / size, (
            right**2 + 2 * lean * right * overall + lean**2 * overall_square
        ) / size**2

    def chance_moments(self) -> tuple[Floats, Floats]:
        """Return mean and variance of the chances of being right, both (n_workers, n_rows)."""
        return self._right_moments()

    def _right_moments(self) -> tuple[Floats, Floats]:
        """Return mean and variance of the probability of being right, both (n_workers, n_classes)."""
        if self._right.shape[1] == 1:
            return np.ones_like(self._right), np.zeros_like(self._right)
        return average_moments(self._right_moments_at, likely_points(self._log_density, self._mode))

    def _skill_moments(self, prior: Floats) -> tuple[Floats, Floats]:
        if len(prior) == 1:
            return np.ones(len(self._right)), np.zeros(len(self._right))
        return self.overall_moments(prior)

    def overall_moments(self, prior: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance of every worker's chance of being right; `prior` is the share of each row."""

        def moments_at(point: Floats) -> tuple[Floats, Floats]:
            overall, overall_square = self._overall_at(point)
            mean, square = self._right_powers(point, overall, overall_square)
            size = self._right_counts[0] + self._right_counts[1] + strength(point[2])
            known, slope = self._right_counts[0] / size @ prior, strength(point[2]) / size @ prior
            spread = known**2 + 2 * known * slope * overall[:, 0] + slope**2 * overall_square[:, 0]
            return mean @ prior, spread + (mean - square) / (size + 1) @ prior**2

        return average_moments(moments_at, likely_points(self._log_density, self._mode))

    def _entry_interval(self, level: float) -> tuple[Floats, Floats]:
        return one_coin_interval(*beta_interval(*self._right_moments(), level), self._right.shape[1])
