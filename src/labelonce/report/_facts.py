"""What the report needs from a fitted object of any kind, each value computed once; no label is judged by itself."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from labelonce._kernels import Beliefs, ScipyEngine, vote_fractions
from labelonce._messages import shorten
from labelonce._types import Codes, Estimate, Floats, Mask
from labelonce.aggregation import DawidSkene, MajorityVote, has_no_room, other_answers
from labelonce.aggregation import OneCoin as OneCoinVote
from labelonce.data import MIN_OVERLAP, Annotations, _ids
from labelonce.workers import ClassWise, OneCoin, WorkerModel

LEAN = 10.0  # labels that a worker's one-coin matrix is worth in a row of its confusion
_CROWD_WORTH = 4.0  # labels that the crowd's mean skill is worth in a worker's
_NEEDED = ("posterior_", "labels_", "prior_", "skill_", "workers_", "tasks_", "classes_")
_MOST_CELLS = 100_000  # workers x classes whose population is integrated class by class
_JUDGE = DawidSkene(max_iter=50)  # close enough: the report rounds to a tenth of a per cent


@dataclass(frozen=True)
class Counts:
    """Expected counts [worker, true, given] of all annotations.

    In the methods `worker`, `label` and `posterior` have one row per annotation: who gave what, and the posterior of
    its task, which is what the annotation added to the counts.
    """

    counts: Floats

    def skill_without(self, worker: Codes, label: Codes, posterior: Floats) -> Floats:
        """Return each worker's share of right labels without this one, leaning on the crowd's."""
        right: Floats = np.einsum("wkk->w", self.counts)
        total = self.counts.sum(axis=(1, 2))
        own = posterior[np.arange(len(label)), label]
        crowd = _CROWD_WORTH * right.sum() / total.sum()
        return np.asarray(np.maximum(right[worker] - own + crowd, 0) / (total[worker] - 1 + _CROWD_WORTH))

    def column_without(self, worker: Codes, label: Codes, posterior: Floats, lean: float = LEAN) -> Floats:
        """Return P(this label | true class) of the worker without this annotation, shape (n, n_classes)."""
        rows, n_classes = np.arange(len(label)), posterior.shape[1]
        skill = self.skill_without(worker, label, posterior)
        one_coin = np.repeat(((1 - skill) / (n_classes - 1))[:, None], n_classes, axis=1)
        one_coin[rows, label] = skill
        size = np.maximum(self.counts.sum(axis=2)[worker] - posterior, 0) + lean
        return np.asarray((np.maximum(self.counts[worker, :, label] - posterior, 0) + lean * one_coin) / size)

    def confusion_without(self, worker: Codes, label: Codes, posterior: Floats) -> Floats:
        """Return the worker's whole matrix without this annotation, shape (n, n_classes, n_classes)."""
        rows, n_classes = np.arange(len(label)), posterior.shape[1]
        skill = self.skill_without(worker, label, posterior)[:, None, None]
        evidence = self.counts[worker]
        evidence[rows, :, label] = np.maximum(evidence[rows, :, label] - posterior, 0)
        evidence += LEAN * np.where(np.eye(n_classes, dtype=bool), skill, (1 - skill) / (n_classes - 1))
        return np.asarray(evidence / evidence.sum(axis=2, keepdims=True))


@dataclass(frozen=True)
class OtherAnswers:
    """Answers that are no classes: how often each was given, P(answer | true), and every worker's rate of them all."""

    answers: Any
    counts: Any
    by_class: Floats
    rate: Floats


