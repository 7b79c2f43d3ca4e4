"""The engine of the base install: scipy's sparse products, readable and single-threaded."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from labelonce._annotations import Annotations
from labelonce._kernels._engine import EStep, Sweep
from labelonce._kernels._posterior import normalise
from labelonce._rows import first_rows
from labelonce._types import Codes, Floats


class ScipyEngine:
    """The annotations as one sparse matrix (n_tasks, n_workers * n_classes), ready for many iterations.

    The M-step uses the same matrix transposed: it scatters into a table that fits the cache, which is faster than
    to gather by a second index sorted by row, and needs no such index.
    """

    def __init__(self, annotations: Annotations, dtype: str) -> None:
        self.dtype = np.dtype(dtype)
        self.shape = (annotations.n_workers, annotations.n_classes, annotations.n_classes)
        n_rows = annotations.n_workers * annotations.n_classes
        row: Any = annotations.worker.astype(np.int32 if n_rows < 2**31 else np.int64)
        row *= annotations.n_classes
        row += annotations.label
        self._label = annotations.label
        ones = np.ones(len(row), dtype=self.dtype)
        self._matrix = sparse.csr_array(
            (ones, row, first_rows(annotations.task, annotations.n_tasks)), shape=(annotations.n_tasks, n_rows)
        )

    def vote_counts(self) -> Floats:
        """Return how often each class was given to each task, shape (n_tasks, n_classes)."""
        shape = (self._matrix.shape[0], self.shape[1])
        votes = sparse.csr_array((self._matrix.data, self._label, self._matrix.indptr), shape=shape)
        return np.asarray(votes.toarray())

    def e_step(self, log_confusion: Floats, log_prior: Floats, gold: Codes | None = None) -> EStep:
        """Return P(true label | annotations) of every task and the log-likelihood; see `Engine`."""
        table = log_confusion.astype(self.dtype, copy=False).swapaxes(1, 2).reshape(-1, self.shape[1])
        log_joint: Any = self._matrix @ table
        log_joint += log_prior.astype(self.dtype, copy=False)
        if gold is not None:
            _fix(log_joint, gold)
        log_likelihood = normalise(log_joint)
        return EStep(log_joint, log_likelihood)

    def m_step(self, posterior: Floats) -> Floats:
        """Return the expected confusion counts as float64 [worker, true, given]."""
        counts = self._matrix.T @ posterior.astype(self.dtype, copy=False)
        return np.asarray(counts, dtype=np.float64).reshape(self.shape).swapaxes(1, 2)

    def sweep(self, log_confusion: Floats, log_prior: Floats, gold: Codes | None = None) -> Sweep:
        """Return the counts that `m_step` gives for the posteriors of `e_step`, and the tasks of each class."""
        posterior, log_likelihood = self.e_step(log_confusion, log_prior, gold)
        return Sweep(self.m_step(posterior), posterior.sum(axis=0, dtype=np.float64), log_likelihood)


def _fix(log_joint: Floats, gold: Codes) -> None:
    """Leave only the gold class of the tasks that have one."""
    known = np.flatnonzero(gold >= 0)
    kept = log_joint[known, gold[known]]
    log_joint[known] = -np.inf
    log_joint[known, gold[known]] = kept
