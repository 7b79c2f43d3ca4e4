"""A router as one file: arrays and JSON, no pickle."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from labelonce._messages import show
from labelonce.files import atomic_path, check_unpacked, with_path
from labelonce.routing._file_check import check_file

_FORMAT = "labelonce router 2"


def write(found: dict[str, Any], path: Path) -> None:
    """Write arrays and plain values to a file, whole or not at all."""
    arrays: dict[str, Any] = {name: value for name, value in found.items() if isinstance(value, np.ndarray)}
    about = {name: value for name, value in found.items() if name not in arrays} | {"format": _FORMAT}
    arrays |= {name: value.astype(str) for name, value in arrays.items() if value.dtype == object}
    coded = np.frombuffer(json.dumps(about, default=np.generic.item).encode(), dtype=np.uint8)
    try:
        with atomic_path(path) as unfinished, unfinished.open("wb") as file:
            np.savez(file, **arrays, about=coded)
    except OSError as error:
        raise with_path(error, path, "write") from error


def read(path: Path) -> dict[str, Any]:
    """Read what `write` wrote; `sound` checks it."""
    try:
        with path.open("rb") as file:
            check_unpacked(path, file)
            with np.load(file, allow_pickle=False) as loaded:
                found: dict[str, Any] = {name: loaded[name] for name in loaded.files}
        about = json.loads(found.pop("about").tobytes())
    except OSError as error:
        if error.errno:
            raise with_path(error, path, "open") from error
        raise ValueError(f"{path} must be a file that Router.save wrote; got: {error}.") from error
    except Exception as error:  # a broken archive may fail in any way
        raise ValueError(f"{path} must be a file that Router.save wrote; got: {error}.") from error
    if not isinstance(about, dict) or about.get("format") != _FORMAT:
        got = show(about.get("format") if isinstance(about, dict) else about)
        raise ValueError(f"{path} must be a {_FORMAT!r}; got {got}. Make the router again.")
    return about | found


@contextmanager
def sound(path: Path, found: dict[str, Any]) -> Iterator[None]:
    """Check the content, and name the file in every error: a forged file may fail in any way."""
    try:
        check_file(found)
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
        raise ValueError(f"{path} must be a file that Router.save wrote; got {got}.") from error
