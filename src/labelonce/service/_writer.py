"""Answers go to the disk in groups: everything that arrives during one commit shares the next one."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from labelonce.service._store import Answer, Changes, DatabaseTrouble, Outcome, Store, Undo, Wish, WriteResult

_log = logging.getLogger("labelonce")
_T = TypeVar("_T")
_Group = list[tuple[Wish, asyncio.Future[Any]]]


class Writer:
    """Writes to a store, so that no request waits for another one's disk.

    `ask` returns when the wish is on the disk, after `heard` was told what has changed. All of it runs in one event
    loop; a thread waits for the disk. What SQLite does before that is done in the loop, in microseconds: a thread that
    is busy with Python would have to be waited for at every statement. A server's answers, and a file that another
    process has locked, are waited for in the thread.
    """

    def __init__(self, store: Store, on_changes: Callable[[Changes], None] = lambda _: None) -> None:
        self.store, self._on_changes = store, on_changes
        self._thread = ThreadPoolExecutor(1, "answers")
        self._waiting: _Group = []
        self._task: asyncio.Task[None] | None = None
        self._look: asyncio.Task[None] | None = None
        self._one_at_a_time = asyncio.Lock()
        self._away_since: float | None = None

    async def ask(self, wish: Wish) -> Outcome:
        """Carry out a request, wait until it is on disk, and return its result."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((wish, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._drain())
        return await future

    async def write(self, wish: Answer | Undo) -> WriteResult:
        """Carry out an answer or an undo, and return its result."""
        found = await self.ask(wish)
        assert isinstance(found, WriteResult)  # what became of a claim is none
        return found

    async def look(self) -> None:
        """Return the changes by other services; callers who arrive before the look share it."""
        if self._look is None:
            self._look = asyncio.create_task(self._looked())
        await asyncio.shield(self._look)

    async def read(self, question: Callable[[Any], _T]) -> _T:
        """Return what a question to the store answers, asked in the thread of the writer."""
        async with self._one_at_a_time:
            with self._watched():
                return await self._in_thread(question)

    async def close(self) -> None:
        """Finish what is waiting and close the store."""
        if self._task is not None:
            with suppress(Exception):  # whoever waits has been told
                await self._task
        await self.read(lambda store: store.close())
        self._thread.shutdown()

    async def _looked(self) -> None:
        async with self._one_at_a_time:
            self._look = None
            with self._watched():
                self._on_changes(await self._in_thread(lambda store: store.look()))

    async def _in_thread(self, job: Callable[[Any], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, job, self.store)

    async def _written(self, wishes: list[Wish]) -> list[Outcome]:
        prepared = None if self.store.is_shared else self.store.prepare(wishes)
        if prepared is None:
            done, news = await self._in_thread(lambda store: store.turn(wishes))
        else:
            done, news = prepared
            await self._in_thread(Store.commit)
        self._on_changes(news)
        return list(done)

    async def _drain(self) -> None:
        while self._waiting:
            async with self._one_at_a_time:
                group, self._waiting = self._waiting, []
                done = await self._tried(group)
                faulty = isinstance(done[0], Exception) and not isinstance(done[0], DatabaseTrouble)
                if faulty and len(group) > 1:  # it may be the fault of one: each for itself
                    done = [(await self._tried([one]))[0] for one in group]
                _settle(group, done)

    async def _tried(self, group: _Group) -> Sequence[Outcome | Exception]:
        """Write a group of answers; return their results, or for all of them the error."""
        try:
            with self._watched():
                return await self._written([wish for wish, _ in group])
        except Exception as error:
            return [error] * len(group)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Log once that the database is unavailable and once that it is back, however many requests come meanwhile."""
        try:
            yield
        except DatabaseTrouble as error:
            if self._away_since is None:
                self._away_since = time.monotonic()
                _log.error("%s Until then requests are answered with 503.", error)
            raise
        if self._away_since is not None:
            _log.warning("%s is there again, after %.0f s.", self.store.name, time.monotonic() - self._away_since)
            self._away_since = None


def _settle(group: _Group, results: Sequence[Outcome | Exception]) -> None:
    """Tell everybody who waits what became of it."""
    for (_, future), found in zip(group, results, strict=True):
        if future.cancelled():
            continue
        if isinstance(found, Exception):
            future.set_exception(found)
        else:
            future.set_result(found)
