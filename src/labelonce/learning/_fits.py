"""The fits that an `MBEM` makes: counted, announced and limited."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

FRUGAL_FITS = 15
FRUGAL_FITS_MORE = 5  # for every further learner
FRUGAL_FOLDS = 2  # at least, and where folds only calibrate the confidence
_MOST_FOLDS = 5
_ROUNDS_IN_FOLDS = 3  # that folds leave fits for: with fewer folds the rounds confirm themselves
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


def frugal_folds(budget: int, n_learners: int = 1) -> int:
    """Return how many folds leave fits for three rounds, after the one that tells whether a learner memorises.

    >>> [frugal_folds(budget) for budget in (9, 15, 16)], frugal_folds(20, n_learners=2)
    ([2, 4, 5], 4)
    """
    folds = (budget - 1 - FRUGAL_FITS_MORE * (n_learners - 1)) // _ROUNDS_IN_FOLDS
    return min(max(folds, FRUGAL_FOLDS), _MOST_FOLDS)


def affordable_rounds(left: int, n_open: int, max_rounds: int, *, in_folds: bool, n_folds: int) -> int:
    """Return how many rounds fit into `left` fits, where `n_open` contenders have yet to do their first.

    Out of fold the best contender's further rounds are the run. Otherwise they are tried on a part of the tasks, done
    again on all, and folds of the last calibrate its confidence.

    >>> affordable_rounds(10, 1, 6, in_folds=False, n_folds=2), affordable_rounds(10, 0, 6, in_folds=True, n_folds=4)
    (4, 3)
    """
    for rounds in range(max_rounds, 1, -1):
        trial = n_open + rounds - 1
        if (n_folds * trial if in_folds else trial + rounds + n_folds) <= left:
            return rounds
    return 1


def most_fits(n_contenders: int, max_rounds: int, *, in_folds: bool) -> int:
    """Return how many fits a choice without a limit and its run make at most: three splits, five folds."""
    trials = n_contenders * min(max_rounds, 3) + min(n_contenders, 2) * max(max_rounds - 3, 0)
    return 3 * trials * (5 if in_folds else 1) + (max_rounds * 6 if in_folds else max_rounds + 5)
