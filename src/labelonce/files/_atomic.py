"""Files that appear whole or not at all: written next to their place, brought to the disk, then renamed."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from labelonce.files._open import File, with_path


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to `path`; it replaces `path` when the block ends without an error."""
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")  # a rename is atomic within one file system
    try:
        yield temporary
        to_disk(temporary)
        os.replace(temporary, path)
        to_disk(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_stream(file: File) -> Iterator[Any]:
    """Open a sink whose content takes the place of the file at the end, or never."""
    with atomic_path(file.path) as temporary, pa.output_stream(temporary, compression=file.codec) as sink:
        yield sink


def atomic_write(path: Path, content: bytes) -> None:
    try:
        with atomic_path(path) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        raise with_path(error, path, "write") from error


def to_disk(path: Path) -> None:
    """Wait until a file or a folder's entries are on the disk."""
    if os.name != "posix" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
