"""The answers of a project, from which all else is computed: a SQLite file. `_postgres` has the same for a server."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from labelonce.files import atomic_path

TABLES = """
CREATE TABLE IF NOT EXISTS answers (
    id {serial}, worker TEXT NOT NULL, key TEXT NOT NULL, task TEXT NOT NULL, label TEXT, reason TEXT,
    origin TEXT, seconds DOUBLE PRECISION, given_at DOUBLE PRECISION NOT NULL, undone_at DOUBLE PRECISION,
    UNIQUE (worker, key));
CREATE UNIQUE INDEX IF NOT EXISTS one_answer ON answers (worker, task) WHERE undone_at IS NULL;
CREATE INDEX IF NOT EXISTS origins ON answers (origin);
CREATE INDEX IF NOT EXISTS tasks ON answers (task);
CREATE TABLE IF NOT EXISTS tokens (
    hash TEXT PRIMARY KEY, role TEXT NOT NULL, worker TEXT NOT NULL, made_at DOUBLE PRECISION NOT NULL);
CREATE TABLE IF NOT EXISTS comments (
    id {serial}, worker TEXT NOT NULL, key TEXT NOT NULL, task TEXT NOT NULL, text TEXT NOT NULL,
    flagged BOOLEAN NOT NULL, given_at DOUBLE PRECISION NOT NULL, UNIQUE (worker, key))
"""
COLUMNS = "id, worker, key, task, label, reason, origin, seconds, given_at, undone_at"
ADD = (
    "INSERT INTO answers (worker, key, task, label, reason, origin, seconds, given_at)"
    f" VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING {COLUMNS}"
)
FIND_OTHER = (
    f"SELECT {COLUMNS} FROM answers"
    " WHERE worker = ? AND (key = ? OR (task = ? AND undone_at IS NULL)) ORDER BY key = ? DESC"
)
FIND_OWN = f"SELECT {COLUMNS} FROM answers WHERE id = ? AND worker = ?"
_BUSY_SECONDS = 10
_FIXES = {
    sqlite3.SQLITE_BUSY: "Close the program that has it locked.",
    sqlite3.SQLITE_FULL: "Make room on the disk.",
    sqlite3.SQLITE_CORRUPT: "Restore it from a backup that labelonce project --backup made.",
    sqlite3.SQLITE_NOTADB: "Restore it from a backup that labelonce project --backup made.",
}

_T = TypeVar("_T")


class DatabaseTrouble(OSError):
    """The database is unavailable for now."""


class AnswerRow(NamedTuple):
    """A row of `answers`: a label, or without one a skipped task; `undone_at` if it was taken back."""

    id: int
    worker: str
    key: str
    task: str
    label: str | None
    reason: str | None
    origin: str | None
    seconds: float | None
    given_at: float
    undone_at: float | None


@dataclass(frozen=True)
class Answer:
    """A worker's answer to a task: a label, or None with the reason why it was skipped.

    `key` is the worker's own name for it: what has a key that was there before is not written again. `origin` names it
    in the tool where it was given, if that is another one.
    """

    worker: str
    key: str
    task: str
    label: str | None
    reason: str | None = None
    seconds: float | None = None
    origin: str | None = None


@dataclass(frozen=True)
class Undo:
    """A request to undo the worker's own answer and, with `again`, to get its task next."""

    worker: str
    id: int
    again: bool = True


class Comment(NamedTuple):
    """A worker's comment on a task; `flagged` if the admin should look at it."""

    worker: str
    key: str
    task: str
    text: str
    flagged: bool
    given_at: float


class Claim(NamedTuple):
    """A worker's request for the first free one of some tasks."""

    worker: str
    tasks: list[str]


class Release(NamedTuple):
    """A worker's request to give a task back."""

    worker: str
    task: str


class WriteResult(NamedTuple):
    """The result of an answer or an undo: the row (None if the worker has no such row) and whether it changed."""

    row: AnswerRow | None
    changed: bool


class Lease(NamedTuple):
    """The task that is leased to a worker for `seconds` more; None if there is none."""

    worker: str
    task: str | None
    seconds: float


class Changes(NamedTuple):
    """The changes since the last look: answers given or undone, in their order; leases; the newest fit."""

    answers: list[AnswerRow]
    leases: list[Lease]
    fit: int


Wish = Answer | Undo | Claim | Release
Outcome = WriteResult | str | None


