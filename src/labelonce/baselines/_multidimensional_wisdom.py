"""The multidimensional wisdom of crowds: tasks are points, workers draw lines between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds
from scipy.special import log_ndtr, ndtr

from labelonce._kernels import ScipyEngine, floored_log, normalise, normalised
from labelonce._types import Codes, Floats
from labelonce._validate import RandomState, check_choice, check_int, check_number
from labelonce.aggregation import Aggregator, Fit, pseudo_counts, warn_if_no_overlap, warn_not_converged
from labelonce.data import Annotations

_REACH = 4.0  # the grid ends this many spreads beyond the class means
_POINTS = {1: (41,), 2: (25, 15)}  # grid points along each dimension
_NEWTON = 2  # steps of the workers in each iteration


@dataclass(kw_only=True, eq=False, repr=False)
class MultidimensionalWisdom(Aggregator):
    """Workers who threshold a noisy view of tasks that lie in a space (Welinder and others 2010).

    A task of true label 0 or 1 is a point x, normal around -1 or 1 along the first dimension with
    standard deviation `spread`: points near 0 are hard. Worker a gives label 1 with probability
    `Phi(w[a] . x - t[a])`: the length of w[a] is its care, its direction what it looks at, t[a] its bias. The points
    are integrated out on a grid, and EM climbs the posterior of w, t, under normal priors around w = (1, 0), t = 0 of
    standard deviation `worker_spread`, and of the class prior.

    The model is for two classes. With more, one model a class tells it from the rest, and the posteriors are
    combined given that exactly one class is true; `confusion_` is then counted from the posterior.

    The other options are those of `DawidSkene`.

    Parameters
    ----------
    dimensions : {1, 2}
        Of the space. The second one lets groups of workers see different things.
    spread : float
        Of the points of a class. It is how far even unanimous workers may be wrong: `Phi(-1 / spread)` of the tasks lie
        on the wrong side.
    worker_spread : float
        Of the workers' parameters; smaller shrinks workers with few labels to the average.
    prior : {"learned", "uniform"}
        P(true label).

    Attributes
    ----------
    direction_ : (n_workers, dimensions)
        Each worker's w; with more than two classes (n_classes, n_workers, dimensions).
    threshold_ : (n_workers,)
        Each worker's t; with more than two classes (n_classes, n_workers).
    position_ : (n_tasks, dimensions)
        The mean of each task's point; with more than two classes (n_classes, n_tasks, dimensions).

    References
    ----------
    P. Welinder, S. Branson, S. Belongie and P. Perona, "The Multidimensional Wisdom of Crowds", NIPS 2010.

    Examples
    --------
    >>> import labelonce as lo
    >>> ann = lo.Annotations.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> model = lo.baselines.MultidimensionalWisdom().fit(ann)
    >>> model.labels_
    array([0, 1, 0, 1])
    """

    dimensions: int = 1
    spread: float = 0.4
    worker_spread: float = 1.0
    prior: str = "learned"
    max_iter: int = 500
    tol: float = 1e-7
    random_state: RandomState = 0

    _tables = (12, 4)

    def _fit(self, annotations: Annotations, gold: Codes | None, rng: np.random.Generator) -> Fit:
        self._check_options()
        warn_if_no_overlap(annotations, type(self).__name__)
        n_classes = annotations.n_classes
        if n_classes == 2:
            fit = self._fit_binary(annotations, gold)
        else:
            fits = [self._fit_binary(*_one_class(annotations, gold, k)) for k in range(n_classes)]
            fit = _combined(annotations, gold, fits)
        if not fit.converged:
            warn_not_converged(type(self).__name__, fit.log_likelihood, self.tol, len(annotations))
        return fit

    def _check_options(self) -> None:
        check_int(self.dimensions, "dimensions", 1)
        if self.dimensions not in _POINTS:
            raise ValueError(f"dimensions must be 1 or 2; got {self.dimensions}.")
        check_number(self.spread, "spread", 0.05, 10.0)
        check_number(self.worker_spread, "worker_spread", 1e-3, 1e3)
        check_choice(self.prior, "prior", ("learned", "uniform"))
        check_int(self.max_iter, "max_iter", 1)
        check_number(self.tol, "tol", 0.0)

    def _fit_binary(self, annotations: Annotations, gold: Codes | None) -> Fit:
        """Return the fit of two classes; a second dimension starts where the first left the labels unexplained."""
        engine = ScipyEngine(annotations, "float64")
        grid = _Grid(1, self.spread)
        fit, workers = self._climb(engine, grid, _first_workers(annotations.n_workers, 1), gold, len(annotations))
        if self.dimensions == 2:
            plane = _Grid(2, self.spread)
            start = _with_second(annotations, workers, fit.more["position_"])
            fit, workers = self._climb(engine, plane, start, gold, len(annotations))
        return fit

    def _climb(
        self, engine: ScipyEngine, grid: _Grid, workers: Floats, gold: Codes | None, n_annotations: int
    ) -> tuple[Fit, Floats]:
        prior, path, converged = np.full(2, 0.5), list[float](), False
        while True:
            step = grid.e_step(engine, workers, prior, gold)
            path.append(step.log_likelihood + self._log_density(workers))
            converged = len(path) > 1 and abs(path[-1] - path[-2]) <= self.tol * n_annotations
            if converged or len(path) == self.max_iter:
                break
            workers = self._improved(workers, engine.m_step(step.points), grid.design)
            if self.prior == "learned":
                prior = step.posterior.mean(axis=0)
        found = {"direction_": workers[:, :-1], "threshold_": -workers[:, -1], "position_": step.points @ grid.points}
        confusion = grid.confusion(workers)
        return Fit(step.posterior, confusion, prior, np.array(path), converged, more=found), workers

    def _log_density(self, workers: Floats) -> float:
        away = workers - _first_workers(len(workers), workers.shape[1] - 1)
        return -0.5 * float(np.vdot(away, away)) / self.worker_spread**2

    def _improved(self, workers: Floats, counts: Floats, design: Floats) -> Floats:
        """Return the workers after Newton steps on their own objectives, halved where one would fall."""
        precision = 1 / self.worker_spread**2
        mean = _first_workers(len(workers), workers.shape[1] - 1)
        value = _worker_objectives(workers, counts, design, mean, precision)
        for _ in range(_NEWTON):
            step = _newton_step(workers, counts, design, mean, precision)
            size = np.ones(len(workers))
            for _ in range(6):
                tried = _worker_objectives(workers + size[:, None] * step, counts, design, mean, precision)
                falls = ~(tried >= value)
                if not falls.any():
                    break
                size[falls] /= 2
            size[falls] = 0
            workers = workers + size[:, None] * step
            value = np.where(falls, value, tried)
        return workers


class _Step(NamedTuple):
    posterior: Floats
    points: Floats
    log_likelihood: float


class _Grid:
    """The points where a task can lie, and their chance in each class."""

    def __init__(self, dimensions: int, spread: float) -> None:
        ends = (1 + _REACH * spread, _REACH * spread)
        axes = [np.linspace(-end, end, n) for end, n in zip(ends, _POINTS[dimensions], strict=False)]
        self.points: Floats = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dimensions)
        self.design = np.column_stack([self.points, np.ones(len(self.points))])
        means = np.zeros((2, 1, dimensions))
        means[:, 0, 0] = (-1, 1)
        log_density = -0.5 * ((self.points - means) ** 2).sum(axis=2) / spread**2
        normalise(log_density)
        self.log_chance = floored_log(log_density)  # [true label, point]

    def e_step(self, engine: ScipyEngine, workers: Floats, prior: Floats, gold: Codes | None) -> _Step:
        logits = workers @ self.design.T
        log_confusion = np.stack([log_ndtr(-logits), log_ndtr(logits)], axis=2)
        log_joint = self.log_chance + floored_log(prior)[:, None]
        log_prior = np.logaddexp(*log_joint)
        if gold is not None:
            log_prior = np.vstack([log_joint, log_prior])[gold]  # -1, unknown, is the last row
        points, log_likelihood = engine.e_step(log_confusion, log_prior)
        share = np.exp(log_joint - np.logaddexp(*log_joint)).T
        posterior = points @ share
        posterior /= posterior.sum(axis=1, keepdims=True)
        if gold is not None:
            posterior[gold >= 0] = np.eye(2)[gold[gold >= 0]]
        return _Step(posterior, points, log_likelihood)

    def confusion(self, workers: Floats) -> Floats:
        """Return P(given | true) of every worker, the mean over the points of the true label."""
        says_one = ndtr(workers @ self.design.T) @ np.exp(self.log_chance).T
        return np.stack([1 - says_one, says_one], axis=2)


def _first_workers(n_workers: int, dimensions: int) -> Floats:
    """Return the mean of the workers' prior: a careful look along the first dimension; the last column is -t."""
    workers = np.zeros((n_workers, dimensions + 1))
    workers[:, 0] = 1
    return workers


