"""The base of all aggregators: what `fit` takes and which attributes it sets."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from labelonce._kernels import Beliefs, Confusion, FittedConfusion, FittedFactors, confusion_of
from labelonce._rules import RULES
from labelonce._sklearn import BaseEstimator, check_is_fitted, clone
from labelonce._types import Codes, Estimate, Floats, Ids
from labelonce._validate import RandomState, check_rng
from labelonce.aggregation._confidence import confidence_of
from labelonce.data import (
    MIN_OVERLAP,
    Annotations,
    Gold,
    _ids,
    check_gold,
    check_memory,
    check_whole,
    class_leanings,
    holds_classes,
    is_large,
    label_memory,
    only_classes,
)

_LESS_MEMORY = (
    "Use OneCoin, MajorityVote or DawidSkene(worker_model=workers.Grouped(groups)), whose memory follows the labels "
    "and not the classes"
)
TOP_CLASSES = 5  # of a task, in tables of many classes


class RedundancyWarning(UserWarning):
    """Too few tasks have two annotations to tell good workers from bad without features."""


class DoubtWarning(UserWarning):
    """The numbers say that a fit should not be believed."""


@dataclass(frozen=True)
class Fit:
    """What a model found.

    `log_likelihood` is the path of the objective, one value per iteration; a method without an objective leaves it
    empty and says `n_iter`. `more` holds the fitted attributes that only this model has, by name.
    """

    posterior: Any  # an array, or Beliefs
    confusion: Any  # matrices or factors, or an array
    prior: Floats
    log_likelihood: Floats
    converged: bool
    n_iter: int | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


class Aggregator(BaseEstimator, ABC):
    """Base of the aggregators: `fit(annotations)` sets the attributes below.

    Attributes
    ----------
    posterior_ : (n_tasks, n_classes)
        P(true label | annotations) of every task. Where n_tasks x n_classes + n_workers x n_classes^2 is
        above 2^27, `Beliefs`: the classes in question of each task, and a rest.
    labels_ : (n_tasks,)
        The most probable class id of every task; ties are broken at random by `random_state`.
    confusion_ : (n_workers, n_classes, n_answers)
        P(given | true) as [worker, true, given]; rows sum to 1. Methods with one number per worker keep `factors_`, and
        make it when it is asked for: up to 2^27 entries.
    factors_ : Factors
        The workers of those methods; `factors_.confusion(worker)` is the matrix of one.
    confidence_ : (n_tasks,)
        How probable it is that each label is right. Unlike `posterior_`, it knows that workers share mistakes: averaged
        over how far their errors usually go together, and calibrated by gold that is left out in turn.
    estimated_accuracy_ : (value, low, high)
        The share of labels that are right, with its 90 % range.
    prior_ : (n_classes,)
        P(true label).
    skill_ : (n_workers,)
        Each worker's chance of giving the true label, sum of prior times diagonal: where answers may be other than
        classes, among those that are; on a scale, how far the answers lean to the true label.
    log_likelihood_ : (n_iter_,)
        The objective after each iteration; it never falls. Empty where the method has none.
    n_iter_ : int
    converged_ : bool
    tasks_, workers_, classes_, answers_ : arrays
        The ids of rows and columns. Methods that take only classes for answers have them for `answers_`.
    """

    _tables: tuple[float, float] = (4, 10)  # arrays by task and class, and by worker, class and answer, held at once
    _follows_labels = False  # has a way for many classes whose memory is that of the labels
    _takes_others = False  # answers that are no classes
    _takes_scales = False  # answers none of which is a class
    _takes_weights = False  # annotations that count other than as one whole label

    random_state: RandomState
    posterior_: Any
    labels_: Ids
    confidence_: Floats
    estimated_accuracy_: Estimate
    confusion_: Any = FittedConfusion()
    factors_: Any = FittedFactors()
    prior_: Floats
    skill_: Floats
    log_likelihood_: Floats
    n_iter_: int
    converged_: bool
    tasks_: Ids
    workers_: Ids
    classes_: Ids

    def fit(self, annotations: Annotations, *, gold: Gold | None = None) -> Self:
        """Estimate every task's true label and every worker's confusion.

        Parameters
        ----------
        annotations : Annotations
        gold : mapping or array, optional
            Known true labels: a mapping of task id to class id, or one class id a task with None, NaN or
            -1 where unknown. A pandas Series is read by its index, unless that only counts 0, 1, 2, ...
        """
        annotations, codes = self._checked(annotations, gold)
        rng = check_rng(self.random_state)
        self._check_memory(annotations)
        fit = self._fit(annotations, codes, rng)
        self._keep(annotations, codes, fit, rng)
        self._say_how_right(annotations, codes, fit)
        return self

    def _say_how_right(self, annotations: Annotations, gold: Codes | None, fit: Fit) -> None:
        """Set how right the labels are, whose workers may share mistakes; warn where gold contradicts the posterior."""

        def refit(known: Codes) -> Any:
            with warnings.catch_warnings(action="ignore"):
                return clone(self)._fit(annotations, known, check_rng(0)).posterior

        picks = _ids.lookup(self.labels_, self.classes_)
        per_task = np.bincount(annotations.task, minlength=annotations.n_tasks).astype(np.int32)
        found = confidence_of(fit.posterior, picks, per_task, gold, refit)
        self.confidence_, self.estimated_accuracy_ = found.values, found.accuracy
        if found.too_sure > RULES.too_sure:
            warnings.warn(
                f"{type(self).__name__}: its posterior is {found.too_sure:.0%} surer than gold that was left "
                f"out allows, since workers share mistakes. Act on confidence_ ({found.accuracy.value:.1%} right), not "
                "on posterior_; for language models use JudgePanel.",
                DoubtWarning,
                stacklevel=4,
            )

    def _checked(self, annotations: Annotations, gold: Gold | None) -> tuple[Annotations, Codes | None]:
        """Return the annotations whose answers mean something to this model, and the class code of each task's gold."""
        if not isinstance(annotations, Annotations):
            raise TypeError(
                f"annotations must be Annotations; got {type(annotations).__name__}. "
                "Make them with Annotations.from_arrays, from_frame or from_matrix."
            )
        if not self._takes_weights:
            check_whole(annotations, type(self).__name__)
        codes = None if gold is None else check_gold(gold, annotations)
        if not self._takes_answers_of(annotations):
            annotations = only_classes(annotations, type(self).__name__)
        return annotations, codes

    def _keep(self, annotations: Annotations, gold: Codes | None, fit: Fit, rng: np.random.Generator) -> Self:
        """Set the fitted attributes; tasks with gold have its class, also where `_fit` did not look at it."""
        posterior = fit.posterior
        for name in ("confidence_", "estimated_accuracy_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if gold is not None and isinstance(posterior, np.ndarray) and (known := gold >= 0).any():
            posterior = posterior.copy()
            posterior[known] = np.eye(annotations.n_classes, dtype=posterior.dtype)[gold[known]]
        set_fitted(
            self,
            confusion=fit.confusion,
            prior=fit.prior,
            workers=annotations.workers,
            classes=annotations.classes,
            answers=annotations.answers,
            annotation_counts=np.bincount(annotations.worker, minlength=annotations.n_workers),
            tasks=annotations.tasks,
            posterior=posterior,
            picks=Beliefs.of(posterior).drawn_argmax(rng),
            log_likelihood_=fit.log_likelihood,
            n_iter_=len(fit.log_likelihood) if fit.n_iter is None else fit.n_iter,
            converged_=fit.converged,
            **fit.more,
        )
        return self

    def _check_memory(self, annotations: Annotations) -> None:
        check_memory(
            self._memory(annotations),
            f"{type(self).__name__} with {annotations.n_tasks:,} tasks, {annotations.n_workers:,} workers and "
            f"{annotations.n_classes:,} classes",
            _LESS_MEMORY + (", or dtype='float32'." if getattr(self, "dtype", None) == "float64" else "."),
        )

    def _memory(self, annotations: Annotations) -> float:
        """Return about how many bytes the largest arrays of a fit take at once."""
        if self._follows_labels and has_no_room(annotations):
            return label_memory(len(annotations), annotations.n_tasks)
        posteriors, matrices = self._tables
        size = 4 if getattr(self, "dtype", "") == "float32" else 8
        n_cells = annotations.n_workers * annotations.n_classes * annotations.n_answers
        return size * (posteriors * annotations.n_tasks * annotations.n_classes + matrices * n_cells)

    def _takes_answers_of(self, annotations: Annotations) -> bool:
        """Return whether answers that are no classes mean something to this model."""
        return self._takes_scales if annotations.is_scale else self._takes_others

    @abstractmethod
    def _fit(self, annotations: Annotations, gold: Codes | None, rng: np.random.Generator) -> Fit:
        """Return what was found, and leave the model as it is; `gold` holds class codes, -1 where unknown."""

    @property
    def answers_(self) -> Ids:
        """The answers that the columns of `confusion_` stand for."""
        return fitted_answers(self)

    def to_frame(self) -> pa.Table:
        """Return an Arrow table with one row per task: task, label, `confidence_`, and `posterior_<class>`."""
        check_is_fitted(self, "posterior_")
        return labels_table(self)

    def workers_to_frame(self) -> pa.Table:
        """Return an Arrow table with one row per worker: worker, annotations, skill; best first.

        Where there are answers that are no classes, `other_answers` is the share of them that the worker gives.
        """
        check_is_fitted(self, "skill_")
        return workers_table(self)


def set_fitted(
    model: Any,
    *,
    confusion: Any,
    prior: Floats,
    workers: Ids,
    classes: Ids,
    annotation_counts: Ids,
    answers: Ids | None = None,
    tasks: Ids | None = None,
    posterior: Any = None,
    picks: Codes | None = None,
    **more: Any,
) -> None:
    """Set the fitted attributes of a model: the one place that names those which all models share.

    `picks` are the class codes of the labels, `annotation_counts` those of each worker; `more` are the attributes of
    this kind of model, by name. Without `posterior`, where it is on disk only, those of tasks are dropped.
    """
    if posterior is not None and picks is not None:
        model.tasks_, model.posterior_, model.labels_ = tasks, posterior, classes[picks]
    else:
        for name in ("tasks_", "posterior_", "labels_"):
            model.__dict__.pop(name, None)
    found: Confusion = confusion_of(confusion)
    model._confusion = found
    for name in ("_answers", "_fitted_on"):
        model.__dict__.pop(name, None)
    leaning = None
    if answers is not None and answers is not classes:
        model._answers, leaning = answers, class_leanings(answers, classes)
    model.prior_, model.skill_ = prior, found.skill(prior, leaning)
    model.workers_, model.classes_, model._annotation_counts = workers, classes, annotation_counts
    for name, value in more.items():
        setattr(model, name, value)


def labels_table(fitted: Any) -> pa.Table:
    picks = _ids.lookup(fitted.labels_, fitted.classes_)
    return labels_frame(fitted.tasks_, fitted.classes_, fitted.posterior_, picks, vars(fitted).get("confidence_"))


def workers_table(fitted: Any, **more: Floats) -> pa.Table:
    """Return the workers of a fitted object with one row per worker, best first; `more` columns follow."""
    best_first = np.argsort(-fitted.skill_, kind="stable")
    columns = {"worker": fitted.workers_, "annotations": fitted._annotation_counts, "skill": fitted.skill_} | more
    if (others := other_answers(fitted)) is not None:
        columns["other_answers"] = others
    return pa.table({name: pa.array(values[best_first]) for name, values in columns.items()})


def labels_frame(tasks: Ids, classes: Ids, posterior: Any, picks: Codes, confidence: Floats | None = None) -> pa.Table:
    """Return an Arrow table with one row per task: task, label, confidence, and `posterior_<class>`.

    Without `confidence` it is the posterior of the label. With many classes there are columns of the most probable
    ones of each task: `class_1`, `posterior_class_1`, ...
    """
    beliefs = Beliefs.of(posterior)
    columns: dict[str, Any] = {
        "task": pa.array(tasks),
        "label": _ids.decode(picks, classes),
        "confidence": beliefs.at(np.arange(len(picks)), picks) if confidence is None else confidence,
    }
    for place, (code, share) in enumerate(beliefs.columns(TOP_CLASSES)):
        if np.ndim(code) == 0:
            columns[f"posterior_{classes[code]}"] = share
            continue
        names = _ids.decode(np.maximum(code, 0), classes)
        columns[f"class_{place + 1}"] = pc.if_else(pa.array(code >= 0), names, pa.scalar(None, names.type))
        columns[f"posterior_class_{place + 1}"] = pa.array(share, mask=code < 0)
    return pa.table(columns)


def has_no_room(annotations: Annotations) -> bool:
    """Return whether arrays by task and class, and by worker, class and class, are too large to be made."""
    return is_large(annotations.n_tasks, annotations.n_workers, annotations.n_classes)


def fitted_answers(fitted: Any) -> Ids:
    """Return the answers of a fitted object: its classes, unless it says otherwise."""
    answers: Ids = vars(fitted).get("_answers", fitted.classes_)
    return answers


def other_answers(fitted: Any) -> Floats | None:
    """Return the chance of every worker's answer to be no class, None where all are classes or a scale."""
    answers, classes = fitted_answers(fitted), fitted.classes_
    if len(answers) == len(classes) or not holds_classes(answers, classes):
        return None
    return np.asarray(fitted.confusion_[:, :, len(classes) :].sum(axis=2) @ fitted.prior_)


def warn_if_no_overlap(annotations: Annotations, name: str) -> None:
    """Warn that workers cannot be compared where nearly every task was labelled once."""
    per_task = np.bincount(annotations.task)
    n_labelled, n_overlap = int((per_task > 0).sum()), int((per_task > 1).sum())
    warn_of_overlap(name, n_overlap, n_labelled, annotations.redundancy, stacklevel=5)


def warn_of_overlap(name: str, n_overlap: int, n_labelled: int, redundancy: float, *, stacklevel: int = 4) -> None:
    """Warn if too few of the labelled tasks overlap, that is, have two annotations or more."""
    if n_overlap < MIN_OVERLAP * n_labelled:
        warnings.warn(
            f"{name} learns workers from tasks that several of them labelled; only {n_overlap:,} of {n_labelled:,} "
            f"tasks have two or more annotations (redundancy {redundancy:.3g}), so "
            + ("its skills and confidences mean little." if n_overlap else "nothing was learned of anybody.")
            + " Label some tasks again, or train with features by MBEM, which works at redundancy 1.",
            RedundancyWarning,
            stacklevel=stacklevel,
        )
