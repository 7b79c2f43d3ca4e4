"""A project in memory, routed: a `Router` that is fed from the answers of a project."""

from __future__ import annotations

import time
from itertools import islice
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from labelonce._types import Codes
from labelonce.routing import Information, Limits, Router
from labelonce.routing._strategies import strategy_of
from labelonce.service._fit import Found
from labelonce.service._live import Job, Live
from labelonce.service._project import Project
from labelonce.service._settings import Settings
from labelonce.service._store import Stored

_MOST_WAITING = 200  # tasks that wait for a second label, that are looked at for one worker
_UNPROVED = 2  # labels that a task must have to be settled, until a fit without doubts


class LiveRouter(Live):
    """A project in which every task has one true class, and `Router` says who labels what next."""

    def __init__(self, project: Project, answers: list[Stored], found: Found | None) -> None:
        super().__init__(project)
        settings = project.settings
        self.known = project.known_labels()
        self._alone: dict[str, None] = {}  # tasks of the overlap that have one label
        self._told: dict[str, dict[str, bool]] = {}  # tasks with a known label, by worker, and who was right
        self.router = Router(
            self.tasks.ids,
            self._answers(),
            questions=self._questions(),
            gold={self._id(task): label for task, label in self.known.items()} or None,
            strategy=_strategy(settings),
            limits=_limits(settings),
            random_state=settings.seed,
            clock=time.monotonic,
        )
        with self.router.state.at_once():
            for row in answers:
                self.take(row)
        if found is not None:
            self._trust(found)
            self.router.adopt(found.fit)
            self.found = found
        if (job := self.drawing()) is not None:  # now, since nobody waits yet
            job.compute()
            job.finish()

    def is_open(self, task: str) -> bool:
        """Return whether a task needs more labels, or its labels tell about those who gave them."""
        return task in self._alone or task in self.known or self.router.is_open(self._id(task))

    def is_label(self, label: str) -> bool:
        """Return whether a label is one of the classes."""
        return label in self.settings.classes

    def adoption(self, found: Found) -> Job:
        """Return the work of believing a newer fit, and on top of it the answers that it did not know."""
        self._trust(found)
        return self.router.adoption(found.fit)

    def drawing(self) -> Job | None:
        """Return the work of looking for the tasks that are worth most among all, None where it is not due."""
        return self.router.drawing()

    def labels(self, start: int, end: int) -> list[dict[str, Any]]:
        """Return the labels found so far of some tasks, with their confidence."""
        return [row | {"task": str(row["task"])} for row in self._table(slice(start, end)).to_pylist()]

    def labels_table(self) -> pa.Table:
        """Return the labels found so far of all tasks, with their confidence."""
        return self._table(slice(None))

    def beliefs_of(self, tasks: list[str]) -> list[tuple[str, float]]:
        """Return the most probable label of each task and its probability."""
        places = np.array([self.tasks.place[task] for task in tasks], dtype=np.int32)
        posterior = self.router.belief.posterior(places)
        best = zip(posterior.argmax(axis=1).tolist(), posterior.max(axis=1).tolist(), strict=True)
        return [(self.settings.classes[code], share) for code, share in best]

    @property
    def labels_per_task(self) -> Codes:
        """How many labels each task has."""
        return self.router.state.n_labels

    @property
    def n_settled(self) -> int:
        """How many tasks need no more labels."""
        return int((~self.router.open).sum())

    @property
    def n_fitted(self) -> int:
        """How many of the labels the newest fit knew."""
        return self.router.state.answers.n_fitted

    @property
    def expected_accuracy(self) -> float:
        """The expected share of right labels, or boxes."""
        return 1 - self.router.belief.mean_risk

    @property
    def stop(self) -> str | None:
        """Why to stop, None while it pays to go on."""
        return self.router.stop

    def _answers(self) -> list[str]:
        """Return what the router takes as classes."""
        return list(self.settings.classes)

    def _questions(self) -> list[str] | None:
        """Return what the router takes as questions about every task."""
        return None

    def _answer(self, label: str) -> Any:
        """Return what a stored label is to the router."""
        return label

    def _choose(self, worker: str) -> str | None:
        if self.stop is None and (special := self._known_for(worker) or self._second_for(worker)):
            self.router.hand_out(self._id(special), worker)
            return special
        found = self.router.next(worker)
        return None if found is None else str(found)

    def _known_for(self, worker: str) -> str | None:
        """Return a task with a known label, where this worker's share of them is due."""
        told = len(self._told.get(worker, ()))
        if not self.known or told >= self.settings.known_share * (self.n_given[worker] + 1):
            return None
        free = (task for task in self.known if self.router.is_free(self._id(task), worker))
        return min(free, key=lambda task: _chance(f"{worker} {task}"), default=None)

    def _second_for(self, worker: str) -> str | None:
        """Return a task of the overlap that waits for somebody else's label."""
        waiting = islice(self._alone, _MOST_WAITING)
        return next((task for task in waiting if self.router.is_free(self._id(task), worker)), None)

    def known_label(self, task: str) -> str | None:
        """Return the true label of a task where it is known."""
        return self.known.get(task)

    def known_answers(self, worker: str) -> tuple[int, int]:
        """Return how many tasks with a known label a worker has labelled, and how many of them rightly."""
        told = self._told.get(worker, {})
        return len(told), sum(told.values())

    def _trust(self, found: Found) -> None:
        """Let one label settle a task where the fit has something to compare it with, and no doubt about that."""
        if isinstance(self.router.strategy, Information):
            proved = self.settings.learn_from != "nothing" and not found.about.get("doubts")
            self.router.strategy.labels = 1 if proved else _UNPROVED

    def _count(self, task: str) -> None:
        """Note whether a task of the overlap waits for a second label."""
        is_one = self.labels_per_task[self.tasks.place[task]] == 1
        if is_one and task not in self.known and _chance(f"{self.settings.seed} {task}") < self.settings.overlap:
            self._alone[task] = None
        else:
            self._alone.pop(task, None)

    def _holds(self, task: str, worker: str) -> bool:
        return self.router.holds(self._id(task), worker)

    def _hand_out(self, task: str, worker: str, seconds: float) -> None:
        self.router.hand_out(self._id(task), worker, age=self.settings.lease_seconds - seconds)

    def _give_back(self, task: str, worker: str) -> None:
        self.router.give_back(self._id(task), worker)

    def _add(self, task: str, worker: str, label: str) -> None:
        self.router.add(self._id(task), worker, self._answer(label))
        if task in self.known:
            self._told.setdefault(worker, {})[task] = label == self.known[task]
        self._count(task)

    def _remove(self, task: str, worker: str, label: str) -> None:  # noqa: ARG002  # the router knows it
        self.router.remove(self._id(task), worker)
        self._told.get(worker, {}).pop(task, None)
        self._count(task)

    def _skip(self, task: str, worker: str, *, undo: bool) -> None:
        self.router.skip(self._id(task), worker, undo=undo)

    def _table(self, part: slice) -> pa.Table:
        posterior = self.router.belief.posterior(part)
        classes = np.array(self.settings.classes, dtype=object)
        return pa.table(
            {
                "task": pa.array(self.tasks.ids[part]),
                "label": pa.array(classes[posterior.argmax(axis=1)], pa.string()),
                "confidence": posterior.max(axis=1),
                "labels": self.labels_per_task[part],
                "settled": ~self.router.open[part],
            }
        )

    def _id(self, name: str) -> Any:
        return self.tasks.ids[self.tasks.place[name]]


def _chance(name: str) -> float:
    """Return a number from 0 to 1 that is the same in every service."""
    return crc32(name.encode()) / 2**32


def _strategy(settings: Settings) -> Any:
    options = {"risk": settings.settled_risk, "labels": _UNPROVED} if settings.strategy == "Information" else {}
    return strategy_of(settings.strategy, options)


def _limits(settings: Settings) -> Limits:
    return Limits(
        budget=settings.budget or None,
        max_risk=settings.max_risk or None,
        min_gain=settings.min_gain or None,
        max_labels=settings.max_labels or None,
        lease_seconds=settings.lease_seconds,
        may_decline=settings.may_decline,
    )
