"""What a router lets another thread compute while it goes on answering: a fit to believe, and the next pool.

Both are made and finished where the router is used, which takes a moment; `compute` takes long, changes nothing of the
router, and may run in another thread while answers arrive.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from labelonce._kernels import floored_log
from labelonce._messages import show
from labelonce._types import Codes, Floats, Ids, Mask
from labelonce.data import _ids
from labelonce.routing._belief import Belief
from labelonce.routing._pool import Pool
from labelonce.routing._refit import softened
from labelonce.routing._state import known_rows

if TYPE_CHECKING:
    from labelonce.routing._router import Router


@dataclass(frozen=True)
class Fit:
    """What a fit of some answers found, wherever it was made, for `Router.adopt`.

    Parameters
    ----------
    posterior : (n_tasks, n_classes)
        P(true label), in the order of the router's tasks and classes.
    confusion : (n_workers, n_classes, n_classes)
        Of the workers of the fit.
    workers : sequence
        Their ids.
    answers : triple of columns
        The task, worker and label ids of the answers that were fitted.
    predictions : (n_tasks, n_classes), optional
        Of the model alone; default: the posterior.

    Examples
    --------
    >>> import numpy as np
    >>> from labelonce import routing
    >>> router = routing.Router(["a", "b"], ["cat", "dog"], temperature=1)
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


class Adoption:
    """A fit that a router is about to believe, and on top of it the answers that the fit did not know.

    Answers that the fit knew and that are gone are taken out of it.
    """

    def __init__(self, router: Router, fit: Fit) -> None:
        shape = (router.state.n_tasks, router.state.n_classes)
        if np.shape(fit.posterior) != shape:
            raise ValueError(f"the posterior of a fit must have shape {shape}; got {np.shape(fit.posterior)}.")
        self._router, self._fit = router, fit
        for worker in fit.workers:
            router._worker_code(worker)
        self._workers = list(router.workers)
        self._n_removed = router.state.n_removed
        self._now = np.stack(router.state.rows())

    def compute(self) -> None:
        """Compute what will be believed, of the answers so far."""
        router, state = self._router, self._router.state
        fitted = self._coded()
        self._is_fitted, is_there = self._in(self._now, fitted), self._in(fitted, self._now)
        self._know(fitted[1])
        logs = softened(known_rows(self._fit.posterior, state.gold), router.temperature, state)
        self._send(logs, self._now[:, ~self._is_fitted], 1.0)
        self._send(logs, fitted[:, ~is_there], -1 / router.temperature)
        self._belief = Belief.of_logs(logs)
        found = self._fit.posterior if self._fit.predictions is None else self._fit.predictions
        self._predictions = np.asarray(found, dtype=np.float32)
        order = np.argsort(~self._is_fitted, kind="stable")
        self._columns = [array("i", one.tobytes()) for one in self._now[:, order].astype(np.intc)]

    def finish(self) -> bool:
        """Believe it, and what has arrived meanwhile; False, and nothing changed, where an answer was taken back."""
        router, state = self._router, self._router.state
        if state.n_removed != self._n_removed:
            return False
        before = self._now.shape[1]
        later = [one[before:] for one in (state.task, state.worker, state.label)]
        state.know_workers(self._confusion, self._population)
        state.belief, state.predictions = self._belief, self._predictions
        for task, worker, label in zip(*later, strict=True):
            if state.gold[task] < 0:
                state.belief.update(task, state.log_chances(worker, label))
        state.task, state.worker, state.label = (one + more for one, more in zip(self._columns, later, strict=True))
        state.n_fitted = int(self._is_fitted.sum())
        remind(router)
        return True

    def _coded(self) -> Codes:
        """Return the codes of the fitted answers, (3, n): task, worker, label."""
        router, (tasks, workers, labels) = self._router, self._fit.answers
        if len(tasks) == 0:
            return np.zeros((3, 0), dtype=np.int32)
        known = _ids.table_of(self._workers, "workers")
        columns = [("task", tasks, router.tasks), ("worker", workers, known), ("label", labels, router.classes)]
        return np.stack([_codes(values, ids, name) for name, values, ids in columns])

    def _in(self, rows: Codes, others: Codes) -> Mask:
        """Return which of the answers are among others."""
        n_workers, n_classes = len(self._workers), self._router.state.n_classes
        one, other = ((code[0].astype(np.int64) * n_workers + code[1]) * n_classes + code[2] for code in (rows, others))
        return np.isin(one, other, kind="sort")

    def _know(self, labelled: Codes) -> None:
        """Take over the workers of the fit; of the others the mean is assumed."""
        fit, codes = self._fit, [self._router._worker_codes[worker] for worker in self._fit.workers]
        seen = np.isin(codes, labelled)
        self._population = np.asarray(fit.confusion[seen].mean(axis=0)) if seen.any() else self._router.state.population
        self._confusion = np.tile(self._population, (len(self._workers), 1, 1))
        self._confusion[codes] = fit.confusion
        self._log_confusion = floored_log(self._confusion)

    def _send(self, logs: Floats, rows: Codes, times: float) -> None:
        """Add what answers say of their tasks."""
        tasks, workers, labels = rows[:, self._router.state.gold[rows[0]] < 0]
        np.add.at(logs, tasks, times * self._log_confusion[workers, :, labels])


class Drawing:
    """The next pool of a router, drawn while the old one is in use."""

    def __init__(self, router: Router) -> None:
        self._router = router

    def compute(self) -> None:
        """Draw the pool, of all open tasks."""
        router = self._router
        nobody: Codes = np.zeros(0, dtype=np.int32)
        self._pool = Pool.draw(router.state, router.strategy, router._open(router._everything), nobody)

    def finish(self) -> bool:
        """Use the pool from now on."""
        self._router._use(self._pool)
        return True


def remind(router: Router) -> None:
    """Let the strategy compute anew what it knows of the answers."""
    state = router.state
    router.strategy.refitted(state)
    for place in range(state.n_fitted, len(state.task)):
        router.strategy.added(state, state.task[place], state.worker[place], state.label[place])


def _codes(values: Any, ids: Ids, name: str) -> Codes:
    codes = _ids.lookup(values, ids)
    if (codes < 0).any():
        place = int(np.argmax(codes < 0))
        raise ValueError(f"the {name}s of a fit must be the router's; got {show(values[place])} at answer {place}.")
    return codes
