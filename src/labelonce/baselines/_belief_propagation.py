"""Belief propagation for the one-coin model with a Beta prior on every worker."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, roots_jacobi

from labelonce._kernels import AnnotationSums, Factors, floored_log, posterior_of
from labelonce._sklearn import ConvergenceWarning
from labelonce._types import Codes, Floats
from labelonce._validate import RandomState, check_int, check_number
from labelonce.aggregation import Aggregator, Fit, fixed_prior, warn_if_no_overlap
from labelonce.baselines._assignment import check_beta
from labelonce.data import Annotations, stable_order

_BLOCK = 1 << 18  # numbers in one block of annotations x nodes


@dataclass(kw_only=True, eq=False, repr=False)
class BeliefPropagation(Aggregator):
    """Belief propagation for one skill per worker (Liu, Peng and Ihler 2012), for any number of classes.

    The model is that of `MeanField`: worker a is right with probability p[a], which has a Beta prior, else gives each
    other class with equal probability. Belief propagation integrates p[a] out: what a worker tells about a task rests
    on what the other tasks say of the worker, and never on that task itself. It is exact where tasks and workers form a
    tree and near it on large sparse crowds. KOS is its limit for a prior Beta(0, 0). The paper's sums over how many
    labels of a worker are right are integrals over p[a] here, by Gauss-Jacobi nodes.

    Parameters
    ----------
    smoothing : pair of floats
        The Beta prior (right, wrong), above 0. The paper's is (2, 1). It matters more than the
        kind of inference does.
    prior : "uniform" or (n_classes,) array
        P(true label).
    max_iter : int
        Most sweeps over all messages; a fit that needs more ends with a warning.
    tol : float
        Stop when no posterior changes by more than this in a sweep.
    damping : float
        Keep this share of the old messages, in [0, 1); raise it where the sweeps do not settle.
    random_state : int, numpy.random.Generator or None
        Breaks ties of `labels_`.

    References
    ----------
    Q. Liu, J. Peng and A. Ihler, "Variational Inference for Crowdsourcing", NIPS 2012.

    Examples
    --------
    >>> import labelonce as lo
    >>> ann = lo.Annotations.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> lo.baselines.BeliefPropagation().fit(ann).skill_.round(2)
    array([0.79, 0.79, 0.59])
    """

    smoothing: Any = (2.0, 1.0)
    prior: Any = "uniform"
    max_iter: int = 200
    tol: float = 1e-6
    damping: float = 0.0
    random_state: RandomState = 0

    def _memory(self, annotations: Annotations) -> float:
        return 1700.0 * len(annotations) + 48.0 * annotations.n_tasks * annotations.n_classes

    def _fit(self, annotations: Annotations, gold: Codes | None, rng: np.random.Generator) -> Fit:
        check_int(self.max_iter, "max_iter", 1)
        check_number(self.tol, "tol", 0.0)
        check_number(self.damping, "damping", 0.0, 0.999)
        prior = fixed_prior(self.prior, annotations.n_classes)
        workers = WorkerMessages(annotations, *check_beta(self.smoothing))
        warn_if_no_overlap(annotations, "BeliefPropagation")
        sums, log_prior = AnnotationSums(annotations), floored_log(prior)
        message = np.zeros(len(annotations))
        posterior = posterior_of(np.tile(log_prior, (annotations.n_tasks, 1)), gold).posterior
        n_iter, change = 0, np.inf
        while n_iter < self.max_iter and change > self.tol:
            right = expit(sums.at_label(log_odds(posterior)) - message)
            message = self.damping * message + (1 - self.damping) * workers.send(right)
            before, posterior = posterior, posterior_of(sums.by_class(message) + log_prior, gold).posterior
            n_iter, change = n_iter + 1, float(np.abs(posterior - before).max())
        if change > self.tol:
            warnings.warn(
                f"BeliefPropagation stopped after {n_iter} sweeps while a posterior still changed by {change:.2g} "
                f"(tol {self.tol:g}). Raise max_iter, or damping if it swings.",
                ConvergenceWarning,
                stacklevel=3,
            )
        confusion = Factors.one_coin(workers.skill, annotations.n_classes)
        return Fit(posterior, confusion, prior, np.array([]), change <= self.tol, n_iter)


@dataclass(frozen=True)
class _Block:
    """Workers with about as many labels: their rows sorted by worker, and the nodes of their integrals."""

    workers: Codes
    rows: Codes
    start: Codes
    node: Floats
    log_weight: Floats


class WorkerMessages:
    """What workers tell tasks, skills integrated out under a Beta prior.

    `skill` holds the mean of each worker's skill given the messages last received.
    """

    def __init__(self, annotations: Annotations, right: float, wrong: float) -> None:
        self._n_others = max(annotations.n_classes - 1, 1)
        self._blocks = list(_blocks(annotations, right, wrong))
        self.skill = np.full(annotations.n_workers, right / (right + wrong))

    def send(self, right: Floats) -> Floats:
        """Return by how much each annotation raises the log-odds of its label.

        `right[j]` is the probability that annotation j is right, judged without its worker. Call f_j(p) the
        likelihood of annotation j given skill p, `right * p + (1 - right) * (1 - p) / (n_classes - 1)`. The message
        is the ratio of the integrals of p and of (1 - p) / (n_classes - 1), each times the prior and the f of the
        worker's other annotations.
        """
        message = np.empty_like(right)
        for block in self._blocks:
            node, other = block.node, (1 - block.node) / self._n_others
            own = right[block.rows, None]
            likelihood = own * node + (1 - own) * other
            log_mass = np.add.reduceat(np.log(likelihood), block.start, axis=0) + block.log_weight
            mass = np.exp(log_mass - log_mass.max(axis=1, keepdims=True))
            self.skill[block.workers] = mass @ node / mass.sum(axis=1)
            counts = np.diff(block.start, append=len(block.rows))
            without = np.repeat(mass, counts, axis=0) / likelihood
            message[block.rows] = np.log(without @ node) - np.log(without @ other)
        return message


def _blocks(annotations: Annotations, right: float, wrong: float) -> Iterator[_Block]:
    labels = np.bincount(annotations.worker, minlength=annotations.n_workers)
    nodes = n_nodes(labels)
    by_worker, first = stable_order(annotations.worker, annotations.n_workers), np.cumsum(labels) - labels
    for n in np.unique(nodes[labels > 0]):
        node, weight = roots_jacobi(int(n), wrong - 1, right - 1)
        node, log_weight = (node + 1) / 2, np.log(weight)
        workers = np.flatnonzero((nodes == n) & (labels > 0))
        room = np.cumsum(labels[workers]) * n // _BLOCK
        for some in np.split(workers, np.flatnonzero(np.diff(room)) + 1):
            start = np.cumsum(labels[some]) - labels[some]
            rows = np.arange(labels[some].sum()) + np.repeat(first[some] - start, labels[some])
            yield _Block(some.astype(np.int32), by_worker[rows], start.astype(np.int32), node, log_weight)


def n_nodes(labels: Any) -> Any:
    """Return how many nodes the integral over the skill of a worker with N labels needs, in steps of a quarter.

    A polynomial of that degree is integrated exactly by half as many nodes. For many labels the mass has a width
    of sqrt(p (1 - p) / labels) and the nodes a distance of pi sqrt(p (1 - p)) / nodes: three nodes per root of the
    labels keep the distance near one width.
    """
    enough = np.minimum(labels // 2 + 2, np.ceil(3 * np.sqrt(labels)) + 8)
    step = np.exp2(np.floor(np.log2(np.maximum(enough, 4))) - 2)
    return (np.ceil(enough / step) * step).astype(int)


def log_odds(posterior: Floats) -> Floats:
    """Return log p / (1 - p) of every class of every task, exact also where p rounds to 1."""
    rest = 1 - posterior
    top = posterior.argmax(axis=1)
    task = np.arange(len(posterior))
    others = posterior.copy()
    others[task, top] = 0
    rest[task, top] = others.sum(axis=1)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(posterior) - np.log(rest))
