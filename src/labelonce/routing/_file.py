"""A router as one file: arrays and JSON, no pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from labelonce.files._atomic import atomic_path
from labelonce.files._open import with_path

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
    """Return what `write` wrote."""
    try:
        with np.load(path, allow_pickle=False) as loaded:
            found: dict[str, Any] = {name: loaded[name] for name in loaded.files}
        about = json.loads(found.pop("about").tobytes())
    except OSError as error:
        if error.errno:
            raise with_path(error, path, "open") from error
        raise ValueError(f"{path} must be a file that Router.save wrote; got: {error}.") from error
    except Exception as error:  # a broken archive may fail in any way
        raise ValueError(f"{path} must be a file that Router.save wrote; got: {error}.") from error
    if about.get("format") != _FORMAT:
        raise ValueError(f"{path} must be a {_FORMAT!r}; got {about.get('format')!r}. Make the router again.")
    found |= about
    return found
