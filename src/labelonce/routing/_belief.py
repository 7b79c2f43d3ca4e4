"""What is believed about the true label of every task."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from labelonce._kernels import floored_log
from labelonce._types import Codes, Floats

Tasks = Codes | slice


class Belief:
    """The log-posterior of every task's true label, updated exactly by one more answer.

    A refit replaces all of it; between refits an answer adds the log-chances that its worker gives it, one for each
    true class, to its own task and to nothing else.

    Parameters
    ----------
    posterior : (n_tasks, n_classes)
        What is believed at first; rows sum to 1.

    Examples
    --------
    A worker who is right nine times in ten says that task 1 is of class 0:

    >>> import numpy as np
    >>> belief = Belief(np.full((2, 2), 0.5))
    >>> belief.update(1, np.log([0.9, 0.1]))
    >>> belief.posterior().round(2)
    array([[0.5, 0.5],
           [0.9, 0.1]])
    >>> round(belief.mean_risk, 2)
    0.3
    """

    def __init__(self, posterior: Any) -> None:
        self.replace(floored_log(np.asarray(posterior, dtype=np.float64)))

    @classmethod
    def of_logs(cls, log_posterior: Floats) -> Belief:
        """Return the belief of unnormalised log-posteriors."""
        found = cls.__new__(cls)
        found.replace(log_posterior)
        return found

    def replace(self, log_posterior: Floats) -> None:
        """Forget what was believed, and believe this, normalised."""
        self.log_posterior = _normalised(np.asarray(log_posterior, dtype=np.float64))
        self.risk: Floats = 1 - np.exp(self.log_posterior.max(axis=1))
        self._risk_sum = float(self.risk.sum())
        self._kept: _Kept | None = None

    def restore(self, log_posterior: Floats, risk: Floats) -> None:
        """Believe what a belief of the same tasks did when it was saved, to the last digit."""
        self.log_posterior, self.risk, self._risk_sum = log_posterior, risk, float(risk.sum())
        self._kept = None

    def update(self, task: int, log_chances: Floats) -> None:
        """Take an answer for a task: `log_chances` of that answer, by true class."""
        row = self.log_posterior[task] + log_chances
        row -= row.max()
        row -= np.log(np.exp(row).sum())
        risk = 1 - float(np.exp(row.max()))
        self._risk_sum += risk - float(self.risk[task])
        self.log_posterior[task], self.risk[task] = row, risk
        if self._kept is not None and task in self._kept.place:
            self._kept.posterior[self._kept.place[task]] = np.exp(row)

    def keep(self, tasks: Codes) -> None:
        """Keep P(true label) of tasks that will be asked for often, by this very array, which becomes read-only."""
        if self._kept is None or self._kept.tasks is not tasks:
            tasks.flags.writeable = False
            place = dict(zip(tasks.tolist(), range(len(tasks)), strict=True))
            self._kept = _Kept(tasks, place, np.exp(self.log_posterior[tasks]))

    def posterior(self, tasks: Tasks = slice(None)) -> Floats:
        """Return P(true label) of some tasks, (n_tasks, n_classes); not to be changed in place."""
        if self._kept is not None and tasks is self._kept.tasks:
            return self._kept.posterior
        return np.asarray(np.exp(self.log_posterior[tasks]))

    def entropy(self, tasks: Tasks = slice(None)) -> Floats:
        """Return the entropy of the true label of some tasks, in nats."""
        logs = self.log_posterior[tasks]
        return np.asarray(-(np.exp(logs) * logs).sum(axis=1))

    @property
    def mean_risk(self) -> float:
        """Chance that the most probable label of the average task is wrong."""
        return self._risk_sum / len(self.risk)


class _Kept(NamedTuple):
    """Tasks, the place of each among them, and their posteriors, always up to date."""

    tasks: Codes
    place: dict[int, int]
    posterior: Floats


def _normalised(log_joint: Floats) -> Floats:
    """Return rows of logs that sum to 1, in parts: a temporary as large as the beliefs is too large."""
    result = np.array(log_joint)
    for start in range(0, len(result), 65536):
        part = result[start : start + 65536]
        part -= part.max(axis=1, keepdims=True)
        part -= np.log(np.exp(part).sum(axis=1, keepdims=True))
    return result
