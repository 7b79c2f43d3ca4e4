"""Dawid and Skene's model, started by moments: the third-order tensor of three groups of workers."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from labelonce._kernels import Beliefs, Engine, ScipyEngine, floored_log, normalised
from labelonce._types import Codes, Floats
from labelonce._validate import check_int
from labelonce.aggregation import DawidSkene
from labelonce.data import Annotations

_TRIES, _SWEEPS = 20, 50  # random starts, and steps each, of the power method
_LEAST = 1e-3  # the least probability of an estimate: moments can fall below zero
_SINGULAR = 1e-6  # of the largest eigenvalue


@dataclass(kw_only=True, eq=False, repr=False)
class SpectralDawidSkene(DawidSkene):
    """Dawid and Skene's EM from a start by moments as well as the votes (Zhang and others 2014).

    The workers are split at random into three groups. The third-order moment of the groups' mean labels is a tensor
    with one component per class: its decomposition gives the groups' confusion and the class prior, and a regression
    on them each worker's. Of `n_splits` splits the one of the best likelihood starts EM; EM from the votes runs too,
    and the better objective wins. So good workers who are outvoted can be found.

    The other options are those of `DawidSkene`.

    Parameters
    ----------
    n_splits : int
        Random splits of the workers.
    random_state : int, numpy.random.Generator or None
        Draws the splits and breaks ties of `labels_`.

    References
    ----------
    Y. Zhang, X. Chen, D. Zhou and M. I. Jordan, "Spectral Methods Meet EM: A Provably Optimal Algorithm for
    Crowdsourcing", NIPS 2014.

    Examples
    --------
    >>> import labelonce as lo
    >>> ann = lo.Annotations.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]] * 10)
    >>> lo.baselines.SpectralDawidSkene().fit(ann).labels_[:4]
    array([0, 1, 0, 1])
    """

    n_splits: int = 10

    n_init: int = field(default=1, init=False)
    worker_model: Any = field(default=None, init=False)
    device: str | None = field(default="cpu", init=False)
    _takes_scales = False
    _tables = (15, 10)

    def _check_options(self, n_classes: int) -> None:
        super()._check_options(n_classes)
        check_int(self.n_splits, "n_splits", 1)

    def _starts(
        self, annotations: Annotations, votes: Beliefs, gold: Codes | None, rng: np.random.Generator
    ) -> Iterator[Beliefs]:
        square = annotations.only_classes()
        engine = ScipyEngine(square, self.dtype)
        estimates = (spectral_estimate(square, engine, rng) for _ in range(self.n_splits))
        steps = (engine.e_step(floored_log(one), floored_log(prior), gold) for one, prior in filter(None, estimates))
        best = max(steps, key=lambda step: step.log_likelihood, default=None)
        if best is not None:
            yield Beliefs.of(best.posterior)
        yield from super()._starts(annotations, votes, gold, rng)


def spectral_estimate(
    annotations: Annotations, engine: Engine, rng: np.random.Generator
) -> tuple[Floats, Floats] | None:
    """Return confusion and prior by moments from one random split of the workers, None where the moments are singular.

    The mean labels of three groups are independent given the true label. Two of them, mapped onto the third by
    second moments, and the third itself give a tensor; its components are the rows of the third group's
    confusion times the coverage. Each worker follows by regression on another group. Classes that nobody gave are
    left out and come back with uniform rows.
    """
    given = np.flatnonzero(np.bincount(annotations.label, minlength=annotations.n_classes))
    group = rng.permutation(annotations.n_workers) % 3
    means = [_mean_labels(annotations, group == g) for g in range(3)]
    shown = [mean[:, given] for mean in means]
    try:
        found = [group_rows(shown[(g + 1) % 3], shown[(g + 2) % 3], shown[g], rng) for g in range(3)]
    except np.linalg.LinAlgError:
        return None
    prior = np.full(annotations.n_classes, _LEAST)
    prior[given] = np.clip(np.mean([share for _, share in found], axis=0), _LEAST, None)
    confusion = np.repeat(np.full((1, len(prior), len(prior)), 1 / len(prior)), annotations.n_workers, axis=0)
    for g in range(3):
        other = (g + 1) % 3
        rows = np.linalg.pinv((found[other][0] * prior[given, None]).T)
        joint = engine.m_step(means[other])[group == g][:, given]  # [worker, mean label of the other group, given]
        own = np.clip(np.nan_to_num(normalised(np.einsum("ko,wos->wks", rows, joint))), _LEAST, 1.0)
        confusion[np.ix_(group == g, given)] = own / own.sum(axis=-1, keepdims=True)
    return confusion, prior / prior.sum()


def group_rows(a: Floats, b: Floats, c: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return E[c | true label], shape (n_classes, n_classes), and P(true label), from labels independent given it.

    Raises `numpy.linalg.LinAlgError` where a moment is singular.
    """
    n_tasks, n_classes = c.shape
    as_c = a @ (c.T @ b @ np.linalg.inv(a.T @ b)).T
    bs_c = b @ (c.T @ a @ np.linalg.inv(b.T @ a)).T
    second = as_c.T @ bs_c / n_tasks
    value, vector = np.linalg.eigh((second + second.T) / 2)
    if not np.isfinite(value).all() or value[0] <= _SINGULAR * value[-1]:
        raise np.linalg.LinAlgError("the second moment of the groups is singular")
    whiten, unwhiten = vector / np.sqrt(value), vector * np.sqrt(value)
    sides = ((as_c @ whiten), (bs_c @ whiten), (c @ whiten))
    tensor = sum(np.einsum("ni,nj,nk->ijk", *block, optimize=True) for block in _blocks(sides)) / n_tasks
    symmetric = np.mean([np.asarray(tensor).transpose(turn) for turn in permutations(range(3))], axis=0)
    sizes, directions = orthogonal_components(symmetric, rng)
    if (sizes <= 0).any():
        raise np.linalg.LinAlgError("a component of the third moment is not positive")
    rows = sizes[:, None] * (directions @ unwhiten.T)
    row, column = linear_sum_assignment(-rows / np.abs(rows).sum(axis=1, keepdims=True))
    order = np.empty(n_classes, dtype=np.intp)
    order[column] = row
    return rows[order], 1 / sizes[order] ** 2


