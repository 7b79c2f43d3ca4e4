"""The task with the fewest labels."""

from dataclasses import dataclass

from labelonce._types import Codes, Floats
from labelonce.routing._state import State
from labelonce.routing._strategies._strategy import Strategy


@dataclass
class FewestLabels(Strategy):
    """The task with the fewest labels, whatever they say.

    Examples
    --------
    >>> from labelonce import routing
    >>> router = routing.Router(["a", "b"], ["yes", "no"], strategy=routing.FewestLabels())
    >>> router.add("a", "ann", "yes")
    >>> router.next("bob")
    'b'
    """

    takes_questions = True

    def scores(self, state: State, worker: int, tasks: Codes) -> Floats:
        """Return 1 / (1 + labels)."""
        return 1 / (1.0 + state.n_labels[tasks])
