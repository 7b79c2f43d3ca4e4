"""Refits in a process of their own whenever enough answers are new."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable
from contextlib import suppress

from labelonce.service._fit import BUSY, TOO_FEW, FinishedFit, newest
from labelonce.service._project import Project
from labelonce.service._store import DatabaseTrouble
from labelonce.service._writer import Writer

_MORE = 0.02  # of the labels: with many, fifty new ones change little
_PATIENCE = 5.0  # seconds until another process is asked for again
# What the process runs. It steps back by itself, before it imports anything: asking for that from here would copy the
# memory of the service first, while everybody waits. When the service ends, however that happens, nothing is at the
# other end of stdin any more, and the fit ends with it; the next service finishes it.
_FIT = """
import os, runpy, threading
os.nice(19)
threading.Thread(target=lambda: (os.read(0, 1), os._exit(1)), daemon=True).start()
runpy.run_module("labelonce.service._fit", run_name="__main__")
"""


class Refits:
    """Starts fits, one at a time among all services of a project, and hands over what they find."""

    def __init__(self, project: Project, adopt: Callable[[FinishedFit], Awaitable[None]], writer: Writer) -> None:
        self.project, self._adopt, self._writer = project, adopt, writer
        self.elsewhere = False  # whether another service is fitting
        self._failed = self._failed_elsewhere = ""
        self._believed = self._fetched = 0  # numbers of the newest fits that are believed, and that were asked for
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._fetching: asyncio.Task[None] | None = None
        self._tried = 0  # labels when the last fit began

    @property
    def is_running(self) -> bool:
        """Whether a fit is being made here."""
        return self._task is not None and not self._task.done()

    @property
    def trouble(self) -> str | None:
        """What the last fit said if it failed."""
        return self._failed or self._failed_elsewhere or None

    def began_with(self, found: FinishedFit | None) -> None:
        """Note the newest fit."""
        if found is not None:
            self._believed, self._tried = found.number, max(self._tried, found.about["labels"])

    def consider(self, n_labels: int) -> None:
        """Start a fit if enough labels are new."""
        if n_labels - self._tried >= max(self.project.settings.refit_every, _MORE * n_labels):
            self.start(n_labels)

    def start(self, n_labels: int) -> bool:
        """Start a fit, unless one is running, and return whether it started."""
        if self.is_running or self.elsewhere:
            return False
        self._task = asyncio.create_task(self._run(n_labels))
        return True

    def fetch(self, number: int) -> None:
        """Take over the newest fit, made by another service; it is tried once."""
        if number > self._fetched and not self.is_running and (self._fetching is None or self._fetching.done()):
            self._fetched = number
            self._fetching = asyncio.create_task(self._believe())

    async def look(self) -> None:
        """Look for new fits of the services that share the database."""
        is_locked, self._failed_elsewhere = await self._writer.read(
            lambda store: (store.is_locked("fit"), store.noted("trouble"))
        )
        self.elsewhere = is_locked and not self.is_running

    async def wait(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])

    async def close(self) -> None:
        """Stop a fit; the next service finishes it."""
        for task in (self._task, self._fetching):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.terminate()
            await self._process.wait()

    async def _run(self, n_labels: int) -> None:
        """Fit, unless another service does it; those that share a database have a lock for that."""
        if not self._writer.store.is_shared:
            self._tried = n_labels
            await self._fit_and_believe()
            return
        with suppress(DatabaseTrouble):  # which is logged there; the next answer asks again
            if not await self._writer.read(lambda store: store.lock("fit")):
                return
            try:
                if await self._writer.read(lambda store: store.newest_fit()) == self._believed:  # else one just ended
                    self._tried = n_labels
                    await self._fit_and_believe()
                    await self._writer.read(lambda store: store.note("trouble", self._failed))
            finally:
                await self._writer.read(lambda store: store.unlock("fit"))

    async def _fit_and_believe(self) -> None:
        code, said = await self._fit()
        while code == BUSY:  # one that an earlier service has left behind
            await asyncio.sleep(_PATIENCE)
            code, said = await self._fit()
        self._failed = ""
        if code == 0:
            await self._believe()
        elif code != TOO_FEW:
            self._failed = said[-1] if said else f"the fit ended with exit code {code}"

    async def _believe(self) -> None:
        try:
            found = await asyncio.to_thread(newest, self.project)
            if found is not None:
                await self._adopt(found)
                self.began_with(found)
        except DatabaseTrouble:
            self._fetched = 0
        except Exception as error:  # such as a file of tasks that was edited meanwhile
            self._failed = str(error)

    async def _fit(self) -> tuple[int, list[str]]:
        known = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        known |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PYTHONSAFEPATH"), "1")
        paths = [os.path.abspath(one) for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # nothing is imported from the current folder, which may be that of a project of a stranger
            "-c",
            _FIT,
            str(self.project.folder.resolve()),
            stdin=PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=PIPE,
            env=known | ({"PYTHONPATH": os.pathsep.join(paths)} if paths else {}),
            cwd="/",
        )
        assert self._process.stderr is not None
        said = await self._process.stderr.read()  # not communicate(), which closes stdin
        return await self._process.wait(), said.decode(errors="replace").strip().splitlines()
