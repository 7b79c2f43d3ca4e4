"""Vectors that were made once: one SQLite file per model, by the SHA-256 of a text or of an image file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

_MOST = 500  # keys in one question


def cache_folder() -> Path:
    """Return where vectors are kept: LABELONCE_CACHE, or labelonce in the user's folder of caches."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("LABELONCE_CACHE") or Path(home) / "labelonce")


class Cache:
    """The vectors of one model. What was put in is there after a kill, and for other processes at once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the vectors that are known."""
        found: dict[bytes, bytes] = {}
        for start in range(0, len(keys), _MOST):
            some = keys[start : start + _MOST]
            marks = ",".join("?" * len(some))
            found |= dict(self._connection.execute(f"SELECT key, vector FROM vectors WHERE key IN ({marks})", some))
        return found

    def put(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        """Keep vectors, all or none."""
        with self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", pairs)


@contextmanager
def opened(model: str) -> Iterator[Cache]:
    """Give the vectors of the model with a fingerprint."""
    path = cache_folder() / "embeddings" / f"{model[:32]}.db"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=60.0)
    except (OSError, sqlite3.OperationalError) as error:
        raise ValueError(
            f"{path} must be a file that can be written, where embeddings are kept; got: {error}. Name another folder "
            "with LABELONCE_CACHE in the environment."
        ) from error
    with closing(connection):
        yield Cache(connection)
