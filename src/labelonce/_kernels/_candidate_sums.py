"""The E-step and the M-step on candidates: arrays in, arrays out, in blocks of tasks that stay in the cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from labelonce._kernels._arrays import NUMPY
from labelonce._kernels._candidates import Candidates
from labelonce._kernels._factors import Factors, Mistakes, Tallies
from labelonce._kernels._posterior import normalise
from labelonce._types import Codes, Floats
from labelonce.data import Annotations
from labelonce.data._rows import first_rows

if TYPE_CHECKING:
    from labelonce._kernels._candidate_evidence import CandidateEvidence

_BLOCK = 1 << 18  # numbers in a block
_DRAWN = 200_000  # tasks whose true class is drawn to learn a population by


class CandidateStep(NamedTuple):
    """Posteriors of all tasks, and the log-likelihood of all annotations."""

    posterior: Candidates
    log_likelihood: float


class Part(NamedTuple):
    """A block: its tasks, its annotations, and for each of these and each candidate the place in the tables."""

    tasks: slice
    rows: slice
    local: Any  # the task of every annotation within the block; None if each task has one
    cell: Any
    index: Any
    own: Any
    label_cell: Any


class CandidateSums:
    """The annotations of tasks with candidates, ready for many iterations.

    A last column stands for the classes that are no candidates. Sums in a block are in `dtype`, those over blocks
    in float64.

    Parameters
    ----------
    annotations : Annotations
    classes : (n_tasks, width)
        As in `Candidates`; every label must be a candidate of its task.
    mistakes : Mistakes
    row : (n_classes,)
        As in `Factors`.
    """

    arrays = NUMPY

    def __init__(
        self, annotations: Annotations, classes: Codes, mistakes: Mistakes, row: Codes, dtype: str = "float64"
    ) -> None:
        self.dtype = np.dtype(dtype)
        self.classes, self.mistakes = classes, mistakes
        self.n_workers, self.n_classes, self.n_rows = annotations.n_workers, annotations.n_classes, int(row.max()) + 1
        self._start = first_rows(annotations.task, annotations.n_tasks)
        self._task, self._worker, self._label = annotations.task, annotations.worker, annotations.label
        self.uniform = np.random.default_rng(0).random(len(classes), dtype=np.float32)
        self._row = np.append(row, self.n_rows).astype(np.int32)  # of padding: any, its prior is zero
        width, n_shares = classes.shape[1] + 1, len(mistakes) + self.n_classes + 1
        self._index = np.empty((len(annotations), width), dtype=np.int16 if n_shares < 2**15 else np.int32)
        self._own = np.empty(len(annotations), dtype=np.int16)
        for rows in _slices(len(annotations), width):
            own, label = self._wide(classes[annotations.task[rows]]), annotations.label[rows]
            self._own[rows] = (own == label[:, None]).argmax(axis=1)
            self._index[rows] = mistakes.index(label[:, None], np.maximum(own, 0))

    def _wide(self, classes: Codes) -> Codes:
        """Return candidates with a last column for all other classes."""
        return np.pad(classes, ((0, 0), (0, 1)), constant_values=self.n_classes)

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.classes)

    def e_step(self, factors: Factors, log_prior: Floats) -> CandidateStep:
        """Return the posteriors; `log_prior` (n_tasks, width + 1) is log P(true label), last of all other classes.

        It is minus infinity where there is no candidate.
        """
        tables, joint, total = factors.log_tables(self.dtype), np.empty(log_prior.shape, self.dtype), 0.0
        for part in self.parts():
            joint[part.tasks] = self._messages(part, tables)
            joint[part.tasks] += log_prior[part.tasks]
            total += normalise(joint[part.tasks])
        return CandidateStep(self.as_candidates(joint), total)

    def messages(self, factors: Factors) -> Floats:
        """Return the sum of log P(label | true) over each task's labels, by candidate, (n_tasks, width + 1)."""
        shape = (self.n_tasks, self.classes.shape[1] + 1)
        tables, found = factors.log_tables(self.dtype), np.empty(shape, self.dtype)
        for part in self.parts():
            found[part.tasks] = self._messages(part, tables)
        return found

    def m_step(self, posterior: Candidates, weight: Floats | None = None) -> Tallies:
        """Return right and wrong labels as posteriors on these candidates see them; tasks count `weight`, or 1."""
        totals = Totals(self)
        for part in self.parts():
            wide = np.concatenate([posterior.probability[part.tasks], posterior.rest[part.tasks, None]], axis=1)
            if weight is not None:
                wide = wide * weight[part.tasks, None]
            totals.add(part, wide.astype(self.dtype, copy=False))
        return totals.tallies()

    def sweep(self, factors: Factors, log_prior: Floats) -> tuple[Tallies, float]:
        """Return what `m_step` gives for the posteriors of `e_step`, never held all at once; the log-likelihood."""
        tables, totals, total = factors.log_tables(self.dtype), Totals(self), 0.0
        for part in self.parts():
            joint = self._messages(part, tables)
            joint += log_prior[part.tasks]
            total += normalise(joint)
            totals.add(part, joint)
            totals.draw(part, joint)
        return totals.tallies(drawn=True), total

    def evidence(self) -> CandidateEvidence:
        """Return what labels say of their workers, to be heard in steps."""
        from labelonce._kernels._candidate_evidence import CandidateEvidence

        return CandidateEvidence(self)

    def as_candidates(self, wide: Floats) -> Candidates:
        """Return probabilities (n_tasks, width + 1) as distributions."""
        return Candidates(self.classes, wide[:, :-1], wide[:, -1], self.n_classes)

    def keep(self, log_prior: Floats) -> Floats:
        """Return a log prior as many steps may use it: as it is."""
        return log_prior

    def parts(self, block: int = _BLOCK) -> Iterator[Part]:
        """Yield blocks of tasks with about `block` numbers each."""
        width = self.classes.shape[1] + 1
        step = max(1, int(block / width / max(1.0, len(self._task) / max(1, self.n_tasks))))
        for first in range(0, self.n_tasks, step):
            tasks = slice(first, min(first + step, self.n_tasks))
            rows = slice(int(self._start[tasks.start]), int(self._start[tasks.stop]))
            one_each = rows.stop - rows.start == tasks.stop - tasks.start and bool(
                (np.diff(self._start[tasks.start : tasks.stop + 1]) == 1).all()
            )
            local = None if one_each else self._task[rows] - tasks.start
            row = self._row.take(self._wide(self.classes[tasks]), mode="wrap")
            cell = row if local is None else row.take(local, axis=0)
            worker = self._worker[rows] * np.int32(self.n_rows + 1)
            cell += worker[:, None]
            label_cell = worker + self._row[self._label[rows]]
            index = self._index[rows].astype(np.int32, copy=False)
            yield Part(tasks, rows, local, cell, index, self._own[rows], label_cell)

    def _messages(self, part: Part, tables: tuple[Floats, Floats, Floats]) -> Any:
        log_right, log_wrong, log_share = tables
        message = log_wrong.take(part.cell)
        message += log_share.take(part.index)
        message[np.arange(len(message)), part.own] = log_right.take(part.label_cell)
        return self.by_task(part, message)

    def by_task(self, part: Part, message: Floats) -> Any:
        """Return the sums of what each annotation of a block says over those of each task."""
        if part.local is None:
            return message
        start = self._start[part.tasks.start : part.tasks.stop + 1] - part.rows.start
        n = len(message)
        by_task = sparse.csr_array((np.ones(n, self.dtype), np.arange(n), start), shape=(len(start) - 1, n))
        return by_task @ message


