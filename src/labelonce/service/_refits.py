"""Refits beside the service: a process of its own whenever enough answers are new."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from labelonce.service._fit import BUSY, TOO_FEW, Found, newest
from labelonce.service._project import Project

_MORE = 0.02  # of the labels: with many, fifty new ones change little
_PATIENCE = 5.0  # seconds until another process is asked for again
# What the process runs. It steps back by itself, before it imports anything: asking for that from here would copy the
# memory of the service first, while everybody waits.
_FIT = """
import os, runpy
os.nice(19)
runpy.run_module("labelonce.service._fit", run_name="__main__")
"""


class Refits:
    """Starts fits, one at a time, and hands over what they find.

    Attributes
    ----------
    trouble : str or None
        What the last fit said if it failed.
    """

    def __init__(self, project: Project, adopt: Callable[[Found], Awaitable[None]]) -> None:
        self.project, self._adopt = project, adopt
        self.trouble: str | None = None
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._tried = 0  # labels when the last fit began

    @property
    def is_running(self) -> bool:
        """Whether a fit is being made."""
        return self._task is not None and not self._task.done()

    def began_with(self, n_labels: int) -> None:
        """Note how many labels the newest fit knew."""
        self._tried = n_labels

    def consider(self, n_labels: int) -> None:
        """Start a fit if enough labels are new."""
        if n_labels - self._tried >= max(self.project.settings.refit_every, _MORE * n_labels):
            self.start(n_labels)

    def start(self, n_labels: int) -> bool:
        """Start a fit, unless one is running, and return whether it started."""
        if self.is_running:
            return False
        self._tried = n_labels
        self._task = asyncio.create_task(self._run())
        return True

    async def wait(self) -> None:
        """Wait for the fit that is running."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Stop a fit; the next service finishes it."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.terminate()
            await self._process.wait()

    async def _run(self) -> None:
        code, said = await self._fit()
        while code == BUSY:  # one that an earlier service has left behind
            await asyncio.sleep(_PATIENCE)
            code, said = await self._fit()
        if code not in (0, TOO_FEW):
            self.trouble = said[-1] if said else f"the fit ended with exit code {code}"
            return
        self.trouble = None
        try:
            found = await asyncio.to_thread(newest, self.project)
            if found is not None:
                await self._adopt(found)
        except Exception as error:  # such as a file of tasks that was edited meanwhile
            self.trouble = str(error)

    async def _fit(self) -> tuple[int, list[str]]:
        one_thread: dict[str, Any] = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            _FIT,
            str(self.project.folder.resolve()),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=os.environ | one_thread,
        )
        _, said = await self._process.communicate()
        return self._process.returncode or 0, said.decode(errors="replace").strip().splitlines()
