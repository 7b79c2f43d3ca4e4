"""The answers of a project, which are its only truth: the same SQL for SQLite and for PostgreSQL."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

_TABLES = """
CREATE TABLE IF NOT EXISTS answers (
    id {serial}, worker TEXT NOT NULL, key TEXT NOT NULL, task TEXT NOT NULL, label TEXT, reason TEXT,
    origin TEXT, seconds DOUBLE PRECISION, given_at DOUBLE PRECISION NOT NULL, undone_at DOUBLE PRECISION,
    UNIQUE (worker, key));
CREATE UNIQUE INDEX IF NOT EXISTS one_answer ON answers (worker, task) WHERE undone_at IS NULL;
CREATE INDEX IF NOT EXISTS origins ON answers (origin);
CREATE TABLE IF NOT EXISTS tokens (
    hash TEXT PRIMARY KEY, role TEXT NOT NULL, worker TEXT NOT NULL, made_at DOUBLE PRECISION NOT NULL)
"""
_COLUMNS = "id, worker, key, task, label, reason, origin, seconds, given_at, undone_at"
_BUSY_SECONDS = 30


class Stored(NamedTuple):
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
    """What a worker said of a task: a label, or None with the reason why it was skipped.

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
    """The wish to take back an answer of one's own."""

    worker: str
    id: int


class Written(NamedTuple):
    """What became of a wish: the row, None if there is no such row for this worker, and whether it changed."""

    row: Stored | None
    changed: bool


