"""Karger, Oh and Shah's message passing."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from labelonce._kernels import AnnotationSums, ScipyEngine, normalised, posterior_of
from labelonce._types import Codes, Floats
from labelonce._validate import RandomState, check_choice, check_int, check_number
from labelonce.aggregation import Aggregator, Fit, warn_if_no_overlap
from labelonce.baselines._assignment import vote_weight, warn_if_disconnected, warn_if_irregular
from labelonce.data import Annotations, worker_groups


@dataclass(kw_only=True, eq=False, repr=False)
class KOS(Aggregator):
    """Message passing between tasks and workers (Karger, Oh and Shah 2011, 2014); one class against the rest.

    Labels are +1 and -1. In each sweep a task tells a worker the weighted vote of the others,
    `x[i, a] = sum of z[i, b] * y[b, i] over b != a`, and a worker tells a task how reliable the other tasks found
    them, `y[a, i] = sum of z[j, a] * x[j, a] over j != i`; the sign of the weighted vote is the label. This is power
    iteration, so messages are scaled to mean square 1 after every sweep, with the sign that gives the mean label a
    positive weight (where `gold` does not settle it). With two classes this is the paper; with more, each class is
    scored against the rest and the highest score wins.

    One factor, which changes no order, turns the scores into `posterior_`. The method has no objective
    (`log_likelihood_` is empty). Tasks and workers with uneven numbers of labels, and groups without a common task,
    are told by an `AssignmentWarning`. A task with `gold` speaks as if its workers had agreed on it.

    Parameters
    ----------
    start : {"ones", "normal"}
        The first messages of the workers: 1, so that the first sweep is a vote and the result does not
        depend on chance, or drawn from a normal distribution of mean and deviation 1, as in the paper.
    max_iter : int
        Sweeps; the paper needs few. Ending here without having settled is no fault.
    tol : float
        Stop earlier when the messages change by at most this (root mean square).
    random_state : int, numpy.random.Generator or None
        Breaks ties of `labels_` and draws the start "normal".

    References
    ----------
    D. R. Karger, S. Oh and D. Shah, "Iterative Learning for Reliable Crowdsourcing Systems", NIPS 2011.

    D. R. Karger, S. Oh and D. Shah, "Budget-Optimal Task Allocation for Reliable Crowdsourcing Systems", Operations
    Research, 2014.

    Examples
    --------
    >>> import labelonce as lo
    >>> ann = lo.Annotations.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> lo.baselines.KOS().fit(ann).labels_
    array([0, 1, 0, 1])
    """

    start: str = "ones"
    max_iter: int = 100
    tol: float = 1e-6
    random_state: RandomState = 0

    _tables = (7, 3)

    def _fit(self, annotations: Annotations, gold: Codes | None, rng: np.random.Generator) -> Fit:
        check_choice(self.start, "start", ("ones", "normal"))
        check_int(self.max_iter, "max_iter", 1)
        check_number(self.tol, "tol", 0.0)
        warn_if_no_overlap(annotations, "KOS")
        warn_if_irregular(annotations, "KOS")
        groups = worker_groups(annotations)
        warn_if_disconnected(annotations, groups, "KOS")
        sums = AnnotationSums(annotations)
        group = groups[sums.worker].astype(np.intp)
        graph = _Graph(sums, None if (group == group[0]).all() else group, gold)
        score, n_iter, converged = np.zeros(sums.shape), 0, True
        for k in range(annotations.n_classes if annotations.n_classes > 2 else annotations.n_classes - 1):
            first = np.ones(len(annotations)) if self.start == "ones" else rng.normal(1, 1, len(annotations))
            sign = np.where(annotations.label == k, 1.0, -1.0)
            score[:, k], n_sweeps, settled = graph.sweep(sign, k, first, self.max_iter, self.tol)
            n_iter, converged = max(n_iter, n_sweeps), converged and settled
        if annotations.n_classes == 2:
            score[:, 1] = -score[:, 0]
        posterior = posterior_of(score * _factor(score, annotations, sums), gold).posterior
        counts = ScipyEngine(annotations, "float64").m_step(posterior) + np.eye(annotations.n_classes)
        return Fit(posterior, normalised(counts), posterior.mean(axis=0), np.array([]), converged, n_iter)


@dataclass(frozen=True)
class _Graph:
    """The messages' ways: the annotations, the connected group of each (None: all in one), and the tasks with gold."""

    sums: AnnotationSums
    group: npt.NDArray[np.intp] | None
    gold: Codes | None

    def sweep(self, sign: Floats, k: int, reliability: Floats, max_iter: int, tol: float) -> tuple[Floats, int, bool]:
        """Return the score of class k against the rest for every task, the number of sweeps, and if they settled."""
        sums, n_iter, change = self.sums, 0, np.inf
        known = None if self.gold is None else self.gold[sums.task]
        size = sums.by_task()[sums.task]
        signed = self._scaled(sign * reliability, sign)
        while n_iter < max_iter and change > tol:
            vote = sums.by_task(signed)[sums.task] - signed
            if known is not None:
                vote = np.where(known < 0, vote, np.where(known == k, size, -size))
            before, signed = signed, sign * sums.by_worker(sign * vote)[sums.worker] - vote
            signed = self._scaled(signed, sign)
            change = float(np.linalg.norm(before - signed)) / np.sqrt(len(sign))
            n_iter += 1
        return sums.by_task(signed), n_iter, bool(change <= tol)

    def _scaled(self, signed: Floats, sign: Floats) -> Floats:
        """Return messages of mean square 1 in every group.

        Without gold the reliabilities, sign times them, get a sum of at least 0. Where all are 0 nobody was compared,
        and all reliabilities become 1.
        """
        if self.group is None:
            size = np.linalg.norm(signed) / np.sqrt(len(signed))
            return signed / (-size if self.gold is None and signed @ sign < 0 else size) if size > 0 else sign
        square = np.bincount(self.group, signed**2)
        size = np.sqrt(square / np.maximum(np.bincount(self.group), 1))
        if self.gold is None:
            size = np.where(np.bincount(self.group, signed * sign) < 0, -size, size)
        return np.divide(signed, size[self.group], out=sign.copy(), where=size[self.group] != 0)


def _factor(score: Floats, annotations: Annotations, sums: AnnotationSums) -> float:
    """Return the factor that brings scores nearest to the log-odds of one-coin workers who were as often right."""
    n_classes = annotations.n_classes
    winner = (score == score.max(axis=1, keepdims=True)).astype(np.float64)
    winner /= winner.sum(axis=1, keepdims=True)
    skill = (sums.by_worker(sums.at_label(winner)) + 1) / (sums.by_worker() + n_classes)
    log_odds = sums.by_class(vote_weight(skill, n_classes)[sums.worker])
    centred = score - score.mean(axis=1, keepdims=True)
    factor = float((centred * log_odds).sum() / max(float((centred**2).sum()), np.finfo(np.float64).tiny))
    return max(factor, 1e-6)
