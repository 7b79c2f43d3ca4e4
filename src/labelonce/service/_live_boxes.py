"""Several labels per task: check boxes, and a simple rule for who gets which task."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa

from labelonce._kernels import floored_log
from labelonce._types import Codes, Floats
from labelonce.routing._leases import Leases
from labelonce.service._boxes import ticked
from labelonce.service._fit import Found
from labelonce.service._live import Job, Live
from labelonce.service._project import Project
from labelonce.service._store import Stored

_FIRST_SKILL = 0.75  # the chance that a box of a worker of whom nothing is known is right, before any fit
_SUREST = 1e-6


class LiveBoxes(Live):
    """A project in which any of the classes may be true of a task.

    The next task is one with the fewest labels, and among those the one with the most boxes that are expected to be
    wrong. A task is settled when it has a label and each box is wrong with at most `settled_risk`. Between fits an
    answer changes what is believed of each box by what its worker's ticks are worth.
    """

    def __init__(self, project: Project, answers: list[Stored], found: Found | None) -> None:
        super().__init__(project)
        n_tasks, n_classes = len(self.tasks), len(self.settings.classes)
        self._class = {one: place for place, one in enumerate(self.settings.classes)}
        self._worth: dict[str, Floats] = {}
        tick = np.log(_FIRST_SKILL / (1 - _FIRST_SKILL))
        self._average: Floats = np.tile([-tick, tick], (n_classes, 1))
        self.logit: Floats = np.zeros((n_tasks, n_classes))
        self._n_labels: Codes = np.zeros(n_tasks, dtype=np.int32)
        self._ties: Floats = 1e-6 * np.random.default_rng(self.settings.seed).random(n_tasks)
        self._leases = Leases(self.settings.lease_seconds)
        self._codes: dict[str, int] = {}
        self._had: dict[str, set[int]] = {}  # tasks that a worker has labelled or skipped
        self.given: dict[tuple[int, str], str] = {}
        self._since: list[tuple[int, str, str, float]] = []  # what changed while a fit is being taken over
        self._n_fitted = 0
        self._look_at_all()
        for row in answers:
            self.take(row)
        if found is not None:
            job = self.adoption(found)
            job.compute()
            job.finish()
            self.found = found

    def is_open(self, task: str) -> bool:
        """Return whether a task needs more labels."""
        return not self._closed[self.tasks.place[task]]

    def is_label(self, label: str) -> bool:
        """Return whether everything ticked is one of the classes."""
        return all(one in self._class for one in ticked(label))

    def adoption(self, found: Found) -> Job:
        """Return the work of believing a newer fit, and on top of it the answers that it did not know."""
        self._since = []
        return _BoxesAdoption(self, found)

    def believe(self, logit: Floats, worth: dict[str, Floats], average: Floats, n_fitted: int) -> None:
        """Believe what a fit found, and what has changed since it was asked for."""
        self.logit, self._worth, self._average, self._n_fitted = logit, worth, average, n_fitted
        for task, worker, label, times in self._since:
            self.logit[task] += times * self.told(worker, label)
        self._since = []
        self._look_at_all()

    def told(self, worker: str, label: str) -> Floats:
        """Return what a worker's ticks say of every box: the log of how much more probable a yes becomes."""
        boxes = np.zeros(len(self._class), dtype=np.int32)
        boxes[[self._class[one] for one in ticked(label)]] = 1
        return boxes_told(self._worth.get(worker, self._average), boxes)

    def labels(self, start: int, end: int) -> list[dict[str, Any]]:
        """Return the labels found so far of some tasks, with their confidence: that of the least sure box."""
        places = np.arange(start, min(end, len(self.tasks)))
        rows = zip(places.tolist(), self.logit[places], self._worst(places).tolist(), strict=True)
        return [
            {
                "task": self.tasks.names[place],
                "label": [one for one, value in zip(self._class, row, strict=True) if value > 0],
                "confidence": 1 - worst,
                "labels": int(self._n_labels[place]),
                "settled": bool(self._closed[place]),
                "probabilities": dict(zip(self._class, _chance(row).tolist(), strict=True)),
            }
            for place, row, worst in rows
        ]

    def labels_table(self) -> pa.Table:
        """Return one row per task and class: whether it is true of the task, with its probability."""
        n_tasks, n_classes = self.logit.shape
        return pa.table(
            {
                "task": pa.array(np.repeat(self.tasks.ids, n_classes)),
                "question": pa.array([*self._class] * n_tasks),
                "label": (self.logit > 0).astype(np.int8).ravel(),
                "probability": _chance(self.logit).ravel(),
                "labels": np.repeat(self._n_labels, n_classes),
                "settled": np.repeat(self._closed, n_classes),
            }
        )

    @property
    def labels_per_task(self) -> Codes:
        """How many labels each task has."""
        return self._n_labels

    @property
    def n_settled(self) -> int:
        """How many tasks need no more labels."""
        return int(self._closed.sum())

    @property
    def n_fitted(self) -> int:
        """How many of the labels the newest fit knew."""
        return self._n_fitted

    @property
    def expected_accuracy(self) -> float:
        """The expected share of boxes that are right."""
        return 1 - self._all_wrong / self.logit.size

    @property
    def stop(self) -> str | None:
        """Why to stop, None while it pays to go on."""
        if self.settings.budget and self.n_labels >= self.settings.budget:
            return "budget"
        if self.settings.max_risk and 1 - self.expected_accuracy <= self.settings.max_risk:
            return "risk"
        return None

    def _choose(self, worker: str) -> str | None:
        for task in self._leases.expired(time.monotonic()):
            self._look_at(task)
        if self.stop is not None:
            return None
        score, had = self._score, list(self._had.get(worker, ()))
        task = int(score.argmax())
        if had and task in self._had[worker]:
            score = score.copy()
            score[had] = -np.inf
            task = int(score.argmax())
        if score[task] == -np.inf:
            return None
        self._hand_out(self.tasks.names[task], worker, self.settings.lease_seconds)
        return self.tasks.names[task]

    def _holds(self, task: str, worker: str) -> bool:
        holder, until = self._leases.out.get(self.tasks.place[task], (-1, 0.0))
        return holder == self._code(worker) and until > time.monotonic()

    def _hand_out(self, task: str, worker: str, seconds: float) -> None:
        age = self.settings.lease_seconds - seconds
        self._leases.hand_out(self.tasks.place[task], self._code(worker), time.monotonic() - age)
        self._look_at(self.tasks.place[task])

    def _give_back(self, task: str, worker: str) -> None:
        self._leases.give_back(self.tasks.place[task], self._code(worker))
        self._look_at(self.tasks.place[task])

    def _add(self, task: str, worker: str, label: str) -> None:
        self.given[self.tasks.place[task], worker] = label
        self._had.setdefault(worker, set()).add(self.tasks.place[task])
        self._count(task, worker, label, 1)

    def _remove(self, task: str, worker: str, label: str) -> None:
        del self.given[self.tasks.place[task], worker]
        self._had[worker].discard(self.tasks.place[task])
        self._count(task, worker, label, -1)

    def _skip(self, task: str, worker: str, *, undo: bool) -> None:
        had, place = self._had.setdefault(worker, set()), self.tasks.place[task]
        had.discard(place) if undo else had.add(place)
        self._leases.give_back(place, self._code(worker))
        self._look_at(place)

    def _count(self, task: str, worker: str, label: str, times: int) -> None:
        place = self.tasks.place[task]
        self._n_labels[place] += times
        self.logit[place] += times * self.told(worker, label)
        self._since.append((place, worker, label, times))
        self._leases.give_back(place, self._code(worker))
        self._look_at(place)

    def _code(self, worker: str) -> int:
        return self._codes.setdefault(worker, len(self._codes))

    def _look_at_all(self) -> None:
        """Compute what is wrong, settled and worth labelling, of all tasks."""
        n_tasks = len(self.logit)
        self._wrong: Floats = np.zeros(n_tasks)
        self._closed = np.zeros(n_tasks, dtype=bool)
        self._score: Floats = np.zeros(n_tasks)
        self._all_wrong = 0.0
        self._look_at(np.arange(n_tasks))
        self._all_wrong = float(self._wrong.sum())

    def _look_at(self, tasks: Any) -> None:
        """Compute what is wrong, settled and worth labelling, of one task or of many."""
        places = np.atleast_1d(tasks)
        wrong = _risk(self.logit[places]).sum(axis=1)
        self._all_wrong += float((wrong - self._wrong[places]).sum())
        self._wrong[places] = wrong
        closed = (self._n_labels[places] > 0) & (self._worst(places) <= self.settings.settled_risk)
        if self.settings.max_labels:
            closed |= self._n_labels[places] >= self.settings.max_labels
        self._closed[places] = closed
        score = wrong + self._ties[places] - self.logit.shape[1] * self._n_labels[places]
        score[closed] = -np.inf
        if self._leases.out:
            score[np.isin(places, list(self._leases.out))] = -np.inf
        self._score[places] = score

    def _worst(self, places: Any) -> Floats:
        """Return the chance that the least sure box of each task is wrong."""
        return np.asarray(_risk(self.logit[places]).max(axis=1))