class Store:
    """A database of answers and tokens.

    Every method may be called from any one thread at a time; open a second store for another one.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = Store(str(pathlib.Path(folder.name, "annotations.db")))
    >>> answer = Answer("ann", "key 1", "img1", "cat")
    >>> [written.changed for written in store.write([answer, answer])]
    [True, False]
    >>> [row.label for row in store.answers()]
    ['cat']
    >>> store.close(); folder.cleanup()
    """

    is_shared = False  # whether several services work on it at the same time

    def __init__(self, url: str) -> None:
        self.url = url
        self._connection: Any = None
        self._done(self._make_tables)

    @property
    def name(self) -> str:
        """What messages call the database."""
        return self.url

    def turn(self, wishes: Sequence[Wish]) -> tuple[list[Outcome], Changes]:
        """Carry out requests in one transaction; return their results and all changes.

        When this returns, it is on the disk.
        """
        return with_news(self._done(lambda: self._carry_out(wishes)))

    def write(self, wishes: Sequence[Answer | Undo]) -> list[WriteResult]:
        """Carry out answers and undos as `turn` does, and return their results."""
        return [found for found in self.turn(wishes)[0] if isinstance(found, WriteResult)]

    def begin(self) -> list[AnswerRow]:
        return self.answers()

    def answers(self, *, undone: bool = False) -> list[AnswerRow]:
        """Return the answers in the order in which they were given, by default without those taken back."""
        rule = "" if undone else " WHERE undone_at IS NULL"
        return self._read(f"SELECT {COLUMNS} FROM answers{rule} ORDER BY id")

    def from_origin(self, origin: str) -> list[AnswerRow]:
        """Return the answers of that name in another tool, except those taken back."""
        rule = "origin = ? AND undone_at IS NULL"
        return self._read(f"SELECT {COLUMNS} FROM answers WHERE {rule} ORDER BY id", (origin,))

    def given(self, worker: str, task: str) -> list[AnswerRow]:
        """Return a worker's answer about a task, unless it was taken back."""
        rule = "worker = ? AND task = ? AND undone_at IS NULL"
        return self._read(f"SELECT {COLUMNS} FROM answers WHERE {rule}", (worker, task))

    def answer(self, worker: str, number: int) -> AnswerRow | None:
        """Return a worker's answer of this number, also one that was taken back; None where it has none."""
        return next(iter(self._read(FIND_OWN, (number, worker))), None)

    def of_task(self, task: str) -> list[AnswerRow]:
        """Return the answers about a task, except those taken back."""
        return self._read(f"SELECT {COLUMNS} FROM answers WHERE task = ? AND undone_at IS NULL ORDER BY id", (task,))

    def recent(self, worker: str, n: int) -> list[AnswerRow]:
        """Return a worker's newest answers, the newest first."""
        rule = "worker = ? AND undone_at IS NULL ORDER BY id DESC LIMIT ?"
        return self._read(f"SELECT {COLUMNS} FROM answers WHERE {rule}", (worker, n))

    def add_comment(self, comment: Comment) -> None:
        """Keep a comment; what has a key that was there before is not written again."""
        columns = ", ".join(Comment._fields)
        sql = f"INSERT INTO comments ({columns}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        self._done(lambda: self._run(sql, (*comment[:-1], now())))

    def comments(self) -> list[Comment]:
        """Return all comments, the newest first."""
        rows = self._rows(f"SELECT {', '.join(Comment._fields)} FROM comments ORDER BY id DESC")
        return [Comment(*row)._replace(flagged=bool(row[4])) for row in rows]

    def add_token(self, hashed: str, role: str, worker: str) -> None:
        sql = "INSERT INTO tokens (hash, role, worker, made_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
        self._done(lambda: self._run(sql, (hashed, role, worker, now())))

    def remove_tokens(self, worker: str) -> int:
        sql = "DELETE FROM tokens WHERE role = 'worker' AND worker = ? RETURNING hash"
        return self._done(lambda: len(self._run(sql, (worker,)).fetchall()))

    def tokens(self) -> dict[str, tuple[str, str]]:
        """Return role and worker by the hashes of all tokens."""
        rows = self._rows("SELECT hash, role, worker FROM tokens ORDER BY made_at")
        return {hashed: (role, worker) for hashed, role, worker in rows}

    def backup(self, path: Path) -> None:
        """Write a copy of the database to a file that appears whole or not at all, also while it is served."""
        with atomic_path(path) as target, self._in_words():
            copy = _opened(str(target))
            try:
                self._connected().backup(copy)
            finally:
                copy.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def prepare(self, wishes: Sequence[Wish]) -> tuple[list[Outcome], Changes] | None:
        """Do what `turn` does except the commit; return None if the file is locked.

        Nothing is on the disk before `commit`, and nobody is waited for.
        """
        connection = self._connected()
        try:
            with self._in_words():
                connection.execute("PRAGMA busy_timeout = 0")
                return with_news(self._carry_out(wishes))
        except BaseException as error:
            connection.rollback()
            if isinstance(error.__cause__, sqlite3.Error) and _code(error.__cause__) == sqlite3.SQLITE_BUSY:
                return None
            raise
        finally:
            connection.execute(f"PRAGMA busy_timeout = {1000 * _BUSY_SECONDS}")

    def commit(self) -> None:
        """Commit what was prepared; if that fails, no part of it is committed later."""
        self._done(lambda: None)

    def _make_tables(self) -> None:
        for statement in TABLES.format(serial="INTEGER PRIMARY KEY AUTOINCREMENT").split(";"):
            self._run(statement)

    def _carry_out(self, wishes: Sequence[Wish]) -> list[WriteResult]:
        """Claims are ignored: a single service keeps the leases in memory."""
        known = (wish for wish in wishes if not isinstance(wish, Claim | Release))
        return [self._add(wish) if isinstance(wish, Answer) else self._undo(wish) for wish in known]

    def _add(self, answer: Answer) -> WriteResult:
        new = self._run(ADD, row_of(answer)).fetchall()
        if new:
            return WriteResult(AnswerRow(*new[0]), True)
        found = self._run(FIND_OTHER, (answer.worker, answer.key, answer.task, answer.key)).fetchall()
        return WriteResult(AnswerRow(*found[0]), False)

    def _undo(self, undo: Undo) -> WriteResult:
        rule = "id = ? AND worker = ? AND undone_at IS NULL"
        sql = f"UPDATE answers SET undone_at = ? WHERE {rule} RETURNING {COLUMNS}"
        rows = self._run(sql, (now(), undo.id, undo.worker)).fetchall()
        if rows:
            return WriteResult(AnswerRow(*rows[0]), True)
        rows = self._run(FIND_OWN, (undo.id, undo.worker)).fetchall()
        return WriteResult(AnswerRow(*rows[0]) if rows else None, False)

    def _read(self, sql: str, parameters: Sequence[Any] = ()) -> list[AnswerRow]:
        return [AnswerRow(*row) for row in self._rows(sql, parameters)]

    def _rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        found: list[Any] = self._done(lambda: self._run(sql, parameters).fetchall())
        return found

    def _run(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        return self._connected().execute(sql, parameters)

    def _done(self, job: Callable[[], _T]) -> _T:
        """Carry out a job in one transaction, whole or not at all; a read, too, ends its transaction."""
        with self._in_words():
            try:
                found = job()
                self._connected().commit()
            except BaseException:
                if self._connection is not None:
                    self._connection.rollback()
                raise
            return found

    def _connected(self) -> Any:
        if self._connection is None:
            self._connection = _opened(self.url)
        return self._connection

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        """Say what is wrong with the file in a sentence."""
        try:
            yield
        except sqlite3.Error as error:
            if type(error) not in (sqlite3.OperationalError, sqlite3.DatabaseError):
                raise
            fix = _FIXES.get(_code(error), "Check the path, and who may write there.")
            must = "must be a whole SQLite database that can be read and written"
            raise DatabaseTrouble(f"{self.name} {must}; got: {error}. {fix}") from error


def with_news(done: Sequence[WriteResult]) -> tuple[list[Outcome], Changes]:
    """Return outcomes with what they have changed."""
    return list(done), Changes([one.row for one in done if one.changed and one.row is not None], [], 0)


def same(stored: AnswerRow, answer: Answer) -> bool:
    """Return whether a row is the answer, given before under the same key."""
    return all(getattr(stored, name) == getattr(answer, name) for name in ("key", "task", "label", "reason"))


def labels(rows: Iterable[AnswerRow]) -> list[AnswerRow]:
    return [row for row in rows if row.label is not None]


def row_of(answer: Answer) -> tuple[Any, ...]:
    """Return the values of a new row, in the order of `ADD`."""
    one = answer
    return one.worker, one.key, one.task, one.label, one.reason, one.origin, one.seconds, now()


def now() -> float:
    return time.time()


def _code(error: sqlite3.Error) -> int:
    """Return SQLite's code of an error, without the details in its upper bits."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def _opened(path: str) -> sqlite3.Connection:
    with suppress(OSError):  # what is wrong with the path SQLite says
        # Only its owner may read it. A file that is there is not opened here: to close it would end SQLite's locks.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")  # an acknowledged answer survives a power cut, too
    return connection
