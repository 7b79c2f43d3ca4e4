"""A random open task: the baseline of all strategies."""

from dataclasses import dataclass

from labelonce._types import Codes, Floats
from labelonce.routing._state import State
from labelonce.routing._strategies._strategy import Strategy


@dataclass
class Random(Strategy):
    """Any open task; with `decline_below` above 0, workers whose answers would bring little are declined as by default.

    Examples
    --------
    >>> from labelonce import routing
    >>> router = routing.Router(["a", "b", "c"], ["yes", "no"], strategy=routing.Random())
    >>> sorted(router.next("ann") for _ in range(3))
    ['a', 'b', 'c']
    """

    takes_questions = True

    decline_below: float = 0.0

    def scores(self, state: State, worker: int, tasks: Codes) -> Floats:
        """Return random numbers."""
        return state.rng.random(len(tasks))
