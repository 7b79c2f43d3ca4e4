"""A run folder: the result that is there, and the work that is not finished."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from labelonce._messages import show
from labelonce.files._atomic import atomic_write
from labelonce.runs._files import COMMITTED, commit, located, settle

RESULTS = ("run.json", "labels.parquet", "workers.parquet", "model.skops", "report.html")
WORK = ".work"


class RunFolder:
    """A folder with the results of a run, and in `.work` the job and the checkpoint of one that is not finished."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._work = path / WORK
        self._begun = False

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from writing here; a checkpoint outlives errors, and anything outlives a kill."""
        self._check_ours()
        is_new = not self.path.exists()
        self.path.mkdir(parents=True, exist_ok=True)
        handle = _lock(self.path)
        try:
            settle(self.path, RESULTS)
            yield
        except Exception:
            if self._begun and self.checkpoint() is None:
                shutil.rmtree(self._work, ignore_errors=True)
            if is_new and not any(self.path.iterdir()):
                self.path.rmdir()
            raise
        finally:
            if handle is not None:
                os.close(handle)

    def _check_ours(self) -> None:
        if not self.path.exists():
            return
        names = {entry.name for entry in self.path.iterdir()}
        if names and not names & {"run.json", WORK, COMMITTED}:
            raise ValueError(
                f"{self.path} must be a new folder or that of an earlier run; got one with other files, such as "
                f"{show(min(names))}. Name another one with -o."
            )
        _read_json(self.path / "run.json")  # somebody else's may have that name

    def begin(self, job: dict[str, Any]) -> None:
        """Start over: forget unfinished work, and note what is to be done."""
        shutil.rmtree(self._work, ignore_errors=True)
        self._work.mkdir()
        self._begun = True
        atomic_write(self._work / "job.json", json.dumps(job, ensure_ascii=False).encode())

    def unfinished(self) -> dict[str, Any] | None:
        """Return what was to be done by a run that did not finish, None if there is none."""
        return _read_json(self._work / "job.json")

    def finished(self) -> dict[str, Any] | None:
        """Return the `run.json` of the result that is here, None if there is none."""
        return _read_json(self.file("run.json"))

    def file(self, name: str) -> Path:
        """Return where a file of the result lies."""
        return located(self.path, name)

    def save_checkpoint(self, content: bytes, warnings: list[str]) -> None:
        """Keep the state of the fit, and what it has warned of, in place of the ones before.

        The warnings are first: those of a stage whose state is lost come again when it is done again.
        """
        said = {"format": 1, "warnings": warnings}
        atomic_write(self._work / "warnings.json", json.dumps(said, ensure_ascii=False).encode())
        atomic_write(self._work / "checkpoint.skops", content)

    def checkpoint(self) -> bytes | None:
        """Return the last state of the fit that was kept."""
        path = self._work / "checkpoint.skops"
        return path.read_bytes() if path.exists() else None

    def warnings(self) -> list[str]:
        """Return what the unfinished run has warned of so far."""
        return list((_read_json(self._work / "warnings.json") or {"warnings": []})["warnings"])

    def staging(self) -> Path:
        """Return an empty folder for the files of the result."""
        staged = self._work / "result"
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir()
        return staged

    def commit(self) -> None:
        """Put the staged files in place, all at once, and forget the work."""
        commit(self._work / "result", self.path, RESULTS)
        shutil.rmtree(self._work)


def _read_json(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} must be the JSON that labelonce wrote; got: {error}.") from error
    if not isinstance(content, dict) or content.get("format") != 1:
        raise ValueError(f"{path} must be the JSON that labelonce wrote, in format 1; got something else.")
    return content


def _lock(folder: Path) -> int | None:
    """Return a handle that holds the lock of the folder until it is closed or the process ends."""
    try:
        import fcntl
    except ImportError:  # not on this system
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise ValueError(f"{folder} must be free to write to; another labelonce train is at work there.") from error
    return handle
