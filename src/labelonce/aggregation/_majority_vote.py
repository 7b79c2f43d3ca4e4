"""Majority vote, hard and soft."""

from __future__ import annotations

import numpy as np

from labelonce._kernels import Factors, LabelCells, ScipyEngine, vote_fractions
from labelonce._memory import is_large
from labelonce._types import Codes
from labelonce._validate import RandomState
from labelonce.aggregation._base import Aggregator, Fit, class_shares
from labelonce.data import Annotations


class MajorityVote(Aggregator):
    """The class most workers gave.

    `posterior_` holds the vote fractions, the paper's "weighted majority vote"; a task without
    annotations gets equal fractions. An answer that is no class, such as "unsure", is no vote; along a scale a vote
    goes in part to each of the two classes nearest. `labels_` holds the hard vote with ties broken at random. Skills
    and confusion come from one count of each worker's labels against the fractions; with so many classes that
    `posterior_` is not an array, from the share of the worker's labels that agree with them.

    Parameters
    ----------
    random_state : int, numpy.random.Generator or None
        Breaks ties. None breaks them differently each time.

    Examples
    --------
    >>> import labelonce as lo
    >>> ann = lo.Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 1, -1]])
    >>> vote = lo.MajorityVote().fit(ann)
    >>> vote.posterior_.round(2)
    array([[0.67, 0.33],
           [0.  , 1.  ],
           [0.5 , 0.5 ]])
    >>> vote.labels_[:2]
    array([0, 1])
    """

    _takes_scales = True

    _tables = (3, 3)
    _follows_labels = True

    def __init__(self, *, random_state: RandomState = 0) -> None:
        self.random_state = random_state

    def _fit(self, annotations: Annotations, gold: Codes | None, rng: np.random.Generator) -> Fit:  # noqa: ARG002
        if annotations.is_square and is_large(annotations.n_tasks, annotations.n_workers, annotations.n_classes):
            return _fit_many_classes(LabelCells(annotations, gold))
        engine = ScipyEngine(annotations, "float64")
        posterior = vote_fractions(engine.vote_counts(), gold)
        counts = engine.m_step(posterior) + annotations.leaning.T
        confusion = counts / counts.sum(axis=2, keepdims=True)
        return Fit(posterior, confusion, posterior.mean(axis=0), np.array([]), converged=True)


def _fit_many_classes(cells: LabelCells) -> Fit:
    share, rest = cells.fractions(cells.votes())
    posterior = cells.posterior(share, rest)
    skill = (cells.by_worker(share[cells.cell]) + 1) / (cells.by_worker() + 1)
    workers = Factors.one_coin(skill, cells.shape[1])
    return Fit(posterior, workers, class_shares(posterior), np.array([]), converged=True)
