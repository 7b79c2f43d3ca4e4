"""One number per worker and true class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from labelonce._types import Codes, Floats
from labelonce.workers._chances import ChanceModel
from labelonce.workers._population import average_moments, likely_points, log_spread_prior, sample_rows, strength
from labelonce.workers._quadrature import LabelledRows, OverallNodes, hermite_rule

_COARSE, _FINE = hermite_rule(5), hermite_rule(9)  # for likelihoods, and for the moments of the workers


class ClassWise(ChanceModel):
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
    _n_spreads = 2

    def _class_rows(self, n_classes: int) -> Codes:
        return np.arange(n_classes, dtype=np.int32)

    def _sampled(self, right: Floats, wrong: Floats) -> tuple[Floats, Floats]:
        self._sample_counts = sample_rows(right, wrong)
        self._index()
        return self._sample.right, self._sample.wrong

    def learn(self, counts: Sequence[Floats], drawn: Sequence[Floats]) -> Floats:
        """Return the mean chances by worker and row; see `ChanceModel`."""
        right = super().learn(counts, drawn)
        self.strength_ = float(strength(self._mode[2]))
        return right

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

    def _rows_at(self, point: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the mean chance of each row at an overall probability of 0, its slope, and the labels it is worth."""
        (right, wrong), lean = self._right_counts, strength(point[2])
        size = right + wrong + lean
        return right / size, lean / size, size

    def _moments_at(self, point: Floats) -> tuple[Floats, Floats]:
        first, slope, size = self._rows_at(point)
        mean, square = _powers(first, slope, *self._overall_at(point))
        return mean, square + (mean - square) / (size + 1)

    def overall_moments(self, prior: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance of every worker's chance of being right; `prior` is the share of each row."""

        def moments_at(point: Floats) -> tuple[Floats, Floats]:
            (first, slope, size), overall = self._rows_at(point), self._overall_at(point)
            mean, square = _powers(first, slope, *overall)
            own, own_square = _powers(first @ prior, slope @ prior, *(part[:, 0] for part in overall))
            return own, own_square + (mean - square) / (size + 1) @ prior**2

        return average_moments(moments_at, likely_points(self._log_density, self._mode))


def _powers(first: Floats, slope: Floats, mean: Floats, square: Floats) -> tuple[Floats, Floats]:
    """Return mean and mean square of `first + slope * x`, from those of x."""
    return first + slope * mean, first**2 + 2 * first * slope * mean + slope**2 * square
