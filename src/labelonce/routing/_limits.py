"""The terms on which a router buys labels: what they cost, and when to ask no more."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from labelonce._messages import show
from labelonce._types import Floats, Ids
from labelonce._validate import check_int, check_number


@dataclass(frozen=True, eq=False)
class Prices:
    """What a label costs.

    Parameters
    ----------
    costs : number or mapping of worker to number
        The price of a worker's label; 1 for workers that are not named.
    task_costs : array or mapping of task to number, optional
        What the price is multiplied by for a task; default 1.

    Examples
    --------
    >>> prices = Prices(costs={"ann": 2.0}, task_costs={"img7": 3.0})
    >>> prices.of_worker("ann"), prices.of_worker("bob"), prices.of_tasks(["img6", "img7"])
    (2.0, 1.0, array([1., 3.]))
    """

    costs: float | Mapping[Any, float] = 1.0
    task_costs: Any = None

    def __post_init__(self) -> None:
        named = self.costs if isinstance(self.costs, Mapping) else {"": self.costs}
        for worker, cost in named.items():
            if check_number(cost, f"the cost of worker {show(worker)}" if worker else "costs", 0.0) == 0:
                raise ValueError(f"costs must be above 0; got {cost!r} for worker {show(worker)}.")

    def of_worker(self, worker: Any) -> float:
        """Return the price of a worker's label, of a task of price 1."""
        return float(self.costs.get(worker, 1.0) if isinstance(self.costs, Mapping) else self.costs)

    def of_tasks(self, tasks: Ids) -> Floats:
        """Return one factor per task."""
        costs, ids = self.task_costs, np.asarray(tasks)
        if costs is None:
            return np.ones(len(ids))
        if isinstance(costs, Mapping):
            costs = [costs.get(one, 1.0) for one in ids.tolist()]
        found = np.asarray(costs, dtype=np.float64)
        if found.shape != ids.shape:
            raise ValueError(f"task_costs must have one entry per task, {len(ids)}; got shape {found.shape}.")
        bad = ~(np.isfinite(found) & (found > 0))
        if bad.any():
            place, n_bad = int(np.argmax(bad)), int(bad.sum())
            raise ValueError(f"task_costs must be above 0; got {found[place]} at task {place} ({n_bad} in total).")
        return found


@dataclass(frozen=True)
class Limits:
    """The limits of a router: per task, per worker, and in total.

    Parameters
    ----------
    budget : float, optional
        Stop when that much is spent.
    max_risk : float, optional
        Stop when the mean error probability of the tasks is at most this.
    min_gain : float, optional
        Stop when the average worker's best answer is expected to bring less than this many nats per unit of money.
    max_labels : int, optional
        Most labels of one task.
    capacity : int or mapping of worker to int, optional
        Most labels of one worker.
    lease_seconds : float
        How long a task that was handed out is not handed out again.
    may_decline : bool
        Whether `Router.next` may answer None to a worker whose labels are worth too little.
    gold_tests : int
        Most gold questions of a worker who would otherwise be declined.

    Examples
    --------
    >>> limits = Limits(budget=100, capacity={"ann": 20})
    >>> limits.capacity_of("ann"), limits.capacity_of("bob")
    (20, inf)
    """

    budget: float | None = None
    max_risk: float | None = None
    min_gain: float | None = None
    max_labels: int | None = None
    capacity: int | Mapping[Any, int] | None = None
    lease_seconds: float = 3600.0
    may_decline: bool = False
    gold_tests: int = 10

    def __post_init__(self) -> None:
        for name, high in (("budget", math.inf), ("max_risk", 1.0), ("min_gain", math.inf)):
            if getattr(self, name) is not None:
                check_number(getattr(self, name), name, 0.0, high)
        if self.max_labels is not None:
            check_int(self.max_labels, "max_labels", 1)
        named = self.capacity if isinstance(self.capacity, Mapping) else {"": self.capacity}
        for worker, most in named.items():
            if most is not None:
                check_int(most, f"the capacity of worker {show(worker)}" if worker else "capacity", 0)
        check_number(self.lease_seconds, "lease_seconds", 0.0)
        check_int(self.gold_tests, "gold_tests", 0)

    def saved(self) -> dict[str, Any]:
        """Return the limits, for a file."""
        return {field.name: pairs_of(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def of_file(cls, saved: dict[str, Any]) -> Self:
        """Return what `saved` returned."""
        return cls(**{name: of_pairs(value) for name, value in saved.items()})

    def capacity_of(self, worker: Any) -> float:
        """Return the most labels of a worker."""
        most = self.capacity.get(worker) if isinstance(self.capacity, Mapping) else self.capacity
        return math.inf if most is None else most


def pairs_of(value: Any) -> Any:
    """Return a mapping as pairs, since JSON knows no keys that are integers; anything else as it is."""
    return list(value.items()) if isinstance(value, Mapping) else value


def of_pairs(value: Any) -> Any:
    """Return the mapping of such pairs."""
    return dict(value) if isinstance(value, list) else value
