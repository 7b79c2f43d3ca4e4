"""Expectation maximisation: the one loop, and the options its models share."""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from labelonce._kernels import (
    Beliefs,
    Evidence,
    Pattern,
    Sweep,
    confusion_of,
    first_beliefs,
    floored_log,
    label_slots,
    make_evidence,
    make_slot_evidence,
    normalised,
)
from labelonce._sklearn import ConvergenceWarning
from labelonce._types import Codes, Floats
from labelonce._validate import RandomState, check_choice, check_distribution, check_int, check_number
from labelonce.aggregation._anchor import warn_if_no_anchor, warn_if_out_of_order
from labelonce.aggregation._base import Aggregator, Fit, warn_if_no_overlap
from labelonce.aggregation._unlearned import tells_nothing, unlearned
from labelonce.data import Annotations, check_memory


@dataclass(frozen=True)
class Parameters:
    """One M-step: the estimates, the log prior if it is not that of `prior`, the priors' log-density, `Fit.more`.

    `state` is what the next M-step of this climb needs besides the counts; most models need nothing.
    """

    confusion: Any  # Confusion, or an array
    prior: Floats
    log_prior: Floats | None = None
    log_penalty: float = 0.0
    more: Mapping[str, Any] = field(default_factory=dict)
    state: Any = None

    def __post_init__(self) -> None:
        if isinstance(self.confusion, np.ndarray):
            object.__setattr__(self, "confusion", confusion_of(self.confusion))


@dataclass(frozen=True)
class Iteration:
    """One E+M step: the parameters, what the sweep with them gave, and the objective after every step so far."""

    parameters: Parameters
    sweep: Sweep
    path: list[float]
    converged: bool


