"""A refit: the beliefs about tasks and workers are replaced by those of a fit to all answers.

The router takes over the posterior of a fit unchanged, so it must be calibrated: that of `MBEM` is.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labelonce._kernels import Beliefs
from labelonce._messages import show
from labelonce._sklearn import clone
from labelonce._types import Codes, Floats, Ids, Mask
from labelonce.aggregation import Aggregator, DawidSkene, RedundancyWarning
from labelonce.baselines import AssignmentWarning
from labelonce.data import Annotations, _ids
from labelonce.judges import JudgePanel
from labelonce.learning import MBEM, AnnotationsScorer, DoubtWarning, default_workers
from labelonce.routing._answers import Rows
from labelonce.routing._belief import Belief, Crowd, possible
from labelonce.routing._panel_refit import asks_people, fit_panel
from labelonce.routing._state import State

Estimator = Aggregator | AnnotationsScorer


@dataclass(frozen=True)
class Fit:
    """The result of a fit to some answers, for `Router.adopt`.

    Parameters
    ----------
    posterior : (n_tasks, n_classes)
        P(true label), in the order of the router's tasks and classes; with several questions one row for each.
    confusion : (n_workers, n_classes, n_classes)
        Of the workers of the fit; with several questions [worker, question, true, given].
    workers : sequence
        Their ids.
    answers : triple of columns
        The task, worker and label ids of the answers that were fitted, as in `Router.answers`.
    predictions : (n_tasks, n_classes), optional
        Of the model alone; default: the posterior.

    Examples
    --------
    >>> import numpy as np
    >>> from labelonce import routing
    >>> router = routing.Router(["a", "b"], ["cat", "dog"])
    >>> router.add("a", "ann", "cat")
    >>> router.add("b", "ann", "dog")  # the fit does not know of this one
    >>> confusion = np.array([[[0.8, 0.2], [0.2, 0.8]]])
    >>> posterior = np.array([[0.9, 0.1], [0.5, 0.5]])
    >>> router.adopt(routing.Fit(posterior, confusion, ["ann"], (["a"], ["ann"], ["cat"])))
    >>> router.belief.posterior().round(2)
    array([[0.9, 0.1],
           [0.2, 0.8]])
    """

    posterior: Floats
    confusion: Floats
    workers: Sequence[Any]
    answers: tuple[Any, Any, Any]
    predictions: Floats | None = None


def estimator_of(learner: Any, X: Any, *, families: Any = None) -> Estimator:
    """Return the estimator of a refit: the one given, MBEM around a classifier, or a default."""
    if isinstance(learner, AnnotationsScorer) and X is None:
        raise ValueError(f"{type(learner).__name__} must have features; got X=None. Give the router X.")
    if isinstance(learner, Estimator):
        return learner
    if X is None:
        if learner is not None:
            raise ValueError(f"learner must have features; got {learner!r} and X=None. Give the router X.")
        return JudgePanel() if families else DawidSkene()
    return MBEM(learner)


def fitted(state: State, estimator: Estimator) -> tuple[Any, Fit]:
    """Return the estimator, fitted to all answers, and what it found."""
    rows = state.answers.rows()
    annotations = Annotations(*rows, state.tasks, _ids.table_of(state.workers, "workers"), state.classes)
    annotations = annotations.with_families(state.families) if state.families else annotations
    model: Any
    known = np.flatnonzero(state.gold >= 0)
    gold = dict(zip(state.tasks[known].tolist(), state.classes[state.gold[known]].tolist(), strict=True)) or None
    with warnings.catch_warnings():
        # The labels that these ask for are what the router is about to buy.
        for category in (RedundancyWarning, AssignmentWarning, DoubtWarning):
            warnings.simplefilter("ignore", category)
        if isinstance(estimator, JudgePanel) and asks_people(state, annotations):
            model, posterior, confusion = fit_panel(state, estimator, annotations)
            return model, Fit(posterior, confusion, list(state.workers), state.answers_by_id())
        data = (annotations,) if state.X is None else (state.X, annotations)
        model = clone(estimator).fit(*data, gold=gold, **_known_before(state, estimator, annotations))
    posterior = Beliefs.of(model.posterior_).to_dense()
    predictions = Beliefs.of(getattr(model, "predictions_", posterior)).to_dense()
    return model, Fit(posterior, np.asarray(model.confusion_), list(state.workers), state.answers_by_id(), predictions)


def _known_before(state: State, estimator: Estimator, annotations: Annotations) -> dict[str, Any]:
    """Return the start of a fit: the workers of the last fit, if the estimator takes them.

    The rounds of `MBEM` start from vote fractions otherwise, in which those who guess are the majority where they are
    sent to the same tasks; the few rounds of a refit are not enough to find out.
    """
    if not isinstance(estimator, MBEM) or not state.answers.n_fitted:
        return {}
    workers = default_workers(annotations) if estimator.worker_model is None else estimator.worker_model
    if workers.uses_slots(annotations):
        return {}
    return {"confusion": np.concatenate([state.crowd.of(worker) for worker in range(annotations.n_workers)])}


class Adoption:
    """A fit that the router is about to take over, plus the answers that came after it.

    Answers that it knew and that are gone are taken out. It is made and finished where the router is used, which takes
    a moment; `compute` takes long, changes nothing of the router, and may run in another thread while answers arrive.
    """

    def __init__(self, state: State, fit: Fit) -> None:
        if np.shape(fit.posterior) != state.belief.shape:
            shapes = f"shape {state.belief.shape}; got {np.shape(fit.posterior)}"
            raise ValueError(f"the posterior of a fit must have {shapes}.")
        self._state, self._fit = state, fit
        self._codes = [state.worker_code(worker) for worker in fit.workers]
        self._workers = list(state.workers)
        self._now, self._n_rows, self._n_removed = state.answers.rows(), state.answers.n_rows, state.answers.n_removed

    def compute(self) -> None:
        """Compute the new beliefs from the fit and the answers so far."""
        state, fitted = self._state, self._fitted_rows()
        self._is_fitted, is_there = self._among(self._now, fitted), self._among(fitted, self._now)
        self._crowd = self._crowd_of(fitted.worker)
        self._belief = Belief(possible(state.with_gold(self._fit.posterior)), state.n_questions)
        self._count(self._now, ~self._is_fitted, 1)
        self._count(fitted, ~is_there, -1)
        found = self._fit.posterior if self._fit.predictions is None else self._fit.predictions
        self._predictions = np.asarray(found, dtype=np.float32)

    def finish(self) -> bool:
        """Take over the fit and the answers since; return False and change nothing if an answer was taken back."""
        if self._state.answers.n_removed != self._n_removed:
            return False
        self._state.believe(self._belief, self._crowd, self._predictions, self._is_fitted, self._n_rows)
        return True

    def _fitted_rows(self) -> Rows:
        """Return the codes of the fitted answers."""
        state, (tasks, workers, labels) = self._state, self._fit.answers
        if len(tasks) == 0:
            return Rows(*(one[:0] for one in self._now))
        known = _ids.table_of(self._workers, "workers")
        flat = labels if state.questions is None else np.ravel(labels)
        label = _codes(flat, state.classes, "label")
        shape = (-1,) if state.questions is None else (-1, state.n_questions)
        return Rows(_codes(tasks, state.tasks, "task"), _codes(workers, known, "worker"), label.reshape(shape))

    def _among(self, rows: Rows, others: Rows) -> Mask:
        """Return which of the answers are among others, with the same labels."""
        if len(others.task) == 0:
            return np.zeros(len(rows.task), dtype=bool)
        pair, other = (one.task.astype(np.int64) * len(self._workers) + one.worker for one in (rows, others))
        order = np.argsort(other, kind="stable")
        place = order[np.searchsorted(other, pair, sorter=order).clip(max=len(order) - 1)]
        same = rows.label == others.label[place]
        return np.asarray((other[place] == pair) & (same if same.ndim == 1 else same.all(axis=1)))

    def _crowd_of(self, labelled: Codes) -> Crowd:
        """Return the workers of the fit; of the others the mean is assumed."""
        confusion = np.asarray(self._fit.confusion)
        seen = np.isin(self._codes, labelled)
        average = confusion[seen].mean(axis=0) if seen.any() else self._state.crowd.population
        crowd = Crowd(np.repeat(average[None], len(self._workers), axis=0), average)
        crowd.confusion[self._codes] = confusion.reshape(-1, *crowd.population.shape)
        return crowd

    def _count(self, rows: Rows, chosen: Mask, times: int) -> None:
        """Add some of the answers to the beliefs, or take them out."""
        chosen &= self._state.gold[rows.task] < 0
        for task, worker, label in zip(*(one[chosen] for one in rows), strict=True):
            share = self._state.evidence_of(task, worker)
            self._belief.update(task, self._crowd.chances(worker, np.atleast_1d(label)) ** (times * share))


def _codes(values: Any, ids: Ids, name: str) -> Codes:
    codes = _ids.lookup(values, ids)
    if (codes < 0).any():
        place = int(np.argmax(codes < 0))
        raise ValueError(f"the {name}s of a fit must be the router's; got {show(values[place])} at answer {place}.")
    return codes
