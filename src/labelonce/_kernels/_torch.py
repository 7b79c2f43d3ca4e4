"""The engine for large tables: torch's `embedding_bag` both ways, on CPU threads or CUDA.

Needs nothing but torch and numpy. The tasks are cut into blocks. A block holds its annotations twice, by task for
the E-step and by table row for the M-step, so that both steps are sums over neighbouring entries. A block of
posteriors stays in the processor's cache between the two steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from labelonce._kernels._engine import EStep, Sweep
from labelonce._processes import local_gpu, n_processes
from labelonce._types import Codes, Floats

if TYPE_CHECKING:
    from labelonce.data import Annotations

BLOCK = {"cpu": 1 << 21, "cuda": 1 << 30}  # annotations; on the CPU its posteriors should fit the cache
_PIECE = 1024  # longest run that is summed in one go: long float32 sums lose digits, and few runs idle a GPU


@dataclass(frozen=True)
class Block:
    """Some tasks and all their annotations, as tensors on one device.

    Attributes
    ----------
    row : (n_annotations,)
        `worker * n_classes + label` of every annotation, by task.
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


def posterior_of(block: Block, table: Tensor, log_prior: Tensor, known: Known | None = None) -> tuple[Tensor, Tensor]:
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


def fractions_of(block: Block, eye: Tensor) -> Tensor:
    """Return the vote fractions of a block's tasks, equal ones where nobody voted; `eye` is one-hot labels by row."""
    votes = sum_rows(block, eye)
    total = votes.sum(1, keepdim=True)
    return torch.where(total > 0, votes / total.clamp_min(1), 1 / votes.shape[1])


class Totals:
    """Confusion counts, tasks per class and log-likelihood, in one float64 tensor that processes can add up."""

    def __init__(self, n_rows: int, n_classes: int, device: torch.device) -> None:
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

    def sweep(self) -> Sweep:
        """Return the totals as arrays, confusion counts as [worker, true, given]."""
        flat = self.flat.cpu().numpy()
        counts, n_classes = flat[: self.counts.numel()], self.counts.shape[1]
        shape = (-1, n_classes, n_classes)
        return Sweep(counts.reshape(shape).swapaxes(1, 2), flat[len(counts) : -1], float(flat[-1]))


def _sum_tasks(posterior: Tensor) -> Tensor:
    """Return the float64 sum over tasks: short sums in the dtype at hand, which is fast, then their sum."""
    whole = len(posterior) // _PIECE * _PIECE
    parts = posterior[:whole].view(-1, _PIECE, posterior.shape[1]).sum(1)
    return parts.sum(0, dtype=torch.float64) + posterior[whole:].sum(0)


