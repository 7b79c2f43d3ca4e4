"""What labels say of their workers' chances of being right, in torch: as `CandidateEvidence` does."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from labelonce._kernels._candidate_evidence import LEAST, WEAK, Chances, Heard
from labelonce._kernels._factors import Factors
from labelonce._kernels._torch_candidates import TorchCandidateSums, TorchPart, TorchTotals


class TorchCandidateEvidence:
    """The evidence of the labels of tasks with candidates on a device, kept from step to step; none at the start."""

    def __init__(self, sums: TorchCandidateSums) -> None:
        self._sums = sums
        self._evidence = [torch.zeros_like(part.cell[:, :-1], dtype=sums.kind) for part in sums.parts]

    def step(self, chances: Chances, factors: Factors, log_prior: Any) -> Heard:
        """Return what labels say now; see `CandidateEvidence`."""
        sums, tables, prior = self._sums, _Tables(chances, factors, self._sums), self._sums.keep(log_prior)
        messages = np.empty((sums.n_tasks, sums.classes.shape[1] + 1), sums.dtype)
        totals, gathered = TorchTotals(sums), _Gathered(sums, tables.grid)
        for part, evidence in zip(sums.parts, self._evidence, strict=True):
            chance = tables.without_own(part, evidence)
            own = chance.gather(1, part.own[:, None])
            message = torch.log((1 - chance) * tables.share[part.index]).scatter_(1, part.own[:, None], own.log())
            message = part.by_task(message)
            messages[part.tasks] = message.cpu().numpy()
            posterior = (message + prior[part.tasks]).softmax(dim=1)
            totals.add(part, posterior)
            evidence.copy_(_evidence(part, posterior[part.local], chance))
            gathered.add(part, evidence)
        return Heard(gathered.log_likelihood(), totals.tallies(), messages)


class _Tables:
    """Beliefs by cell, with a last row of every worker that stands for all of them."""

    def __init__(self, chances: Chances, factors: Factors, sums: TorchCandidateSums) -> None:
        whole = np.concatenate([chances.belief, chances.belief.mean(axis=1, keepdims=True)], axis=1)
        self.grid = sums.keep(chances.grid)
        self.belief = sums.keep(whole.reshape(-1, len(chances.grid)))
        self.mean = self.belief @ self.grid
        self.variance = (self.belief @ self.grid**2 - self.mean**2).clamp_(min=0.0)
        self.share = sums.keep(np.maximum(factors.shares, LEAST**2))

    def without_own(self, part: TorchPart, evidence: Tensor) -> Tensor:
        """Return the chance of being right of each label and candidate, by the other labels of the worker."""
        chance, cell = self.mean[part.cell], part.cell[:, :-1]
        inner = chance[:, :-1]
        inner -= 2 * evidence * self.variance[cell]  # exact to first order
        strong = torch.nonzero(evidence.abs() > WEAK, as_tuple=True)
        likelihood = 1 + evidence[strong][:, None] * (2 * self.grid - 1)
        belief = self.belief[cell[strong]] / likelihood
        inner[strong] = (belief @ self.grid) / belief.sum(dim=1)
        same = part.cell == part.label_cell[:, None]
        return torch.where(same, chance.gather(1, part.own[:, None]), chance).clamp_(LEAST, 1 - LEAST)


def _evidence(part: TorchPart, posterior: Tensor, chance: Tensor) -> Tensor:
    """Return the evidence of every label for each of its candidates' rows; see `CandidateEvidence`."""
    wrong, place = posterior / (1 - chance), part.own[:, None]
    same = part.cell == part.label_cell[:, None]
    alike, alike_wrong = ((one * same).sum(dim=1, keepdim=True) for one in (posterior, wrong))
    never = 1 - alike + alike_wrong - wrong.gather(1, place)
    always = 1 - alike + (posterior / chance).gather(1, place)
    at_zero, at_one = 1 - posterior + wrong, 1 - posterior
    found = torch.where(same, 0.0, (at_one - at_zero) / (at_one + at_zero))
    return found.scatter_(1, place, (always - never) / (always + never).clamp_(min=LEAST))[:, :-1]


class _Gathered:
    """The log-likelihoods of rows: strong evidence one by one, weak evidence as a series."""

    def __init__(self, sums: TorchCandidateSums, grid: Tensor) -> None:
        self._shape = (sums.n_workers, sums.n_rows + 1, len(grid))
        self._odds = (2 * grid - 1).double()
        n_cells = self._shape[0] * self._shape[1]
        self._first, self._second = torch.zeros((2, n_cells), dtype=torch.float64, device=sums.device)
        self._strong = torch.zeros((n_cells, len(grid)), dtype=torch.float64, device=sums.device)

    def add(self, part: TorchPart, evidence: Tensor) -> None:
        cell, is_strong = part.cell[:, :-1], evidence.abs() > WEAK
        weak = evidence.masked_fill(is_strong, 0.0).double()
        self._first.index_add_(0, cell.flatten(), weak.flatten())
        self._second.index_add_(0, cell.flatten(), (weak * weak).flatten())
        logs = torch.log((1 + evidence[is_strong].double()[:, None] * self._odds).clamp_(min=LEAST))
        self._strong.index_add_(0, cell[is_strong], logs)

    def log_likelihood(self) -> Any:
        """Return the sums as an array, (n_workers, n_rows, n_grid)."""
        whole = self._strong + self._first[:, None] * self._odds - self._second[:, None] * self._odds**2 / 2
        return whole.reshape(self._shape)[:, :-1].cpu().numpy()
