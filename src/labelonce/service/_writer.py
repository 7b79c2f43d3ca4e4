"""Answers go to the disk in groups: everything that arrives during one commit shares the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from labelonce.service._store import Answer, Store, Undo, Written

_T = TypeVar("_T")


class Writer:
    """Writes to a store from a thread of its own, so that no request waits for another one's disk.

    `write` returns when the wish is on the disk. All of it runs in one event loop.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._thread = ThreadPoolExecutor(1, "answers")
        self._waiting: list[tuple[Answer | Undo, asyncio.Future[Written]]] = []
        self._task: asyncio.Task[None] | None = None

    async def write(self, wish: Answer | Undo) -> Written:
        """Carry out a wish and wait until it is on the disk."""
        future: asyncio.Future[Written] = asyncio.get_running_loop().create_future()
        self._waiting.append((wish, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._drain())
        return await future

    async def read(self, question: Callable[[Store], _T]) -> _T:
        """Return what a question to the store answers, asked in the thread of the writer."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, question, self._store)

    async def close(self) -> None:
        """Finish what is waiting and close the store."""
        if self._task is not None:
            with suppress(Exception):  # whoever waits has been told
                await self._task
        await self.read(Store.close)
        self._thread.shutdown()

    async def _drain(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting, []
            wishes: list[Any] = [wish for wish, _ in group]
            try:
                done = await self.read(lambda store, wishes=wishes: store.write(wishes))  # type: ignore[misc]  # bound
            except Exception as error:
                for _, future in group:
                    if not future.cancelled():
                        future.set_exception(error)
                continue
            for (_, future), written in zip(group, done, strict=True):
                if not future.cancelled():
                    future.set_result(written)