@dataclass(kw_only=True, eq=False, repr=False)
class EMAggregator(Aggregator):
    """Base of the models fitted by EM: a subclass says how counts become parameters, and which defaults differ."""

    prior: Any = "learned"
    max_iter: int = 500
    tol: float = 1e-7
    n_init: int = 1
    dtype: str = "float64"
    random_state: RandomState = 0

    _named_priors: ClassVar[tuple[str, ...]] = ("learned", "uniform")

    def _fit(self, annotations: Annotations, gold: Codes | None, rng: np.random.Generator) -> Fit:
        self._check_options(annotations.n_classes)
        warn_if_no_overlap(annotations, type(self).__name__)
        if not annotations.has_weights and tells_nothing(annotations, gold):
            return self._unlearned(annotations)
        warn_if_no_anchor(annotations, gold, type(self).__name__)
        best = self._best_fit(annotations, gold, rng)
        if not best.converged and len(best.log_likelihood):
            warn_not_converged(type(self).__name__, best.log_likelihood, self.tol, len(annotations))
        elif not best.converged:
            warn_not_settled(type(self).__name__, best.n_iter or 0, annotations.n_workers)
        warn_if_out_of_order(annotations, best.confusion, best.prior, type(self).__name__)
        return best

    def _unlearned(self, annotations: Annotations) -> Fit:
        """Return the labels given, all workers alike."""
        n_classes = annotations.n_classes
        if not isinstance(self.prior, str):
            return unlearned(annotations, np.asarray(self.prior, dtype=np.float64))
        if self.prior == "uniform":
            return unlearned(annotations, np.full(n_classes, 1 / n_classes))
        said = np.bincount(annotations.label, minlength=annotations.n_answers).astype(np.float64)
        return unlearned(annotations, normalised(said if annotations.is_square else said @ annotations.leaning))

    def _best_fit(self, annotations: Annotations, gold: Codes | None, rng: np.random.Generator) -> Fit:
        """Return the best of the fits that EM reaches from the starts."""
        evidence, start = self._evidence(annotations, gold)
        starts = self._starts(annotations, start, gold, rng)
        fits = (self._climb(evidence, start, gold, len(annotations)) for start in starts)
        return max(fits, key=lambda fit: fit.log_likelihood[-1])

    def _evidence(self, annotations: Annotations, gold: Codes | None) -> tuple[Evidence, Beliefs]:
        """Return the evidence of all classes, or of the slots that the pattern of the workers needs, and the votes."""
        options: dict[str, Any] = {"device": self.device} if hasattr(self, "device") else {"engine": "scipy"}
        options["dtype"] = self.dtype
        pattern = self._pattern(annotations, gold)
        if pattern is None:
            evidence = make_evidence(annotations, **options)
            return evidence, evidence.votes(gold)
        votes = first_beliefs(annotations, gold, few=True)
        classes = label_slots(annotations, pattern, votes.codes) if len(pattern.mistakes) else votes.codes
        n_slots = classes.shape[1]
        check_memory(
            n_slots * (24 * len(annotations) + 48 * annotations.n_tasks),
            f"{annotations.n_tasks:,} tasks with up to {n_slots:,} candidate classes each",
            "Use smaller groups, or Grouped() without groups, which keeps the commonest mistakes.",
        )
        return make_slot_evidence(annotations, classes, pattern, **options), votes.on(classes)

    def _pattern(self, annotations: Annotations, gold: Codes | None) -> Pattern | None:
        """Return what factors of workers keep apart, None where they are matrices."""
        return None

    def _starts(
        self, annotations: Annotations, votes: Beliefs, gold: Codes | None, rng: np.random.Generator
    ) -> Iterator[Beliefs]:
        """Yield `n_init` posteriors to climb from: the votes, then votes plus noise."""
        yield votes
        for _ in range(self.n_init - 1):
            yield _with_noise(votes, rng).with_gold(gold)

    def _climb(self, evidence: Evidence, start: Beliefs, gold: Codes | None, n_annotations: int) -> Fit:
        counts = first_counts(evidence, start)
        del start  # the largest array: the E-step makes its successor

        learns_prior = isinstance(self.prior, str) and self.prior == "learned"
        kept: list[Any] = []  # a prior and what the evidence makes of it: for all iterations, if none is learned

        def prior_of(found: Parameters) -> Any:
            if found.log_prior is not None:
                return found.log_prior
            if not kept or not np.array_equal(kept[0], found.prior):
                kept.clear()
                kept.extend((found.prior, evidence.log_prior(found.prior)))
            return kept[1]

        def sweep(found: Parameters) -> Sweep:
            return evidence.sweep(found.confusion, prior_of(found), gold, prior=found.prior if learns_prior else None)

        for last in self.iterations(counts, sweep, n_annotations):  # noqa: B007
            pass
        found = last.parameters
        posterior = evidence.e_step(found.confusion, prior_of(found), gold).beliefs.shown()
        path = np.array(last.path)
        return Fit(posterior, found.confusion, found.prior, path, last.converged, more=found.more)

    def iterations(
        self, counts: Sweep, sweep: Callable[[Parameters], Sweep], n_annotations: int, before: Sequence[float] = ()
    ) -> Iterator[Iteration]:
        """Yield E+M steps until one has converged or is the last; at least one.

        `counts` are those of the start, or of the step that the path `before` ends with.
        """
        path = list(before)
        converged, parameters = False, None
        while not converged and len(path) < self.max_iter:
            parameters = self._next(counts, parameters)
            counts = sweep(parameters)
            path.append(counts.log_likelihood + parameters.log_penalty)
            converged = len(path) > 1 and abs(path[-1] - path[-2]) <= self.tol * n_annotations
            yield Iteration(parameters, counts, path, converged)

    def _next(self, counts: Sweep, before: Parameters | None) -> Parameters:
        """Return the parameters of the next step; `before` are those of the last one, None at the start."""
        return self._m_step(counts.tallies.values, counts.class_counts)

    @abstractmethod
    def _m_step(self, confusion_counts: Floats, class_counts: Floats) -> Parameters:
        """Return the parameters that fit expected counts [worker, true, given] and tasks per class."""

    def _check_options(self, n_classes: int) -> None:
        check_int(self.max_iter, "max_iter", 1)
        check_int(self.n_init, "n_init", 1)
        check_number(self.tol, "tol", 0.0)
        check_choice(self.dtype, "dtype", ("float64", "float32"))
        if isinstance(self.prior, str):
            check_choice(self.prior, "prior", self._named_priors)
        else:
            check_distribution(self.prior, "prior", (n_classes,))

    def _estimate_prior(self, class_counts: Floats, smoothing: float) -> tuple[Floats, float]:
        """Return P(true label) and the log-density of its pseudo-counts, `smoothing` tasks per class."""
        if not isinstance(self.prior, str):
            return np.asarray(self.prior, dtype=np.float64), 0.0
        if self.prior == "uniform":
            return np.full(len(class_counts), 1 / len(class_counts)), 0.0
        prior = normalised(class_counts + smoothing)
        return prior, float(smoothing * floored_log(prior).sum())


@dataclass(kw_only=True, eq=False, repr=False)
class AnswersEM(EMAggregator):
    """Base of the models that learn what answers tell which are not classes."""

    device: str | None = None

    _takes_others = True

    def _next(self, counts: Sweep, before: Parameters | None) -> Parameters:
        return self._m_step(counts.tallies.values, counts.class_counts, counts.tallies.leaning)

    @abstractmethod
    def _m_step(self, confusion_counts: Floats, class_counts: Floats, leaning: Floats | None = None) -> Parameters:
        """Return the parameters as `EMAggregator` does; `leaning` is None where the answers are the classes."""


def first_counts(evidence: Evidence, start: Beliefs) -> Sweep:
    """Return the expected counts of a posterior, with which EM starts."""
    return Sweep(evidence.tallies(start), np.asarray(start.class_counts(), dtype=np.float64), -np.inf)


