"""A vote weighted by how many classes a worker has identified, as Pl@ntNet weighs its users."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from labelonce._kernels import Factors, LabelCells
from labelonce._types import Codes, Floats, Mask
from labelonce._validate import RandomState, check_int, check_number
from labelonce.aggregation import Aggregator, Fit, warn_if_no_overlap, warn_not_settled
from labelonce.data import Annotations


@dataclass(kw_only=True, eq=False, repr=False)
class ExpertiseVote(Aggregator):
    """A vote in which each worker counts by the number of different classes they have identified.

    For crowds with very many classes and workers who know some of them: who has named 500 plants rightly knows plants.
    A class counts as identified by worker w if w gave it to a task where it won and that is valid: the winning class
    has a weight above `least_weight` and a share of the task's weights above `least_share`. With n[w] such classes,

        weight[w] = n[w]**growth - n[w]**damping + log(2.1),

    so that one beginner is not enough for a valid task, and an expert is. Votes and weights are repeated until the
    numbers of identified classes settle. `posterior_` holds the weighted vote fractions, which order the classes but
    are no chances of being right; `skill_` is the share of a worker's labels that won. Known true labels (`gold`) win,
    and their tasks are valid.

    Parameters
    ----------
    growth, damping : floats in [0, 1]
        Exponents of the weight: 0.5 and 0.2 as published.
    least_weight : float
        The weight that the winning class of a valid task has at least: 2 as published, three workers of whom nothing
        is known.
    least_share : float in [0.5, 1]
        The share of the weights that it has at least: 0.7 as published.
    max_iter : int
        Most votes; a fit that needs more ends with a warning.
    random_state : int, numpy.random.Generator or None
        Breaks ties of `labels_`.

    Attributes
    ----------
    weight_ : (n_workers,)
    identified_ : (n_workers,)
        Number of different classes identified.
    valid_ : (n_tasks,)
        Whether the winning class has weight and share enough.

    References
    ----------
    T. Lefort and others, "Cooperative learning of Pl@ntNet's Artificial Intelligence algorithm: how does it work and
    how can we improve it?", preprint hal-04603038, 2024.

    Examples
    --------
    Two workers who know four plants outvote two of whom nothing is known:

    >>> import labelonce as lo
    >>> known = [[k, k, k, -1, -1] for k in range(4)] * 2
    >>> model = lo.baselines.ExpertiseVote().fit(lo.Annotations.from_matrix([*known, [0, 0, -1, 3, 3]]))
    >>> model.identified_
    array([4, 4, 4, 0, 0])
    >>> model.labels_[-1:]
    array([0])
    """

    growth: float = 0.5
    damping: float = 0.2
    least_weight: float = 2.0
    least_share: float = 0.7
    max_iter: int = 100
    random_state: RandomState = 0

    _tables = (4, 0)
    _follows_labels = True
    weight_: Floats = field(init=False)
    identified_: Floats = field(init=False)
    valid_: Mask = field(init=False)

    def _fit(self, annotations: Annotations, gold: Codes | None, rng: np.random.Generator) -> Fit:
        self._check_options()
        warn_if_no_overlap(annotations, "ExpertiseVote")
        cells, classes = LabelCells(annotations, gold), _WorkerClasses(annotations)
        identified: Floats = np.zeros(annotations.n_workers)
        n_iter, changed = 0, annotations.n_workers
        while changed and n_iter < self.max_iter:
            weight = identified**self.growth - identified**self.damping * (identified > 0) + np.log(2.1)
            vote = _Vote(cells, weight)
            valid = (vote.weight > self.least_weight) & (vote.top > self.least_share)
            if gold is not None:
                valid |= gold >= 0
            before, identified = identified, classes.count(vote.won[cells.cell] & valid[annotations.task])
            n_iter, changed = n_iter + 1, int((identified != before).sum())
        if changed:
            warn_not_settled("ExpertiseVote", n_iter, changed)
        posterior = cells.beliefs(vote.share, vote.rest)
        more = {"weight_": weight, "identified_": identified.astype(np.int64), "valid_": valid}
        workers = Factors.one_coin(vote.skill(), annotations.n_classes)
        shares = posterior.class_counts() / len(posterior)
        return Fit(posterior.shown(), workers, shares, np.array([]), not changed, n_iter, more)

    def _check_options(self) -> None:
        check_number(self.growth, "growth", 0.0, 1.0)
        check_number(self.damping, "damping", 0.0, 1.0)
        check_number(self.least_weight, "least_weight", 0.0)
        check_number(self.least_share, "least_share", 0.5, 1.0)
        check_int(self.max_iter, "max_iter", 1)
        if self.damping > self.growth:
            raise ValueError(
                f"damping must be at most growth, {self.growth}, or knowing more would weigh less; got {self.damping}."
            )


class _Vote:
    """One vote with given weights: shares by cell, the largest of each task and its weight, and which cells won."""

    def __init__(self, cells: LabelCells, weight: Floats) -> None:
        votes = cells.votes(weight[cells.worker])
        self._cells, (self.share, self.rest) = cells, cells.fractions(votes)
        self.top = cells.top(self.share)
        self.won: Mask = self.share == self.top[cells.task]
        self.weight = cells.top(np.where(self.won, votes, -np.inf))

    def skill(self) -> Floats:
        """Return the share of each worker's labels that won, a tie of two classes half; without labels, chance."""
        cells = self._cells
        part = self.won / cells.by_task(self.won.astype(np.float64))[cells.task]
        agreed, labels = cells.by_worker(part[cells.cell]), cells.by_worker()
        return np.asarray(np.divide(agreed, labels, out=np.full(len(labels), 1 / cells.shape[1]), where=labels > 0))


class _WorkerClasses:
    """The different classes that each worker gave, to count those with a label that fulfils a condition."""

    def __init__(self, annotations: Annotations) -> None:
        key = annotations.worker.astype(np.int64) * annotations.n_classes + annotations.label
        distinct, self._place = np.unique(key, return_inverse=True)
        self._worker, self._n_workers = distinct // annotations.n_classes, annotations.n_workers

    def count(self, chosen: Mask) -> Floats:
        """Return how many different classes each worker has among the chosen annotations, (n_workers,)."""
        seen = np.zeros(len(self._worker), dtype=bool)
        seen[self._place[chosen]] = True
        return np.asarray(np.bincount(self._worker[seen], minlength=self._n_workers), dtype=np.float64)
