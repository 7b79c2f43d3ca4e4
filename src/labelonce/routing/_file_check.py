"""What a file of a router must hold, checked before any of it is used."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelonce._messages import show

_CLOSE = 1e-3  # by which probabilities may miss their sum: predictions are kept in 32 bits
_DISTRIBUTIONS = ("posterior", "predictions", "confusion", "population")
_MANY = 2**53


def check_file(found: dict[str, Any]) -> None:
    """Raise an error if the content is not what `Router.save` writes."""
    n_tasks, n_classes, n_answers = (len(found[name]) for name in ("tasks", "classes", "task"))
    n_workers = _check_workers(found["workers"])
    _check_shapes(found, n_tasks, n_classes, n_answers)
    for names, n in ((("pool_tasks", "task"), n_tasks), (("worker",), n_workers), (("label", "gold"), n_classes)):
        for name in names:
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


def _check_workers(workers: Any) -> int:
    _check("workers", isinstance(workers, list) and len({type(one) for one in workers} - {int, str}) == 0)
    _check("workers", len(set(workers)) == len(workers))
    return len(workers)


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