@dataclass(frozen=True)
class Facts:
    """A fit and its annotations, with codes for ids; the annotations are those whose answer is a class.

    `posterior` is what people are shown; where a fit held something out, `estimate` is its share of right labels, and
    `intervals` gives the ends of the intervals of its skills at a level; `narrowing` is what would narrow
    the range of that share, and `doubts` are the warnings of the fit. `belief` and `belief_confusion` are a
    posterior and the workers it follows from: those of the fit, except for majority vote, whose fractions are not
    probabilities; there Dawid and Skene's model judges the labels. Where there is no room for
    arrays (`large`), posteriors are `Beliefs`, and nothing is made of matrices. `history`, `choices` and `worker_model`
    are those of an MBEM, empty or None without; `recipe` is what was used.
    """

    method: str
    uses_features: bool
    judged_by: str
    annotations: Annotations
    posterior: Any
    estimate: Estimate | None
    narrowing: str
    doubts: list[str]
    intervals: Callable[[float], tuple[Floats, Floats]] | None
    label: Codes
    fitted: Any
    prior: Floats
    skill: Floats
    belief: Any
    judge: Any
    predictions: Floats | None
    worker_model: WorkerModel | None
    history: list[dict[str, Any]]
    choices: list[dict[str, Any]]
    recipe: dict[str, Any]
    others: OtherAnswers | None = None

    @cached_property
    def large(self) -> bool:
        """Whether there is no room for arrays by task and class, and by worker, class and class."""
        return has_no_room(self.annotations)

    @cached_property
    def confusion(self) -> Floats:
        return among_classes(np.asarray(self.fitted.confusion_))

    @cached_property
    def belief_confusion(self) -> Floats:
        """The matrices that the belief follows from."""
        return among_classes(np.asarray(self.judge.confusion_))

    @cached_property
    def engine(self) -> ScipyEngine:
        return ScipyEngine(self.annotations, "float64")

    @cached_property
    def counts(self) -> Counts:
        """How often each worker gave each label to each class, by the posterior that the report believes."""
        return Counts(self.engine.m_step(self.belief))

    @cached_property
    def votes(self) -> Floats:
        """The share of every class in the labels of a task."""
        return vote_fractions(self.engine.vote_counts(), None)

    @cached_property
    def labels_per_task(self) -> Codes:
        return np.bincount(self.annotations.task, minlength=self.annotations.n_tasks).astype(np.int32)

    @cached_property
    def labels_per_worker(self) -> Codes:
        return np.bincount(self.annotations.worker, minlength=self.annotations.n_workers).astype(np.int32)

    @cached_property
    def promised(self) -> float:
        """The mean probability of the labels, as the fit itself has it."""
        return float(self.of_label(self.posterior if self.uses_features else self.belief).mean())

    @cached_property
    def labelled(self) -> Mask:
        """True for the tasks that have a label."""
        return self.labels_per_task > 0

    @cached_property
    def comparable(self) -> bool:
        """Whether there is evidence about the true labels besides one label per task: features, or second labels."""
        overlap = int((self.labels_per_task > 1).sum())
        return self.uses_features or overlap >= MIN_OVERLAP * int(self.labelled.sum())

    def skill_interval(self, level: float) -> tuple[Floats, Floats]:
        """Return the interval of every skill: the fit's own, or that of a population fitted to its posterior."""
        if self.intervals is not None:
            return self.intervals(level)
        if self.large:
            model = self.worker_model or OneCoin().fit(self.annotations, self.belief)
            return model.skill_interval(self.prior, level=level)
        counts = self.counts.counts
        if counts.shape[0] * counts.shape[1] > _MOST_CELLS:
            return OneCoin().fit_counts(right_or_wrong(counts)).skill_interval(level=level)
        model = self.worker_model or ClassWise().fit_counts(counts)
        return model.skill_interval(self.prior, level=level)

    def is_undecided(self, task: int) -> bool:
        """Return whether out-of-fold models prefer another class, which is then as probable."""
        posterior = self.posterior[task]
        return self.estimate is not None and int((posterior == posterior[self.label[task]]).sum()) > 1

    def of_label(self, posterior: Floats) -> Floats:
        """Return the probability of the label of every labelled task."""
        return np.asarray(posterior[np.arange(len(posterior)), self.label][self.labelled])


