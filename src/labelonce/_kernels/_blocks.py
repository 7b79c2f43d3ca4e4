"""Blocks of tasks with their annotations, and the sums over them: torch's `embedding_bag` both ways.

Needs nothing but torch and numpy. A block holds its annotations twice, by task for the E-step and by table row for the
M-step, so that both steps are sums over neighbouring entries. A block of posteriors stays in the processor's cache
between the two steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from labelonce._kernels._engine import Sweep
from labelonce._kernels._processes import Processes
from labelonce._kernels._tallies import Counts
from labelonce._types import Floats

if TYPE_CHECKING:
    from labelonce.data import Annotations

BLOCK_SIZE = {"cpu": 1 << 21, "cuda": 1 << 30}  # annotations; on the CPU its posteriors should fit the cache
_PIECE = 1024  # longest run that is summed in one go: long float32 sums lose digits, and few runs idle a GPU


@dataclass(frozen=True)
class Block:
    """Some tasks and all their annotations, as tensors on one device.

    Attributes
    ----------
    row : (n_annotations,)
        `worker * n_answers + label` of every annotation, by task.
    start : (n_tasks + 1,)
        Where each task's annotations start in `row`.
    task : (n_annotations,)
        The task, counted within the block, of every annotation, by row.
    piece : (n_pieces + 1,)
        Where the pieces start in `task`; a piece belongs to one row.
    seen : (n_seen,)
        The rows that occur.
    seen_piece : (n_seen + 1,)
        The first piece of every row that occurs.
    """

    row: Tensor
    start: Tensor
    task: Tensor
    piece: Tensor
    seen: Tensor
    seen_piece: Tensor

    @classmethod
    def of(cls, annotations: Annotations) -> Block:
        """Return all annotations as one block."""
        row, start = rows_of(annotations)
        return index_block(torch.from_numpy(row), torch.from_numpy(start))

    @property
    def n_tasks(self) -> int:
        """Number of tasks, labelled or not."""
        return len(self.start) - 1

    def to(self, device: torch.device) -> Block:
        """Return the block on a device."""
        return Block(*(getattr(self, field.name).to(device) for field in fields(self)))


def index_block(row: Tensor, start: Tensor) -> Block:
    """Return the block of annotations sorted by task, with the second index by row."""
    by_row, order = torch.sort(row, stable=True)
    tasks = torch.arange(len(start) - 1, dtype=row.dtype, device=row.device)
    task = torch.repeat_interleave(tasks, start.diff(), output_size=len(row))[order]
    del order
    seen, length = torch.unique_consecutive(by_row, return_counts=True)
    pieces = (length + _PIECE - 1) // _PIECE
    seen_piece = _starts(pieces, torch.int64)
    first = torch.repeat_interleave(_starts(length, torch.int64)[:-1] - _PIECE * seen_piece[:-1], pieces)
    piece = torch.empty(len(first) + 1, dtype=row.dtype, device=row.device)
    piece[:-1] = first + _PIECE * torch.arange(len(first), device=row.device)
    piece[-1] = len(row)
    return Block(row, start, task, piece, seen.long(), seen_piece)


def _starts(length: Tensor, dtype: torch.dtype) -> Tensor:
    """Return where runs of these lengths start, and after them the total."""
    start = torch.zeros(len(length) + 1, dtype=dtype, device=length.device)
    start[1:] = length.cumsum(0)
    return start


class Known(NamedTuple):
    """The tasks of a block with gold, counted within the block, and their classes."""

    task: Tensor
    label: Tensor


def sum_rows(block: Block, table: Tensor) -> Tensor:
    """Return the sum of the table's rows over the annotations of each task."""
    return embedding_bag(block.row, table, block.start, mode="sum", include_last_offset=True)


def block_posterior(
    block: Block, table: Tensor, log_prior: Tensor, known: Known | None = None
) -> tuple[Tensor, Tensor]:
    """Return the posteriors of a block's tasks and their log-likelihood; `table` is log P(given | true) by row."""
    joint = sum_rows(block, table).add_(log_prior)
    if known is not None:
        kept = joint[known.task, known.label]
        joint[known.task] = -torch.inf
        joint[known.task, known.label] = kept
    top = joint.amax(1, keepdim=True)
    mass = joint.sub_(top).exp_().sum(1, keepdim=True)
    joint.div_(mass)
    return joint, mass.log_().add_(top).sum(dtype=torch.float64)


def fractions_of(block: Block, votes_of: Tensor) -> Tensor:
    """Return the vote fractions of a block's tasks, equal ones where nobody voted; `votes_of` is by row."""
    votes = sum_rows(block, votes_of)
    total = votes.sum(1, keepdim=True)
    return torch.where(total > 0, votes / total.clamp_min(1), 1 / votes.shape[1])


