"""A running project: the router in memory, the answers on disk, the fits next to it, and who may do what."""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, closing, suppress
from pathlib import Path
from typing import Any, TypeVar

from labelonce._messages import show
from labelonce.service._boxes import stored
from labelonce.service._figures import figures
from labelonce.service._fit import FinishedFit, history, newest, subject
from labelonce.service._live import Job, Live
from labelonce.service._live_boxes import LiveBoxes
from labelonce.service._project import Project, check_worker, locked
from labelonce.service._rate import Rate
from labelonce.service._refits import Refits
from labelonce.service._store import (
    Answer,
    AnswerRow,
    Changes,
    Claim,
    Comment,
    DatabaseTrouble,
    Release,
    Store,
    Undo,
    same,
)
from labelonce.service._tokens import Person, hash_of, new_token
from labelonce.service._writer import Writer

_log = logging.getLogger("labelonce")
_GUESSES_PER_SECOND = 0.5  # wrong tokens from one address
_GUESSES = 20
_TOKENS_EVERY = 10.0  # seconds after which it is looked again which tokens there are
_TOKENS_LAST = 60.0  # seconds after which a token is worth nothing where that could not be looked up
_BURST_SECONDS = 3.0  # of requests at once
_LOOK_EVERY = 1.0  # seconds between looks at what other services have changed, while nobody asks
_TRIES = 20  # to get a task that no other service hands out at the same moment
_RECENT = 5  # answers that a worker sees again
_COUNT_LESS = 20  # times as long as it took, until all answers are counted again
_T = TypeVar("_T")
_CHOICES = 8  # tasks that are asked for at once after the best one was gone


class RequestError(Exception):
    """A request that is refused: the HTTP status and the sentence."""

    def __init__(self, status: int, sentence: str, *, wait: float = 0.0) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.wait = status, sentence, wait


