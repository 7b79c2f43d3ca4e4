"""The sums on candidates in torch: as `CandidateSums`, on CPU threads or CUDA, where the tables stay between steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from labelonce._kernels._arrays import Arrays
from labelonce._kernels._candidate_sums import CandidateStep, CandidateSums, Part, as_tallies, drawn_step
from labelonce._kernels._candidates import Candidates
from labelonce._kernels._factors import Factors, Mistakes, Tallies
from labelonce._processes import find_device
from labelonce._types import Codes, Floats
from labelonce.data import Annotations

if TYPE_CHECKING:
    from labelonce._kernels._torch_evidence import TorchCandidateEvidence

_BLOCK = {"cpu": 1 << 20, "cuda": 1 << 24}  # numbers in a block


class _Tables(NamedTuple):
    """The logs of right and wrong by worker and row, and those of the shares of mistakes."""

    right: Tensor
    wrong: Tensor
    share: Tensor


@dataclass(frozen=True, eq=False)
class TorchPart:
    """A block on the device: `Part` as tensors, and where each task's annotations start; None if each has one."""

    tasks: slice
    local: Tensor
    start: Tensor | None
    each: int  # labels of every task, 0 if not all have as many
    cell: Tensor
    index: Tensor
    own: Tensor
    label_cell: Tensor
    uniform: Tensor

    def by_task(self, message: Tensor) -> Tensor:
        """Return the sums of what each annotation says over those of each task."""
        if self.start is None:
            return message
        if self.each:
            return message.view(-1, self.each, message.shape[1]).sum(dim=1)
        return torch.segment_reduce(message, "sum", offsets=self.start, unsafe=True, initial=0)


class TorchCandidateSums:
    """The annotations of tasks with candidates on a device, ready for many iterations.

    Parameters
    ----------
    annotations, classes, mistakes, row, dtype
        As in `CandidateSums`.
    device : {"cpu", "cuda"}, optional
        Default: CUDA where there is any.
    """

    def __init__(
        self,
        annotations: Annotations,
        classes: Codes,
        mistakes: Mistakes,
        row: Codes,
        dtype: str = "float64",
        device: str | None = None,
    ) -> None:
        self.device, self.dtype, self.kind = find_device(device), np.dtype(dtype), getattr(torch, dtype)
        self.arrays = Arrays(torch, self._tensor, lambda tensor: tensor.cpu().numpy())
        self.classes, self.mistakes = classes, mistakes
        self.n_workers, self.n_classes, self.n_rows = annotations.n_workers, annotations.n_classes, int(row.max()) + 1
        self._n_shares = len(mistakes) + self.n_classes + 1
        sums = CandidateSums(annotations, classes, mistakes, row, dtype)
        self.parts = [self._put(part, sums.uniform[part.tasks]) for part in sums.parts(_BLOCK[self.device.type])]

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.classes)

    def keep(self, log_prior: Any) -> Tensor:
        """Return a log prior as a tensor on the device, where many steps may use it."""
        if isinstance(log_prior, Tensor):
            return log_prior.to(self.kind)
        return self._tensor(np.asarray(log_prior, dtype=self.dtype))

    def e_step(self, factors: Factors, log_prior: Any) -> CandidateStep:
        """Return the posteriors and the log-likelihood; see `CandidateSums`."""
        joint = np.empty((self.n_tasks, self.classes.shape[1] + 1), self.dtype)
        total = self._zero()
        for part, posterior, log_likelihood in self._posteriors(factors, log_prior):
            joint[part.tasks] = posterior.cpu().numpy()
            total += log_likelihood
        return CandidateStep(self.as_candidates(joint), float(total))

    def messages(self, factors: Factors) -> Floats:
        """Return the sum of log P(label | true) over each task's labels, by candidate, (n_tasks, width + 1)."""
        found = np.empty((self.n_tasks, self.classes.shape[1] + 1), self.dtype)
        tables = self._tables(factors)
        for part in self.parts:
            found[part.tasks] = _messages(part, tables).cpu().numpy()
        return found

    def m_step(self, posterior: Candidates, weight: Floats | None = None) -> Tallies:
        """Return right and wrong labels as posteriors on these candidates see them; tasks count `weight`, or 1."""
        totals = TorchTotals(self)
        for part in self.parts:
            wide = np.concatenate([posterior.probability[part.tasks], posterior.rest[part.tasks, None]], axis=1)
            if weight is not None:
                wide = wide * weight[part.tasks, None]
            totals.add(part, self.keep(wide))
        return totals.tallies()

    def sweep(self, factors: Factors, log_prior: Any) -> tuple[Tallies, float]:
        """Return what `m_step` gives for the posteriors of `e_step`, which stay here; the log-likelihood."""
        totals, total, every = TorchTotals(self), self._zero(), drawn_step(self.n_tasks)
        for part, posterior, log_likelihood in self._posteriors(factors, log_prior):
            totals.add(part, posterior)
            totals.draw(part, posterior, every)
            total += log_likelihood
        return totals.tallies(drawn=True), float(total)

    def evidence(self) -> TorchCandidateEvidence:
        """Return what labels say of their workers, to be heard in steps."""
        from labelonce._kernels._torch_evidence import TorchCandidateEvidence

        return TorchCandidateEvidence(self)

    def as_candidates(self, wide: Floats) -> Candidates:
        """Return probabilities (n_tasks, width + 1) as distributions."""
        return Candidates(self.classes, wide[:, :-1], wide[:, -1], self.n_classes)

    def _zero(self) -> Tensor:
        return torch.zeros((), dtype=torch.float64, device=self.device)

    def _put(self, part: Part, uniform: Floats) -> TorchPart:
        """Return a block on the device."""
        n_tasks, n = part.tasks.stop - part.tasks.start, part.rows.stop - part.rows.start
        local = np.arange(n_tasks) if part.local is None else part.local
        padding = np.pad(self.classes[part.tasks] < 0, ((0, 0), (0, 1)))[local]
        anywhere = np.arange(n)[:, None] % self._n_shares  # padding adds nothing, but takes long if all to one place
        index = np.where(padding, anywhere, part.index).astype(np.int32)
        start, each = None, 1
        if part.local is not None:
            first = np.searchsorted(part.local, np.arange(n_tasks + 1))
            start, each = self._tensor(first), int(first[1]) if (np.diff(first) == first[1]).all() else 0
        places = map(self._tensor, (part.cell, index, part.own.astype(np.int64), part.label_cell, uniform))
        return TorchPart(part.tasks, self._tensor(local), start, each, *places)

    def _tensor(self, array: Any) -> Tensor:
        return torch.as_tensor(array, device=self.device)

    def _tables(self, factors: Factors) -> _Tables:
        return _Tables(*map(self._tensor, factors.log_tables(self.dtype)))

    def _posteriors(self, factors: Factors, log_prior: Any) -> Iterator[tuple[TorchPart, Tensor, Tensor]]:
        tables, prior = self._tables(factors), self.keep(log_prior)
        for part in self.parts:
            joint = _messages(part, tables) + prior[part.tasks]
            evidence = joint.logsumexp(dim=1, keepdim=True)
            yield part, joint.sub_(evidence).exp_(), evidence.sum(dtype=torch.float64)


