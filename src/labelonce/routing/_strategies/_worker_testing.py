"""Optimal testing of workers by questions whose answer is known."""

from dataclasses import dataclass

import numpy as np

from labelonce._types import Codes, Floats
from labelonce.routing._state import State
from labelonce.routing._strategies._strategy import Strategy

_FIRE, _WORK, _TEST = 0, 1, 2


@dataclass
class WorkerTesting(Strategy):
    """Test a worker by gold questions while that pays, then let it work or decline it.

    A worker is good (right with probability `skill`) or guesses; `good` is the share of good ones. A label of a good
    worker is worth 1, one of a guesser costs `loss`, a test costs 1. What to do after N right and M wrong answers
    is the optimal policy for a worker who would still give `labels` labels, by dynamic programming. The published
    policy also looks at how workers change; here they do not. Tasks are asked by the entropy of their beliefs.

    References
    ----------
    J. Bragg, Mausam and D. Weld, "Optimal Testing for Crowd Workers", AAMAS 2016.

    Examples
    --------
    The router needs gold; a new worker is tested first:

    >>> from labelonce import routing
    >>> tasks, gold = ["a", "b", "c", "d"], {"c": "yes", "d": "no"}
    >>> router = routing.Router(tasks, ["yes", "no"], strategy=routing.WorkerTesting(), gold=gold)
    >>> router.next("ann") in gold
    True
    """

    skill: float = 0.9
    good: float = 0.5
    labels: int = 50
    loss: float = 1.0
    most_tests: int = 20

    def refitted(self, state: State) -> None:
        """Solve the policy."""
        self._policy = self._solved(1 / state.n_classes)

    def _solved(self, guess: float) -> Codes:
        """Return what to do after [right, wrong] answers, from the last possible test back to the first."""
        size = self.most_tests + 1
        policy = np.zeros((size, size), dtype=np.int32)
        values = np.zeros((size + 1, size + 1))
        for n in range(self.most_tests, -1, -1):
            for right in range(n + 1):
                wrong = n - right
                odds = (self.skill / guess) ** right * ((1 - self.skill) / (1 - guess)) ** wrong
                good = self.good * odds / (self.good * odds + 1 - self.good)
                hit = good * self.skill + (1 - good) * guess
                test = hit * values[right + 1, wrong] + (1 - hit) * values[right, wrong + 1] - 1
                offers = [0.0, self.labels * (good - (1 - good) * self.loss), test if n < self.most_tests else -np.inf]
                policy[right, wrong] = int(np.argmax(offers))
                values[right, wrong] = max(offers)
        return policy

    def _action(self, state: State, worker: int) -> int:
        answers = state.answers.of(worker)
        tests = [task for task in answers if state.gold[task] >= 0]
        right = sum(state.answers.labels(answers[task]) == [state.gold[task]] for task in tests)
        if len(tests) > self.most_tests:  # more gold than the policy has a plan for: keep the shares
            right = round(right * self.most_tests / len(tests))
        return int(self._policy[right, min(len(tests), self.most_tests) - right])

    def tests(self, state: State, worker: int) -> bool:
        """Return whether a test pays."""
        return self._action(state, worker) == _TEST

    def accepts(self, state: State, worker: int) -> bool:
        """Return whether the worker is worth keeping."""
        return self._action(state, worker) != _FIRE

    def scores(self, state: State, worker: int, tasks: Codes) -> Floats:
        """Return the entropy of the belief about each task."""
        return state.belief.entropy(tasks)
