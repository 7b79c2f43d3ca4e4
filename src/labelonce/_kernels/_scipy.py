"""The engine of the base install: scipy's sparse products, readable and single-threaded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from labelonce._annotations import Annotations
from labelonce._kernels._posterior import normalise
from labelonce._rows import first_rows
from labelonce._types import Codes, Floats


class EStep(NamedTuple):
    """What one E-step gives: posteriors (n_tasks, n_classes) and the log-likelihood of all annotations."""

    posterior: Floats
    log_likelihood: float


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
        """Return P(true label | annotations) of every task, and the log-likelihood.

        Parameters
        ----------
        log_confusion : (n_workers, n_states, n_classes)
            Log P(given | state) as [worker, state, given]; finite. The states of a task are its n_classes true
            labels, or what a model puts in their place: the posterior then has a column a state.
        log_prior : (n_states,) or (n_tasks, n_states)
            Log P(state), below infinity.
        gold : (n_tasks,), optional
            Class codes of known true labels, -1 where unknown. Their posteriors are one-hot; where a class is m states,
            k m to k m + m - 1, the other classes' are zero.
        """
        table = log_confusion.astype(self.dtype, copy=False).swapaxes(1, 2).reshape(-1, log_confusion.shape[1])
        log_joint: Any = self._matrix @ table
        log_joint += log_prior.astype(self.dtype, copy=False)
        if gold is not None:
            _fix(log_joint, gold, self.shape[1])
        log_likelihood = normalise(log_joint)
        return EStep(log_joint, log_likelihood)

    def m_step(self, posterior: Floats) -> Floats:
        """Return the expected confusion counts as float64 [worker, true label or state, given]."""
        counts = self._matrix.T @ posterior.astype(self.dtype, copy=False)
        n_workers, _, n_classes = self.shape
        return np.asarray(counts, dtype=np.float64).reshape(n_workers, n_classes, -1).swapaxes(1, 2)


def _fix(log_joint: Floats, gold: Codes, n_classes: int) -> None:
    """Leave only the gold class, in all its states, of the tasks that have one."""
    known = np.flatnonzero(gold >= 0)
    by_class = log_joint[known].reshape(len(known), n_classes, -1)
    by_class[np.arange(n_classes) != gold[known, None]] = -np.inf
    log_joint[known] = by_class.reshape(len(known), -1)
