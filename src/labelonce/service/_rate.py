"""A limit on requests: a bucket that refills at a steady rate."""

import time
from collections import OrderedDict
from collections.abc import Callable

_MOST = 100_000  # buckets that are remembered


class Rate:
    """Allow everybody `per_second` requests on average, and `burst` at once.

    Examples
    --------
    >>> now = 0.0
    >>> rate = Rate(per_second=1, burst=2, clock=lambda: now)
    >>> [rate.wait("ann"), rate.wait("ann"), rate.wait("ann"), rate.wait("bob")]
    [0.0, 0.0, 1.0, 0.0]
    >>> now = 1.0
    >>> rate.wait("ann")
    0.0
    """

    def __init__(self, per_second: float, burst: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_second, self.burst, self._clock = per_second, burst, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what is left, and when

    def wait(self, who: str) -> float:
        """Count a request, and return 0, or after how many seconds to ask again."""
        now = self._clock()
        left, then = self._buckets.pop(who, (self.burst, now))
        left = min(self.burst, left + (now - then) * self.per_second)
        allowed = left >= 1
        self._buckets[who] = (left - allowed, now)
        if len(self._buckets) > _MOST:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - left) / self.per_second
