"""The router: who labels what next."""

import math
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from labelonce._messages import show
from labelonce._sklearn import count_rows
from labelonce._types import Ids, Mask
from labelonce._validate import check_int
from labelonce.routing._background_update import BackgroundUpdate
from labelonce.routing._belief import ANYBODY, Belief
from labelonce.routing._file import read, sound, write
from labelonce.routing._limits import Limits, Prices, of_pairs, pairs_of
from labelonce.routing._offers import Offers
from labelonce.routing._refit import Adoption, Fit, estimator_of, fitted
from labelonce.routing._state import State
from labelonce.routing._strategies import strategy_of
from labelonce.routing._strategies._information import Information
from labelonce.routing._strategies._strategy import Strategy


class Router:
    """Hand tasks to workers, one at a time or in batches, and learn from their answers.

    Every answer updates the belief about its task at once; `refit` fits model and workers to all answers. Call it
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
        What a refit fits; a classifier gets `MBEM` around it. Default: `MBEM()`, or `DawidSkene` without X.
    strategy : Strategy, optional
        Which task is worth most. Default: `Information`.
    prices : Prices, optional
        What a label costs. Default: all the same.
    limits : Limits, optional
        When to ask no more. Default: never.
    gold : mapping of task to class, optional
        Tasks whose true label is known: never bought, but given to workers who are tested.
    questions : column, optional
        The ids of several questions about every task, each answered by one of the classes: an answer then has a list
        of labels, in this order, and `belief` a row for every task and question. Check boxes are questions whose
        classes are no and yes. For strategies that ask by information, at random or by the number of labels; refits are
        made elsewhere and adopted.
    families : mapping of worker to family, optional
        Workers who share mistakes, such as the prompts of one language model; those without one, such as people, do
        not. A second answer of a family to a task counts for little, is worth little, and a refit is by `JudgePanel`.
    random_state : int
        Breaks ties.
    clock : callable
        Returns the time in seconds, for the leases.

    Attributes
    ----------
    tasks, classes, workers : ids
        Workers in the order in which they came.
    state : State
        What is known, in codes: what strategies look at.
    model_ : fitted estimator or None
        Of the last refit in this process.

    Examples
    --------
    >>> import labelonce as lo
    >>> router = lo.routing.Router(["a", "b", "c"], ["cat", "dog"], random_state=0)
    >>> task = router.next("ann")
    >>> router.add(task, "ann", "cat")
    >>> router.next("bob") == task
    False
    >>> router.belief.mean_risk < 0.5, router.spent, router.stop
    (True, 1.0, None)
    """

    def __init__(
        self,
        tasks: Any,
        classes: Any,
        *,
        X: Any = None,
        learner: Any = None,
        strategy: Strategy | None = None,
        prices: Prices | None = None,
        limits: Limits | None = None,
        gold: Mapping[Any, Any] | None = None,
        questions: Any = None,
        families: Mapping[Any, Any] | None = None,
        random_state: int = 0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.limits, self.strategy = limits or Limits(), Information() if strategy is None else strategy
        if not isinstance(self.strategy, Strategy):
            raise TypeError(f"strategy must be one of labelonce.routing, such as Random(); got {show(strategy)}.")
        if questions is not None and not self.strategy.takes_questions:
            raise ValueError(f"strategy must take several questions, as Information() does; got {show(strategy)}.")
        seed = check_int(random_state, "random_state", 0)
        known: Any = {"prices": prices, "gold": gold, "questions": questions, "families": families}
        self.state = State(tasks, classes, X=X, seed=seed, **known)
        self.tasks, self.classes, self.workers = self.state.tasks, self.state.classes, self.state.workers
        if X is not None and (n_rows := count_rows(X)) != self.state.n_tasks:
            raise ValueError(f"X must have one row per task, {self.state.n_tasks}; got {n_rows}.")
        self._estimator = estimator_of(learner, X, families=families)
        self._prices, self._seed = prices or Prices(), seed
        self._offers = Offers(self.state, self.strategy, self.limits, clock)
        self.model_: Any = None

    @property
    def belief(self) -> Belief:
        """The beliefs about every task, P(class), in the order of `tasks`."""
        return self.state.belief

    @property
    def spent(self) -> float:
        """The price of all answers so far."""
        return self.state.spent

    @property
    def answers(self) -> tuple[Ids, Ids, Ids]:
        """The task, worker and label ids of all answers, in the order in which they came."""
        return self.state.answers_by_id()

    @property
    def open(self) -> Mask:
        """Which tasks may have more labels, in the order of `tasks`."""
        everything = np.arange(self.state.n_tasks, dtype=np.int32)
        return np.isin(everything, self._offers.open_among(everything), kind="table")

    @property
    def settled(self) -> Ids:
        """The ids of the tasks that need no more labels, gold aside."""
        return np.asarray(self.tasks[~self.open & (self.state.gold < 0)])

    @property
    def stop(self) -> str | None:
        """Why to stop: "budget", "risk" or "gain"; None while it pays to go on."""
        limits = self.limits
        if limits.budget is not None and self.spent >= limits.budget:
            return "budget"
        if limits.max_risk is not None and self.belief.mean_risk <= limits.max_risk:
            return "risk"
        if limits.min_gain is not None and self.state.answers.n_fitted and self._offers.gain() < limits.min_gain:
            return "gain"
        return None

    def is_open(self, task: Hashable) -> bool:
        """Return whether a task may have more labels."""
        return self._offers.is_open(self.state.task_code(task))

    def has_answered(self, task: Hashable, worker: Hashable) -> bool:
        """Return whether a worker has labelled a task."""
        return self.state.task_code(task) in self.state.answers.of(self.state.known_worker(worker))

    def value(self, task: Hashable, worker: Hashable) -> float:
        """Return the expected information of a worker's answer about a task, in nats."""
        place = np.array([self.state.task_code(task)])
        return float(self.state.information(self.state.known_worker(worker), place)[0])

    def most_informative(self, n: int) -> Ids:
        """Return the ids of up to `n` open tasks that gain most from an average worker's answer, best first."""
        tasks = np.flatnonzero(self.open).astype(np.int32)
        return np.asarray(self.tasks[tasks[np.argsort(-self.state.information(ANYBODY, tasks), kind="stable")[:n]]])

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
        code, offers = self.state.worker_code(worker), self._offers
        offers.end_leases()
        if self.stop is not None or self._room(code) <= 0:
            return None
        able = None
        if among is not None:
            codes = [self.state.task_code(task, "among") for task in np.asarray(among).tolist()]
            able = np.unique(np.array(codes, dtype=np.int32))
        task = offers.gold_question(code, able) if self.strategy.tests(self.state, code) else None
        if task is None:
            task = offers.choose(code, decline=self.limits.may_decline, able=able)
        if task is None and self.limits.may_decline:
            task = offers.gold_question(code, able)
        return None if task is None else self.tasks[task]

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
        self._offers.end_leases()
        able = self._offers.worth_asking(np.array([self.state.worker_code(worker) for worker in free], dtype=np.int32))
        each = math.ceil(n / max(1, len(able))) if each is None else check_int(each, "each", 1)
        found: list[tuple[Any, Any]] = []
        for turn in range(each):
            if self.stop is not None:
                break
            for code in able[: n - len(found)]:
                task = self._offers.choose(code, decline=False) if self._room(code) > turn else None
                if task is not None:
                    found.append((self.tasks[task], self.workers[code]))
        return found

    def add(self, task: Hashable, worker: Hashable, label: Any) -> None:
        """Take an answer, asked for or not; a worker may label a task once."""
        task_code, labels = self.state.task_code(task), self.state.label_codes(label)
        code = self.state.worker_code(worker)
        if task_code in self.state.answers.of(code):
            raise ValueError(f"a worker must label a task once; got worker {show(worker)} on task {show(task)} again.")
        self.state.add(task_code, code, labels)
        self._offers.answered(task_code, code)

    def remove(self, task: Hashable, worker: Hashable) -> Any:
        """Take back a worker's answer, as if it had never been given, and return its label.

        Where the last fit knew it, what it said is taken out of the belief; a new fit forgets it altogether.
        """
        if not self.has_answered(task, worker):
            raise ValueError(
                f"an answer must be there to be removed; got none of worker {show(worker)} on {show(task)}."
            )
        task_code, code = self._pair(task, worker)
        labels = self.state.remove(task_code, code)
        self.strategy.refitted(self.state)
        self._offers.look_at(task_code)
        return self.state.label_of(labels)

    def is_free(self, task: Hashable, worker: Hashable) -> bool:
        """Return whether no worker has a lease on a task, and this worker has neither labelled nor skipped it."""
        place = self.state.task_code(task)
        return not self._offers.is_out(place) and place not in self.state.had(self.state.known_worker(worker))

    def skip(self, task: Hashable, worker: Hashable, *, undo: bool = False) -> None:
        """Do not offer a task to this worker, who does not want to answer it; `undo`: offer it again."""
        self.state.skip(*self._pair(task, worker), undo=undo)
        self._offers.give_back(*self._pair(task, worker))

    def hand_out(self, task: Hashable, worker: Hashable, *, age: float = 0.0) -> None:
        """Lease a task to a worker who has asked for this one, `age` seconds ago."""
        self._offers.hand_out(*self._pair(task, worker), age)

    def give_back(self, task: Hashable, worker: Hashable) -> None:
        """End the lease of a task if it is this worker's, without an answer."""
        self._offers.give_back(*self._pair(task, worker))

    def holds(self, task: Hashable, worker: Hashable) -> bool:
        """Return whether a worker has a lease on a task that has not expired."""
        return self._offers.holds(*self._pair(task, worker))

    def refit(self) -> None:
        """Fit all answers, and replace the beliefs about tasks and workers."""
        if self.state.questions is not None:
            got = f"got {self.state.n_questions}. Fit the answers elsewhere, and adopt the fit"
            raise ValueError(f"refit must have one question per task; {got}.")
        labels = self.state.answers.rows().label
        if (n_classes := len(np.unique(labels))) < 2:
            got = f"got {len(labels)} labels of {n_classes}. Add more answers first"
            raise ValueError(f"refit must have labels of two classes; {got}.")
        self.model_, fit = fitted(self.state, self._estimator)
        self.adopt(fit)

    def adopt(self, fit: Fit) -> None:
        """Take over a fit that was made elsewhere, such as in another process, while answers arrived."""
        job = self.adoption(fit)
        job.compute()
        job.finish()
        self._offers.use(None)

    def adoption(self, fit: Fit) -> BackgroundUpdate:
        """Return the work of taking over a fit, for another thread, while tasks are handed out and answers arrive.

        It cannot be finished where an answer was taken back meanwhile: then ask for it again.
        """
        adoption = Adoption(self.state, fit)

        def finish() -> bool:
            if done := adoption.finish():
                self._offers.renew()
            return done

        return BackgroundUpdate(adoption.compute, finish)

    def drawing(self) -> BackgroundUpdate | None:
        """Return the work of finding the tasks that are worth most, for another thread, None where it is not due."""
        return self._offers.drawing()

    def save(self, path: str | Path) -> None:
        """Write everything but X and the learner to one file, whole or not at all."""
        state = self.state
        options = {
            "tasks": state.tasks,
            "classes": state.classes,
            "questions": None if state.questions is None else state.questions.tolist(),
            "strategy": self.strategy.to_dict(),
            "limits": self.limits.saved(),
            "costs": pairs_of(self._prices.costs),
            "prices": state.prices,
            "gold": state.gold,
            "families": pairs_of(state.families),
            "random_state": self._seed,
        }
        write(options | state.saved() | self._offers.saved(), Path(path))

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        X: Any = None,
        learner: Any = None,
        strategy: Strategy | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Return the router in a file that `save` wrote; it continues as the saved one would have.

        X and `learner` are those of the saved router, and so is `strategy` where it is one of your own. No pickle is
        loaded.
        """
        found = read(Path(path))
        with sound(Path(path), found):
            saved = strategy_of(**found["strategy"]) if strategy is None else strategy
            return cls._of_file(found, X=X, learner=learner, strategy=saved, clock=clock)

    @classmethod
    def _of_file(cls, found: dict[str, Any], **given: Any) -> Self:
        """Return the router of what was read, and of what is not in a file."""
        tasks, gold = found["tasks"], found["gold"]
        router = cls(
            tasks,
            found["classes"],
            prices=Prices(of_pairs(found["costs"]), found["prices"]),
            limits=Limits.of_file(found["limits"]),
            gold={tasks[task]: found["classes"][gold[task]] for task in np.flatnonzero(gold >= 0)},
            questions=found["questions"],
            families=of_pairs(found.get("families") or []),
            random_state=found["random_state"],
            **given,
        )
        router.state.restore(found)
        router._offers.restore(found)
        router.strategy.refitted(router.state)
        return router

    def _pair(self, task: Hashable, worker: Hashable) -> tuple[int, int]:
        return self.state.task_code(task), self.state.worker_code(worker)

    def _room(self, worker: int) -> float:
        """Return how many more labels a worker may give."""
        return self.limits.capacity_of(self.workers[worker]) - len(self.state.answers.of(worker))
