"""Progress of long work on standard error: a bar on a terminal, a line of text now and then elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from labelonce.cli._print import print_status, stderr
from labelonce.runs import Progress

_PAUSE = 5.0  # seconds between two lines at least,
_FIRST = 3  # steps from which the time left is estimated: the first one also loads and warms up
_SHARE = 0.05  # and this share of the time so far: a night's work fills no log


class Stage(NamedTuple):
    """The words for a stage: on the progress bar, in the line when it begins, and in those about its steps.

    The time left is estimated where the steps are `alike`.
    """

    title: str
    begin: str
    steps: str = ""
    alike: bool = True


_SIMULATING = "simulating your problem with small fits (--fits 0 to leave it out)"
STAGES = {
    "embedding": Stage("Encoding", "encoding with the pretrained model", "encoded {done} of {total}"),
    "choosing": Stage("Choosing a recipe", "choosing a recipe", "choosing: {done} of at most {total} fits"),
    "resuming": Stage("Resuming", "resuming"),
    "round": Stage("Rounds", "fitting to all tasks", "round {done} of {total}"),
    "confidence": Stage("Confidence", "fitting out-of-fold models, for the confidence"),
    "writing": Stage("Writing", "writing the run folder"),
    "comparing": Stage("Comparing methods", "comparing methods", "{done} of {total} methods", alike=False),
    "simulating": Stage("Simulating your problem", _SIMULATING, "{done} of {total} fits"),
}


@dataclass
class Lines:
    """A listener that writes a line when a stage begins, when its length is known, and then now and then.

    >>> lines = Lines(print, clock=iter([0.0, 2.0, 6.0, 20.0]).__next__)
    >>> for event in [("choosing", 0, 0), ("choosing", 1, 15), ("choosing", 3, 15), ("choosing", 9, 15)]:
    ...     lines(*event)
    choosing a recipe
    choosing: 3 of at most 15 fits, about 24 s left
    choosing: 9 of at most 15 fits, about 13 s left
    """

    write: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    _stage: str = ""
    _announced: bool = False
    _stage_began: float = 0.0
    _began: float | None = None
    _last: float = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Note that `done` of `total` steps of a stage are finished; 0: not known."""
        now = self.clock()
        self._began = now if self._began is None else self._began
        known = STAGES[stage]
        if stage != self._stage:
            self._stage, self._announced, self._stage_began = stage, False, now
            self._say(now, known.begin)
        pause = max(_PAUSE, _SHARE * (now - self._began))
        if not (known.steps and 0 < done < total) or (self._announced and now - self._last < pause):
            return
        sure = not known.alike or done >= min(_FIRST, total - 1)
        if not sure and now - self._stage_began < _PAUSE:
            return
        self._announced = True
        left = (now - self._stage_began) / done * (total - done)
        steps = known.steps.format(done=done, total=total)
        self._say(now, f"{steps}, {_duration(left)}" if known.alike and sure else steps)

    def _say(self, now: float, line: str) -> None:
        self._last = now
        self.write(line)


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "less than a second left"
    if seconds < 120:
        return f"about {seconds:.0f} s left"
    return f"about {seconds / 60:.0f} min left" if seconds < 7200 else f"about {seconds / 3600:.1f} h left"


@contextmanager
def shown_progress(*, as_json: bool = False) -> Iterator[Progress]:
    """Yield a listener that shows a bar on a terminal and lines elsewhere; nothing to a program that reads JSON."""
    if not stderr.is_terminal:
        yield (lambda *_: None) if as_json else Lines(print_status)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=stderr, transient=True) as bar:
        shown = bar.add_task("Reading", total=None)
        yield lambda stage, done, total: bar.update(
            shown, description=STAGES[stage].title, completed=done, total=total or None
        )
