"""What a file of a router must hold, looked at before any of it is believed."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelonce._messages import show

_CLOSE = 1e-3  # by which probabilities may miss their sum: predictions are kept in 32 bits


def check_file(found: dict[str, Any], about: dict[str, Any]) -> None:
    """Raise where arrays or settings are not such as `save` writes."""
    n_tasks, n_classes, n_answers = (len(found[name]) for name in ("tasks", "classes", "task"))
    n_workers = _check_workers(about["workers"])
    _check_shapes(found, n_tasks, n_classes, n_answers)
    tasks, workers = ("gold_order", "random_order", "pool_tasks", "task"), ("worker",)
    for names, n in ((tasks, n_tasks), (workers, n_workers), (("label", "gold"), n_classes)):
        for name in names:
            _check(name, _are_codes(found[name], n, least=-1 if name == "gold" else 0))
    pairs = found["task"].astype(np.int64) * max(1, n_workers) + found["worker"]
    _check("task and worker", len(np.unique(pairs)) == n_answers)
    _check("confusion", len(found["confusion"]) <= n_workers)
    posterior = np.exp(found["log_posterior"])
    for name, values in (("log_posterior", posterior), *((one, found[one]) for one in _DISTRIBUTIONS)):
        _check(name, bool(np.isfinite(values).all() and (values >= 0).all()))
        _check(name, bool(np.allclose(values.sum(axis=-1), 1, atol=_CLOSE)))
    _check("risk", bool(np.allclose(found["risk"], 1 - posterior.max(axis=1), atol=_CLOSE)))
    _check_settings(about, n_tasks, n_workers, n_answers)


_DISTRIBUTIONS = ("predictions", "confusion", "population")


def _check_shapes(found: dict[str, Any], n_tasks: int, n_classes: int, n_answers: int) -> None:
    per_answer, square = (n_answers,), (n_classes, n_classes)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("tasks", "gold", "prices", "risk"), (n_tasks,))
    shapes |= {"task": per_answer, "worker": per_answer, "label": per_answer}
    shapes |= {"classes": (n_classes,), "population": square, "confusion": (len(found["confusion"]), *square)}
    shapes |= {"log_posterior": (n_tasks, n_classes), "predictions": (n_tasks, n_classes)}
    shapes |= {"pool_free": found["pool_tasks"].shape}
    for name, shape in shapes.items():
        _check(name, found[name].shape == shape)
    for name in ("gold_order", "random_order", "pool_tasks"):
        _check(name, found[name].ndim == 1)
    floats = ("log_posterior", "prices", "risk", *_DISTRIBUTIONS)
    for name, kinds in (*((one, "f") for one in floats), ("pool_free", "b"), ("tasks", "iuU"), ("classes", "iuU")):
        _check(name, found[name].dtype.kind in kinds)


def _check_workers(workers: Any) -> int:
    _check("workers", isinstance(workers, list) and len({type(one) for one in workers} - {int, str}) == 0)
    _check("workers", len(set(workers)) == len(workers))
    return len(workers)


def _check_settings(about: dict[str, Any], n_tasks: int, n_workers: int, n_answers: int) -> None:
    for name in ("spent", "lease_seconds", "random_share"):
        _check(name, _is_number(about[name]) and about[name] >= 0)
    _check("averages", len(about["averages"]) == 2 and all(map(_is_number, about["averages"])))
    _check("n_fitted", _is_in(about["n_fitted"], n_answers + 1))
    _check("stale", _is_in(about["stale"], 2**53))
    for task, worker, until in about["leases"]:
        _check("leases", _is_in(task, n_tasks) and _is_in(worker, n_workers) and _is_number(until))
    for worker, tasks in about["skipped"]:
        _check("skipped", _is_in(worker, n_workers) and all(_is_in(task, n_tasks) for task in tasks))
    if about["pool"] is not None:
        is_all, taken = about["pool"]
        _check("pool", isinstance(is_all, bool) and _is_in(taken, 2**53))


def _check(name: str, is_right: bool) -> None:
    if not is_right:
        raise ValueError(f"{show(name)} must be as Router.save writes it; got something else.")


def _are_codes(values: Any, n: int, *, least: int) -> bool:
    return values.dtype.kind == "i" and (len(values) == 0 or bool(values.min() >= least and values.max() < n))


def _is_in(value: Any, n: int) -> bool:
    return type(value) is int and 0 <= value < n


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and bool(abs(value) < 1e300)
