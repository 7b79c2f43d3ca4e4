"""Fits that services share over a common database; the folder `fits` then holds copies of them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from labelonce.files import atomic_write

if TYPE_CHECKING:
    from labelonce.service._postgres import SharedStore
    from labelonce.service._project import Project

_BELIEF, _ANNOTATIONS, _ABOUT = "belief.npz", "annotations.parquet", "fit.json"


@contextmanager
def shared(project: Project) -> Iterator[SharedStore | None]:
    """Yield a connection to the database that services share, None if there is only one service."""
    store = project.store()
    try:
        yield store if store.is_shared else None  # type: ignore[misc]  # only a SharedStore is
    finally:
        store.close()


def publish(project: Project, place: Path) -> None:
    """Share the fit in a folder with all services."""
    with shared(project) as store:
        if store is not None:
            belief, annotations = ((place / name).read_bytes() for name in (_BELIEF, _ANNOTATIONS))
            store.publish(int(place.name), (place / _ABOUT).read_text(), belief, annotations)


def fetch(project: Project) -> list[Path] | None:
    """Return the folders of all shared fits, the newest with its files; None where one service is alone."""
    with shared(project) as store:
        if store is None:
            return None
        found = [_copied(project.fits / f"{number:06d}", about) for number, about in store.fits()]
        if found and not (found[-1] / _BELIEF).exists():
            belief, annotations = store.fit(int(found[-1].name))
            atomic_write(found[-1] / _ANNOTATIONS, annotations)
            atomic_write(found[-1] / _BELIEF, belief)
        return found


def next_number(project: Project) -> int | None:
    """Return the number of the next shared fit, None where one service is alone."""
    with shared(project) as store:
        return None if store is None else store.newest_fit() + 1


def _copied(place: Path, about: str) -> Path:
    """Return the folder of a shared fit; what another fit of this number has left there is removed."""
    path = place / _ABOUT
    if not path.exists() or path.read_text() != about:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True, exist_ok=True)
        atomic_write(path, about.encode())
    return place
