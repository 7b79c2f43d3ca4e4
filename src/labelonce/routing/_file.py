"""A router as one file: arrays and JSON, no pickle."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from labelonce._messages import show
from labelonce._types import Ids
from labelonce.data import _ids
from labelonce.files._archive import check_unpacked
from labelonce.files._atomic import atomic_path
from labelonce.files._open import with_path
from labelonce.routing import _strategies
from labelonce.routing._file_check import check_file
from labelonce.routing._pool import Pool

if TYPE_CHECKING:
    from labelonce.routing._router import Router

_FORMAT = "labelonce router 1"
_OPTIONS = ("max_labels", "gold_tests", "may_decline", "budget", "max_risk", "min_gain", "temperature")


def save(router: Router, path: Path) -> None:
    """Write a router to a file, whole or not at all."""
    state, pool = router.state, router._pool
    about = {name: getattr(router, name) for name in _OPTIONS} | {
        "format": _FORMAT,
        "strategy": router.strategy.to_dict(),
        "costs": _pairs(router.costs),
        "capacity": _pairs(router.capacity),
        "lease_seconds": router._leases.seconds,
        "random_share": router._random.share,
        "leases": [[task, *lease] for task, lease in router._leases.out.items()],
        "rng": state.rng.bit_generator.state,
        "n_fitted": state.n_fitted,
        "spent": router.spent,
        "stale": router._stale,
        "averages": [router._average, router._gain],
        "pool": None if pool is None else [pool.is_all, pool.taken],
        "workers": router.workers,
        "skipped": [[worker, sorted(tasks)] for worker, tasks in router._skipped.items()],
    }
    task, worker, label = state.rows()
    arrays = {
        "tasks": _plain(router.tasks),
        "classes": _plain(router.classes),
        "task": task,
        "worker": worker,
        "label": label,
        "gold": state.gold,
        "gold_order": router._gold_order,
        "random_order": router._random.order,
        "prices": state.prices,
        "log_posterior": state.belief.log_posterior,
        "risk": state.belief.risk,
        "predictions": state.predictions,
        "confusion": state.confusion,
        "population": state.population,
        "pool_tasks": np.zeros(0, dtype=np.int32) if pool is None else pool.tasks,
        "pool_free": np.zeros(0, dtype=bool) if pool is None else pool.free,
        "about": np.frombuffer(json.dumps(about, default=np.generic.item).encode(), dtype=np.uint8),
    }
    try:
        with atomic_path(path) as beside, beside.open("wb") as file:
            np.savez(file, **arrays)
    except OSError as error:
        raise with_path(error, path, "write") from error


def load(path: Path, *, X: Any, learner: Any, clock: Callable[[], float]) -> Router:
    """Return the router in a file."""
    found, about = _read(path)
    try:
        check_file(found, about)
        return _made(found, about, X=X, learner=learner, clock=clock)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    except Exception as error:  # a forged file may fail in any way
        got = f"{type(error).__name__}: {error}"
        raise ValueError(f"{path} must be a file that Router.save wrote; got {got}.") from error


def _made(found: dict[str, Any], about: dict[str, Any], *, X: Any, learner: Any, clock: Callable[[], float]) -> Router:
    from labelonce.routing._router import Router

    tasks, classes = (_ids.table_of(found[name], name) for name in ("tasks", "classes"))
    options = {name: about[name] for name in _OPTIONS}
    router = Router(
        tasks,
        classes,
        X=X,
        learner=learner,
        strategy=_strategies.strategy_of(**about["strategy"]),
        costs=_unpaired(about["costs"]),
        task_costs=found["prices"],
        capacity=_unpaired(about["capacity"]),
        lease_seconds=about["lease_seconds"],
        random_share=about["random_share"],
        clock=clock,
        **options,
    )
    _restore(router, found, about)
    return router


def _restore(router: Router, found: dict[str, Any], about: dict[str, Any]) -> None:
    """Set what the answers and the refits have made of a new router."""
    state = router.state
    state.gold, router._gold_order = found["gold"], found["gold_order"]
    router._random.order = found["random_order"]
    for worker in about["workers"]:
        router._worker_code(worker)
    state.know_workers(found["confusion"], found["population"])
    state.predictions, state.n_fitted = found["predictions"], about["n_fitted"]
    rows = [found[name] for name in ("task", "worker", "label")]
    state.task, state.worker, state.label = (array("i", one.tolist()) for one in rows)
    state.n_given.update(state.worker)
    np.add.at(state.votes, (rows[0], rows[2]), 1)
    state.n_labels = state.votes.sum(axis=1, dtype=np.int32)
    state.belief.restore(found["log_posterior"], found["risk"])
    router.strategy.refitted(state)
    for row, (task, worker, label) in enumerate(zip(*(one.tolist() for one in rows), strict=True)):
        router._pairs.add((task, worker))
        router._answered[worker].append(task)
        if row >= state.n_fitted:
            router.strategy.added(state, task, worker, label)
    state.rng.bit_generator.state = about["rng"]
    router.spent, router._stale = about["spent"], about["stale"]
    router._average, router._gain = about["averages"]
    router._skipped = {worker: set(tasks) for worker, tasks in about["skipped"]}
    for task, worker, until in about["leases"]:
        router._leases.out[task] = (worker, until)
    if about["pool"] is not None:
        is_all, taken = about["pool"]
        router._pool = Pool(found["pool_tasks"], found["pool_free"], state.n_tasks, is_all=is_all, taken=taken)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        with path.open("rb") as file:
            check_unpacked(path, file)
            with np.load(file, allow_pickle=False) as loaded:
                found = {name: loaded[name] for name in loaded.files}
        about = json.loads(found["about"].tobytes())
    except OSError as error:
        if error.errno:
            raise with_path(error, path, "open") from error
        raise ValueError(f"{path} must be a file that Router.save wrote; got: {error}.") from error
    except Exception as error:  # a broken archive may fail in any way
        raise ValueError(f"{path} must be a file that Router.save wrote; got: {error}.") from error
    if not isinstance(about, dict) or about.get("format") != _FORMAT:
        raise ValueError(f"{path} must be a {_FORMAT!r}; got {show(about)}.")
    return found, about


def _plain(ids: Ids) -> Any:
    """Return ids in an array that needs no pickle."""
    return ids.astype(str) if ids.dtype == object else ids


def _pairs(value: Any) -> Any:
    return [[key, one] for key, one in value.items()] if hasattr(value, "items") else value


def _unpaired(value: Any) -> Any:
    return dict(value) if isinstance(value, list) else value
