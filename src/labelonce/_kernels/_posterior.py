"""Row-wise steps on (n_tasks, n_classes) arrays, in blocks that stay in the cache."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from labelonce._kernels._engine import EStep
from labelonce._types import Codes, Floats

_FLOOR = 1e-10  # stands for a probability of zero, as in the paper's code
_LEAST = 1e-300  # the least probability after an answer, so that every answer can be taken out again
_BLOCK = 1 << 17  # numbers: a block and its copy stay in the cache


def _blocks(array: Floats) -> Iterator[Floats]:
    rows = max(1, _BLOCK // array.shape[1])
    return (array[start : start + rows] for start in range(0, len(array), rows))


def normalise(log_joint: Floats) -> float:
    """Turn log P(true label, annotations) into posteriors in place; return the log-likelihood.

    Each row must hold a finite number.
    """
    total = 0.0
    for block in _blocks(log_joint):
        by_class = np.ascontiguousarray(block.T)  # reductions over a short last axis are slow
        top = by_class.max(axis=0)
        by_class -= top
        np.exp(by_class, out=by_class)
        mass = by_class.sum(axis=0)
        by_class /= mass
        block[:] = by_class.T
        total += float((np.log(mass) + top).sum(dtype=np.float64))
    return total


def posterior_of(log_joint: Floats, gold: Codes | None, n_classes: int | None = None) -> EStep:
    """Return posteriors, one-hot where gold is known, and the log-likelihood; `log_joint` is overwritten.

    With fewer classes than columns, the columns are the states of each class in turn: gold leaves all its states.
    """
    if gold is not None:
        n_classes = n_classes or log_joint.shape[1]
        known = np.flatnonzero(gold >= 0)
        by_class = log_joint[known].reshape(len(known), n_classes, log_joint.shape[1] // n_classes)
        by_class[np.arange(n_classes) != gold[known, None]] = -np.inf
        log_joint[known] = by_class.reshape(len(known), log_joint.shape[1])
    log_likelihood = normalise(log_joint)
    return EStep(log_joint, log_likelihood)


def after_answer(rows: Floats, chances: Floats) -> Floats:
    """Return P(class) of rows after one more answer each, whose chance by true class is given, by slot as the rows are.

    With 1 / chances the answer is taken out again.

    >>> after_answer(np.array([[0.5, 0.5]]), np.array([[0.9, 0.1]]))
    array([[0.9, 0.1]])
    """
    found = rows * chances
    np.maximum(found, _LEAST, out=found)
    found /= np.add.reduce(found, axis=1, keepdims=True)  # a few rows at a time: half the time of sum
    return found


def entropy(posterior: Floats) -> Floats:
    """Return the entropy of each row of probabilities in nats, shape (n_tasks,)."""
    return np.concatenate([_entropy_of_block(block) for block in _blocks(posterior)])


def _entropy_of_block(block: Floats) -> Floats:
    by_class = np.ascontiguousarray(block.T)
    logs = np.log(np.maximum(by_class, 1e-300))
    logs *= by_class
    return np.asarray(-logs.sum(axis=0))


def mean_total_variation(one: Floats, other: Floats) -> float:
    """Return half the mean over rows of the absolute differences of probabilities in the last axis."""
    n_classes = one.shape[-1]
    pairs = zip(_blocks(one.reshape(-1, n_classes)), _blocks(other.reshape(-1, n_classes)), strict=True)
    total = sum(float(np.abs(first - second).sum()) for first, second in pairs)
    return float(total * n_classes / (2 * one.size))


def top_class(posterior: Floats, rng: np.random.Generator) -> Codes:
    """Return the most probable class of each task, shape (n_tasks,), ties broken at random."""
    return np.concatenate([_top_of_block(block, rng) for block in _blocks(posterior)])


def _top_of_block(block: Floats, rng: np.random.Generator) -> Codes:
    by_class = np.ascontiguousarray(block.T)
    is_top: npt.NDArray[np.bool_] = by_class == by_class.max(axis=0)
    top: Codes = is_top.argmax(axis=0).astype(np.int32)
    tied = np.flatnonzero(is_top.sum(axis=0) > 1)
    top[tied] = np.where(is_top[:, tied], rng.random((len(by_class), len(tied))), -1.0).argmax(axis=0)
    return top


def floored_log(probabilities: Floats) -> Floats:
    """Return logs, with zero taken as 1e-10."""
    return np.asarray(np.log(np.maximum(probabilities, _FLOOR)))


def normalised(counts: Floats) -> Floats:
    """Return counts divided by their sum over the last axis; rows without any become uniform."""
    total = counts.sum(axis=-1, keepdims=True)
    uniform = np.full_like(counts, 1 / counts.shape[-1])
    return np.asarray(np.divide(counts, total, out=uniform, where=total > 0))


def vote_fractions(votes: Floats, gold: Codes | None) -> Floats:
    """Return votes as fractions, in place: equal ones where nobody voted, one-hot where gold is known."""
    total = votes @ np.ones(votes.shape[1], dtype=votes.dtype)  # a sum over a short axis is slow
    votes[total == 0] = 1
    votes /= np.where(total == 0, votes.shape[1], total)[:, None]
    if gold is not None:
        known = np.flatnonzero(gold >= 0)
        votes[known] = 0
        votes[known, gold[known]] = 1
    return votes
