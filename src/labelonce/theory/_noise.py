"""Alpha and beta of any confusion matrices: the expected weight of wrong classes, without and with a posterior."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement, islice
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from labelonce._types import Floats
from labelonce._validate import RandomState, check_distribution, check_int, check_rng

Workers = npt.NDArray[np.intp]

_MAX_TERMS = 2**24  # of an exact sum: seconds
_CHUNK = 2**20  # numbers held at once


@dataclass(frozen=True)
class MonteCarlo:
    """A mean over random draws, and the standard error of that mean.

    Examples
    --------
    >>> MonteCarlo(mean=0.25, standard_error=0.01).mean
    0.25
    """

    mean: float
    standard_error: float


def alpha(confusion: Any) -> float:
    """Return the mean over workers of the largest chance, over true classes, of a wrong label.

    This is alpha of the appendix (equation 14), which bounds the noise of round 1, trained on vote
    fractions. It does not depend on the redundancy. The paper defines it for
    two classes; for more, "the other class" is read as "any other class", and Theorem 4.1 does not apply.

    Parameters
    ----------
    confusion : array of shape (n_workers, n_classes, n_classes)
        confusion[worker, true, given]; every annotation's worker is drawn uniformly.

    Examples
    --------
    >>> alpha([[[0.875, 0.125], [0.25, 0.75]], [[1.0, 0.0], [0.0, 1.0]]])
    0.125
    """
    right = np.diagonal(_check_confusion(confusion, "confusion"), axis1=1, axis2=2)
    return float(np.mean(1 - right.min(axis=1)))


def beta(confusion: Any, redundancy: int, *, estimate: Any = None) -> float:
    """Return the expected weight of the wrong classes in a task's posterior, summed exactly.

    This is beta of the appendix (equation 12), which bounds the noise of round 2: for every set of workers
    the largest, over true classes y, of sum_Z (1 - posterior(y | Z)) P(Z | y), then the mean over sets of
    `redundancy` workers drawn uniformly with replacement. The prior is uniform. More than two classes are
    read as in `alpha`.

    Parameters
    ----------
    confusion : array of shape (n_workers, n_classes, n_classes)
        confusion[worker, true, given], from which the labels come.
    redundancy : int of at least 1
        Labels per task. Alike workers are counted once; with w unlike workers the sum has
        C(w + redundancy - 1, redundancy) * n_classes**redundancy terms, and more than 2**24 are refused.
    estimate : array of the shape of confusion, optional
        The confusion by which the posterior is computed. Default: the true one.

    Examples
    --------
    >>> round(beta([[[0.8, 0.2], [0.2, 0.8]]], redundancy=1), 4)
    0.32
    >>> round(beta([[[0.8, 0.2], [0.2, 0.8]]], redundancy=1, estimate=[[[0.75, 0.25], [0.25, 0.75]]]), 4)
    0.35
    """
    confusion, estimate = _check_pair(confusion, estimate)
    chunk = _rows_per_chunk(confusion, check_int(redundancy, "redundancy", 1))
    both = np.concatenate([confusion, estimate], axis=1).reshape(len(confusion), -1)
    _, first, count = np.unique(both, axis=0, return_index=True, return_counts=True)
    _check_terms(len(first), confusion.shape[-1], redundancy)
    share = np.zeros(len(confusion))
    share[first] = count / len(confusion)
    parts = _worker_sets(first, redundancy, chunk)
    return float(sum(_set_chances(part, share) @ _wrong_weights(part, confusion, estimate) for part in parts))


def beta_monte_carlo(
    confusion: Any, redundancy: int, rng: RandomState, *, estimate: Any = None, draws: int = 10_000
) -> MonteCarlo:
    """Return the mean and standard error of `beta` over random sets of workers.

    Labels are summed exactly for each set, because sampled ones would bias the maximum over classes upward.

    Parameters
    ----------
    confusion, redundancy, estimate
        As in `beta`; at most 2**20 sets of labels, n_classes**redundancy.
    rng : generator, seed or None
        Source of the draws; None takes fresh entropy.
    draws : int of at least 2
        Sets of workers.

    Examples
    --------
    >>> from labelonce.simulate import hammer_spammer
    >>> confusion = hammer_spammer(100, n_classes=2, quality=0.5, rng=0, exact=True)
    >>> noise = beta_monte_carlo(confusion, redundancy=5, rng=0)  # exactly 1 / 64
    >>> round(noise.mean, 3), round(noise.standard_error, 3)
    (0.017, 0.001)
    """
    confusion, estimate = _check_pair(confusion, estimate)
    chunk = _rows_per_chunk(confusion, check_int(redundancy, "redundancy", 1))
    workers = check_rng(rng).integers(len(confusion), size=(check_int(draws, "draws", 2), redundancy))
    parts = [workers[start : start + chunk] for start in range(0, draws, chunk)]
    value = np.concatenate([_wrong_weights(part, confusion, estimate) for part in parts])
    return MonteCarlo(float(value.mean()), float(value.std(ddof=1) / np.sqrt(draws)))


def _check_confusion(confusion: Any, name: str) -> Floats:
    shape = np.shape(confusion)
    if len(shape) != 3 or shape[1] != shape[2] or 0 in shape:
        raise ValueError(f"{name} must have shape (n_workers, n_classes, n_classes); got {shape}.")
    return check_distribution(confusion, name, shape)


def _check_pair(confusion: Any, estimate: Any) -> tuple[Floats, Floats]:
    true = _check_confusion(confusion, "confusion")
    return true, true if estimate is None else check_distribution(estimate, "estimate", true.shape)


def _check_terms(n_unlike: int, n_classes: int, redundancy: int) -> None:
    n_sets, n_labels = comb(n_unlike + redundancy - 1, redundancy), n_classes**redundancy
    if n_sets * n_labels > _MAX_TERMS:
        raise ValueError(
            f"the exact sum must have at most {_MAX_TERMS} terms; got {n_sets * n_labels}: {n_sets} sets of workers "
            f"times {n_labels} of labels. Use beta_monte_carlo."
        )


def _rows_per_chunk(confusion: Floats, redundancy: int) -> int:
    n_classes: int = confusion.shape[-1]
    n_labels: int = n_classes**redundancy
    if n_labels > _CHUNK:
        raise ValueError(f"n_classes**redundancy must be at most {_CHUNK}; got {n_classes}**{redundancy} = {n_labels}.")
    return max(1, _CHUNK // (n_labels * n_classes))


def _worker_sets(workers: Workers, redundancy: int, chunk: int) -> Iterator[Workers]:
    """Yield all sets of workers, repeats allowed, as rows of arrays of at most `chunk` rows."""
    sets = combinations_with_replacement(workers.tolist(), redundancy)
    while rows := list(islice(sets, chunk)):
        yield np.array(rows, dtype=np.intp)


def _set_chances(workers: Workers, share: Floats) -> Floats:
    """Return the chance of drawing each row's workers, in any order; equal workers must be neighbours."""
    chance: Floats = share[workers].prod(axis=1)
    run = np.ones(len(workers))
    for column in range(1, workers.shape[1]):
        run = np.where(workers[:, column] == workers[:, column - 1], run + 1, 1)
        chance = chance * (column + 1) / run  # builds redundancy! / product of (repeats of a worker)!
    return chance


