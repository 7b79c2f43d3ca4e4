"""Small files of a few rows, as tests write them."""

from pathlib import Path


def saved(folder: Path, content: str | bytes, name: str = "labels.csv") -> Path:
    """Write a file and return its path."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
