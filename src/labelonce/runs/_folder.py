"""A run folder: the finished result, which is replaced all at once, and the unfinished run."""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from labelonce._messages import clip, printable, show
from labelonce.files import atomic_write, check_no_file, to_disk
from labelonce.runs._record import Job, JsonRecord, RunRecord, WarningsRecord, read_json, read_record

RESULTS = ("run.json", "labels.parquet", "workers.parquet", "model.skops", "report.html")
START_OVER = "Train again without resuming."
_WORK = ".work"
_COMMITTED = ".committed"
_NEW = "names"


class RunFolder:
    """A folder with the results of a run, and in `.work` the job and the checkpoint of one that is not finished."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._work = path / _WORK
        self._begun = False

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from writing here; a checkpoint survives errors, and everything survives a kill."""
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
        """Raise an error if the folder is not a run folder; a damaged run may be replaced."""
        check_no_file(self.path)
        if not self.path.exists():
            return
        names = {entry.name for entry in self.path.iterdir()}
        if names and not names & {"run.json", _WORK, _COMMITTED}:
            raise ValueError(
                f"{self.path} must be a new folder or that of an earlier run; got one with other files, such as "
                f"{show(min(names))}. Name another folder."
            )
        if "run.json" in names:
            read_json(self.path / "run.json", "Name another folder.")

    def begin(self, job: Job) -> None:
        """Start over: forget unfinished work, and note what is to be done."""
        shutil.rmtree(self._work, ignore_errors=True)
        self._work.mkdir()
        self._begun = True
        write_record(self._work / "job.json", job)

    @property
    def is_unfinished(self) -> bool:
        """Whether a run began here and did not finish."""
        return (self._work / "job.json").exists()

    def unfinished(self) -> Job | None:
        """Return what was to be done by a run that did not finish, None if there is none."""
        return read_record(Job, self._work / "job.json", START_OVER) if self.is_unfinished else None

    def finished(self) -> RunRecord | None:
        """Return the record of the result that is here, None if there is none."""
        path = self.file("run.json")
        fix = "Restore the file, or train again in another folder."
        return read_record(RunRecord, path, fix) if path.exists() else None

    def file(self, name: str) -> Path:
        """Return where a file of the result lies."""
        return located(self.path, name)

    @property
    def results(self) -> list[Path]:
        """The files of a result, there or not, which nothing else may be written over."""
        return [self.path / name for name in RESULTS]

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a table of the result, or those of some columns that it has; a lost or damaged one is an error."""
        path = self.file(name)
        try:
            wanted = columns and [one for one in columns if one in parquet.read_schema(path).names]
            return parquet.read_table(path, columns=wanted)
        except (OSError, pa.ArrowException) as error:
            got = f"got {'a damaged one' if path.exists() else 'none'}. Restore it, or train again."
            raise ValueError(f"{path} must be the table that train wrote; {got}") from error

    def save_checkpoint(self, content: bytes, warnings: list[str]) -> None:
        """Keep the state of the fit, and what it has warned of, in place of the ones before.

        The warnings are first: those of a stage whose state is lost are given again when it is repeated.
        """
        write_record(self._work / "warnings.json", WarningsRecord(warnings))
        atomic_write(self._work / "checkpoint.skops", content)

    def checkpoint(self) -> Path | None:
        """Return where the last state of the fit was kept."""
        path = self._work / "checkpoint.skops"
        return path if path.exists() else None

    def warnings(self) -> list[str]:
        """Return what the unfinished run has warned of so far."""
        path = self._work / "warnings.json"
        return read_record(WarningsRecord, path, START_OVER).warnings if path.exists() else []

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


@contextmanager
def as_train_wrote(folder: Path) -> Iterator[None]:
    """Turn every failure of reading a run folder into one sentence: a file is not as `train` wrote it."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, RecursionError, pa.ArrowException) as error:
        got = printable(f"{type(error).__name__}: {clip(str(error), 200)}")
        raise ValueError(
            f"{folder} must be a run folder as train wrote it; got {got}. Restore it, or train again."
        ) from error


def write_record(path: Path, record: JsonRecord) -> None:
    atomic_write(path, json.dumps(record.to_dict(), indent=1, ensure_ascii=False, allow_nan=False).encode())


def commit(staged: Path, folder: Path, names: tuple[str, ...]) -> None:
    """Make the files in `staged` those of `folder`, all at once; other files of these `names` are removed.

    The rename of the staged folder is the moment: whoever reads with `located` sees the old files before it and the
    new ones after it. A kill in between leaves the moves to the next `settle`.
    """
    atomic_write(staged / _NEW, "\n".join(name for name in names if (staged / name).exists()).encode())
    os.rename(staged, folder / _COMMITTED)
    to_disk(folder)
    settle(folder, names)


def settle(folder: Path, names: tuple[str, ...]) -> None:
    """Finish a commit that was stopped half-way."""
    committed = folder / _COMMITTED
    if (committed / _NEW).exists():  # removed last: without it all moves are done
        new = (committed / _NEW).read_text().split("\n")
        for name in names:
            if name not in new:
                (folder / name).unlink(missing_ok=True)
            elif (committed / name).exists():
                os.replace(committed / name, folder / name)
        to_disk(folder)
        (committed / _NEW).unlink()
    if committed.is_dir():
        shutil.rmtree(committed)


def located(folder: Path, name: str) -> Path:
    """Return where a file of the folder lies, also in the middle of a commit."""
    moving = folder / _COMMITTED / name
    return moving if moving.exists() else folder / name


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
