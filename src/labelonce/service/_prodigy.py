"""A task router for Prodigy: it assigns tasks by all answers so far."""

from collections.abc import Iterable, Mapping
from typing import Any

from labelonce.routing import Router


class ProdigyRouter:
    """The `task_router` and the `update` of a Prodigy recipe, around a `Router`.

    Prodigy asks `task_router` once for every task and session: a task goes to the session whose answer brings most
    information, and to nobody if it is settled. Return both from your recipe: `{"task_router": tool.task_router,
    "update":
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
        self._tasks, self._classes = (set(ids.tolist()) for ids in (router.tasks, router.classes))

    def task_router(self, ctrl: Any, session_id: str, item: Mapping[str, Any]) -> list[str]:
        """Return the session that should answer an item, or nobody."""
        if not self.wants_more(item):
            return []
        name, sessions = self._name(item), dict.fromkeys([session_id, *ctrl.session_ids])
        free = [one for one in sessions if not self.router.has_answered(name, one)]
        return [max(free, key=lambda one: self.router.value(name, one))] if free else []

    def update(self, answers: Iterable[Mapping[str, Any]]) -> None:
        """Take answers: accepted ones with a label, of a task that this session has not answered before."""
        for answer in answers:
            name, session = self._name(answer), answer.get("_session_id") or answer.get("_annotator_id")
            chosen = answer.get("accept") or ([answer["label"]] if "label" in answer else [])
            if answer.get("answer") != "accept" or len(chosen) != 1 or chosen[0] not in self._classes:
                continue
            if name in self._tasks and not self.router.has_answered(name, session):
                self.router.add(name, session, chosen[0])

    def wants_more(self, item: Mapping[str, Any]) -> bool:
        """Return whether a task should be offered again: it is one of the router's, and not settled."""
        name = self._name(item)
        return name in self._tasks and self.router.is_open(name)

    def _name(self, item: Mapping[str, Any]) -> Any:
        found = item.get(self._field)
        return (item.get("meta") or {}).get(self._field) if found is None else found
