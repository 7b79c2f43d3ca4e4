"""The interface that the rounds and the report use: counts in, confusion and its intervals out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import Any, Self

import numpy as np

from labelonce._kernels import (
    Beliefs,
    Counts,
    FittedConfusion,
    FittedFactors,
    Pattern,
    label_slots,
    make_evidence,
    make_slot_evidence,
)
from labelonce._sklearn import BaseEstimator, check_is_fitted
from labelonce._types import Floats
from labelonce._validate import check_codes, check_distribution, check_number
from labelonce.data import Annotations, check_memory
from labelonce.workers._answers import Shares, other_shares
from labelonce.workers._intervals import beta_interval

_WIDTH = 3.29  # standard deviations in a 90 % interval


class WorkerModel(BaseEstimator, ABC):
    """Base of the worker models.

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_answers)
        P(given | true) as [worker, true, given]: the posterior mean in the most likely population. `OneCoin` and
        `ClassWise` keep factors instead, and make it when it is asked for: up to 2^27 entries.
    factors_ : Factors
        A few numbers per worker, of the models that need no matrix; `factors_.confusion(worker)` is that of one worker.

    Examples
    --------
    Two workers, and predictions that the first agrees with:

    >>> import labelonce as lo
    >>> from labelonce import workers
    >>> ann = lo.Annotations.from_matrix([[0, 0], [1, 0], [2, 1], [0, 2], [1, 1], [2, 2]] * 5)
    >>> model = workers.OneCoin().fit(ann, [0, 1, 2, 0, 1, 2] * 5)
    >>> low, high = model.skill_interval()
    >>> bool(low[0] > high[1])
    True
    """

    confusion_: Any = FittedConfusion()
    factors_: Any = FittedFactors()
    _confusion: Any  # what both of them show
    _takes_scales = False
    _population_stays = False
    _forgotten: tuple[str, ...] = ()  # attributes by which the next fit would continue this one
    _shares: tuple[Any, ...]  # with `_leaning` only where answers need not be classes
    _leaning: Floats

    needs_predictions = False
    """Whether `prepare` has to know a model's predictions."""
    in_groups = False
    """Whether a label is evidence for the classes of one group, after `prepare`."""
    learns_from_draws = False
    """Whether a population is learned from classes that are drawn, where there are a few labels of many workers."""

    @property
    def crowd(self) -> Any:
        """P(given | true) of all workers, as the sums take it: matrices, or factors."""
        return self._confusion

    def drawn(self, rng: np.random.Generator) -> Any:
        """Return workers drawn from all that are consistent with the labels; those of matrices are as they are."""
        return self._confusion

    def uses_slots(self, labels: Any) -> bool:
        """Return whether a few classes of every row are enough for these workers, or all there is room for."""
        return False

    def prepare(self, labels: Any, predictions: Any = None) -> Pattern | None:
        """Return what the factors of these workers keep apart, None where they are matrices; forget earlier fits.

        `predictions` are a model's classes, -1 for none, or beliefs.
        """
        self._forget()
        return None

    def holds(self, labels: Any, predictions: Beliefs) -> bool:
        """Return whether labels stay within the groups, given sure predictions, after `prepare`."""
        return False

    def fit(self, annotations: Annotations, predictions: Any, weight: Any = None) -> Self:
        """Estimate every worker's confusion from its disagreement with the predictions.

        Parameters
        ----------
        annotations : Annotations
        predictions : (n_tasks,) class codes, (n_tasks, n_classes) probabilities or Beliefs
            The model's prediction for every task, or its true label. Codes give hard counts, probabilities soft
            ones.
        weight : (n_tasks,), optional
            How much each task counts, at least 0: 2 is the same as the task twice.
        """
        weights = None if weight is None else _check_weight(weight, annotations.n_tasks)
        beliefs = check_beliefs(predictions, annotations, few=self.uses_slots(annotations))
        pattern = self.prepare(annotations, beliefs)
        evidence: Any
        if pattern is None:
            shape = (annotations.n_workers, annotations.n_classes)
            check_memory(
                8 * (4 * shape[0] * shape[1] ** 2 + annotations.n_tasks * shape[1]),
                f"{type(self).__name__} with {shape[0]:,} workers x {shape[1]:,} x {shape[1]:,} classes",
                "Use workers.OneCoin(), which keeps one number per worker.",
            )
            evidence, beliefs = make_evidence(annotations, engine="scipy"), beliefs.on(None)
        else:
            classes = label_slots(annotations, pattern, beliefs.codes)
            evidence, beliefs = make_slot_evidence(annotations, classes, pattern, engine="scipy"), beliefs.on(classes)
        return self.fit_tallies(evidence.tallies(beliefs, weights))

    def fit_counts(self, counts: Any, leaning: Floats | None = None) -> Self:
        """Estimate every worker's confusion from counts [worker, true, given], whole numbers or not.

        `leaning` (n_answers, n_classes) says to what share each answer is evidence for each class, as
        `Annotations.leaning` does. Default: the first answers are the classes, the others are evidence for none.
        """
        checked = _check_counts(counts)
        n_classes, n_answers = checked.shape[1:]
        if leaning is None and n_answers != n_classes:
            leaning = np.eye(n_answers, n_classes)
        self._forget()
        return self.fit_tallies(Counts(checked, leaning))

    def fit_tallies(self, tallies: Any, *, first: bool = False) -> Self:
        """Estimate the workers from expected counts, of the layout that `prepare` asked for.

        A population that an earlier call has found is kept while next to nothing changes. `first`: the tallies are
        by a model's argmax among the classes that labels are evidence for.
        """
        for name in ("_shares", "_leaning"):
            self.__dict__.pop(name, None)
        if tallies.leaning is None:
            self._fit(tallies, first=first)
        else:
            self._fit_answers(tallies.values, tallies.leaning)
        return self

    def refitted(self, tallies: Any, *, same_population: bool = False) -> Self:
        """Return a copy that is fitted to other tallies of the same layout, in which its population may stay."""
        found = copy(self)
        found._population_stays = same_population
        return found.fit_tallies(tallies)

    def _forget(self) -> None:
        """Drop what an earlier fit to other annotations left."""
        for name in self._forgotten:
            self.__dict__.pop(name, None)

    def _fit_answers(self, counts: Floats, leaning: Floats) -> None:
        """Set `confusion_` from counts of answers that need not be classes.

        An answer is a class or another answer, at the worker's rates by true class; which class it is then, is a matter
        of the model of classes.
        """
        n_classes = counts.shape[1]
        if not np.array_equal(leaning, np.eye(*leaning.shape)):
            raise ValueError(
                f"{type(self).__name__} must have answers that are classes, to be right or wrong; got a scale of "
                f"{len(leaning)} answers for {n_classes} classes. Use workers.Full() or workers.Counted()."
            )
        self._fit(Counts(np.ascontiguousarray(counts[:, :, :n_classes])))
        square = self.confusion_
        of_classes = counts[:, :, :n_classes].sum(axis=2, keepdims=True)
        found = other_shares(np.concatenate([of_classes, counts[:, :, n_classes:]], axis=2))
        self._shares, self._leaning = tuple(found), leaning
        self.confusion_ = np.concatenate([found.mean[:, :, :1] * square, found.mean[:, :, 1:]], axis=2)

    @abstractmethod
    def _fit(self, tallies: Any, *, first: bool = False) -> None:
        """Set `confusion_` or `factors_`."""

    @abstractmethod
    def _entry_interval(self, level: float) -> tuple[Floats, Floats]:
        """Return the ends of the interval of every confusion entry."""

    @abstractmethod
    def _skill_moments(self, prior: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance of every worker's skill."""

    def _check_fitted(self) -> None:
        check_is_fitted(self, "_confusion")

    def confusion_interval(self, level: float = 0.9) -> tuple[Floats, Floats]:
        """Return the lower and the upper end of a credible interval for every confusion entry.

        The interval takes the predictions as true.
        """
        self._check_fitted()
        if "_shares" not in vars(self):
            return self._entry_interval(_check_level(level))
        return self._answer_interval(_check_level(level))

    def _answer_interval(self, level: float) -> tuple[Floats, Floats]:
        """Return the interval of the product of a share of class answers and a class, and of other shares."""
        shares = Shares(*self._shares)
        low, high = self._entry_interval(0.9)
        of_classes, variance = shares.mean[:, :, :1], shares.variance()
        middle = self.confusion_[:, :, : low.shape[2]] / np.maximum(of_classes, 1e-300)
        spread = ((high - low) / _WIDTH) ** 2
        doubt = middle**2 * variance[:, :, :1] + of_classes**2 * spread + variance[:, :, :1] * spread
        return beta_interval(self.confusion_, np.concatenate([doubt, variance[:, :, 1:]], axis=2), level)

    def skill_interval(self, prior: Any = None, level: float = 0.9) -> tuple[Floats, Floats]:
        """Return the lower and the upper end of a credible interval for every worker's skill.

        `prior` is P(true label); default uniform. The interval takes the predictions as true.
        """
        self._check_fitted()
        n_classes = self._confusion.shape[1]
        shares = (
            np.full(n_classes, 1 / n_classes) if prior is None else check_distribution(prior, "prior", (n_classes,))
        )
        return beta_interval(*self._skill_moments(shares), _check_level(level))


def check_beliefs(predictions: Any, annotations: Any, *, few: bool = False) -> Beliefs:
    """Return class codes (n_tasks,), probabilities (n_tasks, n_classes) or beliefs as beliefs."""
    shape = (annotations.n_tasks, annotations.n_classes)
    if hasattr(predictions, "probability"):
        if predictions.shape != shape:
            raise ValueError(f"predictions must have shape {shape}; got {predictions.shape}.")
        return Beliefs.of(predictions)
    values = np.asarray(predictions)
    if values.ndim == 2:
        return Beliefs.of(check_distribution(values, "predictions", shape))
    codes = check_codes(values, "predictions", shape[1])
    if len(codes) != shape[0]:
        raise ValueError(f"predictions must have one entry per task, {shape[0]}; got {len(codes)}.")
    return Beliefs.certain(codes, shape[1], few=few)


def _check_weight(weight: Any, n_tasks: int) -> Floats:
    array = np.asarray(weight, dtype=np.float64)
    if array.shape != (n_tasks,):
        raise ValueError(f"weight must have one entry per task, shape ({n_tasks},); got shape {array.shape}.")
    return _check_amounts(array, "weight")


def _check_counts(counts: Any) -> Floats:
    array = np.asarray(counts, dtype=np.float64)
    if array.ndim != 3 or array.shape[1] > array.shape[2] or 0 in array.shape:
        raise ValueError(
            "counts must have shape (n_workers, n_classes, n_answers), with at least as many answers as classes; got "
            f"{array.shape}."
        )
    return _check_amounts(array, "counts")


def _check_amounts(array: Floats, name: str) -> Floats:
    bad = ~np.isfinite(array) | (array < 0)
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(f"{name} must be finite and at least 0; got {array[place]} at {place} ({bad.sum()} in total).")
    return array


def _check_level(level: Any) -> float:
    if not 0 < check_number(level, "level", 0.0, 1.0) < 1:
        raise ValueError(f"level must be above 0 and below 1; got {level!r}.")
    return float(level)
