"""What several services share in one PostgreSQL: answers and tokens, who has which task, and the fits.

Whoever writes takes a turn: a transaction under one advisory lock. So the numbers in the columns `change` grow in the
order of commits, and whoever asks for what is newer than the last number it knows misses nothing.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

import psycopg
from psycopg import conninfo

from labelonce._messages import printable
from labelonce.service._secrets import without_secrets
from labelonce.service._store import (
    ADD,
    COLUMNS,
    FIND_OTHER,
    FIND_OWN,
    TABLES,
    Answer,
    AnswerRow,
    Changes,
    Claim,
    DatabaseTrouble,
    Lease,
    Outcome,
    Release,
    Store,
    Undo,
    Wish,
    WriteResult,
    now,
    row_of,
)

_SHARED = """
CREATE SEQUENCE IF NOT EXISTS changes;
ALTER TABLE answers ADD COLUMN IF NOT EXISTS change BIGINT NOT NULL DEFAULT nextval('changes');
CREATE INDEX IF NOT EXISTS changed ON answers (change);
CREATE TABLE IF NOT EXISTS leases (
    worker TEXT PRIMARY KEY, task TEXT UNIQUE, until TIMESTAMPTZ NOT NULL, change BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS fits (
    number BIGINT PRIMARY KEY, about TEXT NOT NULL, belief BYTEA, annotations BYTEA);
CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, value TEXT NOT NULL)
"""
_LOCKS = {"turn": 1, "service": 2, "fit": 3, "label-studio": 4}
_SPACE = "hashtext('labelonce ' || current_schema())"  # the locks are those of one project
# A service that hangs or is cut off must not keep the others waiting: the server ends its session.
_SESSION = (
    "SET statement_timeout = '30s'; SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '10s';"
    " SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3"
)
_PATIENCE: dict[str, Any] = {"connect_timeout": 3, "keepalives_idle": 10, "tcp_user_timeout": 15_000}
_KEPT = 3  # fits whose beliefs are kept; of older ones only what the history shows

_FREE = "UPDATE leases SET task = NULL, change = nextval('changes') WHERE"
_FREE_EXPIRED = f"{_FREE} task = ANY(?) AND until <= clock_timestamp()"
_RELEASE = f"{_FREE} worker = ? AND task = ? RETURNING worker"
_ADD = f"WITH released AS ({_RELEASE}) {ADD}"
_LEASE = """
INSERT INTO leases (worker, task, until, change)
SELECT ?, wanted.task, clock_timestamp() + ?::float8 * INTERVAL '1 second', nextval('changes')
FROM unnest(?::text[]) WITH ORDINALITY AS wanted (task, place) WHERE {free} ORDER BY place LIMIT 1
ON CONFLICT (worker) DO UPDATE SET task = excluded.task, until = excluded.until, change = excluded.change
RETURNING task
"""
_CLAIM = _LEASE.format(
    free="NOT EXISTS (SELECT FROM leases WHERE leases.task = wanted.task"
    " OR (worker = ? AND leases.task IS NOT NULL AND until > clock_timestamp()))"
    " AND NOT EXISTS (SELECT FROM answers WHERE worker = ? AND answers.task = wanted.task AND undone_at IS NULL)"
)
_CLAIM_AGAIN = _LEASE.format(free="NOT EXISTS (SELECT FROM leases WHERE leases.task = wanted.task AND worker <> ?)")
_HELD = "SELECT task FROM leases WHERE worker = ? AND task IS NOT NULL AND until > clock_timestamp()"
_UNDO = (
    "UPDATE answers SET undone_at = ?, change = nextval('changes')"
    f" WHERE id = ? AND worker = ? AND undone_at IS NULL RETURNING {COLUMNS}"
)
_CHANGED = f"SELECT {COLUMNS}, change FROM answers WHERE change > ? ORDER BY change"
_LEASED = (
    "SELECT worker, task, extract(epoch FROM until - clock_timestamp())::float8, change FROM leases"
    " WHERE change > ? ORDER BY until"
)
_NOTE = "INSERT INTO notes VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_NEWEST = "SELECT coalesce(max(number), 0) FROM fits"
_IS_LOCKED = (
    "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND objid = ?"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    f" AND classid = ({_SPACE}::bigint & 4294967295)::oid)"
)

_T = TypeVar("_T")

logging.getLogger("psycopg").setLevel(logging.CRITICAL)  # a connection that broke is told in our own words


class SharedStore(Store):
    """A `Store` in a PostgreSQL, on which several services work at the same time."""

    is_shared = True

    def __init__(self, url: str, *, lease_seconds: float = 600.0) -> None:
        self._lease_seconds = lease_seconds
        self._seen = (0, 0)  # the last changes of answers and of leases that were told
        self._held: dict[str, bool] = {}  # locks of this session, and whether others may have them, too
        self._subject = ""
        try:
            parts = conninfo.conninfo_to_dict(url)
        except psycopg.Error:
            raise ValueError(
                "the database must be postgresql://USER:PASSWORD@HOST/NAME; got another address."
            ) from None
        self._address = conninfo.make_conninfo(**(_PATIENCE | parts))
        self._name = f"the PostgreSQL database {parts.get('dbname') or ''} at {parts.get('host') or 'this machine'}"
        super().__init__(url)

    @property
    def name(self) -> str:
        """What messages call the database: without user and password."""
        return self._name

    def begin(self) -> list[AnswerRow]:
        """Return all answers; `look` then tells what is newer, and all leases."""

        def job() -> list[AnswerRow]:
            self._run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")  # both are of one moment
            seen = self._run("SELECT coalesce(max(change), 0) FROM answers").fetchone()[0]
            rows = self._run(f"SELECT {COLUMNS} FROM answers WHERE undone_at IS NULL ORDER BY id").fetchall()
            self._seen = (seen, 0)
            return [AnswerRow(*row) for row in rows]

        return self._done(job)

    def look(self) -> Changes:
        """Return the changes since the last call."""
        return self._news(self._done(lambda: [cursor.fetchall() for cursor in self._ask()]))

    def turn(self, wishes: Sequence[Wish]) -> tuple[list[Outcome], Changes]:
        """Carry out requests in one transaction; return their results, and all changes with their own."""

        def job() -> tuple[list[Outcome], list[Any]]:
            self._run(f"SELECT pg_advisory_xact_lock({_SPACE}, {_LOCKS['turn']})")
            tried = [self._try(wish) for wish in wishes]
            done = [cursor.fetchall() for cursor in tried]
            second = [self._follow(wish, rows) for wish, rows in zip(wishes, done, strict=True)]
            asked = self._ask()
            return list(map(_became, wishes, done, second)), [cursor.fetchall() for cursor in asked]

        found, asked = self._done(job)
        return found, self._news(asked)

    def join(self, subject: str) -> None:
        """Serve from now on together with others, who must serve the same `subject`."""
        with self._in_words():
            if alone := self._lock("service", "try_advisory_lock"):
                self._run(_NOTE, ("subject", subject))
            self._lock("service", "advisory_lock_shared")
            if alone:
                self._lock("service", "advisory_unlock")
            self._subject, self._held["service"] = subject, True
            self._check_subject()

    def lock(self, name: str) -> bool:
        """Return whether nobody else has a lock, and keep others from having it; it is taken again after a break."""
        if name not in self._held and self._done(lambda: self._lock(name, "try_advisory_lock")):
            self._held[name] = False
        return name in self._held

    def unlock(self, name: str) -> None:
        """Let others have a lock."""
        if self._held.pop(name, None) is not None:
            self._done(lambda: self._lock(name, "advisory_unlock"))

    def is_locked(self, name: str) -> bool:
        return bool(self._rows(_IS_LOCKED, (_LOCKS[name],))[0][0])

    def note(self, name: str, value: str) -> None:
        """Write down something for all services."""
        self._done(lambda: self._run(_NOTE, (name, value)))

    def noted(self, name: str) -> str:
        """Return what was written down, nothing by default."""
        rows = self._rows("SELECT value FROM notes WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else ""

    def publish(self, number: int, about: str, belief: bytes, annotations: bytes) -> None:
        """Share a fit with all services; a fit that another service shared first stays."""
        add, old = "INSERT INTO fits VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", "belief IS NOT NULL AND number <= ?"

        def job() -> None:
            self._run(add, (number, about, belief, annotations))
            self._run(f"UPDATE fits SET belief = NULL, annotations = NULL WHERE {old}", (number - _KEPT,))

        self._done(job)

    def fits(self) -> list[tuple[int, str]]:
        """Return number and description of all fits, the oldest first."""
        return self._rows("SELECT number, about FROM fits ORDER BY number")

    def newest_fit(self) -> int:
        return int(self._rows(_NEWEST)[0][0])

    def fit(self, number: int) -> tuple[bytes, bytes]:
        """Return belief and annotations of one of the newest fits."""
        belief, annotations = self._rows("SELECT belief, annotations FROM fits WHERE number = ?", (number,))[0]
        return belief, annotations

    def backup(self, path: Path) -> None:
        """Raise: PostgreSQL has its own tools."""
        raise ValueError(f"a backup must be made of a SQLite file; got {self.name}, for {path}. Use pg_dump.")

    def close(self) -> None:
        with suppress(psycopg.Error):
            super().close()
        self._connection = None

    def _make_tables(self) -> None:
        """Make the tables if they are missing: making them again would wait for all readers."""
        script, known = f"{TABLES};{_SHARED}", "SELECT FROM notes WHERE name = 'tables' AND value = ?"
        made = str(crc32(script.encode()))
        if self._run("SELECT to_regclass('notes')").fetchone()[0] and self._run(known, (made,)).fetchone() is not None:
            return
        self._run(f"SELECT pg_advisory_xact_lock({_SPACE}, {_LOCKS['turn']})")  # of two at once one would fail
        for statement in script.split(";"):
            self._run(statement.format(serial="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"))
        self._run(_NOTE, ("tables", made))

    def _try(self, wish: Wish) -> Any:
        """Send a request to write, and return the future of its result."""
        if isinstance(wish, Answer):
            return self._run(_ADD, (wish.worker, wish.task, *row_of(wish)))
        if isinstance(wish, Undo):
            return self._run(_UNDO, (now(), wish.id, wish.worker))
        if isinstance(wish, Release):
            return self._run(_RELEASE, wish)
        return self._run(_CLAIM, (wish.worker, self._lease_seconds, wish.tasks, wish.worker, wish.worker))

    def _follow(self, wish: Wish, rows: list[Any]) -> Any:
        """Send what a wish needs after its first outcome."""
        if isinstance(wish, Undo) and rows and wish.again:
            row = AnswerRow(*rows[0])
            self._run(_FREE_EXPIRED, ([row.task],))
            return self._run(_CLAIM_AGAIN, (row.worker, self._lease_seconds, [row.task], row.worker))
        if rows or isinstance(wish, Release):
            return None
        if isinstance(wish, Answer):
            return self._run(FIND_OTHER, (wish.worker, wish.key, wish.task, wish.key))
        if isinstance(wish, Undo):
            return self._run(FIND_OWN, (wish.id, wish.worker))
        self._run(_FREE_EXPIRED, (wish.tasks,))  # for the next claim
        return self._run(_HELD, (wish.worker,))

    def _ask(self) -> list[Any]:
        answers, leases = self._seen
        return [self._run(_CHANGED, (answers,)), self._run(_LEASED, (leases,)), self._run(_NEWEST)]

    def _news(self, asked: list[Any]) -> Changes:
        answers, leases, newest = asked
        last = (max((row[-1] for row in rows), default=seen) for rows, seen in zip(asked, self._seen, strict=False))
        self._seen = (next(last), next(last))
        return Changes([AnswerRow(*row[:-1]) for row in answers], [Lease(*row[:-1]) for row in leases], newest[0][0])

    def _lock(self, name: str, how: str) -> bool:
        return self._run(f"SELECT pg_{how}({_SPACE}, {_LOCKS[name]})").fetchone()[0] is not False

    def _check_subject(self) -> None:
        if self._run("SELECT value FROM notes WHERE name = 'subject'").fetchone()[0] != self._subject:
            raise DatabaseTrouble(
                f"{self.name} must be served for one project; got other tasks or classes than those of the services "
                "that are at work there. Give all of them the same folder, or stop them first."
            )

    def _run(self, sql: str, parameters: Sequence[Any] = ()) -> Any:
        return self._connected().execute(sql.replace("?", "%s"), parameters)

    def _done(self, job: Callable[[], _T]) -> _T:
        """Carry out a job in one transaction; where the connection breaks, once again over a new one.

        Statements are sent without waiting until the rows of one are wanted. A repeated wish is found by its key, so
        nothing is written twice.
        """
        for last in (False, True):
            try:
                with self._in_words(), self._connected().pipeline(), self._connected().transaction():
                    return job()
            except DatabaseTrouble:
                self.close()
                if last:
                    raise
        raise AssertionError

    def _connected(self) -> Any:
        if self._connection is None:
            self._connection = psycopg.connect(self._address, autocommit=True)
            encoding = self._connection.info.parameter_status("server_encoding")
            if encoding != "UTF8":
                self.close()
                raise ValueError(f"{self.name} must be encoded in UTF8; got {encoding}. Make one by createdb -E UTF8.")
            self._connection.execute(_SESSION)
            self._take_again()
        return self._connection

    def _take_again(self) -> None:
        """Take the locks of a broken connection again; a lock that another service took is lost."""
        for name, shared in list(self._held.items()):
            if not self._lock(name, "advisory_lock_shared" if shared else "try_advisory_lock"):
                del self._held[name]
        if "service" in self._held:
            self._check_subject()

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        """Turn errors into one sentence: the database is unavailable, or refuses a request."""
        try:
            yield
        except (psycopg.DataError, psycopg.IntegrityError):  # the fault of one wish
            raise
        except psycopg.Error as error:
            said = printable(" ".join(without_secrets(str(error)).split())).rstrip(".?")
            raise DatabaseTrouble(
                f"{self.name} must answer; got: {said}. Start it, or check its address and what the user may do."
            ) from error


def _became(wish: Wish, rows: list[Any], second: Any) -> Outcome:
    """Return the result of a request: for a claim the worker's task now, or None."""
    if isinstance(wish, Release):
        return None
    found = rows or second.fetchall()
    if isinstance(wish, Claim):
        return str(found[0][0]) if found else None
    return WriteResult(AnswerRow(*found[0]) if found else None, bool(rows))
