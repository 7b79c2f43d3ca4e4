"""The information in the labels of a task, by redundancy: exact where outcomes are few, else by Monte Carlo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from scipy.special import entr, gammaln, xlogy

from labelonce._kernels import floored_log
from labelonce._types import Floats
from labelonce.planning._crowd import Crowd
from labelonce.simulate import assign

_MAX_STATES = 20_000  # of an exact sum, for the largest redundancy
_CHUNK = 2**21  # numbers held at once


@dataclass(frozen=True)
class Information:
    """The mean information in the labels of one task, one entry per redundancy.

    Attributes
    ----------
    gini : (n,)
        Share of the Gini impurity of the class prior that the labels take away: 1 is the truth itself. For two classes
        and symmetric workers it is 1 - 2 beta of `labelonce.theory`.
    mutual : (n,)
        Mutual information between the labels and the true label, as a share of the entropy of the class prior.
    label_accuracy : (n,)
        Chance that the most probable class is the true one, the workers being known.
    beta : (n,)
        Mean posterior of the wrong classes.
    """

    gini: Floats
    mutual: Floats
    label_accuracy: Floats
    beta: Floats


def information(
    crowd: Crowd, confusion: Floats, redundancies: Sequence[int], *, draws: int, rng: np.random.Generator
) -> Information:
    """Return the information in labels by the workers of a crowd, for redundancies in ascending order.

    `confusion` is that of the crowd, or a draw of it. All redundancies share their random numbers, so that the curve
    is smooth: the labels of r + 1 are those of r and one more.
    """
    prior = crowd.prior
    outcomes = _outcomes(crowd.load, confusion) if crowd.population else None
    most = redundancies[-1]
    if outcomes is not None and comb(most + len(outcomes) - 1, most) <= _MAX_STATES:
        found = np.array([_exact(outcomes, prior, redundancy) for redundancy in redundancies])
    else:
        found = _sampled(crowd, confusion, redundancies, draws, rng)
    squares, surprise, right = found.T
    before = float(prior @ prior)
    return Information(
        gini=(squares - before) / (1 - before),
        mutual=1 - surprise / float(entr(prior).sum()),
        label_accuracy=right,
        beta=1 - squares,
    )


def _moments(posterior: Floats) -> Floats:
    """Return the sum of squares, the entropy and the largest entry of posteriors (..., n_classes), stacked last."""
    return np.stack([(posterior**2).sum(-1), entr(posterior).sum(-1), posterior.max(-1)], axis=-1)


def _outcomes(load: Floats, confusion: Floats) -> Floats:
    """Return P(outcome | true) of one label, (n_outcomes, n_classes), with equivalent outcomes merged."""
    each = (load[:, None, None] * confusion).transpose(0, 2, 1).reshape(-1, confusion.shape[1])
    each = each[each.sum(axis=1) > 0]
    direction = (each / each.sum(axis=1, keepdims=True)).round(12)
    place = np.unique(direction, axis=0, return_inverse=True)[1].ravel()
    merged = np.zeros((int(place.max()) + 1, each.shape[1]))
    np.add.at(merged, place, each)
    return merged


def _exact(outcomes: Floats, prior: Floats, redundancy: int) -> Floats:
    """Return the mean of `_moments` over all sets of outcomes."""
    n = len(outcomes)
    bars = np.array(list(combinations(range(redundancy + n - 1), n - 1)), dtype=np.int64)
    edges = np.column_stack([np.full(len(bars), -1), bars, np.full(len(bars), redundancy + n - 1)])
    counts = np.diff(edges, axis=1) - 1
    ways = gammaln(redundancy + 1) - gammaln(counts + 1).sum(axis=1)
    log_chance = ways[:, None] + xlogy(counts[:, :, None], outcomes[None]).sum(axis=1)
    joint = prior * np.exp(log_chance)
    chance = joint.sum(axis=1)
    posterior = joint / np.where(chance > 0, chance, 1)[:, None]
    return np.asarray(chance @ _moments(posterior))


def _sampled(
    crowd: Crowd, confusion: Floats, redundancies: Sequence[int], draws: int, rng: np.random.Generator
) -> Floats:
    """Return the mean of `_moments` over drawn tasks, (n_redundancies, 3)."""
    n_workers, n_classes, _ = confusion.shape
    most, places = redundancies[-1], np.asarray(redundancies) - 1
    cumulative, log_confusion = np.cumsum(confusion, axis=2), floored_log(confusion)
    total = np.zeros((len(redundancies), 3))
    size = max(1, min(draws, _CHUNK // (most * n_classes)))
    for start in range(0, draws, size):
        n = min(size, draws - start)
        true = rng.choice(n_classes, n, p=crowd.prior)
        worker = assign(n, n_workers, most, rng, replace=crowd.population, load=crowd.load)
        uniform = rng.random(worker.shape)
        given = (uniform[:, :, None] >= cumulative[worker, true[:, None]]).sum(axis=2)
        log_joint = log_confusion[worker, :, np.minimum(given, n_classes - 1)].cumsum(axis=1)[:, places]
        log_joint += floored_log(crowd.prior)
        posterior = np.exp(log_joint - np.logaddexp.reduce(log_joint, axis=2)[:, :, None])
        total += _moments(posterior).sum(axis=0)
    return np.asarray(total / draws)
