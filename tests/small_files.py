"""Small files of a few rows, as tests write them, and what comes back from files."""

import csv
from pathlib import Path
from typing import Any

import labelonce as lo


def saved(folder: Path, content: str | bytes, name: str = "labels.csv") -> Path:
    """Write a file and return its path."""
    return written(folder / name, content)


def written(path: Path, content: str | bytes) -> Path:
    """Write a file that has a path of its own and return the path."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def reloaded(fitted: Any, folder: Path) -> Any:
    """Save a fitted object, and return what is loaded again."""
    lo.save(fitted, folder / "model.skops")
    return lo.load(folder / "model.skops")
