"""A project that is labelled in Label Studio: its annotations come in, our predictions and wishes go out."""

import asyncio
import hashlib
import hmac
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from labelonce._messages import printable
from labelonce.service._label_studio import Control, answer_of, mappings, number_of, origin, read_config
from labelonce.service._label_studio_api import LabelStudio
from labelonce.service._secrets import without_secrets
from labelonce.service._service import Service

_log = logging.getLogger("labelonce")
_EVERY = 300.0  # seconds between looks at everything: a webhook that is lost is not sent again
_SHARE, _FEWEST = 0.05, 10  # of the tasks: how many of the most informative are worth one more label now
_MOST_PREDICTIONS = 5_000


class Bridge:
    """Keeps a service and a Label Studio project together.

    Webhooks are noted and answered at once; one worker carries them out in order. Everything is compared from time to
    time, since Label Studio does not repeat a webhook that was lost.
    """

    def __init__(self, service: Service, api: LabelStudio, *, url: str) -> None:
        self.service, self.api = service, api
        self.secret = secret_of(api)
        self.url = f"{url.rstrip('/')}/label-studio/{self.secret}"
        self.unknown = False  # whether somebody must add us as a model by hand
        self.control: Control
        self._numbers: dict[str, int] = {}  # Label Studio's ids by our tasks
        self._overlap: dict[str, int] = {}  # what we asked for
        self._waiting: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def version(self) -> str:
        """The name of the newest fit: Label Studio asks for no prediction of a version that it has."""
        found = self.service.live.found
        return f"labelonce {0 if found is None else found.number}"

    async def start(self) -> None:
        """Read the labelling interface, take over all annotations, and begin to listen."""
        if not await self.service.is_alone("label-studio"):
            raise ValueError("one service must be the model of Label Studio; another one is. Start this one without.")
        self.control = read_config(await asyncio.to_thread(self.api.config))
        missing = set(self.control.classes) ^ set(self.service.project.settings.classes)
        if missing:
            raise ValueError(
                f"the choices in Label Studio must be the classes of the project; only one has {min(missing)!r}."
            )
        await self.reconcile()
        self._tasks = [asyncio.create_task(one) for one in (self._listen(), self._look_again(), self._introduce())]
        self.service.on_fit = lambda: self.note({"action": "ROUTE"})

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def note(self, event: Mapping[str, Any]) -> None:
        self._waiting.put_nowait(event)

    async def settled(self) -> None:
        """Wait until everything that was noted is carried out."""
        await self._waiting.join()

    def predictions(self, tasks: list[Any]) -> list[dict[str, Any]]:
        """Return one prediction per task, in order; an empty one of a task that is not ours."""
        names = [self._name(task) if isinstance(task, Mapping) else None for task in tasks]
        ours = [name for name in names if name is not None]
        beliefs = dict(zip(ours, self.service.live.beliefs_of(ours), strict=True))
        nothing = {"result": [], "score": 0.0, "model_version": self.version}
        return [nothing if name is None else self.control.prediction(*beliefs[name], self.version) for name in names]

    async def reconcile(self) -> None:
        """Compare everything: what is in Label Studio is here afterwards, and what is not there is not here."""
        tasks = await asyncio.to_thread(self.api.tasks)
        there = set()
        for task in tasks:
            name = self._name(task)
            for annotation in task.get("annotations", []):
                there.add(origin(annotation))
                await self._take(annotation, name)
        for row in await self.service.read_store(lambda store: store.answers()):
            if row.origin is not None and row.origin.startswith("label-studio ") and row.origin not in there:
                await self.service.mirror(row.origin, None)

    async def route(self) -> None:
        """Ask Label Studio for one more label where it brings most information, and send it the newest predictions."""
        wanted = self._wanted()
        for name, overlap in wanted.items():
            if self._overlap.get(name) != overlap and name in self._numbers:
                await asyncio.to_thread(self.api.set_overlap, self._numbers[name], overlap, labelled=False)
                self._overlap[name] = overlap
        for name in [name for name in self._overlap if name not in wanted]:
            n_labels = int(self.service.live.labels_per_task[self.service.live.tasks.place[name]])
            await asyncio.to_thread(self.api.set_overlap, self._numbers[name], max(1, n_labels), labelled=n_labels > 0)
            del self._overlap[name]
        await asyncio.to_thread(self.api.add_predictions, self._riskiest_predictions(), self.version)

    def _wanted(self) -> dict[str, int]:
        """Return the labelled tasks among those where an answer brings most, with the labels that they should have."""
        live = self.service.live
        best = live.router.most_informative(max(_FEWEST, int(_SHARE * len(live.tasks))))
        n_labels = {name: int(live.labels_per_task[live.tasks.place[name]]) for name in map(str, best.tolist())}
        return {name: n + 1 for name, n in n_labels.items() if n}

    def _riskiest_predictions(self) -> list[dict[str, Any]]:
        live = self.service.live
        order = np.argsort(-live.router.belief.risk, kind="stable")[:_MOST_PREDICTIONS]
        names = [name for one in order.tolist() if (name := live.tasks.names[one]) in self._numbers]
        return [
            {"task": self._numbers[name]} | self.control.prediction(*belief, self.version)
            for name, belief in zip(names, live.beliefs_of(names), strict=True)
        ]

    async def _listen(self) -> None:
        while True:
            event = await self._waiting.get()
            try:
                await self._carry_out(event)
            except Exception as error:  # the next look at everything makes up for it
                said = printable(without_secrets(f"{type(error).__name__}: {error}"))
                _log.error("A webhook of Label Studio could not be carried out: %s", said)
            finally:
                self._waiting.task_done()

    async def _look_again(self) -> None:
        while True:
            await asyncio.sleep(_EVERY)
            self.note({"action": "RECONCILE"})

    async def _introduce(self) -> None:
        """Make ourselves known to Label Studio, which asks for our health at once."""
        try:
            await asyncio.to_thread(self.api.connect, self.url)
            await asyncio.to_thread(self.api.add_tab)
        except OSError as error:
            self.unknown = True
            said = without_secrets(str(error))
            _log.warning("Label Studio could not be told of us: %s. The dashboard says what to add by hand.", said)

    async def _carry_out(self, event: Mapping[str, Any]) -> None:
        action = event.get("action")
        if action in ("ANNOTATION_CREATED", "ANNOTATION_UPDATED", "ANNOTATIONS_CREATED"):
            tasks = mappings(event.get("task"))
            by_number = {number_of(task): task for task in tasks}
            for annotation in mappings(event.get("annotation")) if tasks else []:
                number = annotation.get("task")
                task = by_number.get(number, tasks[0]) if isinstance(number, int) else tasks[0]
                await self._take(annotation, self._name(task))
        elif action == "ANNOTATIONS_DELETED":
            for annotation in mappings(event.get("annotations")):
                await self.service.mirror(origin(annotation), None)
        elif action == "START_TRAINING":
            await self.reconcile()
            self.service.refits.start(self.service.live.n_labels)
        elif action == "RECONCILE":
            await self.reconcile()
        elif action == "ROUTE":
            await self.route()

    async def _take(self, annotation: Mapping[str, Any], task: str | None) -> None:
        """Update an answer to the current state of a Label Studio annotation."""
        answer = None if task is None else answer_of(annotation, task, self.control)
        await self.service.mirror(origin(annotation), answer)

    def _name(self, task: Mapping[str, Any]) -> str | None:
        """Return what we call a task: by the id in its data, or by Label Studio's own."""
        names, data = self.service.live.tasks.place, task.get("data") or {}
        own = data.get(self.service.project.settings.task) if isinstance(data, Mapping) else None
        name = str(own) if own is not None and str(own) in names else str(task.get("id"))
        if name not in names:
            return None
        with suppress(ValueError):  # a prediction can be made without the number
            self._numbers[name] = number_of(task)
        return name


def secret_of(api: LabelStudio) -> str:
    """Return the part of our address that only Label Studio knows: its webhooks carry no token."""
    said = f"labelonce {api.url} {api.project}".encode()
    return hmac.new(api._token.encode(), said, hashlib.sha256).hexdigest()[:40]
