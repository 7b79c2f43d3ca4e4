"""The store keeps every answer once, whichever database it is."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from labelonce.service._store import Answer, Store, Undo, same

TOOLS = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


def _user() -> str | None:
    """Return somebody other than root, as whom a server may run."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Return the URL of a PostgreSQL that runs as long as the tests of this file."""
    pytest.importorskip("psycopg", reason="no psycopg: pip install 'labelonce[postgres]'")
    if not TOOLS:
        pytest.skip("no PostgreSQL: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="labelonce-postgres-"))
    user, log = _user(), folder / "log"
    if user is not None:
        shutil.chown(folder, user)
    folder.chmod(0o700)
    tools = TOOLS[-1].parent
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = folder / "data"
    subprocess.run(
        [tools / "initdb", "-D", data, "-U", "labelonce", "-A", "trust", "-N", "-E", "UTF8", "--locale=C"],
        check=True,
        capture_output=True,
        user=user,
        cwd=folder,
    )
    command = [str(tools / "postgres"), "-D", str(data), "-p", str(port), "-k", str(folder)]
    command += ["-c", "listen_addresses=127.0.0.1"]
    with log.open("wb") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=sink, user=user, cwd=folder)
    try:
        url = f"postgresql://labelonce@127.0.0.1:{port}/postgres"
        _wait(url, process, log)
        yield url
    finally:
        process.send_signal(signal.SIGINT)  # do not wait for clients
        process.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    import psycopg

    for _ in range(300):
        assert process.poll() is None, log.read_text()
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(log.read_text())


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "annotations.db")
    import psycopg

    server: str = request.getfixturevalue("server")
    with psycopg.connect(server) as connection:
        connection.execute("DROP TABLE IF EXISTS answers, tokens")
    return server


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = Store(url)
    yield opened
    opened.close()


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
    stranger, own, again, nothing = store.write(
        [Undo("bob", number), Undo("ann", number), Undo("ann", number), Undo("ann", 10**6)]
    )
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


def test_answers_of_another_tool_are_found_by_their_name_there(store: Store) -> None:
    store.write([Answer("ann", "1", "t1", "cat", origin="label-studio 57"), Answer("bob", "2", "t1", "dog")])
    assert [row.worker for row in store.from_origin("label-studio 57")] == ["ann"]
    assert store.from_origin("label-studio 5") == []


def test_skips_have_a_reason_and_no_label(store: Store) -> None:
    store.write([Answer("ann", "1", "t1", None, "blurred")])
    assert [(row.label, row.reason) for row in store.answers()] == [(None, "blurred")]


def test_tokens_are_found_by_their_hashes(store: Store) -> None:
    store.add_token("hash 1", "worker", "ann")
    store.add_token("hash 2", "admin", "")
    assert store.tokens() == {"hash 1": ("worker", "ann"), "hash 2": ("admin", "")}


def test_what_one_connection_wrote_another_one_reads(url: str) -> None:
    one, other = Store(url), Store(url)
    one.write([ANSWER])
    assert [row.task for row in other.answers()] == ["t1"]
    one.close()
    other.close()


def test_a_lost_connection_is_opened_again_and_nothing_is_written_twice(server: str) -> None:
    import psycopg

    store = Store(server)
    store.write([Answer("eve", "lost 1", "t9", "cat")])
    with psycopg.connect(server) as other:
        others = "pid <> pg_backend_pid() AND datname = 'postgres'"
        other.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")
    (again,) = store.write([Answer("eve", "lost 1", "t9", "cat")])
    assert not again.changed
    assert len([row for row in store.answers() if row.worker == "eve"]) == 1
    store.close()


def test_one_service_has_a_server_for_itself(server: str) -> None:
    one, other = Store(server), Store(server)
    assert (one.lock(), other.lock()) == (True, False)
    one.close()
    while not other.lock():  # the server notices in a moment
        time.sleep(0.05)
    other.close()
