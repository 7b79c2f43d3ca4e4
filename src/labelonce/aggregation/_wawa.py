"""Worker agreement with the aggregate: a vote weighted by each worker's agreement with the plain vote."""

import numpy as np

from labelonce._kernels import Factors, LabelCells
from labelonce._types import Codes
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

    _tables = (4, 0)
    _follows_labels = True

    def __init__(self, *, random_state: RandomState = 0) -> None:
        self.random_state = random_state

    def _fit(self, annotations: Annotations, gold: Codes | None, rng: np.random.Generator) -> Fit:
        warn_if_no_overlap(annotations, "Wawa")
        cells = LabelCells(annotations, gold)
        fractions = cells.fractions(cells.votes())[0]
        is_top = fractions == cells.top(fractions)[cells.task]  # of tied classes each counts its share
        part = is_top / cells.by_task(is_top.astype(np.float64))[cells.task]
        agreed, labels = cells.by_worker(part[cells.cell]), cells.by_worker()
        skill = np.divide(agreed, labels, out=np.full(len(labels), 1 / annotations.n_classes), where=labels > 0)
        share, rest = cells.fractions(cells.votes(skill[cells.worker]))
        posterior = cells.beliefs(share, rest)
        confusion = Factors.one_coin(skill, annotations.n_classes)
        shares = posterior.class_counts() / len(posterior)
        return Fit(posterior.shown(), confusion, shares, np.array([]), converged=True)
