"""Worker agreement with the aggregate: a vote weighted by each worker's agreement with the plain vote."""

from __future__ import annotations

import numpy as np

from labelonce._kernels import AnnotationSums, Factors, vote_fractions
from labelonce._types import Codes, Floats
from labelonce._validate import RandomState
from labelonce.aggregation._base import Aggregator, Fit, warn_if_no_overlap
from labelonce.data import Annotations


class Wawa(Aggregator):
    """A vote in which each worker counts by how often they agree with the majority.

    Three steps, no iteration: the majority vote; each worker's skill, the share of their labels that equal
    the vote (a tie of two classes counts half); the vote again with skills as weights. `posterior_`
    holds the weighted vote fractions, which order the classes but are no chances of being right. Known true labels
    (`gold`) take the place of the vote.

    Parameters
    ----------
    random_state : int, numpy.random.Generator or None
        Breaks ties of `labels_`.

    Examples
    --------
    >>> import labelonce as lo
    >>> ann = lo.Annotations.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> model = lo.Wawa().fit(ann)
    >>> model.skill_
    array([1. , 1. , 0.5])
    >>> model.posterior_[0]
    array([0.8, 0.2])
    """

    def __init__(self, *, random_state: RandomState = 0) -> None:
        self.random_state = random_state

    def _fit(self, annotations: Annotations, gold: Codes | None, rng: np.random.Generator) -> Fit:  # noqa: ARG002
        warn_if_no_overlap(annotations, "Wawa")
        sums = AnnotationSums(annotations)
        agreed = sums.by_worker(_agreed(vote_fractions(sums.by_class(), gold), sums))
        labels = sums.by_worker()
        skill = np.divide(agreed, labels, out=np.full(len(labels), 1 / annotations.n_classes), where=labels > 0)
        posterior = vote_fractions(sums.by_class(skill[sums.worker]), gold)
        confusion = Factors.one_coin(skill, annotations.n_classes)
        return Fit(posterior, confusion, posterior.mean(axis=0), np.array([]), converged=True)


def _agreed(fractions: Floats, sums: AnnotationSums) -> Floats:
    """Return 1 for each annotation with the class of most votes, shared equally by tied classes, else 0."""
    by_class = np.ascontiguousarray(fractions.T)  # reductions over a short last axis are slow
    most = by_class.max(axis=0)
    share = 1 / (by_class == most).sum(axis=0)
    return np.where(sums.at_label(fractions) == most[sums.task], share[sums.task], 0.0)
