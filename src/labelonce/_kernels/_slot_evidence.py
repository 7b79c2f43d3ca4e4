"""The E-step and the M-step on slots: a few classes of each row one by one, all others as one, blocks at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from labelonce._kernels._arrays import NUMPY, Arrays
from labelonce._kernels._beliefs import Beliefs
from labelonce._kernels._engine import Sweep
from labelonce._kernels._evidence import EStep, make_slot_evidence
from labelonce._kernels._slots import Pattern, own_slots
from labelonce._kernels._tallies import Tallies
from labelonce._types import Codes, Floats, Mask
from labelonce.data import Annotations, first_rows

_DRAWN = 200_000  # rows whose true class is drawn to learn a population by


class Block(NamedTuple):
    """Some rows and all their labels: for each label and slot the place of its chances in the tables.

    `local` is the row of every label within the block, None if each row has one; `start` where each row's labels
    start, and `each` how many all of them have, 0 if they differ. `own` is the slot of a label's own class.
    """

    rows: slice
    local: Any
    start: Any
    each: int
    cell: Any
    index: Any
    own: Any
    label_cell: Any


class SlotEvidence:
    """Evidence about the slots of every row, for workers that are `Factors`; a last column stands for the rest.

    A cell is a worker and a row of its chances of being right, and one more of every worker for all other classes.

    Parameters
    ----------
    labels : Annotations
    classes : (n_rows, n_slots)
        As in `Beliefs`; every label must have a slot.
    pattern : Pattern
    arrays : Arrays
        Where the sums are done, and how precisely.
    draws : bool
        Whether the tallies of a sweep hold drawn labels, too: they depend on the order of the rows.
    """

    leaning = None

    def __init__(
        self, labels: Annotations, classes: Codes, pattern: Pattern, arrays: Arrays = NUMPY, *, draws: bool = False
    ) -> None:
        self.labels, self.classes, self.pattern, self.arrays, self._draws = labels, classes, pattern, arrays, draws
        self.dtype, self.n_classes, self.n_rates = arrays.dtype, labels.n_classes, int(pattern.row.max()) + 1
        self._start = first_rows(labels.task, labels.n_tasks)
        self._uniform = np.random.default_rng(0).random(len(classes), dtype=np.float32)
        self._row = np.append(pattern.row, self.n_rates).astype(np.int32)  # of padding: any, its prior is zero
        self.n_shares = len(pattern.mistakes) + self.n_classes + 1
        self._place_labels(max(1, NUMPY.block // (classes.shape[1] + 1)))
        self._blocks: list[Block] = []

    def _place_labels(self, step: int) -> None:
        """Find the slot of every label's own class, and where the shares of mistakes are, some labels at a time."""
        labels, shape = self.labels, (len(self.labels), self.classes.shape[1] + 1)
        self._own = np.empty(len(labels), dtype=np.int16)
        self._index = np.empty(shape, dtype=np.int16 if self.n_shares < 2**15 else np.int32)
        for first in range(0, len(labels), step):
            some = slice(first, first + step)
            codes, label = self._wide(self.classes[labels.task[some]]), labels.label[some, None]
            self._own[some] = (codes == label).argmax(axis=1)
            self._index[some] = self.pattern.mistakes.index(label, np.maximum(codes, 0))

    def _wide(self, classes: Codes) -> Codes:
        """Return slots with a last column for all other classes."""
        return np.pad(classes, ((0, 0), (0, 1)), constant_values=self.n_classes)

    def beliefs(self, wide: Floats) -> Beliefs:
        """Return probabilities (n_rows, n_slots + 1) as beliefs."""
        return Beliefs(wide[:, :-1], self.n_classes, self.classes, wide[:, -1])

    def log_prior(self, prior: Floats) -> Any:
        wide = np.zeros((len(self.classes), self.classes.shape[1] + 1), dtype=self.arrays.dtype)
        np.copyto(wide[:, :-1], prior.astype(wide.dtype).take(self.classes, mode="wrap"), where=self.classes >= 0)
        wide[:, -1] = np.maximum(1 - wide[:, :-1].sum(axis=1), 0.0)
        with np.errstate(divide="ignore"):
            return self.keep(np.log(wide, out=wide))

    def keep(self, log_prior: Any) -> Any:
        return self.arrays.floats(log_prior)

    def fetch(self, log_prior: Any) -> Floats:
        return self.arrays.get(log_prior)

    def messages(self, workers: Any) -> Floats:
        tables, found = self._tables(workers), self._empty()
        for block in self._parts():
            found[block.rows] = self.arrays.get(self._messages(block, tables))
        return found

    def e_step(self, workers: Any, log_prior: Any, gold: Codes | None = None) -> EStep:
        found, total = self._empty(), 0.0
        for block, joint, log_likelihood in self._posteriors(workers, log_prior, gold):
            found[block.rows] = self.arrays.get(joint)
            total += log_likelihood
        return EStep(self.beliefs(found), total)

    def tallies(self, beliefs: Beliefs, weight: Floats | None = None) -> Tallies:
        totals = Totals(self)
        for block in self._parts():
            wide = beliefs[block.rows].wide()
            self._count(totals, block, self.arrays.floats(wide if weight is None else wide * weight[block.rows, None]))
        return totals.tallies()

    def sweep(self, workers: Any, log_prior: Any, gold: Codes | None = None, *, prior: Floats | None = None) -> Sweep:
        totals, total, mass = Totals(self, draws=self._draws), 0.0, np.zeros(self.n_classes)
        for block, joint, log_likelihood in self._posteriors(workers, log_prior, gold):
            self._count(totals, block, joint)
            if self._draws:
                self._draw(totals, block, joint)
            total += log_likelihood
            if prior is not None:
                mass += self._class_counts(self.arrays.get(joint), self.classes[block.rows], prior)
        return Sweep(totals.tallies(), mass, total)

    def _class_counts(self, wide: Floats, classes: Codes, prior: Floats) -> Floats:
        """Return the rows of each class; classes without a slot have shares of the rest as in the prior."""
        there = classes >= 0
        own = np.where(there, prior.take(classes, mode="wrap"), 0.0)
        each = wide[:, -1] / np.maximum(1 - own.sum(axis=1), 1e-300)  # per unit of prior
        more = (wide[:, :-1] - each[:, None] * own)[there]
        return np.asarray(np.bincount(classes[there], more, self.n_classes) + each.sum() * prior)

    def select(self, rows: Mask) -> SlotEvidence:
        made: SlotEvidence = make_slot_evidence(
            self.labels.select(rows), self.classes[rows], self.pattern, engine="scipy"
        )
        return made

    def total(self, numbers: Any) -> Floats:
        return np.asarray(numbers)

    def _empty(self) -> Floats:
        return np.empty((len(self.classes), self.classes.shape[1] + 1), dtype=self.arrays.dtype)

    def _tables(self, workers: Any) -> tuple[Any, ...]:
        return tuple(map(self.arrays.put, workers.log_tables(self.arrays.dtype)))

    def _parts(self) -> Iterator[Block]:
        """Yield blocks of rows with about as many numbers each as are fast to work on at once."""
        if self._blocks:
            yield from self._blocks
            return
        n_rows, kept = len(self.classes), []
        per_row = self._numbers(self.classes.shape[1] + 1, max(1.0, len(self.labels) / max(1, n_rows)))
        step = max(1, int(self.arrays.block / per_row))
        for first in range(0, n_rows, step):
            block = self._block(slice(first, min(first + step, n_rows)))
            if self.arrays.keeps_blocks:
                kept.append(block)
            yield block
        self._blocks = kept

    def _numbers(self, n_slots: int, n_labels: float) -> float:
        """Return how many numbers a row is, for the size of the blocks."""
        return n_slots * n_labels

    def _block(self, rows: slice) -> Block:
        arrays, start = self.arrays, self._start[rows.start : rows.stop + 1]
        some, number = slice(int(start[0]), int(start[-1])), np.diff(start)
        each = int(number[0]) if len(number) and (number == number[0]).all() else 0
        local = None if each == 1 else self.labels.task[some] - np.int32(rows.start)
        own = self._own[some].astype(np.int64) if arrays.keeps_blocks else self._own[some]
        worker = self.labels.worker[some] * np.int32(self.n_rates + 1)
        label_cell = worker + self._row[self.labels.label[some]]
        places = None if local is None else arrays.put(start - start[0])
        cell, index = (None if one is None else arrays.put(one) for one in self._places(rows, some, local, worker))
        local = None if local is None else arrays.put(local)
        return Block(rows, local, places, each, cell, index, arrays.put(own), arrays.put(label_cell))

    def _places(self, rows: slice, some: slice, local: Any, worker: Codes) -> tuple[Any, Any]:
        """Return the cell and the index of some labels, those of some rows, in every slot."""
        classes = self._wide(self.classes[rows])
        row = self._row.take(classes, mode="wrap")
        cell = row if local is None else row.take(local, axis=0)
        cell += worker[:, None]
        index = self._index[some].astype(np.int32, copy=False)
        if self.arrays.keeps_blocks:  # an empty slot adds nothing, but takes long if all of them add to one place
            empty = (classes < 0) if local is None else (classes < 0)[local]
            index = np.where(empty, np.arange(len(index))[:, None] % self.n_shares, index).astype(np.int32)
        return cell, index

    def _messages(self, block: Block, tables: tuple[Any, ...]) -> Any:
        log_right, log_wrong, log_share = tables
        take = self.arrays.take
        message = take(log_wrong, block.cell)
        message += take(log_share, block.index)
        self.arrays.set_at(message, block.own, take(log_right, block.label_cell))
        return message if block.local is None else self.arrays.sum_runs(message, block.start, block.each)

    def _posteriors(self, workers: Any, log_prior: Any, gold: Codes | None) -> Iterator[tuple[Block, Any, float]]:
        tables, prior = self._tables(workers), self.keep(log_prior)
        for block in self._parts():
            joint = self._messages(block, tables)
            joint += prior[block.rows]
            if gold is not None:
                self._fix_gold(joint, block, gold[block.rows])
            yield block, joint, self.arrays.normalise(joint)

    def _fix_gold(self, joint: Any, block: Block, gold: Codes) -> None:
        """Leave known true classes alone in their rows."""
        known = np.flatnonzero(gold >= 0)
        if len(known):
            other = self._wide(self.classes[block.rows][known]) != gold[known, None]
            where = self.arrays.put(known)
            some = joint[where]
            some[self.arrays.put(other)] = -np.inf
            joint[where] = some

    def _count(self, totals: Totals, block: Block, wide: Any) -> None:
        """Add what a block's posteriors (n_rows, n_slots + 1) amount to."""
        arrays = self.arrays
        by_label = arrays.functions.asarray(wide) if block.local is None else arrays.rows(wide, block.local)
        right = arrays.at(by_label, block.own)
        arrays.add_at(totals.right, block.label_cell, right)
        if block.local is None:
            by_label = by_label + 0
        arrays.set_at(by_label, block.own, 0.0)
        arrays.add_at(totals.wrong, block.cell, by_label)
        arrays.add_at(totals.given, block.index, by_label)

    def _draw(self, totals: Totals, block: Block, wide: Any) -> None:
        """Count labels against one class per row that is drawn from its posterior, always by the same numbers.

        Of many rows some are enough.
        """
        arrays, every = self.arrays, max(1, -(-len(self.classes) // _DRAWN))
        some = slice(-block.rows.start % every, None, every)
        below = arrays.put(self._uniform[block.rows][some]) * wide[some].sum(1)
        place: Any = arrays.put(np.full(len(wide), -1))
        place[some] = 0
        reached = 0.0
        for share in wide[some].T[:-1]:
            reached = reached + share
            place[some] += reached < below
        by_label: Any = place if block.local is None else arrays.take(place, block.local)
        labels: Any = arrays.functions.where(by_label >= 0)[0]
        of_label: Any = by_label[labels]
        right = (of_label == block.own[labels]) * 1.0
        arrays.add_at(totals.drawn[0], block.label_cell[labels], right)
        arrays.add_at(totals.drawn[1], self._drawn_cell(block, labels, of_label), 1 - right)

    def _drawn_cell(self, block: Block, labels: Any, slot: Any) -> Any:
        """Return the cell of some labels in one slot each."""
        return self.arrays.at(block.cell[labels], slot)


class CoinEvidence(SlotEvidence):
    """The same for workers with one chance each whose mistakes are all alike: sums over labels, not labels and slots.

    A label adds the same to all slots but its own. In a block `cell` is the place of that one among the slots of all
    rows, and nobody asks which mistakes are made.
    """

    def _place_labels(self, step: int) -> None:
        self._own = own_slots(self.labels, self.classes)

    def _numbers(self, n_slots: int, n_labels: float) -> float:
        return max(n_slots, n_labels)

    def _places(self, rows: slice, some: slice, local: Any, worker: Codes) -> tuple[Any, Any]:
        row = np.arange(len(worker), dtype=np.int32) if local is None else local
        return row * np.int32(self.classes.shape[1] + 1) + self._own[some], None

    def _tables(self, workers: Any) -> tuple[Any, ...]:
        log_right, log_wrong, log_share = workers.log_tables(self.arrays.dtype)
        wrong = log_wrong + log_share[0]
        return self.arrays.put(log_right - wrong), self.arrays.put(wrong)

    def _messages(self, block: Block, tables: tuple[Any, ...]) -> Any:
        arrays, shape = self.arrays, (block.rows.stop - block.rows.start, self.classes.shape[1] + 1)
        more_if_own, wrong = (arrays.take(table, block.label_cell) for table in tables)
        message = arrays.zeros(shape[0] * shape[1])
        arrays.add_at(message, block.cell, more_if_own)
        message = message.reshape(shape)
        wrong = wrong[:, None]
        message += wrong if block.local is None else arrays.sum_runs(wrong, block.start, block.each)
        return arrays.floats(message)

    def _count(self, totals: Totals, block: Block, wide: Any) -> None:
        arrays = self.arrays
        right, every = arrays.take(wide.reshape(-1), block.cell), wide @ arrays.floats(np.ones(wide.shape[1]))
        arrays.add_at(totals.right, block.label_cell, right)
        arrays.add_at(totals.wrong, block.label_cell, (every if block.local is None else every[block.local]) - right)

    def _drawn_cell(self, block: Block, labels: Any, slot: Any) -> Any:
        return block.label_cell[labels]


class Totals:
    """Sums over blocks, by cell and by share of mistakes."""

    def __init__(self, evidence: SlotEvidence, *, draws: bool = False) -> None:
        self._evidence, zeros = evidence, evidence.arrays.zeros
        n_cells = evidence.labels.n_workers * (evidence.n_rates + 1)
        self.right, self.wrong, self.given = zeros(n_cells), zeros(n_cells), zeros(evidence.n_shares)
        self.drawn: tuple[Any, ...] = (zeros(n_cells), zeros(n_cells)) if draws else ()

    def tallies(self) -> Tallies:
        """Return the sums; wrong labels of classes without a slot are shared out to all rows of chances."""
        by_row, n_pairs = (-1, self._evidence.n_rates + 1), len(self._evidence.pattern.mistakes)
        get = self._evidence.arrays.get
        wrong, given = get(self.wrong).reshape(by_row), get(self.given)
        shared = wrong[:, :-1] + wrong[:, -1:] / self._evidence.n_rates
        crowd = (given[:n_pairs], given[n_pairs:-1], float(given[-1]))
        drawn = (get(one).reshape(by_row)[:, :-1] for one in self.drawn)
        return Tallies(get(self.right).reshape(by_row)[:, :-1], shared, *crowd, *drawn)