class TorchEngine:
    """The annotations as blocks on a device, ready for many iterations.

    Parameters
    ----------
    annotations : Annotations
    dtype : {"float64", "float32"}
        On the CPU torch is fast for float32 only.
    device : {"cpu", "cuda"}, optional
        Default: CUDA where there is any.
    block : int, optional
        Annotations in a block.
    """

    def __init__(
        self, annotations: Annotations, dtype: str, device: str | None = None, *, block: int | None = None
    ) -> None:
        row, start = rows_of(annotations)
        shape = (annotations.n_workers, annotations.n_classes)
        self._build(torch.from_numpy(row), torch.from_numpy(start), shape, dtype, device, block)

    @classmethod
    def from_rows(
        cls,
        row: Tensor,
        start: Tensor,
        shape: tuple[int, int],
        dtype: str,
        device: str | None = None,
        *,
        block: int | None = None,
    ) -> TorchEngine:
        """Return the engine of annotations in the layout of `Block`: int32 `row` and `start` of all tasks.

        `shape` is (n_workers, n_classes). Without `Annotations` this needs torch and numpy alone.
        """
        engine = cls.__new__(cls)
        engine._build(row, start, shape, dtype, device, block)
        return engine

    def _build(
        self,
        row: Tensor,
        start: Tensor,
        shape: tuple[int, int],
        dtype: str,
        device: str | None,
        block: int | None,
    ) -> None:
        self.device = find_device(device)
        self.dtype = np.dtype(dtype)
        self.shape = (*shape, shape[1])
        self.n_rows = shape[0] * shape[1]
        self.n_tasks = len(start) - 1
        self.blocks: list[Block] = []
        self._first: list[int] = [0]
        for first, last in _cuts(start, block or BLOCK[self.device.type]):
            low, high = int(start[first]), int(start[last])
            own = (row[low:high], start[first : last + 1] - low)
            self.blocks.append(index_block(*(tensor.to(self.device) for tensor in own)))
            self._first.append(last)

    def vote_counts(self) -> Floats:
        """Return how often each class was given to each task, shape (n_tasks, n_classes)."""
        votes = np.empty((self.n_tasks, self.shape[1]), dtype=self.dtype)
        eye = one_hot_table(self.shape[0], self.shape[1], torch.from_numpy(votes).dtype, self.device)
        for own, block in self._parts():
            votes[own] = sum_rows(block, eye).cpu().numpy()
        return votes

    def e_step(self, log_confusion: Floats, log_prior: Floats, gold: Codes | None = None) -> EStep:
        """Return P(true label | annotations) of every task and the log-likelihood; see `Engine`."""
        posterior = np.empty((self.n_tasks, self.shape[1]), dtype=self.dtype)
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        for own, _, part, log_likelihood in self._posteriors(log_confusion, log_prior, gold):
            posterior[own] = part.cpu().numpy()
            total += log_likelihood
        return EStep(posterior, float(total))

    def m_step(self, posterior: Floats) -> Floats:
        """Return the expected confusion counts as float64 [worker, true, given]."""
        totals = Totals(self.n_rows, self.shape[1], self.device)
        for own, block in self._parts():
            totals.add(block, self.tensor(posterior[own]))
        return totals.sweep().confusion_counts

    def sweep(self, log_confusion: Floats, log_prior: Floats, gold: Codes | None = None) -> Sweep:
        """Return the counts that `m_step` gives for the posteriors of `e_step`, and the tasks of each class."""
        totals = Totals(self.n_rows, self.shape[1], self.device)
        for _, block, part, log_likelihood in self._posteriors(log_confusion, log_prior, gold):
            totals.add(block, part, log_likelihood)
        return totals.sweep()

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
            yield own, block, *posterior_of(block, table, prior, known)


def rows_of(annotations: Annotations) -> tuple[Any, Any]:
    """Return the arrays `row` and `start` of a block that holds all annotations."""
    index = np.int32 if annotations.n_workers * annotations.n_classes < 2**31 else np.int64
    row = annotations.worker * index(annotations.n_classes) + annotations.label
    start = np.zeros(annotations.n_tasks + 1, dtype=index)
    np.cumsum(np.bincount(annotations.task, minlength=annotations.n_tasks), out=start[1:])
    return row, start


def find_device(device: str | None) -> torch.device:
    """Return the device asked for; default CUDA where there is any, of several processes each its own GPU."""
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ValueError("device='cuda' must have a GPU that PyTorch can use; got none. Use device='cpu'.")
    return torch.device("cuda", local_gpu()) if device == "cuda" and n_processes() > 1 else torch.device(device)


def as_tensor(array: Any, dtype: Any, device: torch.device) -> Tensor:
    """Return numbers as a tensor, without a copy where they already are what is asked for."""
    return torch.from_numpy(np.require(array, dtype, ["C", "W"])).to(device)


def confusion_table(log_confusion: Tensor) -> Tensor:
    """Return [worker, true, given] as the table by row (n_workers * n_classes, n_classes), true classes as columns."""
    return log_confusion.transpose(1, 2).reshape(-1, log_confusion.shape[1])


def one_hot_table(n_workers: int, n_classes: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return the table by row that holds each row's label as a one-hot vector."""
    return torch.eye(n_classes, dtype=dtype, device=device).repeat(n_workers, 1)


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
