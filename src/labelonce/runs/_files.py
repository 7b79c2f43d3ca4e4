"""A folder of files that changes all at once."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from labelonce.files._atomic import atomic_write, to_disk

COMMITTED = ".committed"
_NEW = "names"


def commit(staged: Path, folder: Path, names: tuple[str, ...]) -> None:
    """Make the files in `staged` those of `folder`, all at once; other files of these `names` go.

    The rename of the staged folder is the moment: whoever reads with `located` sees the old files before it and the
    new ones after it. A kill in between leaves the moves to the next `settle`.
    """
    atomic_write(staged / _NEW, "\n".join(name for name in names if (staged / name).exists()).encode())
    os.rename(staged, folder / COMMITTED)
    to_disk(folder)
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
        to_disk(folder)
        (committed / _NEW).unlink()
    if committed.is_dir():
        shutil.rmtree(committed)


def located(folder: Path, name: str) -> Path:
    """Return where a file of the folder lies, also in the middle of a commit."""
    moving = folder / COMMITTED / name
    return moving if moving.exists() else folder / name
