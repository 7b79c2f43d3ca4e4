"""The fits that an `MBEM` makes: counted, announced and limited."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

_CLEAR = "\r\x1b[K"  # takes away what was written on the line


@dataclass
class FitLog:
    """Counts fits, and tells `listener` after each how many there are, how many there may be, and the time left."""

    planned: int = 0
    listener: Callable[[dict[str, Any]], None] | None = None
    number: int = 0
    _started: float = field(default_factory=perf_counter)
    _told: bool = False

    def add(self) -> None:
        """Count a fit, and tell of it once it is known how many there may be."""
        self.number += 1
        if self.listener is None or not self.planned:
            return
        left = max(self.planned - self.number, 0) * (perf_counter() - self._started) / self.number
        event = {"round": 0, "fits": self.number, "planned_fits": self.planned, "seconds_left": left}
        self.listener(event | {"first": not self._told})
        self._told = True


_current: ContextVar[FitLog | None] = ContextVar("fits", default=None)


@contextmanager
def counting(log: FitLog) -> Iterator[None]:
    """Count the fits within in `log`."""
    token = _current.set(log)
    try:
        yield
    finally:
        _current.reset(token)


def count_fit() -> None:
    """Tell the log, if there is one, that a learner was fitted."""
    log = _current.get()
    if log is not None:
        log.add()


def announce(event: dict[str, Any]) -> None:
    """Write to standard error how far a fit has come: a bar on a terminal, elsewhere the first fit and every tenth."""
    bar = sys.stderr.isatty()
    if event["round"]:
        line = f"round {event['round']}, mean confidence {event['mean_confidence']:.3f}"
    elif bar or event["first"] or event["fits"] % 10 == 0:
        done, total = event["fits"], event["planned_fits"]
        line = f"{done} of at most {total} fits, about {event['seconds_left']:.0f} s left"
        line = f"{drawn_bar(done, total)} {line}" if bar else line
    else:
        return
    start, end = _CLEAR if bar else "", "" if bar and not event["round"] else "\n"
    sys.stderr.write(f"{start}MBEM: {line}{end}")
    sys.stderr.flush()


def drawn_bar(done: int, total: int, width: int = 20) -> str:
    """Return a bar of text.

    >>> drawn_bar(3, 12, 8)
    '[##......]'
    """
    full = width * min(done, total) // max(total, 1)
    return f"[{'#' * full}{'.' * (width - full)}]"
