"""Tasks that are out with a worker."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator


class Leases:
    """Which task is out with which worker, until when; the oldest lease first.

    Examples
    --------
    >>> leases = Leases(seconds=60)
    >>> leases.hand_out(7, worker=1, now=0.0)
    >>> 7 in leases, list(leases.expired(now=59.0)), list(leases.expired(now=60.0)), 7 in leases
    (True, [], [7], False)
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.out: OrderedDict[int, tuple[int, float]] = OrderedDict()

    def __contains__(self, task: int) -> bool:
        return task in self.out

    def hand_out(self, task: int, worker: int, now: float) -> None:
        """Note that a task is out with a worker from now on."""
        self.out[task] = (worker, now + self.seconds)

    def give_back(self, task: int, worker: int) -> None:
        """End the lease of a task if it is this worker's."""
        if task in self.out and self.out[task][0] == worker:
            del self.out[task]

    def holder(self, task: int, now: float) -> int | None:
        """Return the worker who has a task, None where nobody has or the lease is over."""
        worker, until = self.out.get(task, (None, now))
        return worker if until > now else None

    def expired(self, now: float) -> Iterator[int]:
        """End the leases whose time is over, and yield their tasks."""
        while self.out:
            task, (_, until) = next(iter(self.out.items()))
            if until > now:
                return
            del self.out[task]
            yield task
