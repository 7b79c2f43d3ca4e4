"""Answers go to the disk in groups: everything that arrives during one commit shares the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from labelonce.service._store import Answer, Store, Undo, Written

_T = TypeVar("_T")
_Group = list[tuple[Answer | Undo, asyncio.Future[Written]]]


class Writer:
    """Writes to a store, so that no request waits for another one's disk.

    `write` returns when the wish is on the disk. All of it runs in one event loop; a thread waits for the disk. What
    SQLite does before that is done in the loop, in microseconds: a thread that is busy with Python would have to be
    waited for at every statement. A server's answers are waited for in the thread.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._thread = ThreadPoolExecutor(1, "answers")
        self._waiting: _Group = []
        self._task: asyncio.Task[None] | None = None
        self._one_at_a_time = asyncio.Lock()

    async def write(self, wish: Answer | Undo) -> Written:
        """Carry out a wish and wait until it is on the disk."""
        future: asyncio.Future[Written] = asyncio.get_running_loop().create_future()
        self._waiting.append((wish, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._drain())
        return await future

    async def read(self, question: Callable[[Store], _T]) -> _T:
        """Return what a question to the store answers, asked in the thread of the writer."""
        async with self._one_at_a_time:
            return await self._in_thread(question)

    async def close(self) -> None:
        """Finish what is waiting and close the store."""
        if self._task is not None:
            with suppress(Exception):  # whoever waits has been told
                await self._task
        await self.read(Store.close)
        self._thread.shutdown()

    async def _in_thread(self, job: Callable[[Store], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, job, self._store)

    async def _written(self, wishes: list[Answer | Undo]) -> list[Written]:
        if self._store.is_postgres:
            return await self._in_thread(lambda store: store.write(wishes))
        done = self._store.prepare(wishes)
        await self._in_thread(Store.commit)
        return done

    async def _drain(self) -> None:
        while self._waiting:
            async with self._one_at_a_time:
                group, self._waiting = self._waiting, []
                done = await self._tried(group)
                if isinstance(done[0], Exception) and len(group) > 1:  # it may be the fault of one: each for itself
                    done = [(await self._tried([one]))[0] for one in group]
                _settle(group, done)

    async def _tried(self, group: _Group) -> Sequence[Written | Exception]:
        """Write a group and return what became of it, or for everybody why it failed."""
        try:
            return await self._written([wish for wish, _ in group])
        except Exception as error:
            return [error] * len(group)


def _settle(group: _Group, results: Sequence[Written | Exception]) -> None:
    """Tell everybody who waits what became of it."""
    for (_, future), found in zip(group, results, strict=True):
        if future.cancelled():
            continue
        if isinstance(found, Exception):
            future.set_exception(found)
        else:
            future.set_result(found)