def _with_second(annotations: Annotations, workers: Floats, position: Floats) -> Floats:
    """Return workers with a second direction: the leading one of the labels' residuals, as spread as the first."""
    task, worker = annotations.task, annotations.worker
    expected = ndtr((workers[worker, :1] * position[task]).sum(axis=1) + workers[worker, 1])
    residual = sparse.csr_array((annotations.label - expected, (task, worker)), shape=annotations.shape)
    second = np.zeros(annotations.n_workers)
    if min(residual.shape) > 1:
        _, _, vectors = svds(residual, k=1, v0=np.ones(min(residual.shape)))
        second = vectors[0] * np.sqrt(annotations.n_workers) * 0.5
    return np.column_stack([workers[:, 0], second, workers[:, 1]])


def _worker_objectives(workers: Floats, counts: Floats, design: Floats, mean: Floats, precision: float) -> Floats:
    logits = workers @ design.T
    fit = np.einsum("wg,wg->w", counts[:, :, 1], log_ndtr(logits))
    fit += np.einsum("wg,wg->w", counts[:, :, 0], log_ndtr(-logits))
    return np.asarray(fit - 0.5 * precision * ((workers - mean) ** 2).sum(axis=1))


def _newton_step(workers: Floats, counts: Floats, design: Floats, mean: Floats, precision: float) -> Floats:
    logits = workers @ design.T
    slope, curve = np.zeros_like(logits), np.zeros_like(logits)
    for given, sign in ((0, -1.0), (1, 1.0)):
        signed = sign * logits
        ratio = np.exp(-0.5 * signed**2 - log_ndtr(signed)) / np.sqrt(2 * np.pi)
        slope += counts[:, :, given] * sign * ratio
        curve += counts[:, :, given] * ratio * (ratio + signed)
    gradient = slope @ design - precision * (workers - mean)
    hessian = np.einsum("wg,gi,gj->wij", curve, design, design, optimize=True) + precision * np.eye(design.shape[1])
    return np.asarray(np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0])


