"""A router as one file: arrays and JSON, no pickle, all of it checked before any is used."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from labelonce._messages import show
from labelonce.files import atomic_path, check_unpacked, with_path

_FORMAT = "labelonce router 2"
_CLOSE = 1e-3  # by which probabilities may miss their sum: predictions are kept in 32 bits
_DISTRIBUTIONS = ("posterior", "predictions", "confusion", "population")
_MANY = 2**53


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
    except Exception as error:  # a broken archive may fail in any way
        if isinstance(error, OSError) and error.errno:
            raise with_path(error, path, "open") from error
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


def check_file(found: dict[str, Any]) -> None:
    """Raise an error if the content is not what `Router.save` writes."""
    n_tasks, n_classes, n_answers = (len(found[name]) for name in ("tasks", "classes", "task"))
    workers = found["workers"]
    _check("workers", isinstance(workers, list) and {type(one) for one in workers} <= {int, str})
    _check("workers", len(set(workers)) == (n_workers := len(workers)))
    _check_shapes(found, n_tasks, n_classes, n_answers)
    limits = {"pool_tasks": n_tasks, "task": n_tasks, "worker": n_workers, "label": n_classes, "gold": n_classes}
    for name, n in limits.items():
        _check(name, _are_codes(found[name], n, least=-1 if name == "gold" else 0))
    pairs = found["task"].astype(np.int64) * max(1, n_workers) + found["worker"]
    _check("task and worker", len(np.unique(pairs)) == n_answers)
    _check("pool_tasks", len(np.unique(found["pool_tasks"])) == len(found["pool_tasks"]))
    _check("confusion", len(found["confusion"]) <= n_workers)
    for name in _DISTRIBUTIONS:
        _check(name, bool(np.isfinite(found[name]).all() and (found[name] >= 0).all()))
        _check(name, bool(np.allclose(found[name].sum(axis=-1), 1, atol=_CLOSE)))
    _check_settings(found, n_tasks, n_workers)


def _check_shapes(found: dict[str, Any], n_tasks: int, n_classes: int, n_answers: int) -> None:
    n_questions = 1 if found["questions"] is None else len(found["questions"])
    rows, crowd = (n_tasks * n_questions, n_classes), (n_questions, n_classes, n_classes)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("tasks", "gold", "prices"), (n_tasks,))
    shapes |= dict.fromkeys(("task", "worker", "fitted"), (n_answers,))
    shapes |= {"label": (n_answers,) if n_questions == 1 else (n_answers, n_questions), "classes": (n_classes,)}
    shapes |= {"posterior": rows, "predictions": rows, "population": crowd}
    shapes |= {"confusion": (len(found["confusion"]), *crowd), "pool_tasks": (len(found["pool_free"]),)}
    shapes["pool_free"] = found["pool_tasks"].shape
    for name, shape in shapes.items():
        _check(name, found[name].shape == shape)
    kinds = {**dict.fromkeys(("prices", *_DISTRIBUTIONS), "f"), "tasks": "iuU", "classes": "iuU"}
    for name, kind in {**kinds, "pool_free": "b", "fitted": "b"}.items():
        _check(name, found[name].dtype.kind in kind)


def _check_settings(found: dict[str, Any], n_tasks: int, n_workers: int) -> None:
    average, gain, n_changes = found["averages"]
    _check("averages", _is_number(average) and _is_number(gain) and _is_in(n_changes, _MANY))
    for task, worker, until in found["leases"]:
        _check("leases", _is_in(task, n_tasks) and _is_in(worker, n_workers) and _is_number(until))
    for worker, tasks in found["skipped"]:
        _check("skipped", _is_in(worker, n_workers) and all(_is_in(task, n_tasks) for task in tasks))
    if found["pool"] is not None:
        is_all, taken, is_old = found["pool"]
        _check("pool", isinstance(is_all, bool) and isinstance(is_old, bool) and _is_in(taken, _MANY))


def _check(name: str, is_right: bool) -> None:
    if not is_right:
        raise ValueError(f"{show(name)} must be as Router.save writes it; got something else.")


def _are_codes(values: Any, n: int, *, least: int) -> bool:
    return values.dtype.kind == "i" and (values.size == 0 or bool(values.min() >= least and values.max() < n))


def _is_in(value: Any, n: int) -> bool:
    return type(value) is int and 0 <= value < n


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and bool(abs(value) < 1e300)
