"""What a router has to offer: which task is best for whom, which are leased, and which workers to ask."""

from collections.abc import Callable
from typing import Any

import numpy as np

from labelonce._types import Codes, Floats
from labelonce.routing._background_update import BackgroundUpdate
from labelonce.routing._leases import Leases
from labelonce.routing._limits import Limits
from labelonce.routing._pool import Pool
from labelonce.routing._state import State
from labelonce.routing._strategies._information import Information
from labelonce.routing._strategies._strategy import Strategy

_STALE = 1 / 200  # tasks handed out and answers, as a share of the pool, after which averages are computed again
_MOST_WORKERS = 100  # of whom they are the averages
_MOST_TASKS = 128  # of which they are the averages, those of the largest entropy
_TRIAL = 5  # answers before a worker may be declined: nothing is known of a new one


class Offers:
    """The open tasks, by what they are worth; tasks and workers are codes."""

    def __init__(self, state: State, strategy: Strategy, limits: Limits, clock: Callable[[], float]) -> None:
        self._state, self._strategy, self._limits, self._clock = state, strategy, limits, clock
        self._leases = Leases(limits.lease_seconds)
        self._all: Codes = np.arange(state.n_tasks, dtype=np.int32)
        self._gold: Codes = state.rng.permutation(self._all[state.gold >= 0])
        self._pool: Pool | None = None
        self._n_changes = 0  # since the averages were computed
        self._average = self._gain = 0.0
        strategy.refitted(state)

    def open_among(self, tasks: Codes) -> Codes:
        """Return those of the tasks that may have more labels."""
        found = (self._state.gold[tasks] < 0) & ~self._strategy.settled(self._state, tasks)
        if self._limits.max_labels is not None:
            found &= self._state.n_labels[tasks] < self._limits.max_labels
        return np.asarray(tasks[found])

    def is_open(self, task: int) -> bool:
        """Return whether a task may have more labels."""
        return len(self.open_among(self._all[task : task + 1])) > 0

    def choose(self, worker: int, *, decline: bool, able: Codes | None = None) -> int | None:
        """Lease the best free task that a worker is able to label and return it; None where there is none for it."""
        if decline and not self._strategy.accepts(self._state, worker):
            return None
        pool = self.pool() if able is None else self._drawn(able, self._leased())
        if len(pool.tasks) == 0:
            return None
        scores = pool.scores(self._state, self._strategy, worker)
        place = int(scores.argmax())
        if scores[place] == -np.inf or (decline and self._is_worth_too_little(worker, pool)):
            return None
        task = pool.take(place)
        self.hand_out(task, worker)
        self._n_changes += 1
        return task

    def gold_question(self, worker: int, able: Codes | None) -> int | None:
        """Return a gold question that the worker is able to answer and has not, None where it has had enough."""
        had = self._state.had(worker)
        n_asked = int((self._state.gold[had] >= 0).sum())
        if n_asked >= self._limits.gold_tests and not self._strategy.tests(self._state, worker):
            return None
        left = self._gold[~np.isin(self._gold, had)]
        left = left if able is None else left[np.isin(left, able)]
        return int(left[0]) if len(left) else None

    def worth_asking(self, workers: Codes) -> list[int]:
        """Return the workers whose labels are worth their price, best first; all of them if nobody's are.

        Where models and people are paid from one purse, that is by what the best of them brings for the money.
        """
        values = self._values(self._strategy, workers, self.pool())
        usual = values.max() if self._state.families else self._average_of(self._strategy, self.pool())
        least = self._strategy.decline_below * usual
        order = np.argsort(-values, kind="stable").tolist()
        ranked = [(int(workers[place]), values[place]) for place in order]
        accepted = [
            worker
            for worker, value in ranked
            if (value >= least or (self._is_new(worker) and not self._state.families))
            and self._strategy.accepts(self._state, worker)
        ]
        return accepted or [worker for worker, _ in ranked]

    def gain(self) -> float:
        """Return the expected information of the average worker's best answer, in nats per unit of money."""
        self.pool()
        return self._gain

    def hand_out(self, task: int, worker: int, age: float = 0.0) -> None:
        """Lease a task to a worker who got it `age` seconds ago."""
        self._leases.hand_out(task, worker, self._clock() - age)
        self.look_at(task)

    def give_back(self, task: int, worker: int) -> None:
        """End the lease of a task if it is this worker's, and look at the task again."""
        self._leases.give_back(task, worker)
        self.look_at(task)

    def holds(self, task: int, worker: int) -> bool:
        """Return whether a worker has a lease on a task that has not expired."""
        return self._leases.holder(task, self._clock()) == worker

    def is_out(self, task: int) -> bool:
        """Return whether anybody has a lease on a task that has not expired."""
        return self._leases.holder(task, self._clock()) is not None

    def end_leases(self) -> None:
        """Offer the tasks again whose leases are over."""
        for task in self._leases.expired(self._clock()):
            self.look_at(task)

    def answered(self, task: int, worker: int) -> None:
        """Take note of an answer."""
        self._n_changes += 1
        self.give_back(task, worker)

    def look_at(self, task: int) -> None:
        """Offer a task or withdraw it, according to its state."""
        if self._pool is not None:
            self._pool.set_free(task, free=task not in self._leases.out and self.is_open(task))

    def pool(self) -> Pool:
        """Return the tasks to choose from, drawn again where they are used up; the averages are about them."""
        pool = self._pool
        if pool is None or pool.used_up:
            pool = self._drawn(self._all, self._leased())
            self.use(pool)
        if self._n_changes > _STALE * len(pool.tasks):
            self._n_changes = 0
            if self._limits.may_decline:
                self._average = self._average_of(self._strategy, pool)
            if self._limits.min_gain is not None:
                self._gain = self._average_of(Information(), pool)
        return pool

    def use(self, pool: Pool | None) -> None:
        """Use another pool from now on; None: draw one when it is needed."""
        self._pool, self._n_changes = pool, self._state.n_tasks
        if pool is not None:
            pool.free = np.isin(pool.tasks, self.open_among(pool.tasks)) & ~np.isin(pool.tasks, self._leased())

    def renew(self) -> None:
        """Note that the values of all tasks have changed; the pool is drawn again when there is time."""
        self._strategy.refitted(self._state)
        if self._pool is not None:
            self.use(self._pool)
            self._pool.is_old = True

    def drawing(self) -> BackgroundUpdate | None:
        """Return the work of drawing the next pool while this one is in use, None where it is not due."""
        if self._pool is not None and not self._pool.half_used:
            return None
        leased, drawn = self._leased(), list[Pool]()

        def finish() -> bool:
            self.use(drawn[0])
            return True

        return BackgroundUpdate(lambda: drawn.append(self._drawn(self._all, leased)), finish)

    def saved(self) -> dict[str, Any]:
        """Return what a file must hold."""
        pool = self._pool
        return {
            "leases": [[task, *lease] for task, lease in self._leases.out.items()],
            "averages": [self._average, self._gain, self._n_changes],
            "pool": None if pool is None else [pool.is_all, pool.taken, pool.is_old],
            "pool_tasks": self._all[:0] if pool is None else pool.tasks,
            "pool_free": np.zeros(0, dtype=bool) if pool is None else pool.free,
        }

    def restore(self, found: dict[str, Any]) -> None:
        """Offer what `saved` returned."""
        for task, worker, until in found["leases"]:
            self._leases.restore(task, worker, until)
        self._average, self._gain, self._n_changes = found["averages"]
        if found["pool"] is not None:
            is_all, taken, is_old = found["pool"]
            self._pool = Pool(found["pool_tasks"], self._state.n_tasks, is_all=is_all, taken=taken)
            self._pool.free, self._pool.is_old = found["pool_free"], is_old

    def _drawn(self, tasks: Codes, leased: Codes) -> Pool:
        """Return a pool of tasks that are open and not leased."""
        tasks = self.open_among(tasks)
        return Pool.draw(self._state, self._strategy, tasks[~np.isin(tasks, leased)])

    def _leased(self) -> Codes:
        return np.array(list(self._leases.out), dtype=np.int32)

    def _average_of(self, strategy: Strategy, pool: Pool) -> float:
        """Return the value of the best task for the average worker who has answered, per unit of money."""
        answers = self._state.answers
        workers = np.array([one for one in range(len(self._state.workers)) if answers.of(one)], dtype=np.int32)
        workers = workers[:: max(1, -(-len(workers) // _MOST_WORKERS))]
        return float(self._values(strategy, workers, pool).mean()) if len(workers) else 0.0

    def _values(self, strategy: Strategy, workers: Codes, pool: Pool) -> Floats:
        """Return the value of the best task for each worker, per unit of money."""
        tasks = pool.tasks[pool.free]
        if len(tasks) > _MOST_TASKS:
            tasks = tasks[np.argpartition(-self._state.belief.entropy(tasks), _MOST_TASKS)[:_MOST_TASKS]]
        costs = np.array([self._state.cost_of(int(worker)) for worker in workers])
        return np.asarray(strategy.worker_values(self._state, workers, tasks) / costs)

    def _is_worth_too_little(self, worker: int, pool: Pool) -> bool:
        """Return whether a worker is clearly worth less than the average one; False for a new worker."""
        least = self._strategy.decline_below * self._average
        if least == 0 or self._is_new(worker):
            return False
        own = self._strategy.worker_values(self._state, np.array([worker], dtype=np.int32), pool.tasks[pool.free])
        return bool(own[0] / self._state.cost_of(worker) < least)

    def _is_new(self, worker: int) -> bool:
        return len(self._state.answers.of(worker)) < _TRIAL
