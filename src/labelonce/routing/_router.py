"""The router: who labels what next."""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labelonce._messages import shorten, show
from labelonce._sklearn import count_rows
from labelonce._types import Codes, Floats, Ids
from labelonce._validate import check_int, check_number
from labelonce.data import _ids
from labelonce.routing import _changes
from labelonce.routing._belief import Belief
from labelonce.routing._beside import Adoption, Fit
from labelonce.routing._leases import Leases
from labelonce.routing._pool import Pool
from labelonce.routing._random_tasks import RandomTasks
from labelonce.routing._refit import estimator_of, refit
from labelonce.routing._sharpening import exponent_of, sharpened
from labelonce.routing._state import State, check_costs
from labelonce.routing._strategies._information import Information
from labelonce.routing._strategies._strategy import Strategy

_STALE = 1 / 200  # answers, as a share of the tasks, after which it is looked again what the average worker brings
_MOST_WORKERS = 100  # of whom that is computed
_TRIAL = 5  # answers before a worker may be declined: nothing is known of a new one
_MOST_TASKS = 128  # on which it is computed, those of the largest entropy


class Router:
    """Hand tasks to workers, one at a time or in batches, and learn from their answers.

    Every answer updates what is believed of its task at once; `refit` fits model and workers to all answers. Call it
    whenever there is time, such as after every hundred answers or in another process.

    Parameters
    ----------
    tasks : column
        The ids of all tasks.
    classes : column
        The ids of all classes.
    X : features, optional
        One row per task, for the model.
    learner : MBEM, aggregator or classifier, optional
        What a refit fits; a classifier gets `MBEM` around it. Default: `MBEM`, or `DawidSkene` without X.
    strategy : Strategy, optional
        Which task is worth most. Default: `Information`.
    costs : number or mapping of worker to number, optional
        The price of a worker's label; default 1, also of workers that are not named.
    task_costs : array or mapping of task to number, optional
        What the price is multiplied by for a task; default 1.
    max_labels : int, optional
        Most labels of one task.
    capacity : int or mapping of worker to int, optional
        Most labels of one worker.
    lease_seconds : float
        How long a task that was handed out is not handed out again.
    gold : mapping of task to class, optional
        Tasks whose true label is known: never bought, but given to workers who are tested.
    gold_tests : int
        Most gold questions of a worker who would otherwise be declined.
    may_decline : bool
        Whether `next` may answer None to a worker whose labels are worth too little.
    budget : float, optional
        Stop when so much is spent.
    max_risk : float, optional
        Stop when the average task's label is wrong with at most this probability.
    min_gain : float, optional
        Stop when the average worker's best answer tells less than so many nats per unit of money.
    temperature : float
        What log-posteriors of a refit are divided by: a posterior is too sure of tasks that it has chosen itself.
    random_share : float
        How often a random task without a label is handed out instead of the best: a fair sample, by which the
        probabilities of a model that was trained on chosen tasks are calibrated. Not used without X.
    random_state : int
        Breaks ties.
    clock : callable
        Returns the time in seconds, for the leases.

    Attributes
    ----------
    model_ : fitted estimator or None
        Of the last refit in this process.
    spent : float
        The price of all answers so far.

    Examples
    --------
    >>> import labelonce as lo
    >>> router = lo.routing.Router(["a", "b", "c"], ["cat", "dog"], random_state=0)
    >>> task = router.next("ann")
    >>> router.add(task, "ann", "cat")
    >>> router.next("bob") == task
    False
    >>> router.belief.mean_risk < 0.5, router.stop
    (True, None)
    """

    def __init__(
        self,
        tasks: Any,
        classes: Any,
        *,
        X: Any = None,
        learner: Any = None,
        strategy: Strategy | None = None,
        costs: float | Mapping[Any, float] = 1.0,
        task_costs: Any = None,
        max_labels: int | None = None,
        capacity: int | Mapping[Any, int] | None = None,
        lease_seconds: float = 3600.0,
        gold: Mapping[Any, Any] | None = None,
        gold_tests: int = 10,
        may_decline: bool = False,
        budget: float | None = None,
        max_risk: float | None = None,
        min_gain: float | None = None,
        temperature: float = 2.0,
        random_share: float = 0.05,
        random_state: int = 0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.tasks: Ids = _ids.table_of(tasks, "tasks")
        self.classes: Ids = _ids.table_of(classes, "classes")
        self.workers: list[Any] = []
        if X is not None and (n_rows := count_rows(X)) != len(self.tasks):
            raise ValueError(f"X must have one row per task, {len(self.tasks)}; got {n_rows}.")
        self._estimator = estimator_of(learner, X)
        self.strategy = Information() if strategy is None else strategy
        if not isinstance(self.strategy, Strategy):
            raise TypeError(f"strategy must be one of labelonce.routing, such as Random(); got {show(strategy)}.")
        self.costs, self.capacity = _check_prices(costs), _check_capacity(capacity)
        self.max_labels = None if max_labels is None else check_int(max_labels, "max_labels", 1)
        self.gold_tests = check_int(gold_tests, "gold_tests", 0)
        self.may_decline = may_decline
        self.budget = None if budget is None else check_number(budget, "budget", 0.0)
        self.max_risk = None if max_risk is None else check_number(max_risk, "max_risk", 0.0, 1.0)
        self.min_gain = None if min_gain is None else check_number(min_gain, "min_gain", 0.0)
        self.temperature = check_number(temperature, "temperature", 1e-3)
        self._clock = clock
        self._task_codes = {task: code for code, task in enumerate(self.tasks.tolist())}
        self._class_codes = {one: code for code, one in enumerate(self.classes.tolist())}
        self._worker_codes: dict[Any, int] = {}
        seed = check_int(random_state, "random_state", 0)
        prices = check_costs(task_costs, self.tasks, "task_costs")
        self.state = State(len(self.classes), X, prices, self._gold_codes(gold), seed)
        self._gold_order: Codes = self.state.rng.permutation(np.flatnonzero(self.state.gold >= 0)).astype(np.int32)
        share = 0.0 if X is None else check_number(random_share, "random_share", 0.0, 1.0)
        self._random = RandomTasks.draw(self.state, share)
        self._leases = Leases(check_number(lease_seconds, "lease_seconds", 0.0))
        self._answered: list[array[int]] = []
        self._pairs: set[tuple[int, int]] = set()
        self._skipped: dict[int, set[int]] = {}  # tasks by worker
        self.spent = 0.0
        self.model_: Any = None
        self._exponent: float | None = None  # of the model, once it was asked for
        self._everything: Codes = np.arange(len(self.tasks), dtype=np.int32)
        self._pool: Pool | None = None
        self._stale = 0
        self._average = self._gain = 0.0
        self.strategy.refitted(self.state)

    @property
    def belief(self) -> Belief:
        """What is believed of every task, in the order of `tasks`."""
        return self.state.belief

    def next(self, worker: Hashable, *, among: Any = None) -> Any:
        """Return the task that this worker should label next, or None if there is none for it.

        None: nothing is left, `stop` says why to stop, the worker has reached its capacity, or it is declined. The task
        is not handed out again until the worker answers or its lease is over.

        Parameters
        ----------
        worker : id
        among : column of task ids, optional
            The tasks that this worker can label; default: all.
        """
        code = self._worker_code(worker)
        self._free_expired()
        if self.stop is not None or len(self._answered[code]) >= self._capacity_of(worker):
            return None
        able = None if among is None else self._task_codes_of(among)
        if self.strategy.tests(self.state, code) and (question := self._gold_question(code, able)) is not None:
            return question
        task = self._choose(code, decline=self.may_decline, able=able)
        if task is None:
            return self._gold_question(code, able) if self.may_decline else None
        self._leases.hand_out(task, code, self._clock())
        return self.tasks[task]

    def next_batch(
        self, n: int, *, workers: Sequence[Any] | None = None, each: int | None = None
    ) -> list[tuple[Any, Any]]:
        """Return up to `n` pairs of a task and the worker who should label it.

        Here the router chooses among the workers: those who would bring least get nothing.

        Parameters
        ----------
        n : int
        workers : sequence, optional
            Who is free; default: everybody who has labelled before.
        each : int, optional
            Most tasks of one worker; default: an equal share for everybody who is worth asking.
        """
        check_int(n, "n", 1)
        free = list(self.workers) if workers is None else list(workers)
        if not free:
            raise ValueError("next_batch must know who is free; got no worker so far. Give workers=[...].")
        self._free_expired()
        codes = np.array([self._worker_code(worker) for worker in free], dtype=np.int32)
        able = self._worth_asking(codes)
        each = math.ceil(n / max(1, len(able))) if each is None else check_int(each, "each", 1)
        found: list[tuple[Any, Any]] = []
        for _ in range(each):
            if self.stop is not None:
                break
            for code in able[: n - len(found)]:
                room = self._capacity_of(self.workers[code]) - len(self._answered[code])
                room -= sum(1 for _, worker in found if worker == self.workers[code])
                task = self._choose(code, decline=False) if room > 0 else None
                if task is not None:
                    self._leases.hand_out(task, code, self._clock())
                    found.append((self.tasks[task], self.workers[code]))
        return found

    def add(self, task: Hashable, worker: Hashable, label: Hashable) -> None:
        """Take an answer, asked for or not; a worker may label a task once."""
        task_code = self._code(task, self._task_codes, "task", self.tasks)
        label_code = self._code(label, self._class_codes, "label", self.classes)
        code = self._worker_code(worker)
        if (task_code, code) in self._pairs:
            raise ValueError(f"a worker must label a task once; got worker {show(worker)} on task {show(task)} again.")
        self._pairs.add((task_code, code))
        self.state.add(task_code, code, label_code)
        self._answered[code].append(task_code)
        self.spent += self._cost_of(code) * float(self.state.prices[task_code])
        self.strategy.added(self.state, task_code, code, label_code)
        self._stale += 1
        given_back = self._leases.give_back(task_code, code)
        if self._pool is not None:
            self._pool.answered(task_code, code)
            if given_back or task_code not in self._leases:
                self._pool.set_free(task_code, free=self._is_open(task_code))

    def refit(self) -> None:
        """Fit all answers, and replace what is believed of tasks and workers."""
        if len(set(self.state.label)) < 2:
            raise ValueError(
                f"refit must have labels of two classes; got {len(self.state.label)} labels of "
                f"{len(set(self.state.label))}. Add more answers first."
            )
        tables = (self.tasks, self.workers, self.classes)
        self.model_ = refit(self.state, self._estimator, tables, self.temperature)
        self.strategy.refitted(self.state)
        self._pool = self._exponent = None

    @property
    def exponent(self) -> float:
        """The power of the model's predictions that is calibrated; found when it is first asked for, in a few fits.

        Above 1 where the model is less sure of a random task than it could be, as one that has learned from hard tasks.
        Predictions to this power, by models that did not see the task, explain the labels of the tasks that were
        labelled at random best. 1 with a learner other than `MBEM`.
        """
        if self._exponent is None:
            self._exponent = exponent_of(self.model_, self.state, self._random.sample(self.state))
        return self._exponent

    def predict_proba(self, X: Any) -> Floats:
        """Return calibrated P(class) of any tasks by the model of the last refit, (n, n_classes)."""
        if not hasattr(self.model_, "predict_proba"):
            raise ValueError(f"predict_proba must have a model; got {self.model_!r}. Give the router X and call refit.")
        return sharpened(self.model_.predict_proba(X), self.exponent)

    def adopt(self, fit: Fit) -> None:
        """Believe a fit that was made elsewhere, such as in another process, while answers went on arriving."""
        adoption = Adoption(self, fit)
        adoption.compute()
        adoption.finish()
        self._pool = None

    def remove(self, task: Hashable, worker: Hashable) -> Any:
        """Take back a worker's answer, as if it had never been given, and return its label."""
        return _changes.remove(self, task, worker)

    def skip(self, task: Hashable, worker: Hashable, *, undo: bool = False) -> None:
        """Do not offer a task to this worker, who does not want to answer it; `undo`: offer it again."""
        _changes.skip(self, task, worker, undo=undo)

    @property
    def settled(self) -> Ids:
        """The ids of the tasks that need no more labels."""
        closed = self.state.gold < 0
        closed[self._open(self._everything)] = False
        return np.asarray(self.tasks[closed])

    @property
    def stop(self) -> str | None:
        """Why to stop: "budget", "risk" or "gain"; None while it pays to go on."""
        if self.budget is not None and self.spent >= self.budget:
            return "budget"
        if self.max_risk is not None and self.belief.mean_risk <= self.max_risk:
            return "risk"
        if self.min_gain is not None and self.state.n_fitted and self._refreshed() and self._gain < self.min_gain:
            return "gain"
        return None

    def save(self, path: str | Path) -> None:
        """Write everything but X and the learner to one file, whole or not at all."""
        from labelonce.routing._file import save

        save(self, Path(path))

    @classmethod
    def load(
        cls, path: str | Path, *, X: Any = None, learner: Any = None, clock: Callable[[], float] = time.time
    ) -> Router:
        """Return the router in a file that `save` wrote; it continues as the saved one would have.

        X and `learner` are those of the saved router. No pickle is loaded.
        """
        from labelonce.routing._file import load

        return load(Path(path), X=X, learner=learner, clock=clock)

    def _choose(self, worker: int, *, decline: bool, able: Codes | None = None) -> int | None:
        """Return the best free task that a worker is able to label, and take it out of the pool; None if none is."""
        if decline and not self.strategy.accepts(self.state, worker):
            return None
        pool = self._refreshed()
        if able is not None:
            pool = Pool.draw(self.state, self.strategy, self._open(able), self._leased())
        if len(pool.tasks) == 0:
            return None
        had = np.array([*self._answered[worker], *self._skipped.get(worker, ())], dtype=np.int32)
        scores = pool.scores(self.state, self.strategy, worker, had)
        place = int(scores.argmax())
        if scores[place] == -np.inf or (decline and self._is_worth_too_little(worker, pool)):
            return None
        self._stale += 1
        task = self._random_task(worker, able)
        if task is None:
            task = pool.take(place)
        if self._pool is not None:
            self._pool.set_free(task, free=False)
        return task

    def _random_task(self, worker: int, able: Codes | None) -> int | None:
        """Return a random task without a label if it is the turn of one."""
        if not self._random.wanted(self.state):
            return None
        skipped = self._skipped.get(worker, ())
        return self._random.first(self.state, lambda task: task not in self._leases and task not in skipped, able)

    def _task_codes_of(self, among: Any) -> Codes:
        codes = [self._code(task, self._task_codes, "among", self.tasks) for task in np.asarray(among).tolist()]
        return np.unique(np.array(codes, dtype=np.int32))

    def _refreshed(self) -> Pool:
        """Return the pool, drawn anew where it is used up."""
        if self._pool is None or self._pool.used_up:
            tasks = self._open(self._everything)
            self._pool = Pool.draw(self.state, self.strategy, tasks, self._leased())
            self._stale = len(self.tasks)
        self.belief.keep(self._pool.tasks)
        if self._stale > _STALE * len(self._pool.tasks):
            self._stale = 0
            if self.may_decline:
                self._average = self._average_value(self.strategy, self._pool)
            if self.min_gain is not None:
                self._gain = self._average_value(Information(), self._pool)
        return self._pool

    def _use(self, pool: Pool) -> None:
        """Choose from another pool from now on: those of its tasks that are open and not out with anybody."""
        pool.free = np.isin(pool.tasks, self._open(pool.tasks)) & ~np.isin(pool.tasks, self._leased())
        self._pool, self._stale = pool, len(self.tasks)

    def _average_value(self, strategy: Strategy, pool: Pool) -> float:
        """Return what the average worker who has answered would bring with its best task, per unit of money."""
        workers = np.flatnonzero([len(tasks) > 0 for tasks in self._answered]).astype(np.int32)
        workers = workers[:: max(1, -(-len(workers) // _MOST_WORKERS))]
        return float(self._values(strategy, workers, pool).mean()) if len(workers) else 0.0

    def _values(self, strategy: Strategy, workers: Codes, pool: Pool) -> Floats:
        """Return what each worker would bring with its best task, per unit of money."""
        tasks = pool.tasks[pool.free]
        if len(tasks) > _MOST_TASKS:
            tasks = tasks[np.argpartition(-self.belief.entropy(tasks), _MOST_TASKS)[:_MOST_TASKS]]
        return strategy.worker_values(self.state, workers, tasks) / self._costs_of(workers)

    def _is_worth_too_little(self, worker: int, pool: Pool) -> bool:
        """Return whether a worker would bring clearly less than the average one; never of a new one."""
        least = self.strategy.decline_below * self._average
        if least == 0 or self._is_new(worker):
            return False
        own = self.strategy.worker_values(self.state, np.array([worker], dtype=np.int32), pool.tasks[pool.free])
        return bool(own[0] / self._cost_of(worker) < least)

    def _worth_asking(self, workers: Codes) -> list[int]:
        """Return the workers who would bring enough, the best first; all where nobody would."""
        pool = self._refreshed()
        values, least = self._values(self.strategy, workers, pool), self.strategy.decline_below
        least *= self._average_value(self.strategy, pool)
        order = np.argsort(-values, kind="stable")
        accepted = [
            int(workers[place])
            for place in order
            if (values[place] >= least or self._is_new(int(workers[place])))
            and self.strategy.accepts(self.state, int(workers[place]))
        ]
        return accepted or [int(workers[place]) for place in order]

    def _is_new(self, worker: int) -> bool:
        return len(self._answered[worker]) < _TRIAL

    def _leased(self) -> Codes:
        return np.array(list(self._leases.out), dtype=np.int32)

    def _free_expired(self) -> None:
        for task in self._leases.expired(self._clock()):
            if self._pool is not None and self._is_open(task):
                self._pool.set_free(task, free=True)

    def _gold_question(self, worker: int, able: Codes | None) -> Any:
        """Return a gold question that the worker is able to answer and has not, None where it has had enough."""
        asked = [task for task in self._answered[worker] if self.state.gold[task] >= 0]
        if len(asked) >= self.gold_tests and not self.strategy.tests(self.state, worker):
            return None
        for task in self._gold_order if able is None else self._gold_order[np.isin(self._gold_order, able)]:
            if (int(task), worker) not in self._pairs and int(task) not in self._skipped.get(worker, ()):
                return self.tasks[task]
        return None

    def _open(self, tasks: Codes) -> Codes:
        """Return those of the tasks that may have more labels."""
        found = (self.state.gold[tasks] < 0) & ~self.strategy.settled(self.state, tasks)
        if self.max_labels is not None:
            found &= self.state.n_labels[tasks] < self.max_labels
        return np.asarray(tasks[found])

    def _is_open(self, task: int) -> bool:
        return len(self._open(np.array([task], dtype=np.int32))) > 0

    def _worker_code(self, worker: Hashable) -> int:
        if worker not in self._worker_codes:
            _check_same_kind(worker, self.workers[:1] or [worker])
            self._worker_codes[worker] = len(self.workers)
            self.workers.append(worker.item() if isinstance(worker, np.generic) else worker)
            self._answered.append(array("i"))
        return self._worker_codes[worker]

    def _cost_of(self, worker: int) -> float:
        if isinstance(self.costs, Mapping):
            return float(self.costs.get(self.workers[worker], 1.0))
        return self.costs

    def _costs_of(self, workers: Codes) -> Floats:
        return np.array([self._cost_of(int(worker)) for worker in workers])

    def _capacity_of(self, worker: Hashable) -> float:
        most = self.capacity.get(worker) if isinstance(self.capacity, Mapping) else self.capacity
        return math.inf if most is None else most

    def _gold_codes(self, gold: Mapping[Any, Any] | None) -> Codes:
        codes = np.full(len(self.tasks), -1, dtype=np.int32)
        for task, label in (gold or {}).items():
            place = self._code(task, self._task_codes, "gold task", self.tasks)
            codes[place] = self._code(label, self._class_codes, "gold", self.classes)
        return codes

    @staticmethod
    def _code(value: Hashable, codes: dict[Any, int], name: str, ids: Ids) -> int:
        if value not in codes:
            raise ValueError(f"{name} must be among {shorten(ids)}; got {show(value)}.")
        return codes[value]


def _check_same_kind(worker: Any, others: list[Any]) -> None:
    """Raise if a worker's id is neither an integer nor a string, or not like that of the others."""
    if not isinstance(worker, int | str | np.integer) or isinstance(worker, str) != isinstance(others[0], str):
        raise TypeError(
            f"workers must be all integers or all strings; got {show(worker)}, and {show(others[0])} first."
        )


def _check_prices(costs: Any) -> float | Mapping[Any, float]:
    named = costs if isinstance(costs, Mapping) else {"": costs}
    for worker, cost in named.items():
        if check_number(cost, f"the cost of worker {show(worker)}" if worker else "costs", 0.0) == 0:
            raise ValueError(f"costs must be above 0; got {cost!r} for worker {show(worker)}.")
    return costs if isinstance(costs, Mapping) else float(costs)


def _check_capacity(capacity: Any) -> int | Mapping[Any, int] | None:
    if isinstance(capacity, Mapping):
        return {
            worker: check_int(most, f"the capacity of worker {show(worker)}", 0) for worker, most in capacity.items()
        }
    return None if capacity is None else check_int(capacity, "capacity", 0)