class _BoxesAdoption:
    """A fit that is about to be believed, and on top of it the answers that it did not know."""

    def __init__(self, live: LiveBoxes, found: Found) -> None:
        self._live, self._found, self._now = live, found, dict(live.given)

    def compute(self) -> None:
        """Compute what will be believed, of the answers so far."""
        fit, live = self._found.fit, self._live
        shape = live.logit.shape
        if fit.posterior.shape != shape:
            raise ValueError(f"the posterior of a fit must have shape {shape}; got {fit.posterior.shape}.")
        chance = np.clip(fit.posterior, _SUREST, 1 - _SUREST)
        self._logit = np.log(chance) - np.log1p(-chance)
        worth = floored_log(fit.confusion[:, :, 1]) - floored_log(fit.confusion[:, :, 0])
        self._worth = dict(zip(fit.workers, worth, strict=True))
        self._average = worth.mean(axis=0)
        columns = (one.to_pylist() for one in fit.answers)
        fitted = {(live.tasks.place[str(task)], worker): label for task, worker, label in zip(*columns, strict=True)}
        self._n_fitted = sum(1 for pair, label in self._now.items() if fitted.get(pair) == label)
        for times, ours, others in ((1, self._now, fitted), (-1, fitted, self._now)):
            for (task, worker), label in ours.items():
                if others.get((task, worker)) != label:
                    self._logit[task] += times * self._told(worker, label)

    def finish(self) -> bool:
        """Believe it, and what has arrived meanwhile."""
        self._live.believe(self._logit, self._worth, self._average, self._n_fitted)
        return True

    def _told(self, worker: str, label: str) -> Floats:
        boxes = np.isin(self._live.settings.classes, ticked(label)).astype(np.int32)
        return boxes_told(self._worth.get(worker, self._average), boxes)


def boxes_told(worth: Floats, boxes: Codes) -> Floats:
    """Return what each box says by what a worker's yes and no are worth, (n_classes, 2)."""
    return np.asarray(worth[np.arange(len(worth)), boxes])


def _chance(logit: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(logit, -700, 700))))


def _risk(logit: Floats) -> Floats:
    """Return the chance that the more probable of yes and no is wrong."""
    return np.asarray(1 / (1 + np.exp(np.clip(np.abs(logit), 0, 700))))
