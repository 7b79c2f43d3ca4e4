"""Changes of a router from outside: a fit made elsewhere, an answer taken back, a task skipped or handed out again."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from labelonce._messages import show
from labelonce._types import Codes, Floats
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
    answers : triple of sequences
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
    answers: tuple[Sequence[Any], Sequence[Any], Sequence[Any]]
    predictions: Floats | None = None


def adopt(router: Router, fit: Fit) -> None:
    """Believe a fit, and on top of it the answers that it did not know; those it knew that are gone are taken out."""
    state = router.state
    shape = (state.n_tasks, state.n_classes)
    if np.shape(fit.posterior) != shape:
        raise ValueError(f"the posterior of a fit must have shape {shape}; got {np.shape(fit.posterior)}.")
    fitted = _coded(router, fit.answers)
    now = np.stack(state.rows())
    is_fitted, is_there = _in(now, fitted), _in(fitted, now)
    _know(router, fit, fitted[1])
    logs = softened(known_rows(fit.posterior, state.gold), router.temperature, state)
    _send(router, logs, now[:, ~is_fitted], 1.0)
    _send(router, logs, fitted[:, ~is_there], -1 / router.temperature)
    state.belief.replace(logs)
    state.predictions = np.asarray(fit.posterior if fit.predictions is None else fit.predictions, dtype=np.float32)
    order = np.argsort(~is_fitted, kind="stable")
    state.task, state.worker, state.label = (array("i", one.tolist()) for one in now[:, order])
    state.n_fitted = int(is_fitted.sum())
    _remind(router)
    router._pool = None


def remove(router: Router, task: Hashable, worker: Hashable) -> Any:
    """Take back a worker's answer, as if it had never been given, and return its label.

    Where the last fit knew it, what it said is taken out of the belief; a new fit forgets it altogether.
    """
    state = router.state
    task_code, code = _pair(router, task, worker)
    if (task_code, code) not in router._pairs:
        raise ValueError(f"an answer must be there to be removed; got none of worker {show(worker)} on {show(task)}.")
    rows = state.rows()
    place = int(np.flatnonzero((rows[0] == task_code) & (rows[1] == code))[0])
    label = state.label[place]
    for column in (state.task, state.worker, state.label):
        column.pop(place)
    fitted = place < state.n_fitted
    state.n_fitted -= fitted
    state.n_given[code] -= 1
    state.n_labels[task_code] -= 1
    state.votes[task_code, label] -= 1
    if state.gold[task_code] < 0:
        state.belief.update(task_code, -state.log_chances(code, label) / (router.temperature if fitted else 1.0))
    router._pairs.discard((task_code, code))
    router._answered[code].remove(task_code)
    router.spent -= router._cost_of(code) * float(state.prices[task_code])
    _remind(router)
    router._random.forget()
    _offer_again(router, task_code, code)
    return router.classes[label]


def skip(router: Router, task: Hashable, worker: Hashable, *, undo: bool) -> None:
    """Do not offer a task to a worker who has answered nothing, or with `undo` offer it again."""
    task_code, code = _pair(router, task, worker)
    skipped = router._skipped.setdefault(code, set())
    if undo:
        skipped.discard(task_code)
        _offer_again(router, task_code, code)
        return
    skipped.add(task_code)
    router._leases.give_back(task_code, code)
    if router._pool is not None:
        router._pool.answered(task_code, code)
        router._pool.set_free(task_code, free=task_code not in router._leases and router._is_open(task_code))


def hand_out(router: Router, task: Hashable, worker: Hashable) -> None:
    """Lease a task to a worker who has asked for this one."""
    task_code, code = _pair(router, task, worker)
    router._leases.hand_out(task_code, code, router._clock())
    if router._pool is not None:
        router._pool.set_free(task_code, free=False)


def holds(router: Router, task: Hashable, worker: Hashable) -> bool:
    """Return whether a task is out with a worker, and its lease is not over."""
    task_code, code = _pair(router, task, worker)
    holder, until = router._leases.out.get(task_code, (-1, 0.0))
    return holder == code and until > router._clock()


def _pair(router: Router, task: Hashable, worker: Hashable) -> tuple[int, int]:
    return router._code(task, router._task_codes, "task", router.tasks), router._worker_code(worker)


def _coded(router: Router, answers: tuple[Sequence[Any], Sequence[Any], Sequence[Any]]) -> Codes:
    """Return the codes of answers, (3, n): task, worker, label."""
    tasks, workers, labels = answers
    return np.array(
        [
            [router._code(one, router._task_codes, "task", router.tasks) for one in tasks],
            [router._worker_code(one) for one in workers],
            [router._code(one, router._class_codes, "label", router.classes) for one in labels],
        ],
        dtype=np.int32,
    )


def _in(rows: Codes, others: Codes) -> Any:
    """Return which of the answers are among others."""
    size = 1 + max((int(one.max()) for one in (rows, others) if one.size), default=0)
    one, other = ((code[0].astype(np.int64) * size + code[1]) * size + code[2] for code in (rows, others))
    return np.isin(one, other)


def _know(router: Router, fit: Fit, labelled: Codes) -> None:
    """Take over the workers of the fit; of the others the mean is assumed."""
    state = router.state
    codes = [router._worker_code(worker) for worker in fit.workers]
    seen = np.isin(codes, labelled)
    population = np.asarray(fit.confusion[seen].mean(axis=0)) if seen.any() else state.population
    confusion = np.tile(population, (len(router.workers), 1, 1))
    confusion[codes] = fit.confusion
    state.know_workers(confusion, population)


def _send(router: Router, logs: Floats, rows: Codes, times: float) -> None:
    """Add what answers say of their tasks."""
    state = router.state
    for task, worker, label in rows.T.tolist():
        if state.gold[task] < 0:
            logs[task] += times * state.log_chances(worker, label)


def _remind(router: Router) -> None:
    """Let the strategy compute anew what it knows of the answers."""
    state = router.state
    router.strategy.refitted(state)
    for place in range(state.n_fitted, len(state.task)):
        router.strategy.added(state, state.task[place], state.worker[place], state.label[place])


def _offer_again(router: Router, task: int, worker: int) -> None:
    if router._pool is not None:
        router._pool.forget(worker)
        router._pool.set_free(task, free=task not in router._leases and router._is_open(task))
