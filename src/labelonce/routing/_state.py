"""What is known at one moment: the answers so far, the beliefs about tasks, and the workers."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.special import softmax

from labelonce._kernels import one_coin_confusion
from labelonce._messages import shorten, show
from labelonce._rules import RULES
from labelonce._types import Codes, Floats, Ids, Mask
from labelonce.data import _ids
from labelonce.routing._answers import Answers
from labelonce.routing._belief import ANYBODY, Belief, Crowd
from labelonce.routing._limits import Prices

_FIRST_SKILL = 0.5  # how far from guessing to perfect a worker is, before any fit


class State:
    """What a strategy looks at. Tasks, workers and classes are codes: positions in the tables of ids.

    Attributes
    ----------
    tasks, classes, questions : ids
        `questions` is None where there is one.
    workers : list of ids
        In the order in which they came.
    answers : Answers
    belief : Belief
        About the true label of every task, of all answers so far.
    crowd : Crowd
        What is known of the workers since the last refit.
    predictions : (n_rows, n_classes)
        Of the model alone, at the last refit; uniform where there is no model.
    n_labels : (n_tasks,)
    spent : float
        The price of all answers.
    X : features or None
    prices : (n_tasks,)
        The price of a label of each task, as a multiple of the worker's.
    gold : (n_tasks,)
        The known true class, -1 where it is not known.
    rng : numpy.random.Generator
    """

    def __init__(
        self,
        tasks: Any,
        classes: Any,
        *,
        X: Any = None,
        prices: Prices | None = None,
        gold: Mapping[Any, Any] | None = None,
        questions: Any = None,
        families: Mapping[Any, Any] | None = None,
        seed: int = 0,
    ) -> None:
        self.families = dict(families or {})
        self._asked: dict[Any, Codes] = {}  # of each family, the number of its answers to every task
        self.tasks: Ids = _ids.table_of(tasks, "tasks")
        self.classes: Ids = _ids.table_of(classes, "classes")
        self.questions: Ids | None = None if questions is None else _ids.table_of(questions, "questions")
        self.n_tasks, self.n_classes = len(self.tasks), len(self.classes)
        self.n_questions = 1 if self.questions is None else len(self.questions)
        self._task_codes = {one: code for code, one in enumerate(self.tasks.tolist())}
        self._class_codes = {one: code for code, one in enumerate(self.classes.tolist())}
        self._worker_codes: dict[Any, int] = {}
        self.workers: list[Any] = []
        self.X, self._prices, self.rng = X, prices or Prices(), np.random.default_rng(seed)
        self.prices = self._prices.of_tasks(self.tasks)
        self.gold = self._gold_codes(gold or {})
        uniform = np.full((self.n_tasks * self.n_questions, self.n_classes), 1 / self.n_classes)
        self.belief = Belief(self.with_gold(uniform), self.n_questions)
        self.predictions: Floats = uniform.astype(np.float32)
        skill = 1 / self.n_classes + _FIRST_SKILL * (1 - 1 / self.n_classes)
        average = np.repeat(one_coin_confusion(np.array([skill]), self.n_classes), self.n_questions, axis=0)
        self.crowd = Crowd(np.zeros((0, *average.shape)), average)
        self.answers = Answers(self.n_questions)
        self.n_labels: Codes = np.zeros(self.n_tasks, dtype=np.int32)
        self.spent = 0.0
        self._skipped: dict[int, set[int]] = {}
        self._waits = False  # with beliefs

    def task_code(self, task: Hashable, name: str = "task") -> int:
        """Return the position of a task; one that is not there is an error."""
        return _code(task, self._task_codes, name, self.tasks)

    def worker_code(self, worker: Hashable) -> int:
        """Return the position of a worker, who may be new."""
        if worker not in self._worker_codes:
            first = self.workers[0] if self.workers else worker
            if not isinstance(worker, int | str | np.integer) or isinstance(worker, str) != isinstance(first, str):
                raise TypeError(
                    f"workers must be all integers or all strings; got {show(worker)}, and {show(first)} first."
                )
            self._worker_codes[worker] = len(self.workers)
            self.workers.append(worker.item() if isinstance(worker, np.generic) else worker)
        return self._worker_codes[worker]

    def known_worker(self, worker: Hashable) -> int:
        """Return the position of a worker, `ANYBODY` for a new one."""
        return self._worker_codes.get(worker, ANYBODY)

    def worker_ids(self) -> Ids:
        """Return the ids of the workers as an array."""
        return np.array(self.workers, dtype=object if self.workers and isinstance(self.workers[0], str) else np.int64)

    def label_codes(self, label: Any) -> list[int]:
        """Return the codes of a label: one, or with several questions one for each."""
        labels = [label] if self.questions is None else list(label)
        if len(labels) != self.n_questions:
            raise ValueError(
                f"a label must have one class for each of {self.n_questions} questions; got {show(label)}."
            )
        return [_code(one, self._class_codes, "label", self.classes) for one in labels]

    def label_of(self, codes: Sequence[int]) -> Any:
        """Return the label of such codes."""
        labels = self.classes[list(codes)].tolist()
        return labels[0] if self.questions is None else labels

    def cost_of(self, worker: int) -> float:
        """Return the price of a worker's label, of a task of price 1."""
        return self._prices.of_worker(self.workers[worker])

    def add(self, task: int, worker: int, labels: Sequence[int]) -> None:
        """Take an answer: the class that was given, or one for each question."""
        self.answers.add(task, worker, labels)
        self._count(task, worker, 1)
        if self.gold[task] < 0 and not self._waits:
            self.belief.update(task, self.crowd.chances(worker, labels) ** self.evidence_of(task, worker))

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Take the first answers, by unknown workers, and update the beliefs once at the end."""
        self._waits = not self.families  # what an answer of a family counts depends on those before it
        yield
        if not self._waits:
            return
        self._waits = False
        task, _, label = self.answers.rows()
        shape = (self.n_tasks, self.n_classes)
        scores = np.empty((self.n_tasks, self.n_questions, self.n_classes))
        for place, labels in enumerate(label.reshape(-1, self.n_questions).T):
            votes = np.bincount(task * np.int64(shape[1]) + labels, minlength=shape[0] * shape[1]).reshape(shape)
            scores[:, place] = votes @ np.log(self.crowd.population[place]).T
        rows = softmax(scores, axis=2).reshape(-1, self.n_classes)
        self.belief = Belief(self.with_gold(rows), self.n_questions)

    def remove(self, task: int, worker: int) -> list[int]:
        """Take an answer out, also out of the beliefs, and return its labels."""
        labels = self.answers.remove(task, worker)
        if self.gold[task] < 0:
            self.belief.update(task, self.crowd.chances(worker, labels) ** -self.evidence_of(task, worker))
        self._count(task, worker, -1)
        return labels

    def skip(self, task: int, worker: int, *, undo: bool = False) -> None:
        """Note that a worker does not want a task, or with `undo` that it does."""
        skipped = self._skipped.setdefault(worker, set())
        skipped.discard(task) if undo else skipped.add(task)

    def had(self, worker: int) -> Codes:
        """Return the tasks that a worker has labelled or skipped."""
        return np.array([*self.answers.of(worker), *self._skipped.get(worker, ())], dtype=np.int32)

    def believe(self, belief: Belief, crowd: Crowd, predictions: Floats, is_fitted: Mask, n_rows: int) -> None:
        """Replace the beliefs by those of a fit to the first answers, and add the answers since."""
        self.belief, self.crowd, self.predictions = belief, crowd, predictions
        self.answers.fit(is_fitted, n_rows)
        for task, worker, label in zip(*self.answers.rows(n_rows), strict=True):
            if self.gold[task] < 0:
                belief.update(task, crowd.chances(worker, np.atleast_1d(label)) ** self.evidence_of(task, worker))

    def information(self, workers: int | Codes, tasks: Codes) -> Floats:
        """Return the expected information of a worker's answer about each task, in nats."""
        if isinstance(workers, np.ndarray):
            found = self.belief.information(tasks, np.stack([self.crowd.of(int(worker)) for worker in workers]))
            return np.stack([row * self._news(int(one), tasks) for row, one in zip(found, workers, strict=True)])
        return np.asarray(self.belief.information(tasks, self.crowd.of(workers)) * self._news(workers, tasks))

    def evidence_of(self, task: int, worker: int) -> float:
        """Return the weight of an answer, given those of its family to the same task."""
        asked = self._asked.get(self._family_of(worker))
        return 1.0 if asked is None else _marginal(asked[task] - 1)

    def _news(self, worker: int, tasks: Codes) -> Any:
        """Return the share of a worker's information that its family has not given yet, by task; 1 without a family."""
        family = self._family_of(worker)
        if family is None:
            return 1.0
        asked = self._asked.get(family)
        found = np.ones(len(tasks)) if asked is None else _marginal(asked[tasks])
        return np.where(np.isin(tasks, self.had(worker)), 0.0, found)

    def _family_of(self, worker: int) -> Any:
        return None if worker == ANYBODY or not self.families else self.families.get(self.workers[worker])

    def answers_by_id(self) -> tuple[Ids, Ids, Ids]:
        """Return the tasks, workers and labels of all answers; with several questions one column of labels for each."""
        task, worker, label = self.answers.rows()
        return self.tasks[task], self.worker_ids()[worker], self.classes[label]

    def votes(self, *, fitted: bool = False) -> Codes:
        """Return how often each class was given to each task; with `fitted` in the answers of the last fit alone."""
        task, _, label = self.answers.rows(fitted=fitted)
        found = np.bincount(task * np.int64(self.n_classes) + label, minlength=self.n_tasks * self.n_classes)
        return found.reshape(self.n_tasks, self.n_classes).astype(np.int32)

    def with_gold(self, posterior: Floats) -> Floats:
        """Return a posterior that is sure of the tasks with gold."""
        known = np.flatnonzero(self.gold >= 0)
        result = np.array(posterior, dtype=np.float64)
        result[known] = np.eye(self.n_classes)[self.gold[known]]
        return result

    def saved(self) -> dict[str, Any]:
        """Return what a file must hold, other than the arguments of the constructor."""
        task, worker, label = self.answers.rows()
        return {
            "workers": self.workers,
            "task": task,
            "worker": worker,
            "label": label,
            "fitted": self.answers.is_fitted(),
            "skipped": [[worker, sorted(tasks)] for worker, tasks in self._skipped.items()],
            "posterior": self.belief.posterior(),
            "predictions": self.predictions,
            "confusion": self.crowd.confusion,
            "population": self.crowd.population,
            "rng": self.rng.bit_generator.state,
        }

    def restore(self, found: dict[str, Any]) -> None:
        """Know what `saved` returned."""
        for worker in found["workers"]:
            self.worker_code(worker)
        labels = found["label"].reshape(-1, self.n_questions)
        for task, worker, label in zip(found["task"].tolist(), found["worker"].tolist(), labels.tolist(), strict=True):
            self.answers.add(task, worker, label)
            self._count(task, worker, 1)
        belief, crowd = Belief(found["posterior"], self.n_questions), Crowd(found["confusion"], found["population"])
        self.believe(belief, crowd, found["predictions"], found["fitted"], len(labels))
        self._skipped = {worker: set(tasks) for worker, tasks in found["skipped"]}
        self.rng.bit_generator.state = found["rng"]

    def _count(self, task: int, worker: int, times: int) -> None:
        self.n_labels[task] += times
        self.spent += times * self.cost_of(worker) * float(self.prices[task])
        family = self._family_of(worker)
        if family is not None:
            self._asked.setdefault(family, np.zeros(self.n_tasks, dtype=np.int32))[task] += times

    def _gold_codes(self, gold: Mapping[Any, Any]) -> Codes:
        if gold and self.questions is not None:
            raise ValueError(f"gold must be left out with questions; got that of {len(gold)} tasks.")
        codes = np.full(self.n_tasks, -1, dtype=np.int32)
        for task, label in gold.items():
            codes[self.task_code(task, "gold task")] = _code(label, self._class_codes, "gold", self.classes)
        return codes


def _marginal(asked: Any) -> Any:
    """Return how many independent answers one more is worth after some of the same family, by Kish's effective number.

    >>> [round(_marginal(n), 2) for n in range(3)]
    [1.0, 0.22, 0.1]
    """
    same = RULES.same_family
    return (asked + 1) / (1 + asked * same) - asked / (1 + (asked - 1) * same)


def _code(value: Hashable, codes: dict[Any, int], name: str, ids: Ids) -> int:
    if value not in codes:
        raise ValueError(f"{name} must be among {shorten(ids)}; got {show(value)}.")
    return codes[value]