def orthogonal_components(tensor: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return sizes and directions, one a row, of a symmetric tensor that is a sum of cubes of orthogonal ones.

    The power method with deflation, from many random starts for each component.
    """
    n = len(tensor)
    sizes, directions = np.empty(n), np.empty((n, n))
    for place in range(n):
        tries = rng.normal(size=(_TRIES, n))
        for _ in range(_SWEEPS):
            tries /= np.linalg.norm(tries, axis=1, keepdims=True) + np.finfo(np.float64).tiny
            tries = (tries[:, :, None] * tries[:, None, :]).reshape(_TRIES, -1) @ tensor.reshape(n, -1).T
        size = np.linalg.norm(tries, axis=1)
        directions[place] = tries[size.argmax()] / max(size.max(), np.finfo(np.float64).tiny)
        sizes[place] = np.einsum("ijk,i,j,k->", tensor, *[directions[place]] * 3)
        tensor = tensor - sizes[place] * np.einsum("i,j,k->ijk", *[directions[place]] * 3)
    return sizes, directions


def _mean_labels(annotations: Annotations, kept: Any) -> Floats:
    """Return how often the kept workers gave each class to each task, over their number."""
    cell = annotations.task.astype(np.int64) * annotations.n_classes + annotations.label
    cells = annotations.n_tasks * annotations.n_classes
    counts = np.bincount(cell, weights=kept[annotations.worker], minlength=cells)
    return np.asarray(counts.reshape(annotations.n_tasks, -1) / max(1, int(kept.sum())))


def _blocks(sides: tuple[Floats, ...], rows: int = 1 << 14) -> Any:
    return ([side[start : start + rows] for side in sides] for start in range(0, len(sides[0]), rows))
