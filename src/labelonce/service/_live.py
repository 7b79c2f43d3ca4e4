"""A running project in memory: who has which task, what every answer changed, and how far it is."""

import time
from collections import Counter
from collections.abc import Collection, Iterable
from itertools import islice, pairwise
from typing import Any, Protocol
from zlib import crc32

import numpy as np
import pyarrow as pa

from labelonce._types import Codes
from labelonce.routing import Information, Limits, Router, strategy_of
from labelonce.service._fit import FinishedFit
from labelonce.service._outlook import STEP
from labelonce.service._project import Project
from labelonce.service._settings import Settings
from labelonce.service._store import AnswerRow, Changes, Lease

_LITTLE = 0.5  # tasks, or boxes, that a hundred more labels would make right, below which it is time to stop
_MOST_WAITING = 200  # tasks that wait for a second label, that are looked at for one worker
_UNPROVED = 2  # labels that a task must have to be settled, until a fit without doubts


class Job(Protocol):
    """Work for another thread: `compute` changes nothing that others see, `finish` takes a moment."""

    def compute(self) -> None:
        """Do what takes long."""

    def finish(self) -> bool:
        """Put the result into use; False if it must be computed again."""


class Live:
    """A `Router` that is fed from the answers of a project, and never waits for anything.

    `found` is the newest fit; `n_given` and `n_skipped` count labels and skips by worker, `n_labels` all labels.
    """

    def __init__(self, project: Project, answers: list[AnswerRow], found: FinishedFit | None) -> None:
        self.tasks, self.settings, self.known = project.tasks, project.settings, project.known_labels()
        self.found: FinishedFit | None = None
        self.n_given: Counter[str] = Counter()
        self.n_skipped: Counter[str] = Counter()
        self.n_labels = 0
        self._newest = 0  # the largest number of an answer that was taken
        self._out: dict[str, str] = {}  # the task that each worker is looking at
        self._worker_of: dict[str, str] = {}  # and who is looking at each of these tasks
        self._alone: dict[str, None] = {}  # tasks of the overlap that have one label
        self._told: dict[str, dict[str, bool]] = {}  # tasks with a known label, by worker, and who was right
        self.router = Router(
            self.tasks.ids,
            self._answers(),
            questions=self._questions(),
            gold={self._id(task): label for task, label in self.known.items()} or None,
            strategy=_strategy(self.settings),
            limits=_limits(self.settings),
            random_state=self.settings.seed,
            clock=time.monotonic,
        )
        with self.router.state.at_once():
            for row in answers:
                self.take(row)
        if found is not None:
            self._trust(found)
            self.router.adopt(found.fit)
            self.found = found
        if (job := self.router.drawing()) is not None:  # now, since nobody waits yet
            job.compute()
            job.finish()

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
            self.router.give_back(self._id(task), worker)

    def apply(self, news: Changes) -> None:
        """Apply changes: answers given and undone, and leases; known ones change nothing."""
        known = self._newest
        for row in news.answers:
            if row.undone_at is None and row.id > known:
                self.take(row)
            elif row.undone_at is not None and row.id <= known:
                self.undo(row)
        for lease in news.leases:
            self.lease(lease)

    def lease(self, lease: Lease) -> None:
        """Lease a task to a worker; a lease of another worker on it ends."""
        self.give_back(lease.worker)
        if lease.task in self.tasks.place and lease.seconds > 0:
            self.give_back(self._worker_of.get(lease.task, ""))
            age = self.settings.lease_seconds - lease.seconds
            self.router.hand_out(self._id(lease.task), lease.worker, age=age)
            self._look(lease.worker, lease.task)

    def offer_again(self, row: AnswerRow) -> None:
        """Give the task of an answer that was taken back to the same worker next, unless somebody else has it."""
        other = self._worker_of.get(row.task, row.worker)
        if row.task in self.tasks.place and (other == row.worker or self.held(other) != row.task):
            self.lease(Lease(row.worker, row.task, self.settings.lease_seconds))

    def held(self, worker: str) -> str | None:
        """Return the task that a worker is looking at."""
        task = self._out.get(worker)
        return task if task is not None and self.router.holds(self._id(task), worker) else None

    def give_back(self, worker: str) -> None:
        """Note that a worker is looking at nothing."""
        task = self._look_away(worker)
        if task is not None:
            self.router.give_back(self._id(task), worker)

    def take(self, row: AnswerRow) -> None:
        self._newest = max(self._newest, row.id)
        if row.task not in self.tasks.place:  # of a task that was taken out of the file since
            return
        if row.label is None:
            self.router.skip(self._id(row.task), row.worker)
            self.n_skipped[row.worker] += 1
        elif self.is_label(row.label):
            self.router.add(self._id(row.task), row.worker, self._answer(row.label))
            if row.task in self.known:
                self._told.setdefault(row.worker, {})[row.task] = row.label == self.known[row.task]
            self._count(row, 1)
        if self._out.get(row.worker) == row.task:
            self._look_away(row.worker)

    def undo(self, row: AnswerRow) -> None:
        if row.task not in self.tasks.place:
            return
        if row.label is None:
            self.router.skip(self._id(row.task), row.worker, undo=True)
            self.n_skipped[row.worker] -= 1
        elif self.is_label(row.label):
            self.router.remove(self._id(row.task), row.worker)
            self._told.get(row.worker, {}).pop(row.task, None)
            self._count(row, -1)

    def progress(self) -> dict[str, Any]:
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
            "fitted_labels": self.router.state.answers.n_fitted,
            "outlook": self._outlook(),
            "unreadable": [] if self.found is None else self.found.about.get("unreadable", []),
            "doubts": [] if self.found is None else self.found.about.get("doubts", []),
        }

    def workers(self, with_link: Collection[str] = ()) -> list[dict[str, Any]]:
        """Return all workers who have answered or have a link: labels, skips, skill with its interval, and flags.

        `known` counts the tasks with a known label that each has answered, and how many correctly.
        """
        fitted = {} if self.found is None else self.found.about["workers"]
        everybody = dict.fromkeys([*self.n_given, *self.n_skipped, *self._out, *with_link])
        rows = []
        for worker in everybody:
            told, by_fit = self._told.get(worker, {}), fitted.get(worker, {})
            row = {"worker": worker, "labels": self.n_given[worker], "skips": self.n_skipped[worker]}
            row |= {"looking_at": self._out.get(worker), "has_link": worker in with_link}
            row |= {"known": (len(told), sum(told.values())), "flags": by_fit.get("flags", [])}
            rows.append(row | {name: by_fit.get(name) for name in ("skill", "low", "high")})
        return rows

    def finished(self, worker: str) -> bool:
        """Return whether a worker has answered every task."""
        return self.n_given[worker] + self.n_skipped[worker] >= len(self.tasks)

    def is_open(self, task: str) -> bool:
        """Return whether a task needs more labels, either for itself or to judge the workers."""
        return task in self._alone or task in self.known or self.router.is_open(self._id(task))

    def is_label(self, label: str) -> bool:
        """Return whether a label, as it is stored, is one of this project."""
        return label in self.settings.classes

    def adoption(self, found: FinishedFit) -> Job:
        """Return the work of taking over a newer fit and the answers that came after it."""
        self._trust(found)
        return self.router.adoption(found.fit)

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
        return self.router.state.n_labels

    @property
    def n_settled(self) -> int:
        """How many tasks need no more labels."""
        return int((~self.router.open).sum())

    @property
    def share_settled(self) -> float:
        """The share of tasks that need no more labels."""
        return self.n_settled / len(self.tasks)

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
        """Return a stored label in the router's form."""
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
        """Return a task of the overlap that still needs a second worker's label."""
        waiting = islice(self._alone, _MOST_WAITING)
        return next((task for task in waiting if self.router.is_free(self._id(task), worker)), None)

    def _trust(self, found: FinishedFit) -> None:
        """Let one label settle a task if the fit could check its workers and has no doubts."""
        if isinstance(self.router.strategy, Information):
            proved = self.settings.learn_from != "nothing" and not found.about.get("doubts")
            self.router.strategy.labels = 1 if proved else _UNPROVED

    def _count(self, row: AnswerRow, by: int) -> None:
        """Count a label that came or went, and note whether its task waits for a second one, of the overlap."""
        self.n_given[row.worker] += by
        self.n_labels += by
        is_one = self.labels_per_task[self.tasks.place[row.task]] == 1
        chosen = _chance(f"{self.settings.seed} {row.task}") < self.settings.overlap
        if is_one and chosen and row.task not in self.known:
            self._alone[row.task] = None
        else:
            self._alone.pop(row.task, None)

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
        decisions = len(self.tasks) * (len(self.settings.classes) if self.settings.multilabel else 1)
        gains = [(after["accuracy"] - before["accuracy"]) * decisions for before, after in pairwise(steps)]
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

    def _table(self, part: slice) -> pa.Table:
        posterior = self.router.belief.posterior(part)
        labels = np.array(self.settings.classes, dtype=object)[posterior.argmax(axis=1)]
        columns = {"task": pa.array(self.tasks.ids[part]), "label": pa.array(labels, pa.string())}
        columns |= {"confidence": posterior.max(axis=1), "labels": self.labels_per_task[part]}
        return pa.table(columns | {"settled": ~self.router.open[part]})

    def _id(self, name: str) -> Any:
        return self.tasks.ids[self.tasks.place[name]]


def _chance(name: str) -> float:
    """Return a number from 0 to 1 that is the same in every service."""
    return crc32(name.encode()) / 2**32


def _strategy(settings: Settings) -> Any:
    options = {"risk": settings.settled_risk, "labels": _UNPROVED} if settings.strategy == "Information" else {}
    return strategy_of(settings.strategy, options)


def _limits(settings: Settings) -> Limits:
    limits: dict[str, Any] = {
        name: getattr(settings, name) or None for name in ("budget", "max_risk", "min_gain", "max_labels")
    }
    return Limits(**limits, lease_seconds=settings.lease_seconds, may_decline=settings.may_decline)
