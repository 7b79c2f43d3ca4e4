"""Minimax conditional entropy: a parameter for every worker and every task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from labelonce._kernels import ScipyEngine, floored_log, normalise, normalised, vote_fractions
from labelonce._types import Codes, Floats
from labelonce._validate import RandomState, check_choice, check_int, check_number
from labelonce.aggregation import Aggregator, Fit, warn_if_no_overlap, warn_not_converged
from labelonce.data import Annotations

_FLAT = 1.0  # pseudo-tasks of each class in a learned prior
_CELLS = 1 << 20  # numbers in one block's (annotations, true, given) array


@dataclass(kw_only=True, eq=False, repr=False)
class MinimaxEntropy(Aggregator):
    """Confusion by worker and task, the least certain one that the labels allow (Zhou and others 2012, 2015).

    Worker a gives label s to task i of true label k with probability proportional to
    `exp(sigma[a, k, s] + tau[i, k, s])`: confusions add up from the worker and from the task. Among all
    models with the observed counts this one has the largest entropy, and the true labels are chosen to make that
    entropy least. That is climbing the likelihood, `log_likelihood_`, with Gaussian penalties on `sigma` and `tau`,
    by generalised EM: one step of the parameters along the gradient, sized so that the objective never falls, then
    the posterior.

    The other options are those of `DawidSkene`.

    Parameters
    ----------
    worker_strength, task_strength : float
        Penalty on the squares of `sigma` and of `tau`; 0 is none. Tasks have few labels, so their penalty must be
        strong: without it the model fits anything.
    prior : {"learned", "uniform"}
        P(true label). The papers' is uniform, which loses where classes are uneven.
    task_matrix : bool
        True: `tau[i]` is a (true, given) matrix as in 2015. False: `tau[i, s]` does not depend on the true
        label, as in 2012.

    Attributes
    ----------
    sigma_ : (n_workers, n_classes, n_classes)
    tau_ : (n_tasks, n_classes, n_classes) or (n_tasks, 1, n_classes)
        The parameters as [.., true, given].

    References
    ----------
    D. Zhou, J. C. Platt, S. Basu and Y. Mao, "Learning from the Wisdom of Crowds by Minimax Entropy", NIPS 2012.

    D. Zhou, Q. Liu, J. C. Platt, C. Meek and N. B. Shah, "Regularized Minimax Conditional Entropy for
    Crowdsourcing", arXiv 2015.

    Examples
    --------
    >>> import labelonce as lo
    >>> ann = lo.Annotations.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> lo.baselines.MinimaxEntropy().fit(ann).labels_
    array([0, 1, 0, 1])
    """

    worker_strength: float = 0.25
    task_strength: float = 4.0
    prior: str = "learned"
    task_matrix: bool = True
    max_iter: int = 1000
    tol: float = 1e-6
    random_state: RandomState = 0

    def _memory(self, annotations: Annotations) -> float:
        """Return the bytes of a matrix of classes for every task and every worker, and of rows per annotation."""
        n_tasks, n_workers, n_classes = annotations.n_tasks, annotations.n_workers, annotations.n_classes
        per_task = n_classes if self.task_matrix else 1
        return 8.0 * n_classes * (6 * n_tasks * per_task + 20 * n_workers * n_classes + 4 * len(annotations))

    def _fit(self, annotations: Annotations, gold: Codes | None, rng: np.random.Generator) -> Fit:
        self._check_options()
        warn_if_no_overlap(annotations, type(self).__name__)
        fit = self._climb(annotations, gold)
        if not fit.converged:
            warn_not_converged(type(self).__name__, fit.log_likelihood, self.tol, len(annotations))
        return fit

    def _check_options(self) -> None:
        check_number(self.worker_strength, "worker_strength", 0.0)
        check_number(self.task_strength, "task_strength", 0.0)
        check_choice(self.prior, "prior", ("learned", "uniform"))
        if not isinstance(self.task_matrix, bool):
            raise ValueError(f"task_matrix must be True or False; got {self.task_matrix!r}.")
        check_int(self.max_iter, "max_iter", 1)
        check_number(self.tol, "tol", 0.0)

    def _climb(self, annotations: Annotations, gold: Codes | None) -> Fit:
        """Return the fit that accelerated steps reach from the votes.

        A step that overshoots, which only its momentum can make it do, is taken back.
        """
        model = _LogLinear(annotations, self.worker_strength, self.task_strength, self.task_matrix)
        posterior = vote_fractions(ScipyEngine(annotations, "float64").vote_counts(), gold)
        prior = np.full(annotations.n_classes, 1 / annotations.n_classes)
        here = ahead = model.ascend(model.start(), posterior)
        path: list[float] = []
        age, converged = 1.0, False
        while len(path) < self.max_iter and not converged:
            posterior, objective = model.e_step(ahead, prior, gold)
            if path and objective < path[-1]:
                age, ahead = 1.0, here
                posterior, objective = model.e_step(ahead, prior, gold)
            path.append(objective)
            if self.prior == "learned":
                prior = normalised(posterior.sum(axis=0) + _FLAT)
            converged = len(path) > 1 and abs(path[-1] - path[-2]) <= self.tol * len(annotations)
            before, here = here, model.ascend(ahead, posterior)
            next_age = (1 + np.sqrt(1 + 4 * age**2)) / 2
            ahead = here.beyond(before, (age - 1) / next_age)
            age = next_age
        found = {"sigma_": here.sigma, "tau_": here.tau}
        confusion = model.confusion(here, posterior)
        return Fit(posterior, confusion, prior, np.array(path), converged, more=found)


@dataclass(frozen=True)
class _Point:
    """Parameters [worker, true, given] and [task, true, given]."""

    sigma: Floats
    tau: Floats

    def beyond(self, before: _Point, momentum: float) -> _Point:
        pairs = ((self.sigma, before.sigma), (self.tau, before.tau))
        return _Point(*(new + momentum * (new - old) for new, old in pairs))


class _LogLinear:
    """The sums over annotations, in blocks: nothing of size n_annotations x n_classes x n_classes is held."""

    def __init__(self, annotations: Annotations, worker_strength: float, task_strength: float, matrix: bool) -> None:
        self._strengths = (float(worker_strength), float(task_strength))
        self._shape = (annotations.n_tasks, annotations.n_workers, annotations.n_classes)
        self._matrix = matrix
        rows = max(1, _CELLS // annotations.n_classes**2)
        cuts = range(0, len(annotations), rows)
        self._blocks = [_block(annotations, slice(cut, cut + rows)) for cut in cuts]

    def start(self) -> _Point:
        """Return the point where all labels are equally likely."""
        n_tasks, n_workers, n_classes = self._shape
        true = n_classes if self._matrix else 1
        return _Point(np.zeros((n_workers, n_classes, n_classes)), np.zeros((n_tasks, true, n_classes)))

    def e_step(self, point: _Point, prior: Floats, gold: Codes | None) -> tuple[Floats, float]:
        """Return P(true label | annotations), and the penalised log-likelihood."""
        log_joint = np.tile(floored_log(prior), (self._shape[0], 1))
        for block in self._blocks:
            log_probability = _log_softmax(_logits(point, block))
            of_label = log_probability[np.arange(len(block.label)), :, block.label]
            log_joint[block.first : block.first + block.by_task.shape[0]] += block.by_task @ of_label
        if gold is not None:
            known = np.flatnonzero(gold >= 0)
            kept = log_joint[known, gold[known]]
            log_joint[known] = -np.inf
            log_joint[known, gold[known]] = kept
        log_likelihood = normalise(log_joint)
        squares = (np.vdot(point.sigma, point.sigma), np.vdot(point.tau, point.tau))
        penalty = sum(strength / 2 * float(square) for strength, square in zip(self._strengths, squares, strict=True))
        log_density = _FLAT * float(floored_log(prior).sum())
        return log_joint, log_likelihood - penalty + log_density

    def ascend(self, point: _Point, posterior: Floats) -> _Point:
        """Return a point where the objective, given the posterior, is no lower.

        The second derivative of a log-softmax is at most 1/2, and a logit is a sum of two parameters: a step of one
        over (the annotations' weight plus the penalty) along the gradient cannot overshoot.
        """
        sigma = -self._strengths[0] * point.sigma
        tau = -self._strengths[1] * point.tau
        by_worker = np.full(sigma.shape[:2], self._strengths[0])
        by_task = np.full(tau.shape[:2], self._strengths[1])
        for block in self._blocks:
            weight = posterior[block.task]
            gradient = np.exp(_log_softmax(_logits(point, block)))
            np.negative(gradient, out=gradient)
            gradient[np.arange(len(block.label)), :, block.label] += 1
            gradient *= weight[:, :, None]
            sigma += _sum(block.by_worker, gradient)
            by_worker += block.by_worker @ weight
            tasks = slice(block.first, block.first + block.by_task.shape[0])
            if self._matrix:
                tau[tasks] += _sum(block.by_task, gradient)
                by_task[tasks] += block.by_task @ weight
            else:
                tau[tasks, 0] += block.by_task @ gradient.sum(axis=1)
                by_task[tasks, 0] += block.by_task @ weight.sum(axis=1)
        tiny = np.finfo(np.float64).tiny
        sigma /= np.maximum(by_worker, tiny)[:, :, None]
        tau /= np.maximum(by_task, tiny)[:, :, None]
        sigma += point.sigma
        tau += point.tau
        return _Point(sigma, tau)

    def confusion(self, point: _Point, posterior: Floats) -> Floats:
        """Return each worker's mean over its tasks, with one more at the worker's own parameters."""
        total = np.exp(_log_softmax(point.sigma.copy()))
        for block in self._blocks:
            probability = np.exp(_log_softmax(_logits(point, block)))
            probability *= posterior[block.task][:, :, None]
            total += _sum(block.by_worker, probability)
        return normalised(total)


class _Block(NamedTuple):
    task: Codes
    worker: Codes
    label: Codes
    first: int
    by_task: Any
    by_worker: Any


def _block(annotations: Annotations, rows: slice) -> _Block:
    task, worker, label = (getattr(annotations, name)[rows] for name in ("task", "worker", "label"))
    first, n = int(task[0]), len(task)
    ones, each = np.ones(n), np.arange(n)
    by_task = sparse.csr_array((ones, (task - first, each)), shape=(int(task[-1]) - first + 1, n))
    by_worker = sparse.csr_array((ones, (worker, each)), shape=(annotations.n_workers, n))
    return _Block(task, worker, label, first, by_task, by_worker)


def _logits(point: _Point, block: _Block) -> Floats:
    return np.asarray(point.sigma[block.worker] + point.tau[block.task])


def _log_softmax(logits: Floats) -> Floats:
    """Turn logits into log-probabilities over the last axis, in place."""
    logits -= logits.max(axis=-1, keepdims=True)
    logits -= np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return logits


def _sum(indicator: Any, values: Floats) -> Floats:
    """Return the sums of (n, true, given) values by the rows of a sparse indicator."""
    summed = indicator @ values.reshape(len(values), -1)
    return np.asarray(summed).reshape(-1, *values.shape[1:])