def _wrong_weights(workers: Workers, confusion: Floats, estimate: Floats) -> Floats:
    """Return, for every row of workers, max_y sum_Z (1 - posterior(y | Z)) P(Z | y)."""
    chance: Floats = np.ones((len(workers), 1, confusion.shape[-1]))
    posterior = chance / confusion.shape[-1]
    for worker in workers.T:
        chance = _with_every_label(chance, confusion[worker])
        posterior = _with_every_label(posterior, estimate[worker])
        total = posterior.sum(axis=2, keepdims=True)
        posterior /= np.where(total > 0, total, 1)
    _check_possible(workers, chance, posterior)
    weights: Floats = (chance * (1 - posterior)).sum(axis=1).max(axis=1)
    return weights


def _with_every_label(values: Floats, confusion: Floats) -> Floats:
    """Multiply (rows, label sets, true) by one more label's chances: (rows, label sets * given, true)."""
    product = values[:, :, None, :] * confusion.swapaxes(1, 2)[:, None]
    return product.reshape(len(values), -1, values.shape[-1])


def _check_possible(workers: Workers, chance: Floats, posterior: Floats) -> None:
    bad = (posterior.sum(axis=2) == 0) & (chance.max(axis=2) > 0)
    if bad.any():
        row, label_set = np.argwhere(bad)[0]
        n_classes, redundancy = chance.shape[-1], workers.shape[1]
        labels = [int(label) for label in np.unravel_index(label_set, (n_classes,) * redundancy)]
        raise ValueError(
            "estimate must allow the labels that confusion allows; "
            f"got probability 0 for labels {labels} of workers {workers[row].tolist()}. Smooth the estimate."
        )
