"""What labels say of their workers' chances of being right, each label judged by the other labels of its worker.

The true class of a task is not known, so that a label is not simply right or wrong: its likelihood is linear in the
chance g of every row of its worker that might have made it, given what the others say. With 1 + e (2 g - 1) for such a
likelihood, up to a factor, e is the evidence for a chance of 1 rather than 0, from -1 to 1. The likelihoods of all
labels of a row multiply. To judge a task by a label, and predictions by labels, the label's own evidence is taken out
of the row again: a label must not vouch for itself. This is belief propagation (J. Pearl, "Probabilistic Reasoning in
Intelligent Systems", 1988) between tasks and rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from labelonce._kernels._candidate_sums import CandidateSums, Part, Totals
from labelonce._kernels._factors import Factors, Tallies
from labelonce._kernels._posterior import normalise
from labelonce._types import Floats

WEAK = 0.15  # evidence below it is summed as a series
LEAST = 1e-6  # chance of being right or wrong


class Chances(NamedTuple):
    """What is believed of each row: the probabilities of the chances of a grid, (n_workers, n_rows, n_grid)."""

    grid: Floats
    belief: Floats


class Heard(NamedTuple):
    """What one step gives.

    Attributes
    ----------
    log_likelihood : (n_workers, n_rows, n_grid)
        Of all labels of a row, by its chance of being right.
    tallies : Tallies
        Right and wrong labels, as the posteriors see them.
    messages : (n_tasks, width + 1)
        The sum of log P(label | true) over each task's labels, by candidate.
    """

    log_likelihood: Floats
    tallies: Tallies
    messages: Floats


class CandidateEvidence:
    """The evidence of the labels of tasks with candidates, kept from step to step; none at the start."""

    def __init__(self, sums: CandidateSums) -> None:
        self._sums = sums
        self._evidence = np.zeros((len(sums._label), sums.classes.shape[1]), dtype=sums.dtype)

    def step(self, chances: Chances, factors: Factors, log_prior: Floats) -> Heard:
        """Return what labels say now; of `factors` the shares of mistakes count, `log_prior` is as in `e_step`."""
        sums, tables = self._sums, _Tables(chances, factors, self._sums.dtype)
        messages = np.empty((sums.n_tasks, sums.classes.shape[1] + 1), sums.dtype)
        totals, gathered = Totals(sums), _Gathered(sums, chances.grid)
        for part in sums.parts():
            chance = tables.without_own(part, self._evidence[part.rows])
            message = np.log((1 - chance) * tables.share.take(part.index))
            message[np.arange(len(message)), part.own] = np.log(_own(part, chance))
            messages[part.tasks] = sums.by_task(part, message)
            posterior = messages[part.tasks] + log_prior[part.tasks]
            normalise(posterior)
            totals.add(part, posterior)
            by_label = posterior if part.local is None else posterior.take(part.local, axis=0)
            self._evidence[part.rows] = _evidence(part, by_label, chance)
            gathered.add(part, self._evidence[part.rows])
        return Heard(gathered.log_likelihood(), totals.tallies(), messages)


class _Tables:
    """Beliefs by cell, with a last row of every worker that stands for all of them."""

    def __init__(self, chances: Chances, factors: Factors, dtype: Any) -> None:
        self.grid = chances.grid.astype(dtype)
        whole = np.concatenate([chances.belief, chances.belief.mean(axis=1, keepdims=True)], axis=1)
        self.belief = whole.reshape(-1, len(self.grid)).astype(dtype)
        self.mean = self.belief @ self.grid
        self.variance = np.maximum(self.belief @ self.grid**2 - self.mean**2, 0.0)
        self.share = np.maximum(factors.shares, LEAST**2).astype(dtype)

    def without_own(self, part: Part, evidence: Floats) -> Floats:
        """Return the chance of being right of each label and candidate, by the other labels of the worker."""
        chance = self.mean.take(part.cell)
        cell = part.cell[:, :-1]
        inner = chance[:, :-1]
        inner -= 2 * evidence * self.variance.take(cell)  # exact to first order
        strong = np.nonzero(np.abs(evidence) > WEAK)
        likelihood = 1 + evidence[strong][:, None] * (2 * self.grid - 1)
        belief = self.belief[cell[strong]] / likelihood
        inner[strong] = (belief @ self.grid) / belief.sum(axis=1)
        same = part.cell == part.label_cell[:, None]
        np.copyto(chance, _own(part, chance)[:, None], where=same)
        return np.asarray(np.clip(chance, LEAST, 1 - LEAST, out=chance))


def _own(part: Part, values: Floats) -> Floats:
    """Return the values of the labels' own classes."""
    return np.asarray(values[np.arange(len(values)), part.own])


def _evidence(part: Part, posterior: Floats, chance: Floats) -> Floats:
    """Return the evidence of every label for each of its candidates' rows; that of its own row is in the label's place.

    With S = P(label), P(label | g of a row) / S is 1 - p + p / (1 - chance) at g = 0 and 1 - p at g = 1 for a candidate
    with posterior p that is not the label, and 1 - p + p / chance at g = 1 for the label itself.
    """
    wrong = posterior / (1 - chance)
    same = part.cell == part.label_cell[:, None]
    own = _own(part, posterior)
    alike, alike_wrong = (np.where(same, one, 0.0).sum(axis=1) for one in (posterior, wrong))
    never = 1 - alike + alike_wrong - _own(part, wrong)
    always = 1 - alike + own / _own(part, chance)
    at_zero, at_one = 1 - posterior + wrong, 1 - posterior
    found = np.where(same, 0.0, (at_one - at_zero) / (at_one + at_zero))
    found[np.arange(len(found)), part.own] = (always - never) / np.maximum(always + never, LEAST)
    return np.asarray(found[:, :-1])


class _Gathered:
    """The log-likelihoods of rows: strong evidence one by one, weak evidence as a series."""

    def __init__(self, sums: CandidateSums, grid: Floats) -> None:
        self._shape = (sums.n_workers, sums.n_rows + 1, len(grid))
        self._odds = (2 * grid - 1).astype(sums.dtype)
        n_cells = self._shape[0] * self._shape[1]
        self._first, self._second, self._strong = np.zeros(n_cells), np.zeros(n_cells), np.zeros((n_cells, len(grid)))

    def add(self, part: Part, evidence: Floats) -> None:
        cell = part.cell[:, :-1]
        is_strong = np.abs(evidence) > WEAK
        weak = np.where(is_strong, 0.0, evidence)
        self._first += np.bincount(cell.ravel(), weak.ravel(), len(self._first))
        self._second += np.bincount(cell.ravel(), (weak * weak).ravel(), len(self._first))
        strong = evidence[is_strong]
        logs = np.log(np.maximum(1 + strong[:, None] * self._odds, LEAST))
        at = sparse.csr_array(
            (np.ones(len(strong), strong.dtype), cell[is_strong], np.arange(len(strong) + 1)),
            shape=(len(strong), len(self._first)),
        )
        self._strong += at.T @ logs

    def log_likelihood(self) -> Floats:
        """Return the sums, (n_workers, n_rows, n_grid)."""
        whole = self._strong + self._first[:, None] * self._odds - self._second[:, None] * self._odds**2 / 2
        return np.asarray(whole.reshape(self._shape)[:, :-1])