def _one_class(annotations: Annotations, gold: Codes | None, k: int) -> tuple[Annotations, Codes | None]:
    """Return the annotations as "class k or not", and the gold."""
    label = (annotations.label == k).astype(np.int32)
    tables = (annotations.tasks, annotations.workers, np.arange(2))
    binary = Annotations(annotations.task, annotations.worker, label, *tables)
    return binary, None if gold is None else np.where(gold < 0, gold, gold == k).astype(np.int32)


def _combined(annotations: Annotations, gold: Codes | None, fits: list[Fit]) -> Fit:
    """Return one fit of K "this class or not": P(k alone is true) is proportional to the odds of k."""
    log_posterior = np.column_stack([np.subtract(*floored_log(fit.posterior[:, ::-1]).T) for fit in fits])
    normalise(log_posterior)
    if gold is not None:
        known = gold >= 0
        log_posterior[known] = np.eye(annotations.n_classes)[gold[known]]
    counts = ScipyEngine(annotations, "float64").m_step(log_posterior) + pseudo_counts(1.0, annotations.n_classes)
    n_iter = max(len(fit.log_likelihood) for fit in fits)
    paths = [np.pad(fit.log_likelihood, (0, n_iter - len(fit.log_likelihood)), mode="edge") for fit in fits]
    found = {name: np.stack([fit.more[name] for fit in fits]) for name in fits[0].more}
    converged = all(fit.converged for fit in fits)
    prior, path = log_posterior.mean(axis=0), np.sum(paths, axis=0)
    return Fit(log_posterior, normalised(counts), prior, path, converged, more=found)
