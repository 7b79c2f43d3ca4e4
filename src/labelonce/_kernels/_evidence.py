"""The labels of the rows, ready for many steps, whatever layout they are in: the one place that decides which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from labelonce._kernels._beliefs import Beliefs
from labelonce._kernels._confusion import Confusion
from labelonce._kernels._engine import Engine, Sweep, engine_for, make_engine
from labelonce._kernels._posterior import floored_log, vote_fractions
from labelonce._kernels._processes import add_up
from labelonce._kernels._slots import Pattern, vote_slots
from labelonce._kernels._tallies import Counts
from labelonce._types import Codes, Floats, Mask
from labelonce.data import check_whole, is_large

if TYPE_CHECKING:
    from labelonce.data import Annotations

_PAYS_ON_CUDA = 10_000  # annotations: sums on slots are slow in numpy, so that on CUDA they pay much sooner
_AT_ONCE = 1 << 20  # numbers of labels that are worked on at once
_NUMBERS = 10  # that stand for an annotation where it has slots: the classes that the engines were measured with


class EStep(NamedTuple):
    """The posteriors of all rows, and the log-likelihood of all labels."""

    beliefs: Beliefs
    log_likelihood: float


class Evidence(Protocol):
    """The labels of the rows; arrays by row and slot have a last column for the rest, if there is a rest.

    `leaning` is to what share answers are evidence for classes, None where they are the classes. `labels` are those
    that it was made of, `dtype` the precision in which `keep` makes no copy.
    """

    labels: Any
    leaning: Floats | None
    dtype: Any

    def log_prior(self, prior: Floats) -> Any:
        """Return P(class) as the log prior of the rows."""

    def keep(self, log_prior: Floats) -> Any:
        """Return a log prior by row and slot as the steps take it, where many steps use it."""

    def fetch(self, log_prior: Any) -> Floats:
        """Return it in numpy."""

    def messages(self, workers: Confusion) -> Floats:
        """Return the sum of log P(label | true) over the labels of each row, by slot."""

    def e_step(self, workers: Confusion, log_prior: Any, gold: Codes | None = None) -> EStep:
        """Return P(true class | labels) of every row, and the log-likelihood; `gold` holds class codes, -1: unknown."""

    def tallies(self, beliefs: Beliefs, weight: Floats | None = None) -> Any:
        """Return what labels say of their workers if these beliefs hold; rows count `weight`, or 1."""

    def sweep(
        self, workers: Confusion, log_prior: Any, gold: Codes | None = None, *, prior: Floats | None = None
    ) -> Sweep:
        """Return the tallies of the posteriors of `e_step`, which are never held all at once.

        Rows of each class are counted if `prior` says how likely classes without a slot are.
        """

    def select(self, rows: Mask) -> Evidence:
        """Return the evidence of some rows."""

    def total(self, numbers: Any) -> Floats:
        """Return sums over these rows as sums over those of all processes that share them."""


class DenseEvidence:
    """Evidence about all classes of every row, for workers that are matrices or can be made such.

    If it is `shared`, sums over labels are those of all processes, whose labels must have the same workers, classes and
    answers, in the same order.
    """

    dtype = np.dtype(np.float64)

    def __init__(self, labels: Any, engine: Engine, *, shared: bool = False) -> None:
        self.labels, self._engine, self.leaning, self._shared = labels, engine, engine.leaning, shared

    def log_prior(self, prior: Floats) -> Any:
        return floored_log(prior)

    def keep(self, log_prior: Floats) -> Any:
        return log_prior

    def fetch(self, log_prior: Any) -> Floats:
        return np.asarray(log_prior)

    def messages(self, workers: Confusion) -> Floats:
        return self._engine.messages(logs_of(workers))

    def e_step(self, workers: Confusion, log_prior: Any, gold: Codes | None = None) -> EStep:
        step = self._engine.e_step(logs_of(workers), log_prior, gold)
        return EStep(Beliefs.of(step.posterior), float(self.total(step.log_likelihood)))

    def tallies(self, beliefs: Beliefs, weight: Floats | None = None) -> Counts:
        amounts = beliefs.to_dense()
        counts = self._engine.m_step(amounts if weight is None else amounts * weight[:, None])
        return Counts(self.total(counts), self.leaning)

    def sweep(
        self, workers: Confusion, log_prior: Any, gold: Codes | None = None, *, prior: Floats | None = None
    ) -> Sweep:
        own = self._engine.sweep(logs_of(workers), log_prior, gold)
        counts = Counts(self.total(own.tallies.values), self.leaning)
        return Sweep(counts, self.total(own.class_counts), float(self.total(own.log_likelihood)))

    def votes(self, gold: Codes | None) -> Beliefs:
        """Return the vote fractions, equal ones where nobody voted."""
        return Beliefs.of(vote_fractions(self._engine.vote_counts(), gold))

    def select(self, rows: Mask) -> DenseEvidence:
        return make_evidence(self.labels.select(rows), engine="scipy", shared=self._shared)

    def total(self, numbers: Any) -> Floats:
        return add_up(numbers) if self._shared else np.asarray(numbers)


def logs_of(workers: Any) -> Floats:
    """Return the logs of P(given | true) [worker, true, given]."""
    found = getattr(workers, "log_values", None)
    return floored_log(workers.dense()) if found is None else found


def make_evidence(
    labels: Any,
    *,
    dtype: str = "float64",
    engine: str = "auto",
    device: str | None = None,
    shared: bool = False,
) -> DenseEvidence:
    """Return the evidence of labels about all classes; `shared`: of the rows of all processes together."""
    return DenseEvidence(labels, make_engine(labels, dtype, engine, device), shared=shared)


def make_slot_evidence(
    labels: Annotations,
    classes: Codes,
    pattern: Pattern,
    *,
    dtype: str = "float64",
    engine: str = "auto",
    device: str | None = None,
    draws: bool = False,
) -> Any:
    """Return the evidence of labels about the slots of each row, for workers that are factors of this pattern."""
    from labelonce._kernels._arrays import NumpyArrays
    from labelonce._kernels._slot_evidence import CoinEvidence, SlotEvidence

    check_whole(labels, "a fit of few candidate classes per task")
    numbers = len(labels) * (classes.shape[1] + 1)
    arrays: Any
    if engine_for(numbers // _NUMBERS, dtype, engine, device, pays_on_cuda=_PAYS_ON_CUDA) == "scipy":
        arrays = NumpyArrays(dtype)
    else:
        from labelonce._kernels._torch_arrays import TorchArrays

        arrays = TorchArrays(dtype, device)
    kind = CoinEvidence if pattern.is_coin else SlotEvidence
    return kind(labels, classes, pattern, arrays, draws=draws)


def evidence_of_votes(labels: Any, gold: Codes | None = None) -> tuple[Evidence, Beliefs]:
    """Return evidence of all classes with the vote fractions, or of the classes given where that would be too large."""
    if labels.is_square and is_large(labels.n_tasks, labels.n_workers, labels.n_classes):
        votes = vote_slots(labels, gold)
        even = Pattern.even(np.zeros(labels.n_classes, np.int32))
        return make_slot_evidence(labels, votes.codes, even, engine="scipy"), votes
    evidence = make_evidence(labels, engine="scipy")
    return evidence, evidence.votes(gold)


def label_chances(labels: Any, beliefs: Beliefs, workers: Any) -> Floats:
    """Return P(label | class) of every label, by slot of its row: (n_labels, n_slots), and of the rest."""
    if beliefs.classes is None:
        return np.asarray(workers.columns(labels.worker, labels.label))
    task, worker, label = labels.task, labels.worker, labels.label
    codes, rest = beliefs.codes[task], beliefs.wide()[task, -1]
    found = np.empty((len(task), codes.shape[1] + 1))
    found[:, :-1] = workers.probability(worker[:, None], np.maximum(codes, 0), label[:, None])
    own = np.where((codes == label[:, None]).any(axis=1), 0.0, beliefs.each_other[task])  # it may be in the rest itself
    share = np.divide(own, rest, out=np.zeros(len(task)), where=rest > 0)
    found[:, -1] = share * workers.probability(worker, label, label) + (1 - share) * workers.usual(worker)
    return found


def label_likelihoods(labels: Any, beliefs: Beliefs, workers: Any) -> Floats:
    """Return the probability of every label: from the beliefs about its row and its worker's confusion."""
    found, wide = np.empty(len(labels)), beliefs.wide()
    step = max(1, _AT_ONCE // wide.shape[1])
    for first in range(0, len(labels), step):
        some = slice(first, first + step)
        part = _Some(labels.task[some], labels.worker[some], labels.label[some])
        found[some] = np.einsum("ak,ak->a", wide[part.task], label_chances(part, beliefs, workers))
    return found


class _Some(NamedTuple):
    """Some labels: their rows, workers and answers."""

    task: Codes
    worker: Codes
    label: Codes


def first_beliefs(labels: Any, gold: Codes | None, *, few: bool, device: str | None = None) -> Beliefs:
    """Return the vote fractions, certain where gold is known: of all classes, or with `few` on slots of each row."""
    return vote_slots(labels, gold) if few else make_evidence(labels, device=device).votes(gold)
