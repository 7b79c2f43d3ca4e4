"""A task router for Prodigy: who gets a task, decided by what everybody's answers have told so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from labelonce.routing import Router
from labelonce.routing._mutual_information import mutual_information


class ProdigyRouter:
    """The `task_router` and the `update` of a Prodigy recipe, around a `Router`.

    Prodigy asks `task_router` once for every task and session: a task goes to the session whose answer would tell most,
    and to nobody if it is settled. Return both from your recipe: `{"task_router": tool.task_router, "update":
    tool.update}`, and let the stream offer tasks again for which `wants_more` is true.

    Parameters
    ----------
    router : Router
        Its tasks are named by the `task` field of an item.
    task : str
        The field of an item, or of its `meta`, that holds the id.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> router = Router(["a", "b"], ["MUSIC", "SPORT"])
    >>> tool, ctrl = ProdigyRouter(router), SimpleNamespace(session_ids=["news-kim", "news-zoe"])
    >>> tool.task_router(ctrl, "news-zoe", {"task": "a"})
    ['news-zoe']
    >>> tool.update([{"task": "a", "accept": ["MUSIC"], "answer": "accept", "_session_id": "news-zoe"}])
    >>> tool.task_router(ctrl, "news-zoe", {"task": "a"})
    ['news-kim']
    """

    def __init__(self, router: Router, *, task: str = "task") -> None:
        self.router, self._field = router, task

    def task_router(self, ctrl: Any, session_id: str, item: Mapping[str, Any]) -> list[str]:
        """Return the session that should answer an item, or nobody."""
        name = self._name(item)
        if name not in self.router._task_codes or not self.router._is_open(self.router._task_codes[name]):
            return []
        task = self.router._task_codes[name]
        free = [
            one
            for one in dict.fromkeys([session_id, *ctrl.session_ids])
            if (task, self.router._worker_code(one)) not in self.router._pairs
        ]
        posterior = self.router.belief.posterior(np.array([task], dtype=np.int32))
        told = [self._told(posterior, self.router._worker_code(one)) for one in free]
        return [free[int(np.argmax(told))]] if free else []

    def update(self, answers: Iterable[Mapping[str, Any]]) -> None:
        """Take answers: accepted ones with a label, of a task that this session has not answered before."""
        for answer in answers:
            name, session = self._name(answer), answer.get("_session_id") or answer.get("_annotator_id")
            chosen = answer.get("accept") or ([answer["label"]] if "label" in answer else [])
            if answer.get("answer") != "accept" or len(chosen) != 1 or name not in self.router._task_codes:
                continue
            pair = (self.router._task_codes[name], self.router._worker_code(session))
            if pair not in self.router._pairs and chosen[0] in self.router._class_codes:
                self.router.add(name, session, chosen[0])

    def wants_more(self, item: Mapping[str, Any]) -> bool:
        """Return whether a task should be offered again: it is not settled, and nobody has it."""
        name = self._name(item)
        return name in self.router._task_codes and self.router._is_open(self.router._task_codes[name])

    def _told(self, posterior: Any, worker: int) -> float:
        return float(mutual_information(posterior, self.router.state.confusion_of(worker))[0])

    def _name(self, item: Mapping[str, Any]) -> Any:
        found = item.get(self._field)
        return (item.get("meta") or {}).get(self._field) if found is None else found