class Service:
    """Everything behind the HTTP interface. Its methods run in one event loop and never wait for a fit."""

    def __init__(self, project: Project) -> None:
        self.project = project
        rate = project.settings.requests_per_second
        self._rate = Rate(rate, max(1.0, rate * _BURST_SECONDS))
        self._guesses = Rate(_GUESSES_PER_SECOND, _GUESSES)
        self._people: dict[str, Person] = {}
        self._people_read = self._people_asked = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._computing = asyncio.Lock()  # one thread computes for the router at a time
        self.on_fit: Callable[[], None] = lambda: None
        self._held = AsyncExitStack()
        self._looking: asyncio.Task[None] | None = None
        self._counting, self._count_again = asyncio.Lock(), 0.0
        self._figures: dict[str, Any] = {}
        self.live: Live
        self._writer: Writer

    async def start(self) -> None:
        """Read everything; another service of the same project is an error, unless they share a PostgreSQL."""
        self.loop = asyncio.get_running_loop()
        try:
            await self._begin(self.project.store())
        except BaseException:
            await self._held.aclose()
            raise

    async def _begin(self, store: Store) -> None:
        if not store.is_shared:
            path = Path(store.name).resolve()
            self._hold(self.project.folder, self.project.folder, ".service.lock")
            self._hold(path, path.parent, f".{path.name}.lock")  # another folder may name the same file
        self._writer = Writer(store, self._on_changes)
        self._held.push_async_callback(self._writer.close)
        if store.is_shared:
            await self._writer.read(lambda shared: shared.join(json.dumps(subject(self.project))))
        answers = await self._writer.read(lambda store: store.begin())
        found = await asyncio.to_thread(newest, self.project)
        kind = LiveBoxes if self.project.settings.multilabel else Live
        self.live = await asyncio.to_thread(kind, self.project, answers, found)
        self.refits = Refits(self.project, self._adopt, self._writer)
        self.refits.began_with(found)
        self._history = await asyncio.to_thread(history, self.project)
        await self._read_people()
        if store.is_shared:
            await self._writer.look()
            self._looking = asyncio.create_task(self._keep_looking())

    def _hold(self, what: Path, folder: Path, name: str) -> None:
        if not self._held.enter_context(locked(folder, name)):
            raise ValueError(f"{what} must be served once; another labelonce serve is at work there.")

    async def stop(self) -> None:
        """Finish what is being written, and stop the fit."""
        if self._looking is not None:
            self._looking.cancel()
        await self.refits.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._held.aclose()

    async def person(self, token: str | None, address: str) -> Person:
        """Return whose token it is; no token, an unknown one or too many requests are refused."""
        hashed = hash_of(token or "")
        if time.monotonic() - self._people_read > _TOKENS_LAST:
            await self._read_people()
        if time.monotonic() - self._people_asked > _TOKENS_EVERY:  # one may have been revoked
            self._people_asked = time.monotonic()
            self._start(self._read_people())
        person = self._people.get(hashed)
        if person is None:
            if wait := self._guesses.wait(address):
                raise RequestError(429, "too many wrong tokens; wait a little.", wait=wait)
            await self._read_people()  # it may have been made since
            person = self._people.get(hashed)
        if person is None:
            rule = "a token must be given, one that labelonce project has made"
            raise RequestError(401, f"{rule}; got none that is known.")
        if wait := self._rate.wait(hashed):
            raise RequestError(429, "too many requests; wait a little.", wait=wait)
        return person

    def label_of(self, said: dict[str, Any]) -> str:
        """Return what is stored of one `label`, or of all `labels` that were ticked, whichever the project asks for."""
        boxes, classes = self.project.settings.multilabel, self.project.settings.classes
        wanted, other = ("labels", "label") if boxes else ("label", "labels")
        if said.get(wanted) is None or other in said:
            raise RequestError(422, f"an annotation of this project must have {wanted}, and nothing instead of it.")
        if boxes and len(said[wanted]) > len(classes):
            raise RequestError(422, f"labels must name each class once; got {len(said[wanted])} of {len(classes)}.")
        return stored(said[wanted], classes) if boxes else str(said[wanted])

    async def answer(self, answer: Answer) -> tuple[AnswerRow, bool]:
        """Keep an answer and return its row, and whether it is new; it is on the disk then."""
        if answer.task not in self.live.tasks.place:
            raise RequestError(404, f"the task must be one of the project; got {show(answer.task)}.")
        if answer.label is not None and not self.live.is_label(answer.label):
            classes = ", ".join(self.project.settings.classes[:20])
            raise RequestError(422, f"a label must be one of {classes}; got {show(answer.label)}.")
        written = await self._writer.write(answer)
        row = written.row
        if row is None or not (written.changed or same(row, answer)):
            what = "the key was used for another answer" if row and row.key == answer.key else "it is labelled already"
            raise RequestError(409, f"a worker must label a task once; got {show(answer.task)} again: {what}.")
        return row, written.changed

    async def undo(self, worker: str, number: int, *, again: bool = True) -> AnswerRow:
        """Take back an answer of a worker's own and return it; the second time nothing changes.

        With `again` the worker gets its task next.
        """
        if self.project.settings.feedback and again:
            row = await self._writer.read(lambda store: store.answer(worker, number))
            if row is not None and row.label is not None and row.task in self.live.known:
                raise RequestError(409, f"a label must stay once the true one was told; got that of {show(row.task)}.")
        written = await self._writer.write(Undo(worker, number, again))
        if written.row is None:
            raise RequestError(404, f"the answer must be one of your own; got {number}.")
        if written.changed and again and not self._writer.store.is_shared:
            self.live.offer_again(written.row)
        return written.row

    async def add_worker(self, worker: str) -> str:
        try:
            check_worker(worker)
        except ValueError as error:
            raise RequestError(422, str(error)) from error
        token = new_token()
        await self._writer.read(lambda store: store.add_token(hash_of(token), "worker", worker))
        await self._read_people()
        return token

    async def revoke(self, worker: str) -> int:
        found: int = await self._writer.read(lambda store: store.remove_tokens(worker))
        await self._read_people()
        return found

    async def read_store(self, question: Callable[[Store], _T]) -> _T:
        """Return the result of reading the store over another connection, so that no label waits for it."""

        def asked() -> _T:
            with closing(self.project.store()) as store:
                return question(store)

        return await asyncio.to_thread(asked)

    async def figures(self) -> dict[str, Any]:
        """Return the dashboard's figures on all answers; slow ones are computed less often."""
        async with self._counting:
            began = time.monotonic()
            if began >= self._count_again:
                project, found = self.project, self.live.found
                belief = None if found is None else found.fit.posterior
                self._figures = await self.read_store(
                    lambda store: figures(project, store.answers(), store.comments(), belief)
                )
                self._count_again = time.monotonic() + _COUNT_LESS * (time.monotonic() - began)
            return self._figures

    async def comment(self, comment: Comment) -> None:
        """Store a worker's comment on a task."""
        if comment.task not in self.live.tasks.place:
            raise RequestError(404, f"the task must be one of the project; got {show(comment.task)}.")
        await self._writer.read(lambda store: store.add_comment(comment))

    async def recent(self, worker: str) -> list[AnswerRow]:
        """Return a worker's newest answers, the newest first."""
        return await self.read_store(lambda store: store.recent(worker, _RECENT))

    def workers(self) -> list[dict[str, Any]]:
        """Return all workers who have answered or have a link."""
        return self.live.workers({person.worker for person in self._people.values() if not person.is_admin})

    async def mirror(self, origin: str, answer: Answer | None) -> None:
        """Update the answer with this name in another tool to its state there; None: it was deleted."""
        rows = await self._writer.read(lambda store: store.from_origin(origin))
        if answer is not None:
            if (answer.worker, answer.task, answer.label) in {(row.worker, row.task, row.label) for row in rows}:
                return
            rows += await self._writer.read(lambda store: store.given(answer.worker, answer.task))  # the newest counts
        for row in dict.fromkeys(rows):
            await self.undo(row.worker, row.id, again=False)
        if answer is not None:
            with suppress(RequestError):  # not one of our classes or tasks, or taken back here with this very key
                await self.answer(answer)

    async def is_alone(self, task: str) -> bool:
        """Take a lock among all services of the project; return False if another service has it."""
        return not self._writer.store.is_shared or await self._writer.read(lambda store: bool(store.lock(task)))

    def progress(self) -> dict[str, Any]:
        return self.live.progress() | {
            "history": self._history,
            "fitting": self.refits.is_running or self.refits.elsewhere,
            "trouble": self.refits.trouble,
            "budget": self.project.settings.budget or None,
        }

    async def next(self, worker: str) -> str | None:
        """Return the task that a worker should label now."""
        task = await self._claimed(worker) if self._writer.store.is_shared else self.live.next(worker)
        if not self._computing.locked() and (job := self.live.router.drawing()) is not None:
            self._start(self._do(lambda: job))
        return task

    async def _claimed(self, worker: str) -> str | None:
        """Return the task that a worker should label now, once no other service hands it out.

        It is chosen by what is known here. The response to a claim includes the changes by other services, so a task
        that needs no more labels is given back.
        """
        looked = self.live.held(worker) is not None  # it may have been answered elsewhere
        if looked:
            await self._writer.look()
        for turn in range(_TRIES):
            if (held := self.live.held(worker)) is not None:
                return held
            tasks = self.live.choose(worker, 1 if turn == 0 else _CHOICES)
            if not tasks and looked:
                return None
            if not tasks:
                await self._writer.look()
                looked = True
                continue
            found = None
            try:
                found = await self._writer.ask(Claim(worker, tasks))
            finally:
                self.live.put_back(worker, [task for task in tasks if task != found])
            if isinstance(found, str) and found in tasks and (self.live.stop or not self.live.is_open(found)):
                await self._writer.ask(Release(worker, found))
            elif isinstance(found, str):
                return found
        raise RequestError(503, "too many people want the same tasks at this moment; ask again.", wait=1.0)

    def _on_changes(self, news: Changes) -> None:
        """Take what was written, here or by another service."""
        self.live.apply(news)
        if news.fit > (self.live.found.number if self.live.found else 0):
            self.refits.fetch(news.fit)
        if news.answers:
            self.refits.consider(self.live.n_labels)

    async def _keep_looking(self) -> None:
        """Look at what other services have changed, also while nobody asks."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            with suppress(DatabaseTrouble):
                await self._writer.look()
                await self.refits.look()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a job soon, and finish it before the service stops."""
        task = asyncio.create_task(self._told(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _told(self, work: Coroutine[Any, Any, None]) -> None:
        """Log errors of background work; an unavailable database is logged elsewhere."""
        try:
            await work
        except DatabaseTrouble:
            pass
        except (ValueError, OSError) as error:
            _log.error("%s", error)

    async def _do(self, job_of: Callable[[], Job]) -> None:
        """Do slow work in a thread, while requests are served."""
        async with self._computing:
            while True:
                job = job_of()
                await asyncio.to_thread(job.compute)
                if job.finish():
                    return

    async def _adopt(self, found: FinishedFit) -> None:
        """Believe a newer fit."""
        if self.live.found is not None and found.number <= self.live.found.number:
            return
        await self._do(lambda: self.live.adoption(found))
        self.live.found = found
        if (job := self.live.router.drawing()) is not None:  # what is worth most has changed
            await self._do(lambda: job)
        self._history = [entry for entry in self._history if entry["fit"] != found.number]
        accuracy = found.about["accuracy"] or {}
        self._history.append({"fit": found.number, "labels": found.about["labels"]} | accuracy)
        self.on_fit()
        # once this one has ended, since enough may have arrived meanwhile
        asyncio.get_running_loop().call_soon(self.refits.consider, self.live.n_labels)

    async def _read_people(self) -> None:
        found = await self._writer.read(lambda store: store.tokens())
        self._people_read, before = time.monotonic(), self._people
        self._people = {hashed: Person(role, worker, hashed) for hashed, (role, worker) in found.items()}
        for worker in {one.worker for one in before.values()} - {one.worker for one in self._people.values()}:
            await self._take_from(worker)

    async def _take_from(self, worker: str) -> None:
        """Offer the task of somebody whose links were revoked to others."""
        task = self.live.held(worker)
        if task is not None and self._writer.store.is_shared:
            await self._writer.ask(Release(worker, task))
        self.live.give_back(worker)