class Totals:
    """Confusion counts, tasks per class and log-likelihood, in one float64 tensor that processes can add up."""

    def __init__(self, shape: tuple[int, int, int], device: torch.device) -> None:
        n_workers, n_classes, self.n_answers = shape
        n_rows = n_workers * self.n_answers
        self.flat = torch.zeros(n_rows * n_classes + n_classes + 1, dtype=torch.float64, device=device)
        self.counts = self.flat[: n_rows * n_classes].view(n_rows, n_classes)
        self.class_counts = self.flat[n_rows * n_classes : -1]
        self.log_likelihood = self.flat[-1]

    def add(self, block: Block, posterior: Tensor, log_likelihood: Tensor | float = 0.0) -> None:
        """Add what a block's posteriors (n_tasks, n_classes) amount to."""
        sums = embedding_bag(block.task, posterior, block.piece, mode="sum", include_last_offset=True)
        if len(sums) > len(block.seen):
            pieces = torch.arange(len(sums), device=sums.device)
            sums = embedding_bag(pieces, sums.double(), block.seen_piece, mode="sum", include_last_offset=True)
        if len(block.seen) == len(self.counts):
            self.counts += sums
        else:
            self.counts[block.seen] += sums
        self.class_counts += _sum_tasks(posterior)
        self.log_likelihood += log_likelihood

    def counts_by_worker(self) -> Floats:
        """Return the confusion counts as [worker, true, given]."""
        shape = (-1, self.n_answers, self.counts.shape[1])
        return np.asarray(self.counts.cpu().numpy().reshape(shape).swapaxes(1, 2))

    def sweep(self, leaning: Floats | None = None) -> Sweep:
        """Return the totals as arrays."""
        mass = self.class_counts.cpu().numpy()
        return Sweep(Counts(self.counts_by_worker(), leaning), mass, float(self.log_likelihood))


def _sum_tasks(posterior: Tensor) -> Tensor:
    """Return the float64 sum over tasks: short sums in the given dtype, which is fast, then their sum."""
    whole = len(posterior) // _PIECE * _PIECE
    parts = posterior[:whole].view(-1, _PIECE, posterior.shape[1]).sum(1)
    return parts.sum(0, dtype=torch.float64) + posterior[whole:].sum(0)


def rows_of(annotations: Annotations) -> tuple[Any, Any]:
    """Return the arrays `row` and `start` of a block that holds all annotations."""
    index = np.int32 if annotations.n_workers * annotations.n_answers < 2**31 else np.int64
    row = annotations.worker * index(annotations.n_answers) + annotations.label
    start = np.zeros(annotations.n_tasks + 1, dtype=index)
    np.cumsum(np.bincount(annotations.task, minlength=annotations.n_tasks), out=start[1:])
    return row, start


def as_tensor(array: Any, dtype: Any, device: torch.device) -> Tensor:
    """Return numbers as a tensor, without a copy where they already are what is asked for."""
    return torch.from_numpy(np.require(array, dtype, ["C", "W"])).to(device)


def confusion_table(log_confusion: Tensor) -> Tensor:
    """Return [worker, true, given] as the table by row (n_workers * n_answers, n_classes), true classes as columns."""
    return log_confusion.transpose(1, 2).reshape(-1, log_confusion.shape[1])


def vote_table(n_workers: int, leaning: Floats, dtype: Any, device: torch.device) -> Tensor:
    """Return the table by row that holds what each row's answer votes for: a class, nothing, or a part of two."""
    return as_tensor(leaning, dtype, device).repeat(n_workers, 1)


class BlockSums:
    """The steps of EM over blocks that come one at a time, each process its own; their sums are those of all.

    The answers are the classes.

    Parameters
    ----------
    n_workers, n_classes : int
    dtype : {"float64", "float32"}
    device : torch.device
        Where the blocks are.
    processes : Processes
    """

    def __init__(
        self, n_workers: int, n_classes: int, *, dtype: str, device: torch.device, processes: Processes
    ) -> None:
        self.shape = (n_workers, n_classes)
        self.dtype, self.device, self.processes = np.dtype(dtype), device, processes

    def sweep_votes(self, blocks: Iterable[Block]) -> Sweep:
        """Return the counts that the vote fractions give."""
        n_workers, n_classes = self.shape
        votes_of = vote_table(n_workers, np.eye(n_classes), self.dtype, self.device)
        return self._sweep((block, fractions_of(block, votes_of), 0.0) for block in blocks)

    def sweep(self, blocks: Iterable[Block], log_confusion: Floats, log_prior: Floats) -> Sweep:
        """Return the counts that the posteriors give, and the log-likelihood; see `Engine.sweep`."""
        return self._sweep(self._posteriors(blocks, log_confusion, log_prior))

    def posteriors(self, blocks: Iterable[Block], log_confusion: Floats, log_prior: Floats) -> Iterator[Floats]:
        """Yield the posteriors (n_tasks, n_classes) of each block."""
        for _, posterior, _ in self._posteriors(blocks, log_confusion, log_prior):
            yield posterior.cpu().numpy()

    def _posteriors(
        self, blocks: Iterable[Block], log_confusion: Floats, log_prior: Floats
    ) -> Iterator[tuple[Block, Tensor, Tensor]]:
        confusion, prior = (as_tensor(array, self.dtype, self.device) for array in (log_confusion, log_prior))
        table = confusion_table(confusion)
        for block in blocks:
            yield block, *block_posterior(block, table, prior)

    def _sweep(self, parts: Iterable[tuple[Block, Tensor, Tensor | float]]) -> Sweep:
        n_workers, n_classes = self.shape
        totals = Totals((n_workers, n_classes, n_classes), self.device)
        for part in parts:
            totals.add(*part)
        self.processes.sum_(totals.flat)
        return totals.sweep()
