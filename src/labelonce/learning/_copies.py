"""Workers who copy each other: their labels are one opinion, however often it is written down."""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from labelonce._rules import RULES
from labelonce._types import Codes, Floats
from labelonce.data import Annotations
from labelonce.judges._law import loadings
from labelonce.judges._votes import Pairs, Votes


def without_copies(annotations: Annotations) -> tuple[Annotations, list[Codes]]:
    """Return the annotations in which what copiers say of a task counts once for each class, and the copiers."""
    groups = copiers(annotations)
    if not groups:
        return annotations, groups
    group = np.arange(annotations.n_workers)
    for one in groups:
        group[one] = one[0]
    drawn = np.random.default_rng(0).permutation(len(annotations))  # so that every copier keeps some labels
    said = np.stack([annotations.task, group[annotations.worker], annotations.label], axis=1)[drawn]
    kept = np.zeros(len(annotations), dtype=bool)
    kept[drawn[np.unique(said, axis=0, return_index=True)[1]]] = True
    return annotations.part(kept), groups


def copiers(annotations: Annotations) -> list[Codes]:
    """Return groups of workers who nearly always agree with each other, far more than others explain.

    If two workers err independently, their agreement beyond chance is the product of their knowledge. A worker's
    knowledge is estimated from its agreement with the workers that are not nearly identical to it. Where most workers
    guess, nothing is said: the few who do not agree with each other alone.
    """
    if len(annotations) < 1.5 * annotations.n_tasks or annotations.n_workers < RULES.copies_workers:
        return []
    pairs = Votes.of(annotations).pairs(RULES.copies_tasks)
    most, above, least, share = RULES.copies
    if len(pairs.n) < 2 or np.quantile(pairs.kappa, share) < least:
        return []
    known, at_most = _known(pairs, annotations.n_workers)
    expected, limit = (one[pairs.one] * one[pairs.other] for one in (known, at_most))
    surprise = -pairs.n * np.log((1 + expected) / 2)  # as if of two classes, which agree by chance most often
    clear = surprise > np.log(len(pairs.n)) + RULES.copies_surprise
    found = np.flatnonzero((pairs.kappa >= most) & (pairs.kappa > limit + above) & clear)
    shape = (annotations.n_workers,) * 2
    graph = sparse.coo_array((np.ones(len(found)), (pairs.one[found], pairs.other[found])), shape=shape)
    _, group = connected_components(graph, directed=False)
    size = np.bincount(group)
    return [np.flatnonzero(group == one).astype(np.int32) for one in np.flatnonzero(size > 1)]


def _known(pairs: Pairs, n_workers: int) -> tuple[Floats, Floats]:
    """Return what each worker knows, as its agreement with others shows it, and the same with twice its error."""
    others = pairs.select(pairs.kappa < RULES.copies[0])
    known = np.maximum(loadings(others, n_workers), 0.0)
    one, other, n, _ = others.both_ways()
    told = np.bincount(one, n * known[other] ** 2, minlength=n_workers)
    return known, np.clip(known + 2 / np.sqrt(np.maximum(told, 1.0)), 0.0, 1.0)