class Connection(Protocol):
    """What both databases' connections have in common, as `Store` uses them."""

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        """Run a statement and return its cursor."""

    def commit(self) -> None:
        """End the transaction and keep it."""

    def rollback(self) -> None:
        """End the transaction and forget it."""

    def close(self) -> None:
        """Close the connection."""


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

    def __init__(self, url: str) -> None:
        self.url = url
        self.is_postgres = url.startswith(("postgresql://", "postgres://"))
        self._connection: Connection | None = None
        serial = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
        tables = _TABLES.format(serial=serial if self.is_postgres else "INTEGER PRIMARY KEY AUTOINCREMENT")
        for statement in tables.split(";"):
            self._run(statement)
        self._connected().commit()

    def write(self, wishes: Sequence[Answer | Undo]) -> list[Written]:
        """Carry out answers and undos in one transaction: when this returns, they are on the disk."""
        try:
            return self._write(wishes)
        except self._lost():  # a repeated wish is found by its key, so nothing is written twice
            self._connection = None
            return self._write(wishes)

    def answers(self, *, after: int = 0, undone: bool = False) -> list[Stored]:
        """Return the answers in the order in which they were given, by default without those taken back."""
        rule = "" if undone else " AND undone_at IS NULL"
        return self._read(f"SELECT {_COLUMNS} FROM answers WHERE id > ?{rule} ORDER BY id", (after,))

    def from_origin(self, origin: str) -> list[Stored]:
        """Return the answers of that name in another tool, except those taken back."""
        rule = "origin = ? AND undone_at IS NULL"
        return self._read(f"SELECT {_COLUMNS} FROM answers WHERE {rule} ORDER BY id", (origin,))

    def given(self, worker: str, task: str) -> list[Stored]:
        """Return a worker's answer about a task, unless it was taken back."""
        rule = "worker = ? AND task = ? AND undone_at IS NULL"
        return self._read(f"SELECT {_COLUMNS} FROM answers WHERE {rule}", (worker, task))

    def add_token(self, hashed: str, role: str, worker: str) -> None:
        """Keep the hash of a token."""
        self._run(
            "INSERT INTO tokens (hash, role, worker, made_at) VALUES (?, ?, ?, ?)", (hashed, role, worker, _now())
        )
        self._connected().commit()

    def remove_tokens(self, worker: str) -> int:
        """Forget all tokens of a worker and return how many there were."""
        gone = self._run("DELETE FROM tokens WHERE role = 'worker' AND worker = ? RETURNING hash", (worker,)).fetchall()
        self._connected().commit()
        return len(gone)

    def tokens(self) -> dict[str, tuple[str, str]]:
        """Return role and worker by the hashes of all tokens."""
        rows = self._rows("SELECT hash, role, worker FROM tokens ORDER BY made_at")
        return {hashed: (role, worker) for hashed, role, worker in rows}

    def lock(self) -> bool:
        """Return whether no other service works on this database, and keep others out; SQLite's folder is locked."""
        if not self.is_postgres:
            return True
        return bool(self._rows("SELECT pg_try_advisory_lock(hashtext('labelonce'))")[0][0])

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def prepare(self, wishes: Sequence[Answer | Undo]) -> list[Written]:
        """Do what `write` does but for the end: nothing is on the disk before `commit`."""
        try:
            return [self._add(wish) if isinstance(wish, Answer) else self._undo(wish) for wish in wishes]
        except BaseException:
            self._connected().rollback()
            raise

    def commit(self) -> None:
        """Bring to the disk what was prepared; where that fails, nothing of it comes with a later one."""
        try:
            self._connected().commit()
        except BaseException:
            self._connected().rollback()
            raise

    def _write(self, wishes: Sequence[Answer | Undo]) -> list[Written]:
        done = self.prepare(wishes)
        self.commit()
        return done

    def _add(self, answer: Answer) -> Written:
        one = answer
        values = (one.worker, one.key, one.task, one.label, one.reason, one.origin, one.seconds, _now())
        sql = "INSERT INTO answers (worker, key, task, label, reason, origin, seconds, given_at)"
        sql += f" VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING {_COLUMNS}"
        new = self._run(sql, values).fetchall()
        if new:
            return Written(Stored(*new[0]), True)
        rule = "worker = ? AND (key = ? OR (task = ? AND undone_at IS NULL)) ORDER BY key = ? DESC"
        sql = f"SELECT {_COLUMNS} FROM answers WHERE {rule}"
        found = self._run(sql, (answer.worker, answer.key, answer.task, answer.key)).fetchall()
        return Written(Stored(*found[0]), False)

    def _undo(self, undo: Undo) -> Written:
        rule = "id = ? AND worker = ?"
        sql = f"UPDATE answers SET undone_at = ? WHERE {rule} AND undone_at IS NULL RETURNING {_COLUMNS}"
        rows = self._run(sql, (_now(), undo.id, undo.worker)).fetchall()
        if rows:
            return Written(Stored(*rows[0]), True)
        rows = self._run(f"SELECT {_COLUMNS} FROM answers WHERE {rule}", (undo.id, undo.worker)).fetchall()
        return Written(Stored(*rows[0]) if rows else None, False)

    def _read(self, sql: str, parameters: Sequence[Any]) -> list[Stored]:
        return [Stored(*row) for row in self._rows(sql, parameters)]

    def _rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        found: list[Any] = self._run(sql, parameters).fetchall()
        self._connected().commit()  # a read, too, opens a transaction, which would keep old rows alive
        return found

    def _run(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        return self._connected().execute(sql.replace("?", "%s") if self.is_postgres else sql, parameters)

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = _postgres(self.url) if self.is_postgres else _sqlite(self.url)
        return self._connection

    def _lost(self) -> tuple[type[Exception], ...]:
        """Return the errors of a connection that broke; a file has none."""
        if not self.is_postgres:
            return ()
        import psycopg

        return (psycopg.OperationalError,)


def same(stored: Stored, answer: Answer) -> bool:
    """Return whether a row is the answer, given before under the same key."""
    return (stored.key, stored.task, stored.label, stored.reason) == (
        answer.key,
        answer.task,
        answer.label,
        answer.reason,
    )


def labels(rows: Iterable[Stored]) -> list[Stored]:
    """Return the rows that are labels, not skips."""
    return [row for row in rows if row.label is not None]


def _now() -> float:
    return time.time()


def _sqlite(path: str) -> Connection:
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")  # an acknowledged answer survives a power cut, too
    return connection


def _postgres(url: str) -> Connection:
    try:
        import psycopg
    except ImportError as error:
        raise ImportError("PostgreSQL needs psycopg; install it with: pip install 'labelonce[postgres]'.") from error
    return psycopg.connect(url)


def database_of(folder: Path, name: str) -> str:
    """Return the URL of a database that is named in the settings: a file in the folder, or a server."""
    return name if "://" in name else str(folder / name)
