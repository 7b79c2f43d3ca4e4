"""The engine for large tables: blocks of tasks in torch, on CPU threads or CUDA; needs nothing but torch and numpy."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from labelonce._kernels._blocks import (
    BLOCK_SIZE,
    Block,
    Known,
    Totals,
    as_tensor,
    block_posterior,
    confusion_table,
    index_block,
    rows_of,
    sum_rows,
    vote_table,
)
from labelonce._kernels._engine import EStep, Sweep
from labelonce._kernels._processes import find_device
from labelonce._types import Codes, Floats

if TYPE_CHECKING:
    from labelonce.data import Annotations


class TorchEngine:
    """The annotations as blocks on a device, ready for many iterations.

    Parameters
    ----------
    row, start : int32 tensors
        All annotations in the layout of `Block`. Without `Annotations` this needs torch and numpy alone.
    shape : (n_workers, n_classes, n_answers)
    dtype : {"float64", "float32"}
        On the CPU torch is fast for float32 only.
    device : {"cpu", "cuda"}, optional
        Default: CUDA where there is any.
    block : int, optional
        Annotations in a block.
    leaning : (n_answers, n_classes), optional
        As in `Engine`.
    """

    def __init__(
        self,
        row: Tensor,
        start: Tensor,
        shape: tuple[int, int, int],
        dtype: str,
        device: str | None = None,
        *,
        block: int | None = None,
        leaning: Floats | None = None,
    ) -> None:
        self.device, self.dtype = find_device(device), np.dtype(dtype)
        self.shape, self.n_tasks, self.leaning = shape, len(start) - 1, leaning
        self.blocks: list[Block] = []
        self._first: list[int] = [0]
        for first, last in _cuts(start, block or BLOCK_SIZE[self.device.type]):
            low, high = int(start[first]), int(start[last])
            own = (row[low:high], start[first : last + 1] - low)
            self.blocks.append(index_block(*(tensor.to(self.device) for tensor in own)))
            self._first.append(last)

    @classmethod
    def of(
        cls, annotations: Annotations, dtype: str, device: str | None = None, *, block: int | None = None
    ) -> TorchEngine:
        row, start = map(torch.from_numpy, rows_of(annotations))
        shape = (annotations.n_workers, annotations.n_classes, annotations.n_answers)
        leaning = None if annotations.is_square else annotations.leaning
        return cls(row, start, shape, dtype, device, block=block, leaning=leaning)

    def vote_counts(self) -> Floats:
        votes = np.empty((self.n_tasks, self.shape[1]), dtype=self.dtype)
        leaning = np.eye(self.shape[1]) if self.leaning is None else self.leaning
        votes_of = vote_table(self.shape[0], leaning, self.dtype, self.device)
        for own, block in self._parts():
            votes[own] = sum_rows(block, votes_of).cpu().numpy()
        return votes

    def e_step(self, log_confusion: Floats, log_prior: Floats, gold: Codes | None = None) -> EStep:
        posterior = np.empty((self.n_tasks, self.shape[1]), dtype=self.dtype)
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        for own, _, part, log_likelihood in self._posteriors(log_confusion, log_prior, gold):
            posterior[own] = part.cpu().numpy()
            total += log_likelihood
        return EStep(posterior, float(total))

    def messages(self, log_confusion: Floats) -> Floats:
        found = np.empty((self.n_tasks, self.shape[1]), dtype=self.dtype)
        table = confusion_table(self.tensor(log_confusion))
        for own, block in self._parts():
            found[own] = sum_rows(block, table).cpu().numpy()
        return found

    def m_step(self, posterior: Floats) -> Floats:
        totals = Totals(self.shape, self.device)
        for own, block in self._parts():
            totals.add(block, self.tensor(posterior[own]))
        return totals.counts_by_worker()

    def sweep(self, log_confusion: Floats, log_prior: Floats, gold: Codes | None = None) -> Sweep:
        totals = Totals(self.shape, self.device)
        for _, block, part, log_likelihood in self._posteriors(log_confusion, log_prior, gold):
            totals.add(block, part, log_likelihood)
        return totals.sweep(self.leaning)

    def tensor(self, array: Floats) -> Tensor:
        """Return numbers as a tensor of the engine's kind on its device."""
        return as_tensor(array, self.dtype, self.device)

    def _parts(self) -> Iterator[tuple[slice, Block]]:
        for number, block in enumerate(self.blocks):
            yield slice(self._first[number], self._first[number + 1]), block

    def _posteriors(
        self, log_confusion: Floats, log_prior: Floats, gold: Codes | None
    ) -> Iterator[tuple[slice, Block, Tensor, Tensor]]:
        table = confusion_table(self.tensor(log_confusion))
        for own, block in self._parts():
            prior = self.tensor(log_prior if log_prior.ndim == 1 else log_prior[own])
            known = None if gold is None else _known(gold[own], self.device)
            yield own, block, *block_posterior(block, table, prior, known)


def _known(gold: Codes, device: torch.device) -> Known:
    task = np.flatnonzero(gold >= 0)
    return Known(torch.from_numpy(task).to(device), torch.from_numpy(gold[task].astype(np.int64)).to(device))


def _cuts(start: Tensor, most: int) -> Iterator[tuple[int, int]]:
    """Yield runs of tasks with about `most` annotations each: the first task and the one after the last."""
    n_tasks, n_annotations = len(start) - 1, int(start[-1])
    wanted = torch.tensor(range(most, n_annotations, most), dtype=start.dtype, device=start.device)
    inner = torch.searchsorted(start, wanted).tolist()
    bounds = sorted({0, *inner, n_tasks})
    yield from pairwise(bounds)
