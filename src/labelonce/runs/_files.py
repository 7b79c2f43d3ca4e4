"""Files that appear whole or not at all, and a folder of them that changes all at once."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

COMMITTED = ".committed"
_NEW = "names"


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a path beside `path` to write to; it takes the place of `path` when the block ends well."""
    beside = path.with_name(f".{secrets.token_hex(8)}.tmp")  # a rename is atomic within one file system
    try:
        yield beside
        _to_disk(beside)
        os.replace(beside, path)
        _to_disk(path.parent)
    finally:
        beside.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that appears whole or not at all."""
    with whole_file(path) as beside:
        beside.write_bytes(content)


def commit(staged: Path, folder: Path, names: tuple[str, ...]) -> None:
    """Make the files in `staged` those of `folder`, all at once; other files of these `names` go.

    The rename of the staged folder is the moment: whoever reads with `located` sees the old files before it and the
    new ones after it. A kill in between leaves the moves to the next `settle`.
    """
    write_whole(staged / _NEW, "\n".join(name for name in names if (staged / name).exists()).encode())
    os.rename(staged, folder / COMMITTED)
    _to_disk(folder)
    settle(folder, names)


def settle(folder: Path, names: tuple[str, ...]) -> None:
    """Finish a commit that was stopped half-way."""
    committed = folder / COMMITTED
    if (committed / _NEW).exists():  # the last to go: without it all moves are done
        new = (committed / _NEW).read_text().split("\n")
        for name in names:
            if name not in new:
                (folder / name).unlink(missing_ok=True)
            elif (committed / name).exists():
                os.replace(committed / name, folder / name)
        _to_disk(folder)
        (committed / _NEW).unlink()
    if committed.is_dir():
        shutil.rmtree(committed)


def located(folder: Path, name: str) -> Path:
    """Return where a file of the folder lies, also in the middle of a commit."""
    moving = folder / COMMITTED / name
    return moving if moving.exists() else folder / name


def _to_disk(path: Path) -> None:
    """Wait until a file or a folder's entries are on the disk."""
    if os.name != "posix" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