class Totals:
    """Sums over blocks."""

    def __init__(self, sums: CandidateSums) -> None:
        self._sums = sums
        n_cells = sums.n_workers * (sums.n_rows + 1)
        self.right, self.wrong = np.zeros(n_cells), np.zeros(n_cells)
        self.given = np.zeros(len(sums.mistakes) + sums.n_classes + 1)
        self.drawn_right, self.drawn_wrong = np.zeros_like(self.right), np.zeros_like(self.wrong)

    def add(self, part: Part, posterior: Floats) -> None:
        """Add what a block's posteriors (n_tasks, width + 1) amount to."""
        by_label = posterior if part.local is None else posterior.take(part.local, axis=0)
        place = np.arange(len(by_label)), part.own
        right = by_label[place]
        if part.local is None:
            by_label = by_label.copy()
        by_label[place] = 0.0
        self.right += np.bincount(part.label_cell, right, len(self.right))
        _add(self.wrong, part.cell, by_label)
        _add(self.given, part.index, by_label)

    def draw(self, part: Part, posterior: Floats) -> None:
        """Count labels against one class per task that is drawn from its posterior, always by the same numbers.

        Of many tasks some are enough.
        """
        every = drawn_step(self._sums.n_tasks)
        first = -part.tasks.start % every
        some = posterior[first::every]
        uniform = self._sums.uniform[part.tasks][first::every, None] * some.sum(axis=1, keepdims=True)
        drawn = np.minimum((np.cumsum(some, axis=1) < uniform).sum(axis=1), some.shape[1] - 1)
        local = np.arange(len(posterior)) if part.local is None else part.local
        rows = np.flatnonzero((local - first) % every == 0)
        drawn = drawn[(local[rows] - first) // every]
        right = drawn == part.own[rows]
        self.drawn_right += np.bincount(part.label_cell[rows[right]], minlength=len(self.right))
        self.drawn_wrong += np.bincount(part.cell[rows, drawn][~right], minlength=len(self.right))

    def tallies(self, *, drawn: bool = False) -> Tallies:
        """Return the sums, `drawn` ones too."""
        found = (self.right, self.wrong, self.given, *((self.drawn_right, self.drawn_wrong) if drawn else ()))
        return as_tallies(*found, n_pairs=len(self._sums.mistakes), n_rows=self._sums.n_rows)


def drawn_step(n_tasks: int) -> int:
    """Return of how many tasks one has its true class drawn."""
    return max(1, -(-n_tasks // _DRAWN))


def as_tallies(right: Floats, wrong: Floats, given: Floats, *drawn: Floats, n_pairs: int, n_rows: int) -> Tallies:
    """Return sums by cell and by `Mistakes.index`; wrong labels of unknown true class are shared out to all rows."""
    by_row = (-1, n_rows + 1)
    spread = wrong.reshape(by_row)
    shared = spread[:, :-1] + spread[:, -1:] / n_rows
    crowd = (given[:n_pairs], given[n_pairs:-1], float(given[-1]))
    return Tallies(right.reshape(by_row)[:, :-1], shared, *crowd, *(one.reshape(by_row)[:, :-1] for one in drawn))


def _add(totals: Floats, place: Any, values: Floats) -> None:
    """Add values to places that may repeat; scipy sums them faster than bincount, which converts both first."""
    ends = np.array([0, place.size])
    row = sparse.csr_array((values.ravel(), place.ravel(), ends), shape=(1, len(totals)))
    totals += row.toarray()[0]


def _slices(n: int, width: int) -> Iterator[slice]:
    step = max(1, _BLOCK // width)
    return (slice(start, start + step) for start in range(0, n, step))
