"""The router of a running project: who has which task, what every answer changed, and how far it is."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from labelonce.routing import Router
from labelonce.routing._changes import hand_out, holds
from labelonce.routing._strategies import strategy_of
from labelonce.service._fit import Found
from labelonce.service._outlook import STEP
from labelonce.service._project import Project
from labelonce.service._settings import Settings
from labelonce.service._store import Stored

_LITTLE = 0.5  # tasks that a hundred more labels would make right, below which it is time to stop


class LiveRouter:
    """A `Router` that is fed from the answers of a project, all in memory and never waiting for anything."""

    def __init__(self, project: Project, answers: list[Stored], found: Found | None) -> None:
        settings = project.settings
        self.tasks, self.settings = project.tasks, settings
        self.router = Router(
            self.tasks.ids,
            list(settings.classes),
            strategy=_strategy(settings),
            max_labels=settings.max_labels or None,
            lease_seconds=settings.lease_seconds,
            may_decline=settings.may_decline,
            budget=settings.budget or None,
            max_risk=settings.max_risk or None,
            min_gain=settings.min_gain or None,
            temperature=1.0,  # the confidence of a fit is calibrated
            random_state=settings.seed,
        )
        self._out: dict[str, str] = {}  # the task that each worker is looking at
        self.last: dict[str, int] = {}  # each worker's newest answer
        self.n_labels = self.n_skips = 0
        self.found: Found | None = None
        for row in answers:
            self.take(row)
        if found is not None:
            self.router.adopt(found.fit)
            self.found = found
        self.router._refreshed()  # now, since nobody waits yet

    def next(self, worker: str) -> str | None:
        """Return the task that a worker should label now: the one it is looking at, else the best for it."""
        held = self._out.get(worker)
        if held is not None and holds(self.router, self._id(held), worker):
            return held
        found = self.router.next(worker)
        if found is None:
            self._out.pop(worker, None)
            return None
        self._out[worker] = str(found)
        return self._out[worker]

    def take(self, row: Stored) -> None:
        """Take a new answer."""
        if row.task not in self.tasks.place:  # of a task that was taken out of the file since
            return
        if row.label is None:
            self.router.skip(self._id(row.task), row.worker)
            self.n_skips += 1
        elif row.label in self.settings.classes:
            self.router.add(self._id(row.task), row.worker, row.label)
            self.n_labels += 1
        self.last[row.worker] = row.id
        if self._out.get(row.worker) == row.task:
            del self._out[row.worker]

    def undo(self, row: Stored, *, again: bool = True) -> None:
        """Take an answer back and, with `again`, give its task to the same worker."""
        if row.task not in self.tasks.place:
            return
        task = self._id(row.task)
        if row.label is None:
            self.router.skip(task, row.worker, undo=True)
            self.n_skips -= 1
        elif row.label in self.settings.classes:
            self.router.remove(task, row.worker)
            self.n_labels -= 1
        if again:
            hand_out(self.router, task, row.worker)
            self._out[row.worker] = row.task

    def adopted(self, found: Found) -> None:
        """Take note that the router believes a newer fit, but for which tasks are worth looking at."""
        self.found = found
        if self.router._pool is not None:
            self.router._use(self.router._pool)

    @property
    def wants_drawing(self) -> bool:
        """Whether it is time to look for the tasks that are worth most, among all."""
        return self.router._pool is not None and self.router._pool.half_used

    def progress(self) -> dict[str, Any]:
        """Return how far the project is."""
        router, belief = self.router, self.router.belief
        n_labels = router.state.n_labels
        return {
            "tasks": len(self.tasks),
            "labelled": int((n_labels > 0).sum()),
            "settled": len(router.settled),
            "labels": self.n_labels,
            "skips": self.n_skips,
            "workers": sum(1 for worker in router.state.n_given.values() if worker),
            "expected_accuracy": 1 - belief.mean_risk,
            "stop": router.stop,
            "fit": None if self.found is None else self.found.number,
            "fitted_labels": router.state.n_fitted,
            "outlook": self._outlook(),
        }

    def labels(self, start: int, end: int) -> list[dict[str, Any]]:
        """Return the labels found so far of some tasks, with their confidence."""
        router = self.router
        places = np.arange(start, min(end, len(self.tasks)), dtype=np.int32)
        posterior = router.belief.posterior(places)
        is_open = np.isin(places, router._open(places))
        return [
            {
                "task": self.tasks.names[place],
                "label": self.settings.classes[int(row.argmax())],
                "confidence": float(row.max()),
                "labels": int(router.state.n_labels[place]),
                "settled": not open_,
            }
            for place, row, open_ in zip(places.tolist(), posterior, is_open.tolist(), strict=True)
        ]

    def belief_of(self, task: str) -> tuple[str, float]:
        """Return the most probable label of a task and its probability."""
        place = self.tasks.place[task]
        row = self.router.belief.posterior(np.array([place], dtype=np.int32))[0]
        return self.settings.classes[int(row.argmax())], float(row.max())

    def workers(self) -> list[dict[str, Any]]:
        """Return everybody who has labelled: labels, skips, skill with its interval, and flags."""
        router, known = self.router, {} if self.found is None else self.found.about["workers"]
        return [
            {
                "worker": worker,
                "labels": int(router.state.n_given[code]),
                "skips": len(router._skipped.get(code, ())),
                "looking_at": self._out.get(worker),
            }
            | {name: known.get(worker, {}).get(name) for name in ("skill", "low", "high")}
            | {"flags": known.get(worker, {}).get("flags", [])}
            for code, worker in enumerate(router.workers)
        ]

    def _outlook(self) -> dict[str, Any] | None:
        """Return what the next hundred labels are expected to bring, as the newest fit saw it, and when to stop."""
        if self.found is None:
            return None
        steps, n_tasks = self.found.about["outlook"], len(self.tasks)
        gains = [(after["accuracy"] - before["accuracy"]) * n_tasks for before, after in pairwise(steps)]
        spent = next((place for place, gain in enumerate(gains) if gain < _LITTLE), None)
        target = 1 - self.settings.max_risk if self.settings.max_risk else None
        reached = [step["labels"] for step in steps if target is not None and step["accuracy"] >= target]
        return {
            "next": STEP,
            "tasks_made_right": gains[0],
            "steps": steps,
            "worth_it_for": None if spent is None else steps[spent]["labels"],
            "target": target,
            "target_after": reached[0] if reached else None,
        }

    def _id(self, name: str) -> Any:
        return self.tasks.ids[self.tasks.place[name]]


def _strategy(settings: Settings) -> Any:
    options = {"risk": settings.settled_risk} if settings.strategy == "Information" else {}
    return strategy_of(settings.strategy, options)
