"""A running project in memory: who has which task, what every answer changed, and how far it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable
from itertools import pairwise
from typing import Any, Protocol

import pyarrow as pa

from labelonce._types import Codes
from labelonce.service._fit import Found
from labelonce.service._outlook import STEP
from labelonce.service._project import Project
from labelonce.service._store import Lease, News, Stored

_LITTLE = 0.5  # tasks, or boxes, that a hundred more labels would make right, below which it is time to stop


class Job(Protocol):
    """Work for another thread: `compute` changes nothing that others see, `finish` takes a moment."""

    def compute(self) -> None:
        """Do what takes long."""

    def finish(self) -> bool:
        """Make it count; False where it must be computed again."""


class Live(ABC):
    """What is known of the tasks and of who labels them, fed from the answers of a project, never waiting for anything.

    Attributes
    ----------
    found : Found or None
        The newest fit.
    n_given, n_skipped : Counter
        Labels and skips by worker.
    n_labels : int
        All labels.
    """

    def __init__(self, project: Project) -> None:
        self.tasks, self.settings = project.tasks, project.settings
        self.found: Found | None = None
        self.n_given: Counter[str] = Counter()
        self.n_skipped: Counter[str] = Counter()
        self.n_labels = 0
        self._newest = 0  # the largest number of an answer that was taken
        self._out: dict[str, str] = {}  # the task that each worker is looking at
        self._worker_of: dict[str, str] = {}  # and who is looking at each of these tasks

    def next(self, worker: str) -> str | None:
        """Return the task that a worker should label now: the one it is looking at, else the best for it."""
        held = self.held(worker)
        if held is not None:
            return held
        self.give_back(worker)
        found = self._choose(worker)
        if found is not None:
            self._look(worker, found)
        return found

    def choose(self, worker: str, n: int) -> list[str]:
        """Return the best tasks for a worker, at most `n`, which are offered to nobody else until `put_back`."""
        found: list[str] = []
        while len(found) < n and (task := self._choose(worker)) is not None:
            found.append(task)
        return found

    def put_back(self, worker: str, tasks: Iterable[str]) -> None:
        """Offer tasks again that were chosen for a worker."""
        for task in tasks:
            self._give_back(task, worker)

    def hear(self, news: News) -> None:
        """Take what is new: answers given and taken back, and who has which task; what is known changes nothing."""
        known = self._newest
        for row in news.answers:
            if row.undone_at is None and row.id > known:
                self.take(row)
            elif row.undone_at is not None and row.id <= known:
                self.undo(row)
        for lease in news.leases:
            self.lease(lease)

    def lease(self, lease: Lease) -> None:
        """Note which task is out with a worker; whoever had it before has it no more."""
        self.give_back(lease.worker)
        if lease.task in self.tasks.place and lease.seconds > 0:
            self.give_back(self._worker_of.get(lease.task, ""))
            self._hand_out(lease.task, lease.worker, lease.seconds)
            self._look(lease.worker, lease.task)

    def offer_again(self, row: Stored) -> None:
        """Give the task of an answer that was taken back to the same worker next, unless somebody else has it."""
        other = self._worker_of.get(row.task, row.worker)
        if row.task in self.tasks.place and (other == row.worker or not self._holds(row.task, other)):
            self.lease(Lease(row.worker, row.task, self.settings.lease_seconds))

    def held(self, worker: str) -> str | None:
        """Return the task that a worker is looking at."""
        task = self._out.get(worker)
        return task if task is not None and self._holds(task, worker) else None

    def give_back(self, worker: str) -> None:
        """Note that a worker is looking at nothing."""
        task = self._look_away(worker)
        if task is not None:
            self._give_back(task, worker)

    def take(self, row: Stored) -> None:
        """Take a new answer."""
        self._newest = max(self._newest, row.id)
        if row.task not in self.tasks.place:  # of a task that was taken out of the file since
            return
        if row.label is None:
            self._skip(row.task, row.worker, undo=False)
            self.n_skipped[row.worker] += 1
        elif self.is_label(row.label):
            self._add(row.task, row.worker, row.label)
            self.n_given[row.worker] += 1
            self.n_labels += 1
        if self._out.get(row.worker) == row.task:
            self._look_away(row.worker)

    def undo(self, row: Stored) -> None:
        """Take an answer back."""
        if row.task not in self.tasks.place:
            return
        if row.label is None:
            self._skip(row.task, row.worker, undo=True)
            self.n_skipped[row.worker] -= 1
        elif self.is_label(row.label):
            self._remove(row.task, row.worker, row.label)
            self.n_given[row.worker] -= 1
            self.n_labels -= 1

    def progress(self) -> dict[str, Any]:
        """Return how far the project is."""
        return {
            "tasks": len(self.tasks),
            "multilabel": self.settings.multilabel,
            "has_images": self.tasks.images is not None,
            "labelled": int((self.labels_per_task > 0).sum()),
            "settled": self.n_settled,
            "labels": self.n_labels,
            "skips": self.n_skipped.total(),
            "workers": sum(1 for given in self.n_given.values() if given),
            "expected_accuracy": self.expected_accuracy,
            "stop": self.stop,
            "fit": None if self.found is None else self.found.number,
            "fitted_labels": self.n_fitted,
            "outlook": self._outlook(),
            "unreadable": [] if self.found is None else self.found.about.get("unreadable", []),
            "doubts": [] if self.found is None else self.found.about.get("doubts", []),
        }

    def workers(self, with_link: Collection[str] = ()) -> list[dict[str, Any]]:
        """Return everybody who has answered or has a link: labels, skips, skill with its interval, and flags."""
        known = {} if self.found is None else self.found.about["workers"]
        everybody = dict.fromkeys([*self.n_given, *self.n_skipped, *self._out, *with_link])
        return [
            {
                "worker": worker,
                "labels": self.n_given[worker],
                "skips": self.n_skipped[worker],
                "looking_at": self._out.get(worker),
                "has_link": worker in with_link,
                "known": self.known_answers(worker),
            }
            | {name: known.get(worker, {}).get(name) for name in ("skill", "low", "high")}
            | {"flags": known.get(worker, {}).get("flags", [])}
            for worker in everybody
        ]

    @property
    def n_decisions(self) -> int:
        """How many labels are to be found: one per task, with check boxes one per box."""
        return len(self.tasks) * (len(self.settings.classes) if self.settings.multilabel else 1)

    def known_answers(self, worker: str) -> tuple[int, int]:  # noqa: ARG002  # by default none are known
        """Return how many tasks with a known label a worker has labelled, and how many of them rightly."""
        return (0, 0)

    def known_label(self, task: str) -> str | None:  # noqa: ARG002  # by default none are known
        """Return the true label of a task where it is known."""
        return None

    def finished(self, worker: str) -> bool:
        """Return whether a worker has answered every task."""
        return self.n_given[worker] + self.n_skipped[worker] >= len(self.tasks)

    def drawing(self) -> Job | None:
        """Return the work of looking for the tasks that are worth most among all, None where it is not due."""
        return None

    def adopted(self, found: Found) -> None:
        """Take note that a newer fit is believed."""
        self.found = found

    @abstractmethod
    def adoption(self, found: Found) -> Job:
        """Return the work of believing a newer fit, and on top of it the answers that it did not know."""

    @abstractmethod
    def is_open(self, task: str) -> bool:
        """Return whether a task needs more labels."""

    @abstractmethod
    def is_label(self, label: str) -> bool:
        """Return whether a label, as it is stored, is one of this project."""

    @abstractmethod
    def labels(self, start: int, end: int) -> list[dict[str, Any]]:
        """Return the labels found so far of some tasks, with their confidence."""

    @abstractmethod
    def labels_table(self) -> pa.Table:
        """Return the labels found so far of all tasks, with their confidence."""

    @property
    @abstractmethod
    def labels_per_task(self) -> Codes:
        """How many labels each task has."""

    @property
    @abstractmethod
    def n_settled(self) -> int:
        """How many tasks need no more labels."""

    @property
    @abstractmethod
    def n_fitted(self) -> int:
        """How many of the labels the newest fit knew."""

    @property
    @abstractmethod
    def expected_accuracy(self) -> float:
        """The expected share of right labels."""

    @property
    @abstractmethod
    def stop(self) -> str | None:
        """Why to stop, None while it pays to go on."""

    @abstractmethod
    def _choose(self, worker: str) -> str | None: ...

    @abstractmethod
    def _holds(self, task: str, worker: str) -> bool: ...

    @abstractmethod
    def _hand_out(self, task: str, worker: str, seconds: float) -> None: ...

    @abstractmethod
    def _give_back(self, task: str, worker: str) -> None: ...

    @abstractmethod
    def _add(self, task: str, worker: str, label: str) -> None: ...

    @abstractmethod
    def _remove(self, task: str, worker: str, label: str) -> None: ...

    @abstractmethod
    def _skip(self, task: str, worker: str, *, undo: bool) -> None: ...

    def _look(self, worker: str, task: str) -> None:
        self._out[worker], self._worker_of[task] = task, worker

    def _look_away(self, worker: str) -> str | None:
        task = self._out.pop(worker, None)
        if task is not None and self._worker_of.get(task) == worker:  # not after the lease went to somebody else
            del self._worker_of[task]
        return task

    def _outlook(self) -> dict[str, Any] | None:
        """Return what the next hundred labels are expected to bring, as the newest fit saw it, and when to stop."""
        if self.found is None:
            return None
        steps = self.found.about["outlook"]
        gains = [(after["accuracy"] - before["accuracy"]) * self.n_decisions for before, after in pairwise(steps)]
        spent = next((place for place, gain in enumerate(gains) if gain < _LITTLE), None)
        target = 1 - self.settings.max_risk if self.settings.max_risk else None
        reached = [step["labels"] for step in steps if target is not None and step["accuracy"] >= target]
        return {
            "next": STEP,
            "made_right": gains[0],
            "steps": steps,
            "worth_it_for": None if spent is None else steps[spent]["labels"],
            "target": target,
            "target_after": reached[0] if reached else None,
        }