def read_facts(fitted: Any, annotations: Any) -> Facts:
    """Return the facts of a fitted MBEM, TrainOnAggregate or aggregator and the annotations of its fit."""
    if not isinstance(annotations, Annotations):
        raise TypeError(f"annotations must be the Annotations of the fit; got {type(annotations).__name__}.")
    source = getattr(fitted, "aggregator_", fitted)
    missing = [name for name in _NEEDED if not hasattr(source, name)]
    if missing:
        raise TypeError(
            f"fitted must be a fitted MBEM, TrainOnAggregate or aggregator; got {type(fitted).__name__} without "
            f"{missing[0]}. Call its fit first."
        )
    if annotations.is_scale:
        raise ValueError(
            f"a report must be of answers that are classes, {shorten(annotations.classes)}; got the scale "
            f"{shorten(annotations.answers)}. Write workers_to_frame() to a file instead."
        )
    check_same(annotations, source, ("tasks", "workers", "classes"))
    others = other_answers_of(source, annotations)
    annotations = annotations.only_classes()
    judge, large = source, has_no_room(annotations)
    if isinstance(source, MajorityVote):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of few iterations and little overlap: the report says so itself
            judge = (OneCoinVote() if large else DawidSkene(**_JUDGE.get_params())).fit(annotations)
    verdict = getattr(fitted, "verdict_", None)
    held_out = verdict is not None and verdict.held_out
    kept = partial(_kept, large=large)
    shown = kept(source.posterior_)
    return Facts(
        method=_method(fitted),
        uses_features=hasattr(fitted, "history_"),
        judged_by=type(judge).__name__,
        annotations=annotations,
        posterior=shown,
        estimate=fitted.estimated_accuracy_ if held_out else None,
        narrowing=str(verdict.narrowing() or "") if verdict is not None else "",
        doubts=list(getattr(fitted, "doubts_", [])),
        intervals=verdict.skill_interval if verdict is not None and held_out else None,
        label=_ids.lookup(source.labels_, annotations.classes),
        fitted=source,
        prior=np.asarray(source.prior_),
        skill=np.asarray(source.skill_),
        belief=shown if held_out else kept(judge.posterior_),
        judge=judge,
        predictions=kept(getattr(fitted, "predictions_", None)),
        worker_model=getattr(fitted, "worker_model_", None),
        history=getattr(fitted, "history_", []),
        choices=getattr(fitted, "choices_", None) or [],
        recipe=_recipe(fitted, source),
        others=others,
    )


def other_answers_of(source: Any, annotations: Annotations) -> OtherAnswers | None:
    """Return the facts about answers that are not classes, None if there are none or the method left them out."""
    rate = other_answers(source)
    if rate is None:
        return None
    n_classes = annotations.n_classes
    counts = np.bincount(annotations.label, minlength=annotations.n_answers)[n_classes:]
    weight = np.bincount(annotations.worker, minlength=annotations.n_workers) / len(annotations)
    by_class = np.einsum("w,wko->ok", weight, np.asarray(source.confusion_)[:, :, n_classes:])
    return OtherAnswers(annotations.answers[n_classes:], counts, by_class, rate)


def among_classes(confusion: Floats) -> Floats:
    """Return P(given | true) among the answers that are classes; a row without any is uniform."""
    n_classes = confusion.shape[1]
    if confusion.shape[2] == n_classes:
        return confusion
    total = confusion[:, :, :n_classes].sum(axis=2, keepdims=True)
    uniform = np.full((len(confusion), n_classes, n_classes), 1 / n_classes)
    return np.asarray(np.divide(confusion[:, :, :n_classes], total, out=uniform, where=total > 0))


def _kept(posterior: Any, *, large: bool) -> Any:
    """Return a posterior as an array, unless there is no room for it; None as it is."""
    if posterior is None or large:
        return posterior
    return Beliefs.of(posterior).to_dense()


def right_or_wrong(counts: Floats) -> Floats:
    """Return counts of two classes, with the same labels right and wrong."""
    right = np.einsum("wkk->w", counts)
    wrong = np.maximum(counts.sum(axis=(1, 2)) - right, 0)
    return np.stack([np.stack([right, wrong], axis=1), np.zeros((len(right), 2))], axis=1)


def check_same(annotations: Any, fitted: Any, names: tuple[str, ...]) -> None:
    """Raise unless annotations have the ids of the fit."""
    for name in names:
        given, wanted = getattr(annotations, name), getattr(fitted, f"{name}_")
        if not np.array_equal(given, wanted):
            raise ValueError(
                f"annotations must be those of the fit, with its {len(wanted):,} {name} {shorten(wanted, 3)}; "
                f"got {len(given):,}, {shorten(given, 3)}."
            )


def _method(fitted: Any) -> str:
    aggregator = getattr(fitted, "aggregator_", None)
    if aggregator is None:
        return type(fitted).__name__
    return f"{type(aggregator).__name__}, then a model trained on its labels"


def _recipe(fitted: Any, source: Any) -> dict[str, Any]:
    """Return the recipe of an MBEM, or the parameters and iterations of an aggregator."""
    if hasattr(fitted, "recipe_"):
        return dict(fitted.recipe_)
    used = dict(source.get_params())
    return with_iterations(used, source) if getattr(source, "n_iter_", 0) else used


def with_iterations(used: dict[str, Any], fitted: Any) -> dict[str, Any]:
    """Return what was used, and how many iterations a fit took."""
    ended = "converged" if fitted.converged_ else "stopped before it converged"
    return used | {"iterations": f"{fitted.n_iter_}, {ended}"}
