"""Changes of a router from outside: an answer taken back, a task skipped or handed out again."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from labelonce._messages import show
from labelonce.routing._beside import remind

if TYPE_CHECKING:
    from labelonce.routing._router import Router


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
    state.n_removed += 1
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
    remind(router)
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


def hand_out(router: Router, task: Hashable, worker: Hashable, *, age: float = 0.0) -> None:
    """Lease a task to a worker who has asked for this one, `age` seconds ago."""
    task_code, code = _pair(router, task, worker)
    router._leases.hand_out(task_code, code, router._clock() - age)
    if router._pool is not None:
        router._pool.set_free(task_code, free=False)


def give_back(router: Router, task: Hashable, worker: Hashable) -> None:
    """End the lease of a task if it is this worker's, without an answer."""
    task_code, code = _pair(router, task, worker)
    if router._leases.give_back(task_code, code) and router._pool is not None:
        router._pool.set_free(task_code, free=router._is_open(task_code))


def holds(router: Router, task: Hashable, worker: Hashable) -> bool:
    """Return whether a task is out with a worker, and its lease is not over."""
    task_code, code = _pair(router, task, worker)
    holder, until = router._leases.out.get(task_code, (-1, 0.0))
    return holder == code and until > router._clock()


def _pair(router: Router, task: Hashable, worker: Hashable) -> tuple[int, int]:
    return router._code(task, router._task_codes, "task", router.tasks), router._worker_code(worker)


def _offer_again(router: Router, task: int, worker: int) -> None:
    if router._pool is not None:
        router._pool.forget(worker)
        router._pool.set_free(task, free=task not in router._leases and router._is_open(task))
