"""P(given | true) of all workers, stored as matrices or as factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np

from labelonce._kernels._factors import LEAST, Factors
from labelonce._kernels._posterior import floored_log, mean_total_variation
from labelonce._types import Codes, Floats


class Confusion(Protocol):
    """P(given | true) of all workers: `Matrices`, or `Factors` where there is no room for these."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of workers, classes and answers."""

    def dense(self) -> Floats:
        """Return the matrices [worker, true, given], if they are not too large."""

    def confusion(self, worker: int) -> Floats:
        """Return one worker's matrix [true, given]."""

    def probability(self, worker: Any, true: Any, given: Any) -> Floats:
        """Return P(given | true) of the worker, entry by entry; the three are broadcast."""

    def columns(self, worker: Codes, given: Codes) -> Floats:
        """Return P(given | true) of each worker and answer for all classes, (n, n_classes)."""

    def usual(self, worker: Codes) -> Floats:
        """Return the mean chance of a worker to give one answer that is wrong."""

    def skill(self, prior: Floats, leaning: Floats | None = None) -> Floats:
        """Return each worker's chance of giving the true label, shape (n_workers,); `prior` is P(true label).

        It has shape (n_classes,), or (n_workers, n_classes) where workers are of different kinds of rows. With
        `leaning` it is among the answers that lean to a class, each as far as it leans; for a worker without any, that
        of a guess.
        """

    def right_by(self, prior: Floats, leaning: Floats | None = None) -> tuple[Floats, Floats]:
        """Return chances of being right (n_workers, n), and what share of the tasks each of them is for."""

    def answer_probability(self, worker: Any, given: Any, prior: Floats) -> Floats:
        """Return the probability of each worker's answer, whatever the true class is; `prior` is P(true label)."""

    def mean_with(self, others: Sequence[Any], weights: Sequence[float]) -> Self:
        """Return the weighted mean of these workers, the first, and others of the same pattern."""

    def rescaled(self, factor: float, prior: Floats) -> Self:
        """Return workers who are `factor` times as far from guessing, each with its own shares of answers."""

    def change(self, other: Any) -> float:
        """Return the mean change of P(given | true)."""


@dataclass(frozen=True, eq=False)
class Matrices:
    """Workers as matrices.

    Attributes
    ----------
    values : (n_workers, n_classes, n_answers)
        P(given | true); rows sum to 1.
    logs : array, optional
        What the E-step takes for their logs, of models that take expectations of logs.

    Examples
    --------
    >>> one = Matrices(np.array([[[0.9, 0.1], [0.3, 0.7]]]))
    >>> one.skill(np.array([0.5, 0.5])).round(6), one.rescaled(0.5, np.array([0.5, 0.5])).values.round(6).tolist()
    (array([0.8]), [[[0.75, 0.25], [0.45, 0.55]]])
    """

    values: Floats
    logs: Floats | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def dense(self) -> Floats:
        return self.values

    def confusion(self, worker: int) -> Floats:
        return np.asarray(self.values[worker])

    def probability(self, worker: Any, true: Any, given: Any) -> Floats:
        return np.asarray(self.values[worker, true, given])

    def columns(self, worker: Codes, given: Codes) -> Floats:
        return np.asarray(self.values[worker, :, given])

    def usual(self, worker: Codes) -> Floats:
        return np.full(len(worker), 1 / self.shape[2])

    def skill(self, prior: Floats, leaning: Floats | None = None) -> Floats:
        right, share = self.right_by(prior, leaning)
        return np.asarray((right * share).sum(axis=1))

    def right_by(self, prior: Floats, leaning: Floats | None = None) -> tuple[Floats, Floats]:
        if leaning is None:
            return np.asarray(np.einsum("wkk->wk", self.values)), prior
        right = np.einsum("wks,sk->wk", self.values, leaning)
        total = self.values @ leaning.sum(axis=1)
        guess = np.full_like(right, 1 / right.shape[1])
        return np.asarray(np.divide(right, total, out=guess, where=total > 0)), prior

    def answer_probability(self, worker: Any, given: Any, prior: Floats) -> Floats:
        return np.asarray(self._answer_shares(prior)[worker, given])

    def mean_with(self, others: Sequence[Any], weights: Sequence[float]) -> Self:
        both = zip(weights, (self, *others), strict=True)
        return type(self)(np.asarray(sum(share * one.values for share, one in both)))

    def rescaled(self, factor: float, prior: Floats) -> Self:
        shares = self._answer_shares(prior)[:, None, :]
        found = np.clip(shares + factor * (self.values - shares), LEAST, None)
        return type(self)(found / found.sum(axis=2, keepdims=True))

    def _answer_shares(self, prior: Floats) -> Floats:
        return np.asarray((np.broadcast_to(prior, self.values.shape[:2])[:, None, :] @ self.values)[:, 0])

    def change(self, other: Any) -> float:
        return mean_total_variation(self.values, other.values)

    @cached_property
    def log_values(self) -> Floats:
        return floored_log(self.values) if self.logs is None else self.logs


def confusion_of(values: Any) -> Any:
    """Return an array [worker, true, given] as `Matrices`; factors and matrices as they are."""
    return values if isinstance(values, Factors | Matrices) else Matrices(np.asarray(values, dtype=np.float64))


class FittedConfusion:
    """The attribute `confusion_` of a fitted object: the matrices, made when asked for where factors are kept."""

    def __get__(self, fitted: Any, kind: Any = None) -> Any:
        """Return all matrices, or say why they are too many."""
        return self if fitted is None else _stored(fitted, "confusion_").dense()

    def __set__(self, fitted: Any, values: Any) -> None:
        fitted._confusion = confusion_of(values)


class FittedFactors:
    """The attribute `factors_` of a fitted object whose workers are factors."""

    def __get__(self, fitted: Any, kind: Any = None) -> Any:
        """Return the factors."""
        if fitted is None:
            return self
        stored = _stored(fitted, "factors_")
        if not isinstance(stored, Factors):
            raise AttributeError(f"{type(fitted).__name__!r} object has no attribute 'factors_'")
        return stored

    def __set__(self, fitted: Any, values: Any) -> None:
        fitted._confusion = values


def _stored(fitted: Any, name: str) -> Any:
    if "_confusion" not in vars(fitted):
        raise AttributeError(f"{type(fitted).__name__!r} object has no attribute {name!r}")
    return vars(fitted)["_confusion"]


def one_coin_confusion(skill: Floats, n_classes: int) -> Floats:
    """Return the matrices of workers who are right with probability `skill`, else each other class is as likely.

    `skill` has shape (n_workers,), or (n_workers, n_classes) where it depends on the true class. With one class
    nobody can be wrong.

    >>> one_coin_confusion(np.array([0.8]), 3)
    array([[[0.8, 0.1, 0.1],
            [0.1, 0.8, 0.1],
            [0.1, 0.1, 0.8]]])
    """
    if n_classes == 1:
        return np.ones((len(skill), 1, 1))
    right = skill.reshape(len(skill), -1, 1)
    return np.where(np.eye(n_classes, dtype=bool), right, (1 - right) / (n_classes - 1))
