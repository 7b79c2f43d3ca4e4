"""The store keeps every answer once, whichever database it is."""

import shutil
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from commands import Patch
from postgres_server import Postgres

from labelonce.service import _store as stores
from labelonce.service._store import Answer, Claim, DatabaseTrouble, Release, Store, Undo, same


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "annotations.db")
    database: str = request.getfixturevalue("database")
    return database


Opened = Callable[[str], Any]


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Return what opens a store, which is closed at the end."""
    with ExitStack() as stack:

        def open_store(url: str) -> Any:
            if "://" not in url:
                return stack.enter_context(closing(Store(url)))
            from labelonce.service._postgres import SharedStore

            return stack.enter_context(closing(SharedStore(url)))

        yield open_store


@pytest.fixture
def store(url: str, opened: Opened) -> Store:
    found: Store = opened(url)
    return found


ANSWER = Answer("ann", "key 1", "t1", "cat", seconds=1.5)


def test_an_answer_is_kept_once(store: Store) -> None:
    first, second = store.write([ANSWER, ANSWER])
    (third,) = store.write([ANSWER])
    assert (first.changed, second.changed, third.changed) == (True, False, False)
    assert first.row is not None
    assert second.row == first.row == third.row
    assert same(first.row, ANSWER)
    assert [row.seconds for row in store.answers()] == [1.5]


def test_a_worker_labels_a_task_once_and_others_may(store: Store) -> None:
    again = Answer("ann", "key 2", "t1", "dog")
    other = Answer("bob", "key 1", "t1", "dog")
    done = store.write([ANSWER, again, other])
    assert [written.changed for written in done] == [True, False, True]
    assert done[1].row is not None
    assert not same(done[1].row, again)
    assert [(row.worker, row.label) for row in store.answers()] == [("ann", "cat"), ("bob", "dog")]


def test_a_key_that_was_used_for_something_else_wins(store: Store) -> None:
    store.write([Answer("ann", "key 0", "t0", "cat"), ANSWER])
    (written,) = store.write([Answer("ann", "key 1", "t0", "dog")])
    assert written.row is not None
    assert (written.changed, written.row.key, written.row.task) == (False, "key 1", "t1")


def test_undo_takes_back_ones_own_answer_once(store: Store) -> None:
    (kept,) = store.write([ANSWER])
    assert kept.row is not None
    number = kept.row.id
    wishes = [Undo("bob", number), Undo("ann", number), Undo("ann", number), Undo("ann", 10**6)]
    stranger, own, again, nothing = store.write(wishes)
    assert (stranger.row, stranger.changed) == (None, False)
    assert (own.changed, again.changed, nothing.row) == (True, False, None)
    assert store.answers() == []
    assert [row.id for row in store.answers(undone=True)] == [number]


def test_after_undo_a_late_repetition_does_not_bring_the_answer_back(store: Store) -> None:
    (kept,) = store.write([ANSWER])
    assert kept.row is not None
    store.write([Undo("ann", kept.row.id)])
    (late,) = store.write([ANSWER])
    assert (late.changed, store.answers()) == (False, [])
    (new,) = store.write([Answer("ann", "key 2", "t1", "dog")])
    assert new.changed
    assert [row.label for row in store.answers()] == ["dog"]


def test_answers_have_a_name_elsewhere_skips_a_reason_and_tokens_their_hashes(store: Store) -> None:
    store.write([Answer("ann", "1", "t1", "cat", origin="label-studio 57"), Answer("bob", "2", "t1", "dog")])
    assert [row.worker for row in store.from_origin("label-studio 57")] == ["ann"]
    assert store.from_origin("label-studio 5") == []
    store.add_token("hash 1", "worker", "ann")
    store.add_token("hash 2", "admin", "")
    assert store.tokens() == {"hash 1": ("worker", "ann"), "hash 2": ("admin", "")}


def test_skips_have_a_reason_and_no_label(store: Store) -> None:
    store.write([Answer("ann", "1", "t1", None, "blurred")])
    assert [(row.label, row.reason) for row in store.answers()] == [(None, "blurred")]


@pytest.mark.parametrize("damage", [b"\0" * 8192, b"task,worker,label\n" * 500, None])
def test_a_damaged_file_is_one_sentence_with_the_way_out(tmp_path: Path, damage: bytes | None) -> None:
    path = tmp_path / "annotations.db"
    store = Store(str(path))
    store.write([Answer("ann", f"{i}", f"{i}", "cat" * 100) for i in range(200)])
    store.close()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if damage is None else damage)
    with pytest.raises(DatabaseTrouble, match=r"annotations\.db must be a whole SQLite.*--backup"):
        Store(str(path)).answers()


def test_a_file_that_another_process_has_locked_is_one_sentence(
    tmp_path: Path, monkeypatch: Patch, opened: Opened
) -> None:
    monkeypatch.setattr(stores, "_BUSY_SECONDS", 0)
    path = tmp_path / "annotations.db"
    store = opened(str(path))
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert store.prepare([ANSWER]) is None
        with pytest.raises(DatabaseTrouble, match=r"got: database is locked\. Close the program"):
            store.write([ANSWER])
        other.rollback()
        assert store.write([ANSWER])[0].changed


def test_only_its_owner_may_read_the_file(tmp_path: Path, opened: Opened) -> None:
    opened(str(tmp_path / "annotations.db")).write([ANSWER])
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_a_backup_holds_what_was_acknowledged_while_it_is_written(tmp_path: Path, opened: Opened) -> None:
    opened(str(tmp_path / "annotations.db")).write([ANSWER])
    Store(str(tmp_path / "annotations.db")).backup(tmp_path / "copy.db")
    shutil.copyfile(tmp_path / "annotations.db", tmp_path / "plain.db")  # what a plain copy holds: nothing
    assert [row.task for row in Store(str(tmp_path / "copy.db")).answers()] == ["t1"]
    assert sqlite3.connect(tmp_path / "plain.db").execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600


def test_a_lost_connection_is_opened_again_and_nothing_is_written_twice(database: str, opened: Opened) -> None:
    import psycopg

    store = opened(database)
    store.write([ANSWER])
    for ask in (lambda: store.write([ANSWER])[0].changed, store.tokens, lambda: store.remove_tokens("ann")):
        with psycopg.connect(database) as other:
            others = "pid <> pg_backend_pid() AND datname = 'postgres'"
            other.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")
        assert not ask()
    assert [row.worker for row in store.answers()] == ["ann"]


@pytest.fixture
def pair(database: str, opened: Opened) -> tuple[Any, Any]:
    one, other = opened(database), opened(database)
    for store in (one, other):
        store.join("pets")
        store.begin()
    return one, other


def test_what_one_service_writes_another_hears_once(pair: tuple[Any, Any]) -> None:
    one, other = pair
    (kept,), news = one.turn([ANSWER])
    assert news.answers == other.look().answers == [kept.row]
    assert one.look().answers == other.look().answers == []
    (undone,), _ = other.turn([Undo("ann", kept.row.id, again=False)])
    assert one.look().answers == [undone.row]


def test_a_task_is_out_with_one_worker_at_a_time(pair: tuple[Any, Any]) -> None:
    one, other = pair
    assert one.turn([Claim("ann", ["t1"])])[0] == ["t1"]
    assert other.turn([Claim("bob", ["t1"])])[0] == [None]
    assert other.turn([Claim("bob", ["t2"]), Claim("ann", ["t3"])])[0] == ["t2", "t1"]
    assert [(lease.worker, lease.task) for lease in one.look().leases] == [("bob", "t2")]
    one.turn([ANSWER])
    assert [(lease.worker, lease.task) for lease in other.look().leases] == [("ann", None)]
    assert other.turn([Claim("ann", ["t1"]), Claim("bob", ["t1"])])[0] == [None, "t2"]  # labelled it; looks at another


def test_a_lease_that_is_over_is_somebody_elses(database: str) -> None:
    from labelonce.service._postgres import SharedStore

    store = SharedStore(database, lease_seconds=0.01)
    assert store.turn([Claim("ann", ["t1"])])[0] == ["t1"]
    time.sleep(0.02)
    assert [store.turn([Claim("bob", ["t1"])])[0] for _ in range(2)] == [[None], ["t1"]]  # seen to be over, then free
    store.close()


def test_the_first_task_that_is_free_is_leased(pair: tuple[Any, Any]) -> None:
    one, other = pair
    one.turn([Claim("ann", ["t1"]), Answer("bob", "key", "t2", "cat")])
    assert other.turn([Claim("bob", ["t1", "t2", "t3", "t4"])])[0] == ["t3"]
    assert one.turn([Release("bob", "t3")])[1].leases[-1][:2] == ("bob", None)
    assert other.turn([Claim("eve", ["t1", "t3"])])[0] == ["t3"]


def test_undo_leases_the_task_again_unless_somebody_else_has_it(pair: tuple[Any, Any]) -> None:
    one, other = pair
    (kept,), _ = one.turn([ANSWER])
    assert other.turn([Undo("ann", kept.row.id)])[1].leases[0][:2] == ("ann", "t1")
    (kept,), _ = one.turn([Answer("ann", "key 2", "t1", "cat")])
    other.turn([Claim("bob", ["t1"])])
    assert [lease.worker for lease in other.turn([Undo("ann", kept.row.id)])[1].leases] == []


def test_services_of_another_project_are_refused(pair: tuple[Any, Any], database: str, opened: Opened) -> None:
    stranger = opened(database)
    with pytest.raises(DatabaseTrouble, match="must be served for one project; got other tasks or classes"):
        stranger.join("walks")
    for store in pair:
        store.close()
    while True:  # the server notices in a moment that nobody else is there
        try:
            stranger.join("walks")
        except DatabaseTrouble:
            time.sleep(0.05)
        else:
            break


def test_a_lock_is_taken_again_after_the_server_was_away(postgres: Postgres, opened: Opened) -> None:
    one, other = opened(postgres.empty()), opened(postgres.url)
    assert (one.lock("fit"), other.lock("fit"), other.is_locked("fit")) == (True, False, True)
    postgres.stop(signal.SIGQUIT)
    with pytest.raises(DatabaseTrouble, match=r"must answer; got: .*Connection refused"):
        one.look()
    postgres.start()
    one.look()
    assert (other.lock("fit"), one.lock("fit")) == (False, True)
    one.unlock("fit")
    assert other.lock("fit")


def test_a_service_begins_while_somebody_reads_everything(database: str, postgres: Postgres, opened: Opened) -> None:
    opened(database).close()
    with psycopg_connection(postgres) as reader, reader.transaction():
        reader.execute("SELECT * FROM answers")
        began = time.monotonic()
        opened(database).close()
        assert time.monotonic() - began < 5


def test_a_server_that_takes_nothing_is_one_sentence(postgres: Postgres, opened: Opened) -> None:
    database = postgres.empty()
    opened(database).close()
    read_only = f"{database}?options=-cdefault_transaction_read_only%3Don"
    with pytest.raises(DatabaseTrouble, match="INSERT in a read-only transaction"):
        opened(read_only).write([ANSWER])
    with psycopg_connection(postgres) as connection:
        connection.execute("DROP TABLE leases")
        connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    with pytest.raises(DatabaseTrouble, match='"leases" does not exist'):
        opened(database).write([ANSWER])
    with pytest.raises(ValueError, match="must be encoded in UTF8; got LATIN1"):
        opened(database.replace("/postgres", "/latin"))


def test_many_services_may_make_the_tables_at_once(database: str, opened: Opened) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert len(list(pool.map(opened, [database] * 8))) == 8


def test_the_first_of_two_fits_with_one_number_stays(pair: tuple[Any, Any]) -> None:
    one, other = pair
    for number in range(1, 6):
        one.publish(number, f"about {number}", b"belief", b"rows")
    other.publish(5, "late", b"other", b"rows")
    assert other.fits() == [(number, f"about {number}") for number in range(1, 6)]
    assert (other.fit(5), other.fit(1), other.look().fit) == ((b"belief", b"rows"), (None, None), 5)


def test_a_service_that_missed_a_change_of_the_project_writes_nothing(
    database: str, postgres: Postgres, opened: Opened
) -> None:
    late = opened(database)
    late.join("pets")
    with closing(opened(database)) as other, psycopg_connection(postgres) as connection:
        others = "pid <> pg_backend_pid() AND pid <> %s"
        known = (other._connection.info.backend_pid,)
        connection.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}", known)
        while other.is_locked("service"):
            time.sleep(0.05)
        other.join("walks")
        with pytest.raises(DatabaseTrouble, match="got other tasks or classes"):
            late.write([ANSWER])
        assert other.answers() == []


@contextmanager
def psycopg_connection(postgres: Postgres) -> Iterator[Any]:
    import psycopg

    with psycopg.connect(postgres.url, autocommit=True) as connection:
        yield connection