def answer_pseudo_counts(smoothing: Any, confusion_counts: Floats, leaning: Floats | None) -> Floats:
    """Return the (true, given) pseudo-counts of a `smoothing` option where answers need not be classes.

    Classes have those of `pseudo_counts`. Another answer has as many of them, for every class alike, as it has
    answers of all workers: an answer with no information about the class then changes nothing, nor one that nobody
    gave. On a scale each row has as many as a row of classes has, shared out by how often an answer is given and, as on
    and off the diagonal, by how far it leans to the class.

    >>> counts = np.array([[[30.0, 10.0, 20.0], [10.0, 30.0, 20.0]]])
    >>> answer_pseudo_counts((4.0, 1.0), counts, np.eye(3, 2))
    array([[4. , 1. , 2.5],
           [1. , 4. , 2.5]])
    """
    n_classes = confusion_counts.shape[1]
    if leaning is None:
        return pseudo_counts(smoothing, n_classes)
    pseudo, given = pseudo_counts(smoothing, n_classes), confusion_counts.sum(axis=(0, 1))
    rows = pseudo.sum(axis=1, keepdims=True)
    if leaning[:n_classes].trace() == n_classes and not leaning[n_classes:].any():
        classes, others = given[:n_classes].sum(), given[n_classes:]
        return np.hstack([pseudo, rows * others / (classes if classes > 0 else max(others.sum(), 1.0))])
    return np.asarray(rows * normalised(pseudo @ leaning.T * given))


def pseudo_counts(smoothing: Any, n_classes: int) -> Floats:
    """Return the (true, given) pseudo-counts that a `smoothing` option stands for.

    A number s puts s on the diagonal and s / n_classes elsewhere, a pair (a, b) puts a on the diagonal
    and b elsewhere, a (n_classes, n_classes) array is taken as it is.

    >>> pseudo_counts((4.0, 1.0), 2)
    array([[4., 1.],
           [1., 4.]])
    """
    values: Floats = np.asarray(smoothing, dtype=np.float64)
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError(f"smoothing must be finite and not negative; got {smoothing!r}.")
    if values.shape == (n_classes, n_classes):
        return values
    if values.shape not in ((), (2,)):
        raise ValueError(
            f"smoothing must be a number, a pair (diagonal, off the diagonal) or an array of shape "
            f"({n_classes}, {n_classes}); got shape {values.shape}."
        )
    diagonal, off_diagonal = (values, values / n_classes) if values.shape == () else (values[0], values[1])
    return np.asarray(np.where(np.eye(n_classes, dtype=bool), diagonal, off_diagonal))


def check_pair(smoothing: Any, what: str = "pseudo-counts (right, wrong)") -> tuple[float, float]:
    """Return a `smoothing` option that is a pair of numbers, each at least 0."""
    if np.shape(smoothing) != (2,):
        raise ValueError(f"smoothing must be a pair of {what}; got {smoothing!r}.")
    first, second = (check_number(count, "smoothing", 0.0) for count in smoothing)
    return first, second


def check_float32_is_smooth(dtype: str, smallest: float) -> None:
    """Refuse float32 without smoothing: near-empty rows would decide labels by rounding."""
    if dtype == "float32" and smallest == 0:
        raise ValueError("dtype='float32' must have smoothing above 0 everywhere; got 0. Smooth, or use 'float64'.")


def fixed_prior(prior: Any, n_classes: int) -> Floats:
    """Return P(true label) of an option that is "uniform" or an array."""
    if isinstance(prior, str):
        check_choice(prior, "prior", ("uniform",))
        return np.full(n_classes, 1 / n_classes)
    return check_distribution(prior, "prior", (n_classes,))


def _with_noise(votes: Beliefs, rng: np.random.Generator) -> Beliefs:
    """Return the votes mixed half and half with noise, on the classes that have a slot."""
    noise = rng.exponential(size=votes.probability.shape) * (votes.codes >= 0)
    noise *= (votes.probability.sum(axis=1) / noise.sum(axis=1))[:, None]
    wide = votes.wide().copy()
    wide[:, : noise.shape[1]] = (votes.probability + noise) / 2
    return votes.with_wide(wide)


def warn_not_settled(name: str, n_iter: int, n_workers: int) -> None:
    """Warn that a method without an objective was stopped on its way."""
    warnings.warn(
        f"{name} stopped after {n_iter} iterations while {n_workers} workers still changed. Raise max_iter.",
        ConvergenceWarning,
        stacklevel=4,
    )


def warn_not_converged(name: str, path: Sequence[float] | Floats, tol: float, n_annotations: int) -> None:
    change = (path[-1] - path[-2]) / n_annotations if len(path) > 1 else np.inf
    warnings.warn(
        f"{name} stopped after {len(path)} iterations while the objective still rose by {change:.2g} per annotation "
        f"(tol {tol:g}). Raise max_iter, or tol if that is close enough.",
        ConvergenceWarning,
        stacklevel=4,
    )
