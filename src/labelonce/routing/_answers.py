"""All answers of a router: the one table from which everything that is counted follows."""

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from labelonce._types import Codes, Mask


class Rows(NamedTuple):
    """Columns of codes; with several questions `label` has one column for each."""

    task: Codes
    worker: Codes
    label: Codes


class Answers:
    """Who labelled what, and how, in the order in which it came; the row of an answer that was removed stays empty.

    Examples
    --------
    >>> answers = Answers()
    >>> answers.add(0, 7, [1])
    >>> answers.add(2, 7, [0])
    >>> answers.remove(0, 7)
    [1]
    >>> len(answers), list(answers.of(7)), answers.rows().task
    (1, [2], array([2], dtype=int32))
    """

    def __init__(self, n_questions: int = 1) -> None:
        self._n_questions = n_questions
        self._task, self._worker, self._label = array("i"), array("i"), array("i")
        self._fitted = bytearray()  # 1 where the last fit knew the answer
        self._row: dict[int, dict[int, int]] = {}  # the row of every task, by worker
        self.n_removed = 0

    def __len__(self) -> int:
        return self.n_rows - self.n_removed

    @property
    def n_rows(self) -> int:
        """How many rows the table has, with the empty ones."""
        return len(self._task)

    @property
    def n_fitted(self) -> int:
        """How many of the answers the last fit knew."""
        return self._fitted.count(1)

    def add(self, task: int, worker: int, labels: Sequence[int]) -> None:
        """Take an answer: the class that was given, or one for each question."""
        self._row.setdefault(worker, {})[task] = self.n_rows
        self._task.append(task)
        self._worker.append(worker)
        self._label.extend(labels)
        self._fitted.append(0)

    def remove(self, task: int, worker: int) -> list[int]:
        """Take an answer out and return its labels."""
        row = self._row[worker].pop(task)
        self._task[row], self._fitted[row] = -1, 0
        self.n_removed += 1
        return self.labels(row)

    def of(self, worker: int) -> dict[int, int]:
        """Return the tasks that a worker has labelled, and the row of each."""
        return self._row.get(worker, {})

    def labels(self, row: int) -> list[int]:
        """Return the labels of the answer in a row."""
        return self._label[row * self._n_questions : (row + 1) * self._n_questions].tolist()

    def rows(self, start: int = 0, *, fitted: bool = False) -> Rows:
        """Return the answers from a row on; with `fitted` those that the last fit knew."""
        task, worker = (np.array(one[start:], dtype=np.int32) for one in (self._task, self._worker))
        label = np.array(self._label[start * self._n_questions :], dtype=np.int32)
        kept = np.frombuffer(bytes(self._fitted[start:]), dtype=bool) if fitted else task >= 0
        shape = (len(task),) if self._n_questions == 1 else (len(task), self._n_questions)
        return Rows(task[kept], worker[kept], label.reshape(shape)[kept])

    def is_fitted(self) -> Mask:
        """Return which of the answers the last fit knew."""
        return np.frombuffer(bytes(self._fitted), dtype=bool)[np.array(self._task, dtype=np.int32) >= 0]

    def fit(self, is_fitted: Mask, n_rows: int) -> None:
        """Note which of the answers in the first rows the last fit knew."""
        fitted = np.zeros(self.n_rows, dtype=bool)
        there = np.flatnonzero(np.array(self._task[:n_rows], dtype=np.int32) >= 0)
        fitted[there] = is_fitted
        self._fitted = bytearray(fitted.tobytes())