def _messages(part: TorchPart, tables: _Tables) -> Tensor:
    message = tables.wrong[part.cell]
    message += tables.share[part.index]
    message.scatter_(1, part.own[:, None], tables.right[part.label_cell][:, None])
    return part.by_task(message)


class TorchTotals:
    """Sums over blocks in float64."""

    def __init__(self, sums: TorchCandidateSums) -> None:
        self._sums = sums
        n_cells = sums.n_workers * (sums.n_rows + 1)
        sizes = (n_cells, n_cells, sums._n_shares, n_cells, n_cells)
        zeros = (torch.zeros(size, dtype=torch.float64, device=sums.device) for size in sizes)
        self.right, self.wrong, self.given, self.drawn_right, self.drawn_wrong = zeros

    def add(self, part: TorchPart, posterior: Tensor) -> None:
        """Add what a block's posteriors (n_tasks, width + 1) amount to."""
        by_label = posterior[part.local].double()
        self.right.index_add_(0, part.label_cell, by_label.gather(1, part.own[:, None])[:, 0])
        by_label.scatter_(1, part.own[:, None], 0.0)
        self.wrong.index_add_(0, part.cell.flatten(), by_label.flatten())
        self.given.index_add_(0, part.index[:, :-1].flatten(), by_label[:, :-1].flatten())
        self.given[-1] += by_label[:, -1].sum()  # of classes that are no candidates: all in one place

    def draw(self, part: TorchPart, posterior: Tensor, every: int) -> None:
        """Count labels against one class that is drawn for every so many tasks, by the numbers of `CandidateSums`."""
        uniform = part.uniform[:, None] * posterior.sum(dim=1, keepdim=True)
        drawn = (posterior.cumsum(dim=1) < uniform).sum(dim=1).clamp_(max=posterior.shape[1] - 1)[part.local]
        counts = ((part.local + part.tasks.start) % every == 0).double()
        right = drawn == part.own
        self.drawn_right.index_add_(0, part.label_cell, counts * right)
        self.drawn_wrong.index_add_(0, part.cell.gather(1, drawn[:, None])[:, 0], counts * ~right)

    def tallies(self, *, drawn: bool = False) -> Tallies:
        """Return the sums as arrays, `drawn` ones too."""
        found = (self.right, self.wrong, self.given, *((self.drawn_right, self.drawn_wrong) if drawn else ()))
        arrays = (one.cpu().numpy() for one in found)
        return as_tallies(*arrays, n_pairs=len(self._sums.mistakes), n_rows=self._sums.n_rows)
