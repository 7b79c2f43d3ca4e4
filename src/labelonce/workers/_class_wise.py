"""One number per worker and true class."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from labelonce._kernels import Factors
from labelonce._memory import check_memory
from labelonce._types import Floats
from labelonce.data import Annotations
from labelonce.workers._base import WorkerModel
from labelonce.workers._intervals import beta_interval, one_coin_interval
from labelonce.workers._population import (
    average_moments,
    likely_points,
    log_spread_prior,
    most_likely,
    sample_workers,
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

    def _fit(self, counts: Floats) -> None:
        self._fit_rows(_right_and_wrong(counts))

    def _fit_predictions(self, annotations: Annotations, predictions: Any, weight: Floats | None) -> None:
        shape = (annotations.n_workers, annotations.n_classes)
        check_memory(
            8 * 12 * shape[0] * shape[1],
            f"ClassWise with {shape[0]:,} workers x {shape[1]:,} classes",
            "Use workers.OneCoin(), which keeps one number per worker.",
        )
        self._fit_rows(_right_and_wrong_of(annotations, predictions, weight))

    def _fit_rows(self, counts: tuple[Floats, Floats]) -> None:
        """Fit to the right and the wrong labels of each worker and true class."""
        kept = sample_workers(counts[0] + counts[1])
        self.learn(counts, (counts[0][kept], counts[1][kept]))
        self.factors_ = Factors.one_coin(self._right, counts[0].shape[1])

    def learn(
        self,
        counts: tuple[Floats, Floats],
        sample: tuple[Floats, Floats],
        near: Floats | None = None,
        *,
        is_known: bool = False,
    ) -> None:
        """Find the population from right and wrong labels by worker and row, those of all or of a sample of workers.

        `near` are its parameters where they are nearly known, as in a step of EM: `mode` of the last one, which is kept
        if it `is_known` well enough.
        """
        self._right_counts, self._sample_counts = counts, sample
        self._index()
        right, wrong = float(self._sample.right.sum()), float(self._sample.wrong.sum())
        start = np.array([(right + 1) / (right + wrong + 2), 0.2, 0.2]) if near is None else near
        self._mode = start if is_known else most_likely(self._log_density, start)
        mean, size = self._mode[0], float(strength(self._mode[1]))
        self.population_, self.strength_ = (mean * size, (1 - mean) * size), float(strength(self._mode[2]))
        self._right = self._right_moments_at(self._mode)[0]

    @property
    def mode(self) -> Floats:
        """The most likely parameters of the population."""
        return self._mode

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


def _right_and_wrong(counts: Floats) -> tuple[Floats, Floats]:
    """Return the labels right and wrong of every worker and true class, both (n_workers, n_classes)."""
    right = np.asarray(np.einsum("wkk->wk", counts))
    return right, np.maximum(counts.sum(axis=2) - right, 0.0)  # rounding may leave less than nothing


def _right_and_wrong_of(annotations: Annotations, predictions: Any, weight: Floats | None) -> tuple[Floats, Floats]:
    """Return the same from predictions, class codes or probabilities, without counts by label."""
    task, worker, label = annotations.task, annotations.worker, annotations.label
    shape = (annotations.n_workers, annotations.n_classes)
    each = np.ones(len(task)) if weight is None else weight[task]
    agreed = predictions[task] == label if predictions.ndim == 1 else predictions[task, label]
    right = _summed(worker, label, each * agreed, shape)
    if predictions.ndim == 1:
        return right, np.maximum(_summed(worker, predictions[task], each, shape) - right, 0.0)
    who = sparse.csr_array((each, (worker, task)), shape=(shape[0], annotations.n_tasks))
    return right, np.maximum(np.asarray(who @ predictions) - right, 0.0)


def _summed(worker: Any, true: Any, values: Floats, shape: tuple[int, int]) -> Floats:
    cell = worker.astype(np.int64) * shape[1] + true
    return np.asarray(np.bincount(cell, values, shape[0] * shape[1]).reshape(shape))
