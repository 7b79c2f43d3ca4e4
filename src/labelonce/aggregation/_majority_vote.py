"""Majority vote, hard and soft."""

import numpy as np

from labelonce._kernels import evidence_of_votes
from labelonce._types import Codes
from labelonce._validate import RandomState
from labelonce.aggregation._base import Aggregator, Fit
from labelonce.data import Annotations


class MajorityVote(Aggregator):
    """The class most workers gave.

    `posterior_` holds the vote fractions, the paper's "weighted majority vote"; a task without
    annotations gets equal fractions. An answer that is no class, such as "unsure", is no vote; along a scale a vote
    goes in part to each of the two classes nearest. `labels_` holds the hard vote with ties broken at random. Skills
    and confusion come from one count of each worker's labels against the fractions; where
    `posterior_` is not an array (many classes), from the share of the worker's labels that agree with them.

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
    _takes_weights = True

    _tables = (3, 3)
    _follows_labels = True

    def __init__(self, *, random_state: RandomState = 0) -> None:
        self.random_state = random_state

    def _fit(self, annotations: Annotations, gold: Codes | None, rng: np.random.Generator) -> Fit:
        evidence, votes = evidence_of_votes(annotations, gold)
        shares = votes.class_counts() / len(votes)
        return Fit(votes.shown(), evidence.tallies(votes).confusion(), shares, np.array([]), converged=True)
