"""The engine of the base install: scipy's sparse products, readable and single-threaded."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from labelonce._kernels._engine import EStep, Sweep
from labelonce._kernels._posterior import posterior_of
from labelonce._kernels._tallies import Counts
from labelonce._types import Codes, Floats
from labelonce.data import Annotations, first_rows

_SWEEP_BLOCK = 1 << 20  # numbers: memory for a block is reused, while that for all tasks comes fresh from the system


class ScipyEngine:
    """The annotations as one sparse matrix (n_tasks, n_workers * n_answers) of amounts, ready for many iterations.

    The M-step uses the same matrix transposed: it scatters into a table that fits the cache, which is faster than
    to gather by a second index sorted by row, and needs no such index.
    """

    def __init__(self, annotations: Annotations, dtype: str) -> None:
        self.dtype = np.dtype(dtype)
        self.shape = (annotations.n_workers, annotations.n_classes, annotations.n_answers)
        self.leaning = None if annotations.is_square else annotations.leaning
        n_rows = annotations.n_workers * annotations.n_answers
        task, worker, self._label = annotations.task, annotations.worker, annotations.label
        self._share = data = np.ones(len(task), self.dtype)
        if getattr(annotations, "has_weights", False):
            part, self._label, share = annotations.parts()
            self._share, data = (one.astype(self.dtype) for one in (share, annotations.parts(above_chance=True)[2]))
            task, worker = task[part], worker[part]
        row: Any = worker.astype(np.int32 if n_rows < 2**31 else np.int64)
        row *= annotations.n_answers
        row += self._label
        self._matrix = sparse.csr_array(
            (data, row, first_rows(task, annotations.n_tasks)), shape=(annotations.n_tasks, n_rows)
        )

    def vote_counts(self) -> Floats:
        shape = (self._matrix.shape[0], self.shape[2])
        votes = sparse.csr_array((self._share, self._label, self._matrix.indptr), shape=shape)
        return np.asarray(votes.toarray() if self.leaning is None else votes @ self.leaning.astype(self.dtype))

    def e_step(self, log_confusion: Floats, log_prior: Floats, gold: Codes | None = None) -> EStep:
        """Return P(true label | annotations) of every task and the log-likelihood; see `Engine`.

        `log_confusion` may be [worker, state, given] and `log_prior` of states, where a model puts m states of a task
        in the place of each true label k, numbered k m to k m + m - 1: the posterior then has one column per state.
        """
        return self._e_step(self._matrix, self._table(log_confusion), log_prior, gold)

    def messages(self, log_confusion: Floats) -> Floats:
        return np.asarray(self._matrix @ self._table(log_confusion))

    def m_step(self, posterior: Floats) -> Floats:
        return self._counts(self._matrix.T @ posterior.astype(self.dtype, copy=False))

    def sweep(self, log_confusion: Floats, log_prior: Floats, gold: Codes | None = None) -> Sweep:
        table = self._table(log_confusion)
        sums, mass, log_likelihood = np.zeros(table.shape), np.zeros(table.shape[1]), 0.0
        rows = max(_SWEEP_BLOCK // self.shape[1], len(sums))  # adding up the counts must not cost more than the steps
        for start in range(0, self._matrix.shape[0], rows):
            block = slice(start, start + rows)
            part, prior = self._matrix[block], log_prior if log_prior.ndim == 1 else log_prior[block]
            step = self._e_step(part, table, prior, None if gold is None else gold[block])
            sums += part.T @ step.posterior
            mass += step.posterior.sum(axis=0, dtype=np.float64)
            log_likelihood += step.log_likelihood
        return Sweep(Counts(self._counts(sums), self.leaning), mass, log_likelihood)

    def _table(self, log_confusion: Floats) -> Floats:
        return log_confusion.astype(self.dtype, copy=False).swapaxes(1, 2).reshape(-1, log_confusion.shape[1])

    def _counts(self, sums: Any) -> Floats:
        n_workers, _, n_answers = self.shape
        return np.asarray(sums, dtype=np.float64).reshape(n_workers, n_answers, -1).swapaxes(1, 2)

    def _e_step(self, matrix: Any, table: Floats, log_prior: Floats, gold: Codes | None) -> EStep:
        log_joint: Any = matrix @ table
        log_joint += log_prior.astype(self.dtype, copy=False)
        return posterior_of(log_joint, gold, self.shape[1])
