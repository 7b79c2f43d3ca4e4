"""The interface that the rounds and the report use: counts in, confusion and its intervals out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

from labelonce._kernels import Candidates, ConfusionOnRequest, Factors, ScipyEngine
from labelonce._memory import check_memory
from labelonce._sklearn import BaseEstimator, check_is_fitted
from labelonce._types import Floats
from labelonce._validate import check_codes, check_distribution, check_number
from labelonce.data import Annotations
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

    _takes_candidates = False
    confusion_: Any = ConfusionOnRequest()
    factors_: Factors
    _takes_scales = False
    _shares: tuple[Any, ...]  # with `_leaning` only where answers need not be classes
    _leaning: Floats

    def fit(self, annotations: Annotations, predictions: Any, weight: Any = None) -> Self:
        """Estimate every worker's confusion from its disagreement with the predictions.

        Parameters
        ----------
        annotations : Annotations
        predictions : (n_tasks,) class codes, (n_tasks, n_classes) probabilities or Candidates
            The model's prediction for every task, or its true label. Codes give hard counts, probabilities soft
            ones.
        weight : (n_tasks,), optional
            How much each task counts, at least 0: 2 is the same as the task twice.
        """
        weights = None if weight is None else _check_weight(weight, annotations.n_tasks)
        if isinstance(predictions, Candidates) and not (self._takes_candidates and annotations.is_square):
            predictions = predictions.to_dense()
        checked = _check_predictions(predictions, annotations)
        if not annotations.is_square:
            soft = _as_probabilities(checked, annotations.n_classes, weights)
            return self.fit_counts(ScipyEngine(annotations, "float64").m_step(soft), annotations.leaning)
        self._forget_answers()
        self._fit_predictions(annotations, checked, weights)
        return self

    def _fit_predictions(self, annotations: Annotations, predictions: Any, weight: Floats | None) -> None:
        """Fit to checked predictions, class codes or probabilities; models without a matrix need none of the counts."""
        shape = (annotations.n_workers, annotations.n_classes)
        check_memory(
            8 * (4 * shape[0] * shape[1] ** 2 + annotations.n_tasks * shape[1]),
            f"{type(self).__name__} with {shape[0]:,} workers x {shape[1]:,} x {shape[1]:,} classes",
            "Use workers.OneCoin(), which keeps one number per worker.",
        )
        soft = _as_probabilities(predictions, shape[1], weight)
        self.fit_counts(ScipyEngine(annotations, "float64").m_step(soft))

    def fit_counts(self, counts: Any, leaning: Floats | None = None) -> Self:
        """Estimate every worker's confusion from counts [worker, true, given], whole numbers or not.

        `leaning` (n_answers, n_classes) says to what share each answer speaks for each class, as `Annotations.leaning`
        does. Default: the first answers are the classes, the others speak for none.
        """
        checked = _check_counts(counts)
        n_classes, n_answers = checked.shape[1:]
        if leaning is None and n_answers != n_classes:
            leaning = np.eye(n_answers, n_classes)
        self._forget_answers()
        if leaning is None:
            self._fit(checked)
        else:
            self._fit_answers(checked, leaning)
        return self

    def _forget_answers(self) -> None:
        """Drop what an earlier fit to other answers left."""
        if "_shares" in vars(self):
            for name in ("_shares", "_leaning", "confusion_"):
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
        self._fit(np.ascontiguousarray(counts[:, :, :n_classes]))
        square = self.confusion_
        of_classes = counts[:, :, :n_classes].sum(axis=2, keepdims=True)
        found = other_shares(np.concatenate([of_classes, counts[:, :, n_classes:]], axis=2))
        self._shares, self._leaning = tuple(found), leaning
        self.confusion_ = np.concatenate([found.mean[:, :, :1] * square, found.mean[:, :, 1:]], axis=2)

    @abstractmethod
    def _fit(self, counts: Floats) -> None:
        """Set `confusion_` from checked counts."""

    @abstractmethod
    def _entry_interval(self, level: float) -> tuple[Floats, Floats]:
        """Return the ends of the interval of every confusion entry."""

    @abstractmethod
    def _skill_moments(self, prior: Floats) -> tuple[Floats, Floats]:
        """Return mean and variance of every worker's skill."""

    def _check_fitted(self) -> None:
        check_is_fitted(self, "factors_" if "factors_" in vars(self) else "confusion_")  # which might be made

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
        n_classes = (self.factors_ if "factors_" in vars(self) else self.confusion_).shape[1]
        shares = (
            np.full(n_classes, 1 / n_classes) if prior is None else check_distribution(prior, "prior", (n_classes,))
        )
        return beta_interval(*self._skill_moments(shares), _check_level(level))


def _as_probabilities(predictions: Any, n_classes: int, weight: Floats | None) -> Floats:
    """Return checked predictions as probabilities, times the weights of the tasks."""
    soft = predictions if predictions.ndim == 2 else np.eye(n_classes)[predictions]
    return np.asarray(soft if weight is None else soft * weight[:, None])


def _check_predictions(predictions: Any, annotations: Annotations) -> Any:
    """Return (n_tasks,) class codes, (n_tasks, n_classes) probabilities, or candidates."""
    shape = (annotations.n_tasks, annotations.n_classes)
    if isinstance(predictions, Candidates):
        if predictions.shape != shape:
            raise ValueError(f"predictions must have shape {shape}; got {predictions.shape}.")
        return predictions
    values = np.asarray(predictions)
    if values.ndim == 2:
        return check_distribution(values, "predictions", shape)
    codes = check_codes(values, "predictions", shape[1])
    if len(codes) != shape[0]:
        raise ValueError(f"predictions must have one entry per task, {shape[0]}; got {len(codes)}.")
    return codes


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
