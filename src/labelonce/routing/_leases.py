"""Tasks that are leased to a worker."""

import heapq
from collections.abc import Iterator


class Leases:
    """Which task is leased to which worker, and until when.

    Examples
    --------
    >>> leases = Leases(seconds=60)
    >>> leases.hand_out(7, worker=1, now=0.0)
    >>> 7 in leases.out, list(leases.expired(now=59.0)), list(leases.expired(now=60.0)), 7 in leases.out
    (True, [], [7], False)
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.out: dict[int, tuple[int, float]] = {}
        self._ends: list[tuple[float, int]] = []  # a heap, also of leases that ended otherwise

    def hand_out(self, task: int, worker: int, now: float) -> None:
        """Lease a task to a worker from now on."""
        self.restore(task, worker, now + self.seconds)

    def restore(self, task: int, worker: int, until: float) -> None:
        """Lease a task to a worker until a given time."""
        self.out[task] = (worker, until)
        heapq.heappush(self._ends, (until, task))

    def give_back(self, task: int, worker: int) -> None:
        """End the lease of a task if it is this worker's."""
        if task in self.out and self.out[task][0] == worker:
            del self.out[task]

    def holder(self, task: int, now: float) -> int | None:
        """Return the worker who holds a task, None if nobody does or the lease has expired."""
        worker, until = self.out.get(task, (None, now))
        return worker if until > now else None

    def expired(self, now: float) -> Iterator[int]:
        """End the leases whose time is over, and yield their tasks."""
        while self._ends and self._ends[0][0] <= now:
            _, task = heapq.heappop(self._ends)
            if self.holder(task, now) is None and self.out.pop(task, None) is not None:
                yield task
